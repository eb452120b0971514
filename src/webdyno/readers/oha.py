"""oha: its text and its JSON."""

import re
from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, non_2xx, patterns
from webdyno.readers.json_figures import amount, whole_amounts
from webdyno.readers.output import Output

_PERCENTILE = re.compile(r"p\d{1,2}(?:\.\d{1,4})?$", re.ASCII)

CUT_OFF = "aborted due to deadline"
"""What it calls the requests under way when the time is up: those are no failures."""


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    took_ms = in_ms(facts.texts.get("took"))
    if "rate_rps" not in figures or took_ms is None:
        return None
    figures["duration_s"] = took_ms / 1000
    figures["mean_ms"], figures["max_ms"] = (
        in_ms(facts.texts.get(name)) for name in ("mean", "max")
    )
    size = in_bytes(facts.texts.get("size"))
    figures["document_bytes"] = None if size is None else int(size)
    return _counted(figures, facts.by_status, facts.errors)


def _counted(figures: dict[str, Any], by_status: dict[str, int], errors: dict[str, int]) -> Output:
    if by_status or errors:
        failed = sum(count for error, count in errors.items() if error != CUT_OFF)
        figures |= {"requests": sum(by_status.values()) + failed, "failed": failed}
        figures["non_2xx"] = non_2xx(by_status)
    # A request that the deadline cut off is in its rate, but is no request that ended.
    return Output(tool="oha", **figures)


OHA = Tool(
    name="oha",
    opening=r"Success rate:\s",
    patterns=patterns(
        r"Success rate:\s+(?P<success>NUM)",
        r"Total:\s+(?P<took>NUM \S+)",
        r"Slowest:\s+(?P<max>NUM \S+)",
        r"Average:\s+(?P<mean>NUM \S+)",
        r"Requests/sec:\s+(?P<rate_rps>NUM)",
        r"Size/request:\s+(?P<size>NUM \S+)",
        r"(?P<percent>\d{1,2}(?:\.\d{1,4})?)% in (?P<at>NUM \S+)",
        r"\[(?P<status>\d{3})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.*)",
        r"NUM \S+ \[INT\]",
    ),
    output=_output,
    chatter=(
        *("Fastest:", "Total data", "Size/sec", "Response time", "Details (", "DNS"),
        *("Status code dist", "Error dist"),
    ),
)


def oha_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    summary, statuses = found.get("summary"), found.get("statusCodeDistribution")
    if not isinstance(summary, dict) or not isinstance(statuses, dict):
        return []
    said: dict[str, Any] = {"first_line": first_line, "last_line": last_line}
    for name, key, scale in (
        ("duration_s", "total", 1),
        ("rate_rps", "requestsPerSec", 1),
        ("document_bytes", "sizePerRequest", 1),
        ("body_bytes", "totalData", 1),
        ("mean_ms", "average", 1000),
        ("max_ms", "slowest", 1000),
    ):
        value = amount(summary.get(key))
        said[name] = None if value is None else value * scale
    percentiles = found.get("latencyPercentiles")
    said["percentiles_ms"] = {
        float(name[1:]): seconds * 1000
        for name, value in (percentiles if isinstance(percentiles, dict) else {}).items()
        if _PERCENTILE.match(name) and (seconds := amount(value)) is not None
    }
    said["by_status"] = whole_amounts(statuses)
    return [_counted(said, said["by_status"], whole_amounts(found.get("errorDistribution")))]
