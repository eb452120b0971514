"""A gate's answer: its claims with their figures, and what it rests on."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from math import ceil
from pathlib import Path

from webdyno.core.errors import Exit
from webdyno.core.format import MISSING, count, duration, latency, listed, percent, significant
from webdyno.core.judgement import Verdict
from webdyno.core.limits import GateAnswer, GateClaim, GateJudgement
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.registry import as_called, command
from webdyno.core.run import PAGE_FILE, profile_run
from webdyno.core.text import printable
from webdyno.media import document as doc
from webdyno.questions.gate.claims import change_range, limit_words
from webdyno.questions.gate.growth import growth_line, growth_tables
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
    "invalid": "✕ invalid",
}
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
US_PER_MS = 1e3
"""A millisecond of CPU time for each request is a core for each 1,000 requests per second."""
COLUMNS: dict[str, doc.Kind] = {
    "what": "name",
    "baseline": "value",
    "head": "value",
    "change (95% CI)": "range",
    "limit": "range",
    "": "verdict",
}


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
        yield doc.Section("Checks", list(self.blocks()))
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
            return [("Next", command("explain", run, "--profile"))]
        open_ = [claim for claim in gate.of("inconclusive") if claim.rounds < self.most_rounds]
        if gate.answer is GateAnswer.INCONCLUSIVE and open_:
            as_long = f"{max(ceil(gate.took_s / 60), 1)}m"
            return [("Next", command("resume", run, "--time", as_long))]
        return []


def gate_outcome(gate: GateJudgement) -> doc.Headline:
    return doc.Headline(*HEADLINES[gate.answer], gate.headline)


def gate_document(gate: GateJudgement) -> doc.Document:
    """Return the answer, each claim with its figures, and what else is to be known."""
    return doc.Document("", "", [doc.Headlines([gate_outcome(gate)]), *claim_blocks(gate)])


def claim_blocks(gate: GateJudgement) -> Iterator[doc.Block]:
    """Yield each claim with its figures, the notes, and what it rests on."""
    rows: dict[str, list[list[doc.Cell | str]]] = {}
    for claim in gate.claims:
        rows.setdefault(claim.endpoint, []).append(_row(claim))
    if rows:
        columns = [
            doc.Column(heading, kind, obvious=heading == "what")
            for heading, kind in COLUMNS.items()
        ]
        groups = [doc.RowGroup(its_rows, endpoint) for endpoint, its_rows in rows.items()]
        yield doc.Table(columns, groups, style="listed")
    yield from (doc.Paragraph(as_called(note)) for note in gate.notes)
    yield doc.FactList(gate_facts(gate))


def _row(claim: GateClaim) -> list[doc.Cell | str]:
    metric = METRICS[claim.metric].metric
    written: Callable[[float], str] = latency if metric.unit == MICROSECONDS else significant
    values = (written(value) if value else MISSING for value in (claim.baseline, claim.head))
    answer = doc.Cell(ANSWERS[claim.answer], TONES.get(claim.answer))
    return [metric_title(metric), *values, change_range(claim), limit_words(claim), answer]


def gate_facts(gate: GateJudgement) -> doc.Facts:
    """Return what an answer rests on, in a line each; all media have them."""
    return list(chain.from_iterable(fact(gate) for fact in FACTS))


def _sides_and_effort(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    named = gate.baseline if "baseline" in gate.baseline else f"{gate.baseline} (baseline)"
    said = f"{gate.head} vs {named}"
    if gate.rate_rps is not None:
        said += f", at {gate.rate_rps:,g} requests/s"
    if gate.claims:
        rounds = max(claim.rounds for claim in gate.claims)
        starts = f"{count(rounds, 'restart')} of each, interleaved" if rounds else "no valid round"
        said += f"; {starts}; {duration(gate.took_s)}; wrong in at most 5% of gates"
    yield "Compared", said


def _costs(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    costs = []
    for claim in gate.claims:
        is_valid = claim.metric == CPU_TIME and claim.answer != "invalid"
        if is_valid and claim.head and claim.baseline:
            head, base = (significant(us / US_PER_MS, 3) for us in (claim.head, claim.baseline))
            costs.append(f"{claim.endpoint} {head} against {base}")
    if gate.rate_rps is not None and costs:
        yield "Costs", f"{listed(costs)} cores per 1,000 requests/s"


def _noise(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    most: dict[str, float] = {}
    for claim in gate.claims:
        if claim.noise is not None:
            most[claim.metric] = max(claim.noise, most.get(claim.metric, 0.0))
    if most:
        said = (f"{percent(noise)} in {METRICS[name].short}" for name, noise in most.items())
        yield "A/A check", f"two copies of baseline differ by at most {listed(said)}"


def _why_it_fails(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    if gate.answer is not GateAnswer.FAIL:
        return
    waits = {
        claim.endpoint
        for claim in gate.of("worse")
        if METRICS[claim.metric].kind in {"throughput", "latency"}
    }
    for growth in gate.grew:
        yield "Grew", growth_line(growth, waits=growth.endpoint in waits)
    if gate.commits:
        yield "Commits", printable(gate.commits)
    if gate.repeat:
        yield "Repeat", printable(as_called(gate.repeat))


FACTS: list[Callable[[GateJudgement], Iterable[tuple[str, str]]]] = [
    _sides_and_effort,
    _costs,
    _noise,
    _why_it_fails,
]
