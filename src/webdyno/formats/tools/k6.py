"""k6: the summary at the end of a run, of versions 0.2x to 2.x, and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import Facts, Figures, Tool, in_ms, patterns
from webdyno.formats.values import amount, amounts_at, inside, whole_amount

PERCENTILES = {50.0: "med", 90.0: "p(90)", 95.0: "p(95)", 99.0: "p(99)"}
_MARK = r"(?:[✓✗]\s+)?"
_TREND = r"\.{2,}:\s+avg=(?P<mean>\S+)\s+min=\S+\s+med=(?P<med>\S+)\s+max=(?P<max>\S+)"
_SHARES = r"(?:✓ (?P<yes>INT)\s+✗ (?P<no>INT)|(?P<part>INT) out of (?P<whole>INT))"


def _shares(yes: str, no: str, part: str, whole: str) -> str:
    named = _SHARES.replace("<yes>", f"<{yes}>").replace("<no>", f"<{no}>")
    return named.replace("<part>", f"<{part}>").replace("<whole>", f"<{whole}>")


def _more(facts: Facts, figures: Figures) -> Figures:
    passed, missed = facts.integer("checks_passed"), facts.integer("checks_missed")
    checks = facts.integer("checks_all"), facts.integer("checks_failed")
    if passed is not None and missed is not None:
        checks = passed + missed, missed
    turn_ms = in_ms(facts.texts.get("turn"))
    return {
        "loop": "open" if "dropped" in figures else None,
        "percentiles_ms": facts.times_ms({50.0: "med", 90.0: "p90", 95.0: "p95", 99.0: "p99"}),
        "failed": facts.integer("failed_of_old") or facts.integer("failed_of_new") or 0,
        "duration_s": facts.time_s("ran"),
        "checks": checks[0],
        "failed_checks": checks[1],
        "under_way": _under_way(facts.number("iterations_rps"), turn_ms),
    }


def _under_way(throughput_rps: float | None, mean_ms: float | None) -> float | None:
    """Mean number of iterations under way: an iteration may send several requests at once."""
    return None if throughput_rps is None or mean_ms is None else throughput_rps * mean_ms / 1000


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    """Read what --summary-export and handleSummary write."""
    metrics = _metrics(parsed)
    if "http_reqs" not in metrics or "http_req_duration" not in metrics:
        return None
    requests, duration = metrics["http_reqs"], metrics["http_req_duration"]
    failed, checks = metrics.get("http_req_failed", {}), metrics.get("checks", {})
    seconds = amount(inside(parsed, "config", "duration"))
    total = whole_amount(requests.get("count"))
    rate = amount(requests.get("rate"))
    if rate is None and seconds and total is not None:  # the form of version 2 has no rates
        rate = total / seconds
    passes = whole_amount(checks.get("passes", checks.get("matches")))
    misses = whole_amount(checks.get("fails"))
    iterations_rps = amount(inside(metrics, "iterations", "rate"))
    return {
        "loop": "open" if "dropped_iterations" in metrics else None,
        "requests": total,
        "throughput_rps": rate,
        "duration_s": seconds,
        # It counts the requests for which "failed" is so as passes.
        "failed": whole_amount(failed.get("passes", failed.get("matches"))),
        "dropped": whole_amount(inside(metrics, "dropped_iterations", "count")),
        "concurrency": whole_amount(inside(metrics, "vus_max", "value")),
        "checks": None if passes is None or misses is None else passes + misses,
        "failed_checks": misses,
        "total_bytes": whole_amount(inside(metrics, "data_received", "count")),
        "mean_ms": amount(duration.get("avg")),
        "max_ms": amount(duration.get("max")),
        "percentiles_ms": amounts_at(duration, PERCENTILES),
        "under_way": _under_way(
            iterations_rps, amount(inside(metrics, "iteration_duration", "avg"))
        ),
    }


def _metrics(parsed: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give name → figures: flat, below `values`, or in the list of version 2."""
    listed = inside(parsed, "results", "metrics")
    if isinstance(listed, list):
        named = {each["name"]: each for each in listed if isinstance(each, dict) and "name" in each}
    else:
        metrics = parsed.get("metrics")
        named = dict(metrics) if isinstance(metrics, dict) else {}
    return {
        str(name): values if isinstance(values := each.get("values", each), dict) else {}
        for name, each in named.items()
        if isinstance(each, dict)
    }


K6 = Tool(
    name="k6",
    opening=r"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|checks_total\.{2,}:|"
    rf"{_MARK}(?:checks|data_received|http_req\w*)\.{{2,}}:",
    only_first=rf"(?:#+ )?█ (?:THRESHOLDS|TOTAL RESULTS)|{_MARK}checks\.{{2,}}:",
    parts_after="section",
    restart=rf"{_MARK}data_received\.{{2,}}:",
    patterns=patterns(
        rf"{_MARK}http_reqs\.{{2,}}:\s+(?P<requests>INT)\s+(?P<throughput_rps>NUM)/s",
        rf"{_MARK}http_req_duration{_TREND}(?:.*?p\(90\)=(?P<p90>\S+))?(?:.*?p\(95\)=(?P<p95>\S+))?"
        r"(?:.*?p\(99\)=(?P<p99>\S+))?",
        rf"{_MARK}http_req_failed\.{{2,}}:\s+NUM%\s+"
        + _shares("failed_of_old", "right", "failed_of_new", "of_all"),
        rf"{_MARK}checks\.{{2,}}:\s+NUM%\s+"
        + _shares("checks_passed", "checks_missed", "checks_good", "checks_of"),
        r"checks_failed\.{2,}:\s+NUM%\s+(?P<checks_failed>INT) out of (?P<checks_all>INT)",
        rf"{_MARK}dropped_iterations\.{{2,}}:\s+(?P<dropped>INT)\s",
        rf"{_MARK}iteration_duration\.{{2,}}:\s+avg=(?P<turn>\S+)",
        rf"{_MARK}iterations\.{{2,}}:\s+(?P<iterations>INT)\s+(?P<iterations_rps>NUM)/s",
        rf"{_MARK}vus_max\.{{2,}}:\s+(?P<concurrency>INT)\s",
        rf"{_MARK}data_received\.{{2,}}:\s+(?P<read>NUM [kMGT]?B)\s",
        r"running \((?P<ran>[\dhms.]+)\), 0+/INT VUs, INT complete",
        r"(?:#+ )?█ (?P<section>GROUP|SCENARIO): ",
        r"(?:#+ )?█ (?:(?P<banner>TOTAL RESULTS)|THRESHOLDS)",
        rf"{_MARK}[\w ]{{1,80}}\.{{2,}}:\s",
        r"{ [\w:./ -]{1,200} }\.{2,}:",
        r"↳\s+INT% — ✓ INT / ✗ INT",
        r"[✓✗] ",
    ),
    chatter=("HTTP", "EXECUTION", "NETWORK", "CUSTOM", "default "),
    loop=None,
    more=_more,
    read_json=_json_figures,
    bytes_step=1000,
)
