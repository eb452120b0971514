"""A gate's answer: in the terminal, for its page, and what continuous integration reads of it.

There is one function per format, all from the judgement: GitHub's job summary (Markdown) and
workflow commands, JUnit XML as GitLab, Jenkins and GitHub's actions read it, Bencher Metric Format
(https://bencher.dev/docs/reference/bencher-metric-format/), and the summary of k6 that GitLab's
load-performance report is read from (https://docs.gitlab.com/ci/testing/load_performance_testing/).
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from xml.etree import ElementTree as Xml

from webdyno.judge.growth import ALL_ELSE, grown_parts
from webdyno.judge.questions.claims import change_range, limit_words
from webdyno.judge.time_spent import SMALL, in_short
from webdyno.model.base import Interval
from webdyno.model.command import as_called
from webdyno.model.explain import CpuPart, Explanation
from webdyno.model.format import (
    MISSING,
    count,
    duration,
    latency,
    latency_and_bounds,
    latency_unit,
    listed,
    percent,
    significant,
)
from webdyno.model.gate import CostGrowth, GateAnswer, GateClaim, GateJudgement
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import CPU_TIME, METRICS
from webdyno.model.text import printable
from webdyno.report import document as doc
from webdyno.report.conditions import machine_facts
from webdyno.report.markdown import markdown, within
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
"""The verdict that has the same color."""
LEVELS = {
    GateAnswer.PASS: "notice",
    GateAnswer.FAIL: "error",
    GateAnswer.INCONCLUSIVE: "warning",
    GateAnswer.INVALID: "error",
}
US_PER_MS = 1e3
"""A millisecond of CPU time for each request is a core for each 1,000 requests per second."""
XML_CAN_HOLD = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
COLUMNS: dict[str, doc.Kind] = {
    "what": "name",
    "baseline": "value",
    "head": "value",
    "change (95% CI)": "range",
    "limit": "range",
    "": "verdict",
}

MOST_IN_LINE, MOST_IN_TABLE = 3, 12
"""Functions that are shown, those first that grew most."""
TELLING = 0.01
"""Share of the whole difference that a row needs."""


def gate_outcome(gate: GateJudgement) -> doc.Headline:
    """Give the answer and why it is that."""
    return doc.Headline(*HEADLINES[gate.answer], gate.headline)


def gate_document(gate: GateJudgement) -> doc.Document:
    """Give the answer, each claim with its figures, and what else is to be known."""
    return doc.Document("", "", [doc.Headlines([gate_outcome(gate)]), *claimed(gate)])


def claimed(gate: GateJudgement) -> Iterator[doc.Block]:
    """Give each claim with its figures, the notes, and what it rests on."""
    if gate.claims:
        endpoints = dict.fromkeys(claim.endpoint for claim in gate.claims)
        yield doc.Table(
            columns=[
                doc.Column(heading, kind, obvious=heading == "what")
                for heading, kind in COLUMNS.items()
            ],
            groups=[
                doc.RowGroup(
                    [_cells(claim) for claim in gate.claims if claim.endpoint == endpoint], endpoint
                )
                for endpoint in endpoints
            ],
            style="listed",
        )
    yield from (doc.Paragraph(as_called(note)) for note in gate.notes)
    yield doc.FactList(gate_facts(gate))


def _row(claim: GateClaim) -> list[str]:
    title = metric_title(METRICS[claim.metric].metric)
    values = (_figure(claim.metric, value) for value in (claim.baseline, claim.head))
    return [title, *values, change_range(claim), limit_words(claim), ANSWERS[claim.answer]]


def _cells(claim: GateClaim) -> list[doc.Cell | str]:
    *figures, answer = _row(claim)
    return [*figures, doc.Cell(answer, TONES.get(claim.answer))]


def _figure(metric: str, value: float | None) -> str:
    if not value:
        return MISSING
    return latency(value) if METRICS[metric].metric.unit == MICROSECONDS else significant(value)


def gate_facts(gate: GateJudgement) -> doc.Facts:
    """Give what an answer rests on, in a line each; all media have them."""
    return list(chain.from_iterable(fact(gate) for fact in FACTS))


def _compared(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    """Say what was held against what, how long, and how sure it is."""
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
    """Say what both cost at an arrival rate, endpoint by endpoint, where it has such a cost."""
    costs = [
        f"{claim.endpoint} {_cores(claim.head)} against {_cores(claim.baseline)}"
        for claim in gate.claims
        if claim.metric == CPU_TIME and claim.answer != "invalid"
        if claim.head and claim.baseline
    ]
    if gate.rate_rps is not None and costs:
        yield "Costs", f"{listed(costs)} cores per 1,000 requests/s"


def _cores(cpu_us: float) -> str:
    return significant(cpu_us / US_PER_MS, 3)


def _noise(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    """Say by how much the baseline's two copies differ at most, metric by metric."""
    most: dict[str, float] = {}
    for claim in gate.claims:
        if claim.noise is not None:
            most[claim.metric] = max(claim.noise, most.get(claim.metric, 0.0))
    if most:
        said = (f"{percent(noise)} in {METRICS[name].short}" for name, noise in most.items())
        yield "A/A check", f"two copies of baseline differ by at most {listed(said)}"


