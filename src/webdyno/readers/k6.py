"""k6: the summary at the end of a run, of versions 0.2x to 2.x, and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, patterns
from webdyno.readers.json_figures import amount, inside, whole_amount
from webdyno.readers.output import Output

_TREND = r"\.{2,}:\s+avg=(?P<mean>\S+)\s+min=\S+\s+med=(?P<med>\S+)\s+max=(?P<max>\S+)"
_SHARES = r"(?:✓ (?P<yes>INT)\s+✗ (?P<no>INT)|(?P<part>INT) out of (?P<whole>INT))"


def _shares(yes: str, no: str, part: str, whole: str) -> str:
    named = _SHARES.replace("<yes>", f"<{yes}>").replace("<no>", f"<{no}>")
    return named.replace("<part>", f"<{part}>").replace("<whole>", f"<{whole}>")


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if not {"requests", "rate_rps"} <= figures.keys():
        return None
    for name, what in (("mean_ms", "mean"), ("max_ms", "max")):
        figures[name] = in_ms(facts.texts.get(what))
    percentiles = {50.0: "med", 90.0: "p90", 95.0: "p95", 99.0: "p99"}
    figures["percentiles_ms"] = {
        percent: at
        for percent, name in percentiles.items()
        if (at := in_ms(facts.texts.get(name))) is not None
    }
    figures["failed"] = facts.integer("failed_of_old") or facts.integer("failed_of_new") or 0
    figures["duration_s"] = facts.time_s("ran")
    received = in_bytes(facts.texts.get("received"), 1000)
    figures["total_bytes"] = None if received is None else int(received)
    figures |= _checks(facts)
    figures["under_way"] = _under_way(
        facts.number("iterations_rps"), in_ms(facts.texts.get("turn"))
    )
    return Output(tool="k6", loop="open" if "dropped" in figures else None, **figures)


def _checks(facts: Facts) -> dict[str, int | None]:
    passed, failed = facts.integer("checks_passed"), facts.integer("checks_missed")
    if passed is not None and failed is not None:
        return {"checks": passed + failed, "failed_checks": failed}
    return {"checks": facts.integer("checks_all"), "failed_checks": facts.integer("checks_failed")}


def _under_way(rate_rps: float | None, mean_ms: float | None) -> float | None:
    """Mean number of iterations under way: an iteration may send several requests at once."""
    return None if rate_rps is None or mean_ms is None else rate_rps * mean_ms / 1000


_MARK = r"(?:[✓✗]\s+)?"

K6 = Tool(
    name="k6",
    opening=r"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|checks_total\.{2,}:|"
    rf"{_MARK}(?:checks|data_received|http_req\w*)\.{{2,}}:",
    only_first=rf"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|{_MARK}checks\.{{2,}}:",
    parts_after="section",
    restart=rf"{_MARK}data_received\.{{2,}}:",
    patterns=patterns(
        rf"{_MARK}http_reqs\.{{2,}}:\s+(?P<requests>INT)\s+(?P<rate_rps>NUM)/s",
        rf"{_MARK}http_req_duration{_TREND}(?:.*?p\(90\)=(?P<p90>\S+))?(?:.*?p\(95\)=(?P<p95>\S+))?"
        r"(?:.*?p\(99\)=(?P<p99>\S+))?",
        rf"{_MARK}http_req_failed\.{{2,}}:\s+NUM%\s+"
        + _shares("failed_of_old", "right", "failed_of_new", "asked"),
        rf"{_MARK}checks\.{{2,}}:\s+NUM%\s+"
        + _shares("checks_passed", "checks_missed", "checks_good", "checks_of"),
        r"checks_failed\.{2,}:\s+NUM%\s+(?P<checks_failed>INT) out of (?P<checks_all>INT)",
        rf"{_MARK}dropped_iterations\.{{2,}}:\s+(?P<dropped>INT)\s",
        rf"{_MARK}iteration_duration\.{{2,}}:\s+avg=(?P<turn>\S+)",
        rf"{_MARK}iterations\.{{2,}}:\s+(?P<iterations>INT)\s+(?P<iterations_rps>NUM)/s",
        rf"{_MARK}vus_max\.{{2,}}:\s+(?P<concurrency>INT)\s",
        rf"{_MARK}data_received\.{{2,}}:\s+(?P<received>NUM [kMGT]?B)\s",
        r"running \((?P<ran>[\dhms.]+)\), 0+/INT VUs, INT complete",
        r"(?:#+ )?█ (?P<section>GROUP|SCENARIO): ",
        r"(?:#+ )?█ (?:(?P<banner>TOTAL RESULTS)|THRESHOLDS)",
        rf"{_MARK}[\w ]{{1,80}}\.{{2,}}:\s",
        r"{ [\w:./ -]{1,200} }\.{2,}:",
        r"↳\s+INT% — ✓ INT / ✗ INT",
        r"[✓✗] ",
    ),
    chatter=("HTTP", "EXECUTION", "NETWORK", "CUSTOM", "default "),
    output=_output,
)


def k6_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read what --summary-export and handleSummary write; empty when it is something else."""
    metrics = _metrics(found)
    if "http_reqs" not in metrics or "http_req_duration" not in metrics:
        return []
    requests, duration = metrics["http_reqs"], metrics["http_req_duration"]
    failed, checks = metrics.get("http_req_failed", {}), metrics.get("checks", {})
    seconds = amount(inside(found, "config", "duration"))
    total = whole_amount(requests.get("count"))
    rate = amount(requests.get("rate"))
    if rate is None and seconds and total is not None:  # the form of version 2 has no rates
        rate = total / seconds
    iterations = metrics.get("iterations", {})
    passes = whole_amount(checks.get("passes", checks.get("matches")))
    misses = whole_amount(checks.get("fails"))
    output = Output(
        tool="k6",
        first_line=first_line,
        last_line=last_line,
        loop="open" if "dropped_iterations" in metrics else None,
        requests=total,
        rate_rps=rate,
        duration_s=seconds,
        # It counts the requests for which "failed" is so as passes.
        failed=whole_amount(failed.get("passes", failed.get("matches"))),
        dropped=whole_amount(metrics.get("dropped_iterations", {}).get("count")),
        concurrency=whole_amount(metrics.get("vus_max", {}).get("value")),
        checks=None if passes is None or misses is None else passes + misses,
        failed_checks=misses,
        total_bytes=whole_amount(metrics.get("data_received", {}).get("count")),
        mean_ms=amount(duration.get("avg")),
        max_ms=amount(duration.get("max")),
        percentiles_ms={
            percent: at
            for percent, name in ((50.0, "med"), (90.0, "p(90)"), (95.0, "p(95)"), (99.0, "p(99)"))
            if (at := amount(duration.get(name))) is not None
        },
        under_way=_under_way(
            amount(iterations.get("rate")),
            amount(metrics.get("iteration_duration", {}).get("avg")),
        ),
    )
    return [output]


def _metrics(found: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give name → figures: flat, below `values`, or in the list of version 2."""
    listed = inside(found, "results", "metrics")
    if isinstance(listed, list):
        named = {each["name"]: each for each in listed if isinstance(each, dict) and "name" in each}
    else:
        metrics = found.get("metrics")
        named = dict(metrics) if isinstance(metrics, dict) else {}
    return {
        str(name): values if isinstance(values := each.get("values", each), dict) else {}
        for name, each in named.items()
        if isinstance(each, dict)
    }
