"""What commands print, as somebody last read it and found it good.

With WEBDYNO_REWRITE_SNAPSHOTS=1 the texts are written again; read them before a commit.
"""

import os
from pathlib import Path

SNAPSHOTS = Path(__file__).parent / "snapshots"
REWRITE = "WEBDYNO_REWRITE_SNAPSHOTS"


def assert_as_approved(name: str, printed: str) -> None:
    """Compare with the text approved last, without spaces at the ends of lines."""
    reported = "\n".join(line.rstrip() for line in printed.splitlines()) + "\n"
    assert_same_text(SNAPSHOTS / f"{name}.txt", reported)


def assert_same_text(file: Path, reported: str) -> None:
    """Compare with a file's text, or write it again."""
    if os.environ.get(REWRITE):
        file.write_text(reported, encoding="utf-8")
    assert reported == file.read_text(encoding="utf-8")
