"""A gate's answer as a comment for a pull request, made of `gate.json` alone.

Its texts count as data: where a fork's measurement is posted by another workflow, the fork wrote
that file.
"""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from webdyno.config.reading import first_fault
from webdyno.core.errors import UserError
from webdyno.core.files import read_given, unreadable
from webdyno.core.limits import GATE_FILE, GateJudgement
from webdyno.media import document as doc
from webdyno.media.markdown import markdown, within
from webdyno.questions.gate.growth import growth_tables
from webdyno.questions.gate.show import claim_blocks, gate_outcome
from webdyno.report.conditions import machine_facts

MOST_GATE_BYTES = 4 * 2**20


@dataclass(frozen=True)
class GateComment:
    """What a reviewer reads: the answer and a table, the rest folded."""

    gate: GateJudgement

    def marker(self, name: str) -> str:
        return f"<!-- webdyno gate: {within(name)} -->"

    def body(self, name: str, job_page: str) -> str:
        """Return the rest of it; `name` distinguishes several gates of one pull request."""
        return "\n".join(self._parts(name, job_page)) + "\n"

    def _parts(self, name: str, job_page: str) -> Iterator[str]:
        yield gate_markdown(self.gate, name)
        yield "<details><summary>Details</summary>\n"
        yield details_markdown(self.gate)
        yield "</details>\n"
        if job_page:
            yield f"[Job with the report as artifact]({job_page})"


def gate_markdown(gate: GateJudgement, name: str = "") -> str:
    """Return a comment for a pull request; `name` distinguishes several gates of one."""
    answer = gate_outcome(gate)
    named = answer._replace(words=f"{name} {answer.words}".strip())
    return markdown(doc.Document("", "", [doc.Headlines([named]), *claim_blocks(gate)]))


def details_markdown(gate: GateJudgement) -> str:
    """Return the machine, and all functions that grew."""
    lines = []
    if gate.machine:
        facts = (f"{term}: {said}" for term, said in machine_facts(gate.machine))
        lines += [f"Machine: {within('; '.join(facts))}", ""]
    tables = [*growth_tables(gate.grew)]
    return "\n".join([*lines, markdown(doc.Document("", "", tables)) if tables else ""])


def gate_comment_in(folder: Path) -> GateComment:
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
    return GateComment(gate.replace(repeat=harmless(gate.repeat)))


TAKE_VALUES = {
    *("--base", "--head", "--path", "--endpoint", "--site", "--fail-if", "--time", "--rate"),
    *("--connections", "-c", "--testbed", "--link", "--delay", "--loss", "--server-cores"),
    "--ignore",
}
TAKE_NONE = {"--confirm", "--same-bodies", "--quiet", "--verbose"}
"""Flags of a gate that name no file and no folder, run nothing and agree to nothing."""


def harmless(repeat: str) -> str:
    """Return a gate's command of known flags only: others wrote what is pasted; else nothing."""
    try:
        words = shlex.split(repeat)
    except ValueError:
        return ""
    if words[:2] != ["webdyno", "gate"] or ":" in repeat or not repeat.isprintable():
        return ""
    rest = iter(words[2:])
    for word in rest:
        flag, joined, _ = word.partition("=")
        has_value = flag in TAKE_VALUES and (joined or not next(rest, "-").startswith("-"))
        if not (word in TAKE_NONE or has_value):
            return ""
    return shlex.join(words)
