"""A gate's answer as a comment for a pull request, made of `gate.json` alone.

Title, tables and details are made here. The lines between them (Cause, Note, Costs, Repeat, …) are
`FACTS` of `show.py`, which the terminal and CI have as well; what notes say is in `notes.py`, and
how a change is said in `words.py`.

Its texts count as data: where a fork's measurement is posted by another workflow, the fork wrote
that file.
"""

import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from webdyno.config.reading import first_fault
from webdyno.core.errors import UserError
from webdyno.core.files import read_given, unreadable
from webdyno.core.format import DASH, MISSING, count, latency, significant
from webdyno.core.limits import GATE_FILE, GateAnswer, GateClaim, GateJudgement
from webdyno.core.metrics import METRICS
from webdyno.media import document as doc
from webdyno.media.markdown import markdown, within, without_markup
from webdyno.questions.gate.growth import growth_tables
from webdyno.questions.gate.show import REPEAT, answer_words, changes, gate_facts, short_names
from webdyno.questions.gate.words import change_words, limit_words
from webdyno.report.conditions import machine_facts
from webdyno.report.words import MICROSECONDS, metric_title

MOST_GATE_BYTES = 4 * 2**20


SIGNS = {
    GateAnswer.PASS: "✅",
    GateAnswer.FAIL: "❌",
    GateAnswer.INCONCLUSIVE: "⚪",
    GateAnswer.INVALID: "⚠️",
}
"""What forges show in colours, by the answer."""
ROW_SIGNS = {"worse": "❌", "not worse": "✅", "inconclusive": "⚪", "invalid": "⚠️"}
COMMIT = re.compile(r"\((?P<digits>[0-9a-f]{10,64})\)\Z")
"""At the end of a revision's name."""
OPEN_FACTS = {"Cause", "Note", "Costs", "", REPEAT}
"""Those that aren't folded."""
MEANT = (
    "Raise the limit (fail-if) for this one: once it is merged, it is part of the next baseline."
)


@dataclass(frozen=True)
class GateComment:
    """What a reviewer reads: the answer and what is worse or open, the rest folded."""

    gate: GateJudgement

    def marker(self, name: str) -> str:
        return f"<!-- webdyno gate: {within(name)} -->"

    def body(self, name: str, job_page: str) -> str:
        """Return the rest of it; `name` distinguishes several gates of one pull request."""
        return gate_markdown(self.gate, name, job_page)

    def is_of(self, commit: str) -> bool:
        """Whether the answer is about that commit, without changes."""
        named = COMMIT.search(self.gate.head)
        return named is not None and commit.startswith(named["digits"])


def gate_markdown(gate: GateJudgement, name: str = "", job_page: str = "") -> str:
    """Return the answer in the first line, then what is worse or open; all else is folded."""
    return "\n".join(_parts(gate, name, job_page)) + "\n"


def _parts(gate: GateJudgement, name: str, job_page: str) -> Iterator[str]:
    title = " ".join(filter(None, ["webdyno", name]))
    yield f"### {SIGNS[gate.answer]} {within(title)}: {_answer(gate)}"
    report = f" · [full report]({job_page})" if job_page else ""
    shown = [claim for claim in gate.claims if claim.answer != "not worse"]
    said = f"{gate.head} against {gate.baseline}"
    if gate.answer is GateAnswer.PASS:
        shown, said = [], gate.headline
    yield f"\n{without_markup(said)}{report}\n"
    if shown:
        yield from _table(gate, shown)
    facts = gate_facts(gate)
    yield from _facts(gate, (fact for fact in facts if fact[0] in OPEN_FACTS))
    if gate.answer is GateAnswer.FAIL:
        yield f"**Was it meant?** {MEANT}\n"
    rest = [claim for claim in gate.claims if claim not in shown]
    about = "noise, machine, method"
    if rest and shown:
        about = f"{count(len(rest), 'check')} within the limit, {about}"
    yield f"<details><summary>{'All checks, ' if rest and not shown else ''}{about}</summary>\n"
    if rest:
        yield from _table(gate, rest)
    yield from _facts(gate, (fact for fact in facts if fact[0] not in OPEN_FACTS))
    yield details_markdown(gate)
    yield "</details>"


def _answer(gate: GateJudgement) -> str:
    """Return the answer in a line, without what the table has."""
    if gate.answer is GateAnswer.PASS:
        return "no endpoint got slower"
    if gate.answer is GateAnswer.INVALID:
        return within(f"not measured: {gate.headline}")
    worse = gate.of("worse")
    if gate.answer is GateAnswer.FAIL and worse:
        worst = max(worse, key=lambda claim: claim.worse.low if claim.worse else 0.0)
        more = f", and {count(len(worse) - 1, 'more check')}" if len(worse) > 1 else ""
        return within(f"{worst.endpoint} {change_words(worst)}{more}")
    if gate.answer is GateAnswer.INCONCLUSIVE:
        return within(f"can't say on this runner: {gate.headline}")
    return within(gate.headline)


def _table(gate: GateJudgement, claims: Sequence[GateClaim]) -> Iterator[str]:
    """Write claims as a table; the change of what fails stands out."""
    headings = ["endpoint", "metric", *short_names(gate), "change (95% CI)", "limit", ""]
    yield f"| {' | '.join(map(within, headings))} |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | --- |"
    for claim in claims:
        yield f"| {' | '.join(_cells(claim))} |"
    yield ""


def _cells(claim: GateClaim) -> Iterator[str]:
    metric = METRICS[claim.metric].metric
    written: Callable[[float], str] = latency if metric.unit == MICROSECONDS else significant
    strong = "**" if claim.answer == "worse" else ""
    estimate, around = changes(claim)
    change = f"{strong}{estimate}{strong} ({around})" if estimate else around
    yield within(claim.endpoint)
    yield f"{strong}{within(metric_title(metric))}{strong}"
    yield from (written(value) if value else MISSING for value in (claim.baseline, claim.head))
    yield change or DASH
    yield limit_words(claim)
    sign, _, words = answer_words(claim).partition(" ")
    yield " ".join(filter(None, [ROW_SIGNS.get(claim.answer, sign), words]))


def _facts(gate: GateJudgement, facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write facts a line each, with an empty line after them."""
    lines = [f"{_fact(gate, term, said)}  " for term, said in facts]
    yield from lines
    if lines:
        yield ""


def _fact(gate: GateJudgement, term: str, said: str) -> str:
    if not term:
        return without_markup(said)
    words = _code(gate.repeat) if term == REPEAT else within(said)
    return f"**{term}{'' if term.endswith('?') else ':'}** {words}"


def _code(command: str) -> str:
    """Return a command to be copied; as text where it would end the code that it stands in."""
    return within(command) if "`" in command or not command.isprintable() else f"`{command}`"


def details_markdown(gate: GateJudgement) -> str:
    """Return the machine, and all functions that grew."""
    lines = []
    if gate.machine:
        facts = (f"{term}: {said}" for term, said in machine_facts(gate.machine))
        lines += [f"**Machine:** {within('; '.join(facts))}", ""]
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
