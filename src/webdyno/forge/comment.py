"""What a gate's comment says, and that there is one: a later gate rewrites it.

The comment is made of `gate.json` alone, whose texts count as data: where a fork's measurement is
posted by another workflow, the fork wrote that file.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from webdyno.definitions.validation import first_fault
from webdyno.forge.api import Discussion
from webdyno.forge.github import github_discussion
from webdyno.forge.gitlab import gitlab_discussion
from webdyno.model.errors import UserError
from webdyno.model.files import read_given, unreadable
from webdyno.model.gate import GATE_FILE, GateJudgement
from webdyno.report.gate import details_markdown, gate_markdown
from webdyno.report.markdown import unmarked

MOST_GATE_BYTES = 4 * 2**20
MOST_LETTERS = 60_000
"""GitHub takes 65,536: https://docs.github.com/rest/issues/comments."""


def post_comment(folder: Path, name: str, environment: Mapping[str, str] = os.environ) -> str:
    """Post a gate's answer to the pull request of this CI job, or rewrite what was posted before.

    `name` tells several gates of one pull request apart. Give what was done, for people. Raise
    UserError where the folder has no gate or this is no CI job known here, OperationError where the
    forge refuses.
    """
    gate = read_gate(folder)
    discussion = _discussion(environment)
    if isinstance(discussion, str):
        return f"no comment: {discussion}"
    marker = f"<!-- webdyno gate: {unmarked(name)} -->"
    body = _cut(f"{marker}\n{comment(gate, name, discussion.job_page)}")
    earlier = discussion.own_comment(marker)
    if earlier is None:
        return f"commented: {discussion.add(body)}"
    return f"comment updated: {discussion.rewrite(earlier, body)}"


def read_gate(folder: Path) -> GateJudgement:
    """Read the answer of a gate from its folder."""
    file = folder / GATE_FILE
    try:
        gate = GateJudgement.model_validate_json(read_given(file, MOST_GATE_BYTES), strict=False)
    except FileNotFoundError:
        raise UserError(f"{file}: isn't there; --comment takes the folder of a gate") from None
    except OSError as error:
        raise unreadable(file, error) from None
    except ValidationError as error:
        raise UserError(f"{file}: is no answer of a gate: {first_fault(error)}") from None
    return gate.replace(repeat=harmless(gate.repeat))


def harmless(repeat: str) -> str:
    """Give a command of webdyno that asks about revisions; empty for any other.

    Who wrote it isn't who will paste it.
    """
    try:
        words = shlex.split(repeat)
    except ValueError:
        return ""
    return shlex.join(words) if words[:2] == ["webdyno", "gate"] and ":" not in repeat else ""


def comment(gate: GateJudgement, name: str, job_page: str) -> str:
    """Give what a reviewer reads: the answer and a table, the rest folded."""
    return "\n".join(_parts(gate, name, job_page)) + "\n"


def _parts(gate: GateJudgement, name: str, job_page: str) -> Iterator[str]:
    yield gate_markdown(gate, name)
    yield "<details><summary>Details</summary>\n"
    yield details_markdown(gate)
    yield "</details>\n"
    if job_page:
        yield f"[Job with the report as artifact]({job_page})"


def _cut(body: str) -> str:
    if len(body) <= MOST_LETTERS:
        return body
    # An open <details> would swallow what forges put below the comment.
    return f"{body[:MOST_LETTERS]}\n\n… cut; the report has all of it.\n\n</details>\n"


def _discussion(environment: Mapping[str, str]) -> Discussion | str:
    """Find the pull request; or say why there is none to comment."""
    if environment.get("GITHUB_ACTIONS") == "true":
        return github_discussion(environment)
    if environment.get("GITLAB_CI") == "true":
        return gitlab_discussion(environment)
    raise UserError(
        "--comment: this is no job of GitHub Actions or GitLab CI; elsewhere post the file gate.md "
        "by your CI's own means"
    )
