"""A gate's answer: its claims with their figures, and what it rests on."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path

from webdyno.comparison.sentences import MOST_MINUTES
from webdyno.comparison.time_spent import only_a_part, speed_by_cpu_alone
from webdyno.core.errors import Exit
from webdyno.core.format import MISSING, count, duration, latency, listed, percent, significant
from webdyno.core.judgement import Verdict
from webdyno.core.limits import CostGrowth, GateAnswer, GateClaim, GateJudgement
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.registry import as_called, command
from webdyno.core.run import PAGE_FILE, profile_run
from webdyno.core.text import printable
from webdyno.media import document as doc
from webdyno.questions.gate.growth import growth_in_short, growth_line, growth_tables
from webdyno.questions.gate.words import as_change, change_estimate, change_range, limit_words
from webdyno.report.show import RunView
from webdyno.report.words import MICROSECONDS, metric_title

HEADLINES = {
    GateAnswer.PASS: (Verdict.FASTER, "✓ PASS"),
    GateAnswer.FAIL: (Verdict.SLOWER, "✗ FAIL"),
    GateAnswer.INCONCLUSIVE: (Verdict.INCONCLUSIVE, "? INCONCLUSIVE"),
    GateAnswer.INVALID: (Verdict.INVALID, "✕ INVALID"),
}
"""The verdict that has the same colour, and the answer in large letters."""
ANSWERS = {
    "not worse": "✓",
    "worse": "✗ worse",
    "inconclusive": "? inconclusive",
    "not asked": "– not evaluated",
    "invalid": "✕ not valid",
}
BECAUSE = {"few-samples": "– too few responses", "not-confirmed": "? not confirmed"}
"""Why a claim has no answer, where that says more than that it has none."""
TONES = {
    "not worse": Verdict.FASTER,
    "worse": Verdict.SLOWER,
    "inconclusive": Verdict.INCONCLUSIVE,
    "invalid": Verdict.INVALID,
}
EXITS = {
    GateAnswer.PASS: Exit.OK,
    GateAnswer.FAIL: Exit.WORSE,
    GateAnswer.INCONCLUSIVE: Exit.INCONCLUSIVE,
    GateAnswer.INVALID: Exit.INVALID,
}
SURENESS = {
    GateAnswer.PASS: "a PASS is wrong in at most 5% of gates",
    GateAnswer.FAIL: "a FAIL of any check is wrong in at most 5% of gates",
    GateAnswer.INCONCLUSIVE: "not decided",
    GateAnswer.INVALID: "not valid",
}
"""What an answer is worth."""
US_PER_MS = 1e3
"""A millisecond of CPU time for each request is a core for each 1,000 requests per second."""
LONGEST_NAME = 16
"""Of a revision, above a column."""
JUST_ONE = re.compile(r"^(?:\w+\.\.\w+, )?1 commit: (?P<commit>.*)$", re.DOTALL)
REPEAT = "Repeat"
"""The line with the command that asks again."""
BOTH_COPIES = (
    "Checks compare head with both copies of the baseline together, "
    "what follows with the first copy alone."
)
MOST_GROWN = 2
"""Endpoints whose growth is a line each; the page has all."""


@dataclass(frozen=True)
class GateWhole:
    """A gate's answer, which is one for all endpoints."""

    gate: GateJudgement
    most_rounds: int

    @property
    def word(self) -> str:
        return self.gate.answer

    @property
    def headline(self) -> doc.Headline:
        return gate_outcome(self.gate)

    @property
    def exit_code(self) -> Exit:
        return EXITS[self.gate.answer]

    def blocks(self) -> Iterator[doc.Block]:
        return claim_blocks(self.gate)

    def sections(self, folder: Path, view: RunView) -> Iterator[doc.Block]:
        """Yield the claims, what grew, and the profile rounds' pages, those that are there."""
        yield doc.Section("Checks", list(self.blocks()), note=BOTH_COPIES)
        if grown := [doc.Paragraph(growth_line(growth)) for growth in self.gate.grew]:
            yield doc.Section("What grew", grown)
        yield from growth_tables(self.gate.grew)
        links = []
        for point in view.points:
            page = profile_run(folder, point.number) / PAGE_FILE
            if page.exists():
                label = point.label or view.head.experiment.title
                links.append((label, str(page.relative_to(folder))))
        if links:
            yield doc.Section("Flame graphs of both revisions", [doc.Links(links)])

    def next_steps(self, run: Path) -> doc.Facts:
        """Return what finds the cause of a failure, or what may still bring an answer."""
        gate = self.gate
        if gate.answer is GateAnswer.FAIL and not any(growth.sampled for growth in gate.grew):
            return [("Next", f"{command('explain', run, '--profile')}     which function it is")]
        open_ = [claim for claim in gate.of("inconclusive") if claim.rounds < self.most_rounds]
        if gate.answer is GateAnswer.INCONCLUSIVE and open_:
            more_s = gate.took_s if gate.needs_s is None else gate.needs_s
            if more_s <= MOST_MINUTES * 60:
                more = f"{max(ceil(more_s / 60), 1)}m"
                return [("Next", command("resume", run, "--time", more))]
        return []


