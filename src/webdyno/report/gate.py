"""A gate's answer: in the terminal, for the page, and as continuous integration reads it.

Formats: GitHub's job summary (Markdown) and workflow commands, JUnit XML as GitLab, Jenkins and
GitHub's actions read it, Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format/),
and the summary of k6 that GitLab's load-performance report is read from
(https://docs.gitlab.com/ci/testing/load_performance_testing/).
"""

import json
import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.judge.questions.claims import worse_range
from webdyno.model.command import as_called
from webdyno.model.format import MISSING, count, duration, percent, significant
from webdyno.model.gate import GateAnswer, GateClaim, GateJudgement
from webdyno.model.judgement import Verdict
from webdyno.model.metrics import metric_rule
from webdyno.report.lines import GAP, INDENT, WIDTH, wrapped
from webdyno.report.markdown import unmarked

SAID = {
    GateAnswer.PASS: Text("✓ PASS", style="bold green"),
    GateAnswer.FAIL: Text("✗ FAIL", style="bold red"),
    GateAnswer.CANT_TELL: Text("? CAN'T TELL", style="bold yellow"),
    GateAnswer.INVALID: Text("! NO ANSWER", style="bold red"),
}
TONES = {
    GateAnswer.PASS: Verdict.FASTER,
    GateAnswer.FAIL: Verdict.SLOWER,
    GateAnswer.CANT_TELL: Verdict.UNDECIDED,
    GateAnswer.INVALID: Verdict.INVALID,
}
"""The verdict that has the same colour."""
SIGNS = {
    GateAnswer.PASS: "✅ pass",
    GateAnswer.FAIL: "❌ fail",
    GateAnswer.CANT_TELL: "❔ can't tell",
    GateAnswer.INVALID: "⚠️ no answer",
}
MARKS = {"not worse": "", "worse": " ❌", "can't tell": " ❔", "not asked": "", "invalid": " ⚠️"}
LEVELS = {
    GateAnswer.PASS: "notice",
    GateAnswer.FAIL: "error",
    GateAnswer.CANT_TELL: "warning",
    GateAnswer.INVALID: "warning",
}
XML_CAN_HOLD = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
ROOM_FOR_A_TABLE = 96
"""Columns below which the names of metrics would break in the table."""


def print_gate(console: Console, gate: GateJudgement, page: str | None = None) -> None:
    """Print the answer, each claim with its figures, what else is to be known, and the page.

    `page` is where that is, or the command that draws it.
    """
    width = min(console.width, WIDTH)
    answer = SAID[gate.answer]
    head = Table.grid(padding=(0, GAP, 0, 0))
    head.add_column(no_wrap=True)
    head.add_row(answer, wrapped(gate.headline, width - answer.cell_len - GAP))
    parts: list[RenderableType] = [head, Text()]
    if gate.claims:
        parts += [_table(gate) if width >= ROOM_FOR_A_TABLE else _list(gate, width), Text()]
    for note in gate.notes:
        parts += [wrapped(as_called(note), width), Text()]
    parts.append(wrapped(small_print(gate), width, "dim"))
    if page:
        parts += [Text(), Text.assemble(("Report  ", "dim"), (page, "underline"))]
    console.print(Group(*parts), width=width, highlight=False)


class GateRow(NamedTuple):
    """A claim in words."""

    metric: str
    figures: str
    worse: str
    noise: str
    tolerated: str
    answer: str


HEADINGS = ("base → head", "worse by", "noise", "tolerated", "answer")


def rows(gate: GateJudgement) -> dict[str, list[GateRow]]:
    """Give what is claimed, by endpoint."""
    endpoints = dict.fromkeys(claim.endpoint for claim in gate.claims)
    return {endpoint: list(_rows_of(gate, endpoint)) for endpoint in endpoints}


def _rows_of(gate: GateJudgement, endpoint: str) -> Iterator[GateRow]:
    for claim in gate.claims:
        if claim.endpoint == endpoint:
            yield GateRow(
                metric_rule(claim.metric).metric.label,
                _figures(claim),
                worse_range(claim),
                f"±{percent(claim.noise)}" if claim.noise is not None else MISSING,
                percent(claim.tolerance),
                claim.answer,
            )


def _table(gate: GateJudgement) -> Table:
    made = Table(box=None, padding=(0, 1), pad_edge=False)
    made.add_column("")
    for heading in HEADINGS[:-1]:
        made.add_column(heading, justify="right", no_wrap=True)
    made.add_column(HEADINGS[-1], no_wrap=True)
    for endpoint, claims in rows(gate).items():
        made.add_row(Text(endpoint, style="bold"))
        for claim in claims:
            made.add_row(f"  {claim.metric}", *claim[1:])
    return made


def _list(gate: GateJudgement, width: int) -> Group:
    """Give what the table has, two lines a claim."""

    def line(said: str, columns: int) -> Padding:
        return Padding(wrapped(said, width - columns), (0, 0, 0, columns))

    parts: list[RenderableType] = []
    for endpoint, claims in rows(gate).items():
        parts.append(Text(endpoint, style="bold"))
        for claim in claims:
            beside = f"(noise {claim.noise}, tolerated {claim.tolerated})"
            parts.append(line(f"{claim.metric}: {claim.answer}", INDENT))
            parts.append(line(f"{claim.figures}, {claim.worse} {beside}", 2 * INDENT))
    return Group(*parts)


