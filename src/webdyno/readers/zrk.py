"""zrk, a wrk2 with an exact timetable: its text and its JSON."""

from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, non_2xx, patterns
from webdyno.readers.json_figures import amount, inside, scaled, whole_amount, whole_amounts
from webdyno.readers.output import Output
from webdyno.readers.urls import url_figures

PERCENTILES = {50.0: "p50", 75.0: "p75", 90.0: "p90", 99.0: "p99", 99.9: "p99_9", 99.99: "p99_99"}
KINDS = ("connect", "read", "write", "timeout", "deadline")


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    kinds = [facts.integer(f"failed_{kind}") for kind in ("connect", "receive", "timeout", "write")]
    figures["failed"] = sum(each or 0 for each in (*kinds, facts.integer("late")))
    figures.setdefault("non_2xx", 0)  # it says nothing of what did not happen
    figures["max_ms"] = in_ms(facts.texts.get("max"))
    read = in_bytes(facts.texts.get("read"))
    figures["total_bytes"] = None if read is None else int(read)
    return Output(tool="zrk", loop="open", **figures)


ZRK = Tool(
    name="zrk",
    opening=r"\d+ requests in \d[\d.]*s, \S+ read\s+·",
    patterns=patterns(
        r"(?P<requests>INT) requests in (?P<duration_s>NUM)s, (?P<read>\S+) read\s+·\s+"
        r"(?P<rate_rps>NUM) req/s",
        r"p(?P<percent>\d{1,2}(?:\.\d{1,3})?)\s+(?P<at>NUM(?:us|ms|s))$",
        r"max\s+(?P<max>NUM(?:us|ms|s))$",
        r"non-2xx/3xx: (?P<non_2xx>INT)",
        r"socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"deadline misses: (?P<late>INT)",
        r"NUM%\s+NUM(?:us|ms|s)$",
    ),
    chatter=("latency (coord", "Detailed Percentile", "3xx (redirect)", "peak schedule lag"),
    output=_output,
)


def zrk_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    if "zrk_version" not in found:
        return []
    errors, statuses = whole_amounts(found.get("errors")), whole_amounts(found.get("status_codes"))
    by_status = {status: number for status, number in statuses.items() if number}
    url = inside(found, "target", "url")
    output = Output(
        tool="zrk",
        first_line=first_line,
        last_line=last_line,
        loop="open",
        concurrency=whole_amount(inside(found, "config", "connections")),
        time_limit_s=amount(inside(found, "config", "duration_s")),
        demanded_rps=_mean(found.get("target_rate"), found.get("target_rate_end")),
        requests=whole_amount(found.get("requests")),
        duration_s=amount(found.get("duration_s")),
        rate_rps=amount(found.get("achieved_rate")),
        total_bytes=whole_amount(found.get("bytes")),
        by_status=by_status,
        non_2xx=non_2xx(by_status),
        failed=sum(errors.get(kind, 0) for kind in KINDS),
        failed_connect=errors.get("connect"),
        failed_receive=errors.get("read"),
        failed_timeout=errors.get("timeout"),
        mean_ms=scaled(inside(found, "latency_us", "mean"), 0.001),
        max_ms=scaled(inside(found, "latency_us", "max"), 0.001),
        percentiles_ms={
            percent: at
            for percent, name in PERCENTILES.items()
            if (at := scaled(inside(found, "latency_us", name), 0.001)) is not None
        },
        **url_figures(url if isinstance(url, str) else None),
    )
    return [output]


def _mean(first: object, last: object) -> float | None:
    """Give the mean of a ramp's rates; both are the same without a ramp."""
    start, end = amount(first), amount(last)
    return start if start is None or end is None else (start + end) / 2