def gate_outcome(gate: GateJudgement) -> doc.Headline:
    return doc.Headline(*HEADLINES[gate.answer], gate.headline)


def gate_document(gate: GateJudgement) -> doc.Document:
    """Return the answer, each claim with its figures, and what else is to be known."""
    return doc.Document("", "", [doc.Headlines([gate_outcome(gate)]), *claim_blocks(gate)])


def claim_blocks(gate: GateJudgement) -> Iterator[doc.Block]:
    """Yield each claim with its figures, and what else is to be known."""
    if gate.claims:
        yield claims_table(gate, gate.claims)
    yield doc.FactList(gate_facts(gate))


def claims_table(gate: GateJudgement, claims: Iterable[GateClaim]) -> doc.Table:
    """Return claims with their figures, by endpoint."""
    rows: dict[str, list[list[doc.Cell | str]]] = {}
    for claim in claims:
        rows.setdefault(claim.endpoint, []).append(_row(claim))
    columns = [
        doc.Column("what", "name", obvious=True),
        *(doc.Column(name, "value") for name in short_names(gate)),
        doc.Column("change", "value"),
        doc.Column("95% CI", "range"),
        doc.Column("limit", "range"),
        doc.Column("", "verdict"),
    ]
    groups = [doc.RowGroup(its_rows, endpoint) for endpoint, its_rows in rows.items()]
    return doc.Table(columns, groups, style="listed")


def short_names(gate: GateJudgement) -> tuple[str, str]:
    """Return both revisions' names without hashes, where these fit above columns and differ."""
    baseline, head = (
        revision.partition(" (")[0].removeprefix("the ") for revision in (gate.baseline, gate.head)
    )
    if baseline == head or max(len(baseline), len(head)) > LONGEST_NAME:
        return "baseline", "head"
    return baseline, head


def _row(claim: GateClaim) -> list[doc.Cell | str]:
    metric = METRICS[claim.metric].metric
    written: Callable[[float], str] = latency if metric.unit == MICROSECONDS else significant
    values = (written(value) if value else MISSING for value in (claim.baseline, claim.head))
    answer = doc.Cell(answer_words(claim), TONES.get(claim.answer))
    return [metric_title(metric), *values, *changes(claim), limit_words(claim), answer]


def changes(claim: GateClaim) -> tuple[str, str]:
    """Return a claim's change and its interval; of what isn't evaluated neither."""
    if claim.answer in {"invalid", "not asked"}:
        return "", ""
    return change_estimate(claim), change_range(claim)


def answer_words(claim: GateClaim) -> str:
    """Return a claim's answer for a table: its sign and a word or two."""
    return BECAUSE.get(claim.because, ANSWERS[claim.answer])