def _why_it_fails(gate: GateJudgement) -> Iterator[tuple[str, str]]:
    """Say what grew, in which commits, and how to see it again."""
    if gate.answer is not GateAnswer.FAIL:
        return
    yield from (
        ("Grew", growth_line(growth, waits=_waits(gate, growth.endpoint))) for growth in gate.grew
    )
    if gate.commits:
        yield "Commits", printable(gate.commits)
    if gate.repeat:
        yield "Repeat", printable(as_called(gate.repeat))


FACTS: list[Callable[[GateJudgement], Iterable[tuple[str, str]]]] = [
    _compared,
    _costs,
    _noise,
    _why_it_fails,
]


def gate_markdown(gate: GateJudgement, name: str = "") -> str:
    """Give a comment for a pull request; `name` tells several gates of one apart."""
    answer = gate_outcome(gate)
    named = answer._replace(words=f"{name} {answer.words}".strip())
    return markdown(doc.Document("", "", [doc.Headlines([named]), *claimed(gate)]))


def details_markdown(gate: GateJudgement) -> str:
    """Give the machine, and all functions that grew."""
    lines = []
    if gate.machine:
        facts = (f"{term}: {said}" for term, said in machine_facts(gate.machine))
        lines += [f"Machine: {within('; '.join(facts))}", ""]
    tables = [*growth_tables(gate.grew)]
    return "\n".join([*lines, markdown(doc.Document("", "", tables)) if tables else ""])


def annotations(gate: GateJudgement) -> str:
    """Give GitHub's workflow commands: one for the answer, one for each claim that is worse."""
    said = "\n".join([gate.headline, *_fact_lines(gate)])
    lines = [_command(LEVELS[gate.answer], f"webdyno gate: {gate.answer}", said)]
    lines += [
        _command("error", f"{claim.endpoint} is worse", f"{label(claim)}: {change_range(claim)}")
        for claim in gate.of("worse")
    ]
    lines += [_command("notice", "webdyno gate", note) for note in gate.notes]
    return "\n".join(lines) + "\n"


def _fact_lines(gate: GateJudgement) -> Iterator[str]:
    return (f"{term}: {said}" for term, said in gate_facts(gate))


def _command(level: str, title: str, message: str) -> str:
    """Escape as https://docs.github.com/actions' toolkit does."""
    said = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    named = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    named = named.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{said}"


def label(claim: GateClaim) -> str:
    """Name a claim's metric for people."""
    return METRICS[claim.metric].metric.label


def junit(gate: GateJudgement) -> str:
    """Give JUnit XML, a test case for each claim: an inconclusive claim is skipped, never red."""
    failed, skipped, errors = (gate.of(answer) for answer in ("worse", "inconclusive", "invalid"))
    untold = len(skipped) + len(gate.of("not asked"))
    suite = Xml.Element(
        "testsuite",
        name="webdyno gate",
        tests=str(len(gate.claims)),
        failures=str(len(failed)),
        errors=str(len(errors)),
        skipped=str(untold),
        time=f"{gate.took_s:.1f}",
    )
    for claim in gate.claims:
        case = Xml.SubElement(
            suite, "testcase", classname=_xml(claim.endpoint), name=label(claim), time="0"
        )
        message = _xml(f"{claim.why} ({change_range(claim)})")
        match claim.answer:
            case "worse":
                Xml.SubElement(case, "failure", message=message)
            case "invalid":
                Xml.SubElement(case, "error", message=_xml(claim.why))
            case "inconclusive" | "not asked":
                Xml.SubElement(case, "skipped", message=message)
    Xml.SubElement(suite, "system-out").text = _xml("\n".join([*gate.notes, *_fact_lines(gate)]))
    suites = Xml.Element("testsuites", name="webdyno gate")
    suites.append(suite)
    Xml.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(suites, "unicode") + "\n"


def _xml(text: str) -> str:
    return XML_CAN_HOLD.sub("�", text)


def as_json(gate: GateJudgement) -> str:
    """Give everything, by the names of `model/gate.py`."""
    return gate.model_dump_json(indent=2) + "\n"


def bencher(gate: GateJudgement) -> str:
    """Give head's figures in Bencher Metric Format: benchmark by endpoint, measure by metric."""
    measures: dict[str, dict[str, dict[str, float]]] = {}
    for claim in gate.claims:
        if claim.head is not None:
            name = claim.metric.replace("_", "-")
            measures.setdefault(claim.endpoint, {})[name] = {"value": claim.head}
    return json.dumps(measures, indent=2) + "\n"


