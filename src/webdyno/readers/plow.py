"""plow: its text and its JSON."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_ms, non_2xx, patterns
from webdyno.readers.json_figures import amount, inside, whole_amount, whole_amounts
from webdyno.readers.output import Output
from webdyno.readers.urls import url_figures

_TIME = r"\d[\d.]{0,20}(?:ns|us|µs|μs|ms|s|m[\d.]{1,20}s)"
_PERCENTILE = re.compile(r"P(\d{1,2}(?:\.\d{1,4})?)$", re.ASCII)


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    figures["duration_s"] = facts.time_s("took")
    figures["time_limit_s"] = facts.time_s("asked")
    figures["mean_ms"], figures["max_ms"] = (in_ms(facts.texts.get(n)) for n in ("mean", "max"))
    figures["percentiles_ms"] = _percentiles(
        zip(
            facts.texts.get("heads", "").split(), facts.texts.get("times", "").split(), strict=False
        )
    )
    megabytes = facts.number("reads")
    figures["transfer_kib_s"] = None if megabytes is None else megabytes * 1024
    figures |= url_figures(facts.texts.get("url"))
    return _counted(figures, facts.by_status, facts.errors)


def _percentiles(rows: Iterable[tuple[str, object]]) -> dict[float, float]:
    return {
        float(found[1]): at
        for name, time in rows
        if (found := _PERCENTILE.match(name))
        and (at := in_ms(time if isinstance(time, str) else None)) is not None
    }


def _counted(figures: dict[str, Any], by_status: dict[str, int], errors: dict[str, int]) -> Output:
    figures["failed"] = sum(errors.values())
    figures["non_2xx"] = non_2xx(by_status) or 0
    return Output(tool="plow", loop="closed", **figures)


PLOW = Tool(
    name="plow",
    opening=rf"Benchmarking \S+ (?:with \d+ request\(s\) )?(?:for \S+ )?using \d+ connection"
    rf"|Elapsed\s+{_TIME}$",
    patterns=patterns(
        r"Benchmarking (?P<url>\S+) (?:with INT request\(s\) )?(?:for (?P<asked>\S+) )?"
        r"using (?P<concurrency>INT) connection",
        rf"Elapsed\s+(?P<took>{_TIME})(?:\s|$)",
        r"Count\s+(?P<requests>INT)(?:\s|$)",
        r"(?P<status>[1-5]xx)\s+(?P<count>INT)$",
        r"RPS\s+(?P<rate_rps>NUM)$",
        r"Concurrency\s+(?P<concurrency>INT)$",
        r"Reads\s+(?P<reads>NUM)MB/s",
        r"(?P<count>INT)\s+\"(?P<error>.{1,300})\"$",
        rf"Latency\s+{_TIME}\s+(?P<mean>{_TIME})\s+{_TIME}\s+(?P<max>{_TIME})$",
        r"RPS\s+NUM\s+NUM\s+NUM\s+NUM$",
        r"(?P<heads>P50(?:\s+P[\d.]{2,8})+)$",
        rf"(?P<times>{_TIME}(?:\s+{_TIME})+)$",
        rf"{_TIME}\s+INT(?:\s|$)",
    ),
    chatter=(
        "Writes ",
        "Error:",
        "Statistics ",
        "Latency Percentile",
        "Latency Histogram",
        "@ Real",
    ),
    output=_output,
)


def plow_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    summary = found.get("Summary")
    if not isinstance(summary, dict) or "RPS" not in summary:
        return []
    percentiles = found.get("Percentiles")
    figures: dict[str, Any] = {
        "first_line": first_line,
        "last_line": last_line,
        "requests": whole_amount(summary.get("Count")),
        "rate_rps": amount(summary.get("RPS")),
        "concurrency": whole_amount(summary.get("Concurrency")),
        "duration_s": _seconds(summary.get("Elapsed")),
        "mean_ms": _ms(inside(found, "Statistics", "Latency", "Mean")),
        "max_ms": _ms(inside(found, "Statistics", "Latency", "Max")),
        "percentiles_ms": _percentiles(
            percentiles.items() if isinstance(percentiles, dict) else ()
        ),
        "by_status": whole_amounts(summary.get("Counts")),
    }
    return [_counted(figures, figures["by_status"], whole_amounts(found.get("Error")))]


def _ms(value: object) -> float | None:
    return in_ms(value) if isinstance(value, str) else None


def _seconds(value: object) -> float | None:
    found = _ms(value)
    return None if found is None else found / 1000
