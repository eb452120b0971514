"""ghz, for gRPC: its text and its JSON. Its statuses are names such as `OK` and `Unavailable`."""

from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_ms, patterns
from webdyno.readers.json_figures import amount, inside, scaled, whole_amount, whole_amounts
from webdyno.readers.output import Output

RIGHT = "OK"


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    figures["duration_s"] = facts.time_s("took")
    figures["mean_ms"], figures["max_ms"] = (in_ms(facts.texts.get(n)) for n in ("mean", "max"))
    return _counted(figures, facts.by_status)


def _counted(figures: dict[str, Any], statuses: dict[str, int]) -> Output:
    figures["failed"] = sum(number for name, number in statuses.items() if name != RIGHT)
    figures["by_status"] = {}  # they are none of HTTP's
    return Output(tool="ghz", loop="closed", **figures)


GHZ = Tool(
    name="ghz",
    opening=r"Count:\s+\d+$",
    patterns=patterns(
        r"Count:\s+(?P<requests>INT)$",
        r"Total:\s+(?P<took>NUM (?:ns|ms|s))$",
        r"Slowest:\s+(?P<max>NUM (?:ns|ms|s))$",
        r"Average:\s+(?P<mean>NUM (?:ns|ms|s))$",
        r"Requests/sec:\s+(?P<rate_rps>NUM)",
        r"(?P<percent>\d{1,2}) % in (?P<at>NUM (?:ns|ms|s))",
        r"\[(?P<status>[A-Z][A-Za-z]{1,40})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.{0,300})",
        r"NUM \[INT\]",
    ),
    chatter=(
        *("Fastest:", "Name:", "Response time histogram", "Latency distribution"),
        *("Status code dist", "Error dist"),
    ),
    output=_output,
)


def ghz_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    if "rps" not in found or "statusCodeDistribution" not in found or "average" not in found:
        return []
    rows = found.get("latencyDistribution")
    percentiles = {
        percent: at
        for row in (rows if isinstance(rows, list) else ())
        if isinstance(row, dict)
        and (percent := amount(row.get("percentage"))) is not None
        and (at := scaled(row.get("latency"), 1e-6)) is not None
    }
    figures: dict[str, Any] = {
        "first_line": first_line,
        "last_line": last_line,
        "requests": whole_amount(found.get("count")),
        "duration_s": scaled(found.get("total"), 1e-9),
        "rate_rps": amount(found.get("rps")),
        "mean_ms": scaled(found.get("average"), 1e-6),
        "max_ms": scaled(found.get("slowest"), 1e-6),
        "concurrency": whole_amount(inside(found, "options", "concurrency")),
        "percentiles_ms": percentiles,
    }
    return [_counted(figures, whole_amounts(found.get("statusCodeDistribution")))]