def gitlab_load_performance(gate: GateJudgement) -> str:
    """Give head's figures as k6 sums them up: throughput, p99, and claims that hold as checks.

    The widget shows `http_reqs.rate`, `checks` and percentiles of `http_req_waiting` (p90 and p95,
    which a gate doesn't ask about); the other metrics are listed below them. Only one endpoint has
    a place in it: throughputs are added up, of times the longest is told.
    """
    rates = [claim.head for claim in gate.claims if claim.metric == "throughput_rps" and claim.head]
    times = [claim.head for claim in gate.claims if claim.metric == "latency_p99_us" and claim.head]
    cpu = [claim.head for claim in gate.claims if claim.metric == "server_cpu_us" and claim.head]
    fails = len(gate.of("worse")) + len(gate.of("invalid"))
    held = len(gate.of("not worse"))
    share = held / (held + fails) if held + fails else 1.0
    metrics: dict[str, dict[str, float]] = {
        "checks": {"passes": held, "fails": fails, "value": share}
    }
    if rates:
        metrics["http_reqs"] = {"rate": sum(rates)}
    if times:
        metrics["http_req_duration"] = {"p(99)": max(times) / 1000}
    if cpu:
        metrics["server_cpu_us"] = {"max": max(cpu)}
    return json.dumps({"metrics": metrics}, indent=2) + "\n"


def _waits(gate: GateJudgement, endpoint: str) -> bool:
    """Whether an endpoint is worse in what takes time."""
    worse = [claim.metric for claim in gate.of("worse") if claim.endpoint == endpoint]
    return any(METRICS[metric].kind in {"throughput", "latency"} for metric in worse)


def growth_line(growth: CostGrowth, *, waits: bool = True) -> str:
    """Say by how much CPU per request grew at an endpoint, and which functions take it."""
    whole = growth.counted or growth.sampled
    if whole is None or whole.whole.more_us.low <= 0:
        said = f"{growth.endpoint}: CPU per request hasn't grown (95% confidence)"
        said += ", waiting has" if waits else ""
        said = said if whole else f"{growth.endpoint}: too few valid rounds"
    else:
        more, ends = latency_and_bounds(whole.whole.more_us)
        said = f"{growth.endpoint} +{more} CPU per request (95% CI {ends})"
        if parts := ", ".join(map(_more, _parts(growth))):
            said += f": {parts}"
    others = "; ".join(
        f"{other.what} {significant(other.baseline, 3)} → {significant(other.head, 3)}"
        for other in growth.others
    )
    whys = f"functions unknown: {growth.lacking}" if growth.lacking else ""
    return printable(as_called("; ".join(filter(None, [said, others, whys]))))


def _parts(growth: CostGrowth) -> list[CpuPart]:
    """Give the functions that grew most; where none is known, programs and kernel."""
    for apart in (growth.sampled, growth.counted):
        if apart and (parts := grown_parts(apart, SMALL)):
            return [part for part in parts if part.what != ALL_ELSE][:MOST_IN_LINE]
    return []


def _more(part: CpuPart) -> str:
    more, ends = latency_and_bounds(part.more_us)
    return f"{in_short(part.what)} +{more} ({ends})"


def growth_tables(growths: list[CostGrowth]) -> Iterator[doc.Section]:
    """Give the functions of each endpoint that was profiled, and their CPU time per request."""
    for growth in growths:
        if growth.sampled:
            rounds = count(growth.rounds, "profile round")
            heading = f"What grew at {growth.endpoint}, by {rounds}"
            yield doc.Section(heading, [_table(growth.sampled)])


def _table(apart: Explanation) -> doc.Table:
    least = TELLING * abs(apart.whole.more_us.estimate)
    telling = [part for part in apart.parts if part.is_sure and abs(part.more_us.estimate) >= least]
    rows = sorted(telling, key=lambda part: -part.more_us.estimate)[:MOST_IN_TABLE]
    return doc.simple_table(
        {"function": "name", "baseline": "value", "head": "value", "more (95% CI)": "range"},
        [_growth_row(part) for part in (*rows, apart.whole)],
        style="listed",
    )


def _growth_row(part: CpuPart) -> list[doc.Cell | str]:
    return [
        printable(part.what),
        *(latency(us) if us else MISSING for us in (part.b_us, part.a_us)),
        _range(part.more_us),
    ]


def _range(more_us: Interval) -> str:
    """Give by how much a part grew: `+390–410 µs`, of one that shrank `−4.2 to −3.8 µs`."""
    each_us, unit = latency_unit(abs(more_us.estimate))
    ends = (significant(end / each_us, 3) for end in (more_us.low, more_us.high))
    return f"{' to '.join(ends)} {unit}".replace("-", "−")
