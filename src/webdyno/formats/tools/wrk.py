"""wrk, and what was made after it: wrk2, which looks the same but keeps to a rate, zrk and rewrk.

rewrk doesn't look at statuses, and its "percentiles" are means of what lies above them.
"""

from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import Facts, Figures, Tool, in_ms, non_2xx, patterns
from webdyno.formats.values import (
    amount,
    amounts_at,
    inside,
    url_figures,
    whole_amount,
    whole_amounts,
)

PERCENTILES = {50.0: "p50", 75.0: "p75", 90.0: "p90", 99.0: "p99", 99.9: "p99_9", 99.99: "p99_99"}
KINDS = ("connect", "read", "write", "timeout", "deadline")


def _wrk(facts: Facts, figures: Figures) -> Figures:
    wrk2 = {"tool": "wrk2", "loop": "open"} if "calibration" in facts.texts else {}
    under_way = _under_way(facts, figures.get("mean_ms"))
    return wrk2 | _counted(facts, figures) | {"under_way": under_way}


def _counted(facts: Facts, figures: Figures) -> Figures:
    """Add failures up; none of these tools says anything of what did not happen."""
    kinds = ("failed_connect", "failed_receive", "failed_timeout", "failed_write", "late")
    failed = sum(facts.integer(kind) or 0 for kind in kinds)
    return {"failed": failed, "non_2xx": figures.get("non_2xx", 0)}


def _under_way(facts: Facts, mean_ms: float | None) -> float | None:
    """Requests under way by Little's law, from the median: wrk adds late responses to its mean.

    Without percentiles the median is at least the mean less the deviation.
    """
    rate, stdev_ms = facts.number("throughput_rps"), in_ms(facts.texts.get("stdev"))
    median_ms = facts.percentiles_ms.get(50.0)
    if median_ms is None and mean_ms is not None and stdev_ms is not None:
        median_ms = max(0.0, mean_ms - stdev_ms)
    return None if rate is None or median_ms is None else rate * median_ms / 1000


def _zrk_json(parsed: Mapping[str, Any]) -> Figures | None:
    if "zrk_version" not in parsed:
        return None
    errors, statuses = (
        whole_amounts(parsed.get("errors")),
        whole_amounts(parsed.get("status_codes")),
    )
    by_status = {status: number for status, number in statuses.items() if number}
    return {
        "concurrency": whole_amount(inside(parsed, "config", "connections")),
        "time_limit_s": amount(inside(parsed, "config", "duration_s")),
        "demanded_rps": _mean(parsed.get("target_rate"), parsed.get("target_rate_end")),
        "requests": whole_amount(parsed.get("requests")),
        "duration_s": amount(parsed.get("duration_s")),
        "throughput_rps": amount(parsed.get("achieved_rate")),
        "total_bytes": whole_amount(parsed.get("bytes")),
        "by_status": by_status,
        "non_2xx": non_2xx(by_status),
        "failed": sum(errors.get(kind, 0) for kind in KINDS),
        "failed_connect": errors.get("connect"),
        "failed_receive": errors.get("read"),
        "failed_timeout": errors.get("timeout"),
        "mean_ms": amount(inside(parsed, "latency_us", "mean"), 0.001),
        "max_ms": amount(inside(parsed, "latency_us", "max"), 0.001),
        "percentiles_ms": amounts_at(parsed.get("latency_us"), PERCENTILES, 0.001),
        **url_figures(inside(parsed, "target", "url")),
    }


def _mean(first: object, last: object) -> float | None:
    """Give the mean of a ramp's rates; both are the same without a ramp."""
    start, end = amount(first), amount(last)
    return start if start is None or end is None else (start + end) / 2


def _rewrk(facts: Facts, figures: Figures) -> Figures:
    answered, failed = figures["requests"], sum(facts.errors.values())
    return {"failed": failed, "rated_requests": answered, "requests": (answered or 0) + failed}


WRK = Tool(
    name="wrk",
    opening=r"Running \S+ test @ |Making \d+ requests to \S",
    patterns=patterns(
        r"Running (?P<asked>\S+) test @ (?P<url>\S+)",
        r"Making INT requests to (?P<url>\S+)",
        r"INT threads? and (?P<concurrency>INT) connections?$",
        r"Thread calibration: (?P<calibration>mean)",
        r"Latency\s+(?P<mean>\S+)\s+(?P<stdev>\S+)\s+(?P<max>\S+)\s+\S+$",
        r"(?P<percent>\d{1,3}(?:\.\d{1,6})?)%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"NUM\s+[01]\.\d{6}\s+INT(?:\s+(?:NUM|inf))?$",
        r"(?P<requests>INT) requests in (?P<took>\S+), (?P<read>\S+) read",
        r"Socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"Non-2xx or 3xx responses: (?P<non_2xx>INT)",
        r"Requests/sec:\s+(?P<throughput_rps>NUM)",
        r"Transfer/sec:\s+(?P<transfer>\S+)",
    ),
    more=_wrk,
    chatter=(
        *("Initialised ", "Thread Stats", "Req/Sec", "Latency Distribution"),
        *("Detailed Percentile", "Value ", "#[", "----------"),
    ),
)

ZRK = Tool(
    name="zrk",
    opening=r"\d+ requests in \d[\d.]*s, \S+ read\s+·",
    patterns=patterns(
        r"(?P<requests>INT) requests in (?P<duration_s>NUM)s, (?P<read>\S+) read\s+·\s+"
        r"(?P<throughput_rps>NUM) req/s",
        r"p(?P<percent>\d{1,2}(?:\.\d{1,3})?)\s+(?P<at>NUM(?:us|ms|s))$",
        r"max\s+(?P<max>NUM(?:us|ms|s))$",
        r"non-2xx/3xx: (?P<non_2xx>INT)",
        r"socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"deadline misses: (?P<late>INT)",
        r"NUM%\s+NUM(?:us|ms|s)$",
    ),
    chatter=("latency (coord", "Detailed Percentile", "3xx (redirect)", "peak schedule lag"),
    loop="open",
    more=_counted,
    read_json=_zrk_json,
)

REWRK = Tool(
    name="rewrk",
    opening=r"Benchmarking \d+ connections @ ",
    patterns=patterns(
        r"Benchmarking (?P<concurrency>INT) connections @ (?P<url>\S+)"
        r"(?: for (?P<asked>NUM seconds?)$)?",
        r"(?P<mean>NUMms)\s+NUMms\s+NUMms\s+(?P<max>NUMms)$",
        r"Total:\s+(?P<requests>INT)\s+Req/Sec:\s+(?P<throughput_rps>NUM)",
        r"Total:\s+(?P<read>NUM [KMGT]?B)\s+Transfer Rate:\s+(?P<transfer>NUM [KMGT]?B)/Sec",
        r"(?P<count>INT) Errors: (?P<error>\S.{0,300})",
        r"\|\s+NUM%\s+\|\s+NUMms\s+\|$",
    ),
    chatter=("Latencies:", "Avg ", "Requests:", "Transfer:", "+ ---", "|   Percentile"),
    more=_rewrk,
)
