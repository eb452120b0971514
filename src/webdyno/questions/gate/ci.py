"""What continuous integration reads of a gate's answer, a function for each format.

GitHub's workflow commands; JUnit XML as GitLab, Jenkins and GitHub's actions read it; Bencher
Metric Format (https://bencher.dev/docs/reference/bencher-metric-format/); the summary of k6 that
GitLab's load-performance report is read from
(https://docs.gitlab.com/ci/testing/load_performance_testing/).
"""

import json
import re
from collections.abc import Callable, Iterator
from xml.etree import ElementTree as Xml

from webdyno.core.format import latency, significant
from webdyno.core.limits import GATE_FILE, GateAnswer, GateClaim, GateJudgement
from webdyno.core.metrics import METRICS
from webdyno.questions.gate.comment import gate_markdown
from webdyno.questions.gate.show import gate_facts
from webdyno.questions.gate.words import change_estimate, change_range, limit_words
from webdyno.report.words import MICROSECONDS

LEVELS = {
    GateAnswer.PASS: "notice",
    GateAnswer.FAIL: "error",
    GateAnswer.INCONCLUSIVE: "warning",
    GateAnswer.INVALID: "error",
}
XML_CAN_HOLD = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def annotations(gate: GateJudgement) -> str:
    """Return GitHub's workflow commands: one for the answer, one for each claim that is worse."""
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
    return METRICS[claim.metric].metric.label


def junit(gate: GateJudgement) -> str:
    """Return JUnit XML, a test case for each claim: an inconclusive claim is skipped, never red."""
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
    each_s = gate.took_s / max(len(gate.claims), 1)
    for claim in gate.claims:
        case = Xml.SubElement(
            suite,
            "testcase",
            classname=_xml(f"webdyno.{claim.endpoint}"),
            name=label(claim),
            time=f"{each_s:.1f}",
        )
        message = _xml(_message(claim))
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


def _message(claim: GateClaim) -> str:
    """Return a claim's figures: `422 µs → 3.15 ms, 7.5× (95% CI 4.7–12×), limit 1.05×`."""
    if claim.answer != "worse" or not (claim.baseline and claim.head):
        return f"{claim.why} ({change_range(claim)})"
    is_time = METRICS[claim.metric].metric.unit == MICROSECONDS
    baseline, head = map(latency if is_time else significant, (claim.baseline, claim.head))
    change = f"{change_estimate(claim)} (95% CI {change_range(claim)})"
    return f"{baseline} → {head}, {change}, limit {limit_words(claim)}"


def _xml(text: str) -> str:
    return XML_CAN_HOLD.sub("�", text)


def as_json(gate: GateJudgement) -> str:
    return gate.model_dump_json(indent=2) + "\n"


def bencher(gate: GateJudgement) -> str:
    """Return head's figures in Bencher Metric Format: benchmark by endpoint, measure by metric."""
    measures: dict[str, dict[str, dict[str, float]]] = {}
    for claim in gate.claims:
        if claim.head is not None:
            name = claim.metric.replace("_", "-")
            measures.setdefault(claim.endpoint, {})[name] = {"value": claim.head}
    return json.dumps(measures, indent=2) + "\n"


def gitlab_load_performance(gate: GateJudgement) -> str:
    """Return head's figures as k6 sums them up: throughput, p99, and claims that hold as checks.

    The widget shows `http_reqs.rate`, `checks` and percentiles of `http_req_waiting` (p90 and p95,
    which a gate doesn't ask about); the other metrics are listed below them. Only one endpoint has
    a place in it: throughputs are added up, of times the longest is reported.
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


FILES: dict[str, Callable[[GateJudgement], str]] = {
    "gate.md": gate_markdown,
    GATE_FILE: as_json,
    "junit.xml": junit,
    "bencher.json": bencher,
    "load-performance.json": gitlab_load_performance,
}