def gate_facts(gate: GateJudgement) -> doc.Facts:
    """Return what an answer rests on, in a line each; all media have them."""
    return list(chain.from_iterable(fact(gate) for fact in FACTS))


def _cause(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    """Yield, where a gate fails, between which commits it became worse, and what of it grew."""
    if gate.answer is not GateAnswer.FAIL:
        return
    said = []
    if gate.commits:
        only = JUST_ONE.match(gate.commits)
        said.append(f"{only['commit']} (the only commit between both)" if only else gate.commits)
    for growth in gate.grew[:MOST_GROWN]:
        slower = _slower_claim(gate, growth.endpoint)
        said.append(growth_in_short(growth, waits=slower is not None))
        if slower and (part := _only_a_part(gate, growth, slower)):
            said[-1] += f"; {part}"
    if said:
        yield "Cause", printable(said[0])
        yield from (("", printable(line)) for line in said[1:])


def _slower_claim(gate: GateJudgement, endpoint: str) -> GateClaim | None:
    """Return what is most surely worse there of what requests that wait make worse."""
    slower = (
        claim
        for claim in gate.of("worse")
        if claim.endpoint == endpoint and METRICS[claim.metric].kind in {"throughput", "latency"}
    )
    return max(slower, key=lambda claim: claim.worse.low if claim.worse else 0.0, default=None)


def _only_a_part(gate: GateJudgement, growth: CostGrowth, slower: GateClaim) -> str:
    """Return what CPU per request alone would make of a claim, where that is less; else nothing.

    In a closed loop alone: latency is there as long as throughput is low.
    """
    measured = change_estimate(slower)
    if not measured or not slower.worse or not growth.counted or gate.rate_rps is not None:
        return ""
    alone = speed_by_cpu_alone(growth.counted, slower.worse.inverse())
    if alone is None:
        return ""
    rule = METRICS[slower.metric]
    factor = alone if rule.metric.better == "higher" else 1 / alone
    return only_a_part(rule.short, as_change(factor, slower), measured)


def _notes(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    for number, note in enumerate(gate.notes):
        yield "" if number else "Note", as_called(note)


def _sides(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    rate = "" if gate.rate_rps is None else f"; at {gate.rate_rps:,g} requests/s"
    yield "Compared", f"head: {gate.head}; baseline: {gate.baseline}{rate}"


def _costs(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    costs = []
    for claim in gate.claims:
        is_valid = claim.metric == CPU_TIME and claim.answer != "invalid"
        if is_valid and claim.head and claim.baseline:
            head, base = (significant(us / US_PER_MS, 3) for us in (claim.head, claim.baseline))
            costs.append(f"{claim.endpoint} {head} against {base}")
    if gate.rate_rps is not None and costs:
        yield "Costs", f"{listed(costs)} cores per 1,000 requests/s"


def _repeat(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    if gate.repeat and gate.answer is GateAnswer.FAIL:
        yield REPEAT, printable(as_called(gate.repeat))


def _sureness(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    """Yield how often a gate is wrong, how long it took, and how far equal copies differed."""
    if not gate.claims:
        return
    rounds = max(claim.rounds for claim in gate.claims)
    starts = f"{count(rounds, 'restart')} of each, interleaved" if rounds else "no valid round"
    yield "Sure?", f"{SURENESS[gate.answer]}; {starts}; {duration(gate.took_s)}"
    most: dict[str, float] = {}
    for claim in gate.claims:
        if claim.noise is not None:
            most[claim.metric] = max(claim.noise, most.get(claim.metric, 0.0))
    if most:
        said = (f"{percent(noise)} in {METRICS[name].short}" for name, noise in most.items())
        copies = f"two copies of {short_names(gate)[0]}"
        yield "Noise", f"{copies} differ by up to {listed(said)}; the CIs include it"


FACTS: list[Callable[[GateJudgement], Iterable[tuple[str, str]]]] = [
    _cause,
    _notes,
    _sides,
    _costs,
    _repeat,
    _sureness,
]