def _figures(claim: GateClaim) -> str:
    if not claim.base or not claim.head:
        return MISSING
    unit = metric_rule(claim.metric).metric.unit.replace("requests", "")
    return f"{significant(claim.base)} → {significant(claim.head)} {unit}"


def gate_markdown(gate: GateJudgement) -> str:
    """Give a comment that is read in ten seconds: the answer, one line of why, one table."""
    lines = [f"### {SIGNS[gate.answer]}: {unmarked(gate.headline)}", ""]
    if gate.claims:
        metrics = list(dict.fromkeys(claim.metric for claim in gate.claims))
        heads = [f"{metric_rule(name).metric.label}, worse by" for name in metrics]
        lines += [f"| | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
        for endpoint in dict.fromkeys(claim.endpoint for claim in gate.claims):
            cells = [_cell(gate, endpoint, metric) for metric in metrics]
            lines.append(f"| {unmarked(endpoint)} | {' | '.join(cells)} |")
        lines.append("")
    lines += [f"- {unmarked(note)}" for note in gate.notes] + [""] * bool(gate.notes)
    lines.append(unmarked(small_print(gate)))
    return "\n".join(lines) + "\n"


def small_print(gate: GateJudgement) -> str:
    """Say what was held against what, how long, and how sure it is."""
    said = f"{gate.head} against {gate.base}"
    if not gate.claims:
        return f"{said}."
    tolerances = dict.fromkeys(
        f"{metric_rule(claim.metric).metric.label} {percent(claim.tolerance)}"
        for claim in gate.claims
    )
    blocks = max(claim.blocks for claim in gate.claims)
    starts = f"{count(blocks, 'fresh start')} of each side in turns" if blocks else "No valid block"
    return (
        f"{said}; tolerated: {', '.join(tolerances)}. {starts}, "
        f"{duration(gate.took_s)}; each answer is wrong in at most 5 % of gates."
    )


def _cell(gate: GateJudgement, endpoint: str, metric: str) -> str:
    claim = next(it for it in gate.claims if (it.endpoint, it.metric) == (endpoint, metric))
    if claim.answer == "not asked":
        return "not asked"
    if claim.answer == "invalid":
        return f"{worse_range(claim)}{MARKS[claim.answer]}"
    noise = f" (noise ±{percent(claim.noise)})" if claim.noise is not None else ""
    return f"{worse_range(claim)}{noise}{MARKS[claim.answer]}"


def annotations(gate: GateJudgement) -> str:
    """Give GitHub's workflow commands: one for the answer, one for each claim that is worse."""
    lines = [_command(LEVELS[gate.answer], f"webdyno gate: {gate.answer}", gate.headline)]
    lines += [
        _command("error", f"{claim.endpoint} is worse", f"{label(claim)}: {worse_range(claim)}")
        for claim in gate.of("worse")
    ]
    lines += [_command("notice", "webdyno gate", note) for note in gate.notes]
    return "\n".join(lines) + "\n"


def _command(level: str, title: str, message: str) -> str:
    """Escape as https://docs.github.com/actions' toolkit does."""
    said = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    named = title.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    named = named.replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{said}"


def label(claim: GateClaim) -> str:
    """Name a claim's metric for people."""
    return metric_rule(claim.metric).metric.label


def junit(gate: GateJudgement) -> str:
    """Give JUnit XML, a test case for each claim: what can't be told is skipped, never red."""
    failed, skipped, errors = (gate.of(it) for it in ("worse", "can't tell", "invalid"))
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
        message = _xml(f"{claim.why} ({worse_range(claim)})")
        match claim.answer:
            case "worse":
                Xml.SubElement(case, "failure", message=message)
            case "invalid":
                Xml.SubElement(case, "error", message=_xml(claim.why))
            case "can't tell" | "not asked":
                Xml.SubElement(case, "skipped", message=message)
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
    found: dict[str, dict[str, dict[str, float]]] = {}
    for claim in gate.claims:
        if claim.head is not None:
            name = claim.metric.replace("_", "-")
            found.setdefault(claim.endpoint, {})[name] = {"value": claim.head}
    return json.dumps(found, indent=2) + "\n"


def gitlab_load_performance(gate: GateJudgement) -> str:
    """Give head's figures as k6 sums them up: rate, p99, and claims that hold as checks.

    The widget shows `http_reqs.rate`, `checks` and percentiles of `http_req_waiting` (p90 and p95,
    which a gate doesn't ask about); the other metrics are listed below them. Only one endpoint has
    a place in it: rates are added up, of times the longest is told.
    """
    rates = [it.head for it in gate.claims if it.metric == "rate_rps" and it.head]
    times = [it.head for it in gate.claims if it.metric == "response_p99_us" and it.head]
    cpu = [it.head for it in gate.claims if it.metric == "server_cpu_us" and it.head]
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
