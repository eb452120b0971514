"""What can be posted: the answer that a run's folder has, by the question that was asked."""

from pathlib import Path
from typing import Protocol

from webdyno.core.registry import COMMENT, imported


class Comment(Protocol):
    """What a reviewer reads."""

    def marker(self, name: str) -> str:
        """Return the comment's first line, which no reader sees, by which it is found again."""

    def body(self, name: str, job_page: str) -> str:
        """Return the rest as Markdown; `job_page` is where the job of its measurement is shown."""


def comment_in(folder: Path) -> Comment:
    """Read what is to be said of a folder's run; raise UserError where there is nothing."""
    comment: Comment = imported(COMMENT)(folder)
    return comment
