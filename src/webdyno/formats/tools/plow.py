"""plow: its text and its JSON."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from webdyno.formats.facts import Facts, Figures, Tool, in_ms, non_2xx, patterns
from webdyno.formats.values import amount, inside, whole_amount, whole_amounts

_TIME = r"\d[\d.]{0,20}(?:ns|us|µs|μs|ms|s|m[\d.]{1,20}s)"
_PERCENTILE = re.compile(r"P(\d{1,2}(?:\.\d{1,4})?)$", re.ASCII)


def _more(facts: Facts, _: Figures) -> Figures:
    heads, times = (facts.texts.get(name, "").split() for name in ("heads", "times"))
    megabytes = facts.number("reads")
    return {
        "percentiles_ms": _percentiles(zip(heads, times, strict=False)),
        "transfer_kib_s": None if megabytes is None else megabytes * 1024,
        "failed": sum(facts.errors.values()),
        "non_2xx": non_2xx(facts.by_status) or 0,
    }


def _percentiles(rows: Iterable[tuple[str, object]]) -> dict[float, float]:
    return {
        float(match[1]): time_ms
        for name, time in rows
        if (match := _PERCENTILE.match(name)) and (time_ms := _ms(time)) is not None
    }


def _ms(value: object) -> float | None:
    return in_ms(value) if isinstance(value, str) else None


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    summary, percentiles = parsed.get("Summary"), parsed.get("Percentiles")
    if not isinstance(summary, dict) or "RPS" not in summary:
        return None
    took_ms, by_status = _ms(summary.get("Elapsed")), whole_amounts(summary.get("Counts"))
    return {
        "requests": whole_amount(summary.get("Count")),
        "throughput_rps": amount(summary.get("RPS")),
        "concurrency": whole_amount(summary.get("Concurrency")),
        "duration_s": None if took_ms is None else took_ms / 1000,
        "mean_ms": _ms(inside(parsed, "Statistics", "Latency", "Mean")),
        "max_ms": _ms(inside(parsed, "Statistics", "Latency", "Max")),
        "percentiles_ms": _percentiles(
            percentiles.items() if isinstance(percentiles, dict) else ()
        ),
        "by_status": by_status,
        "failed": sum(whole_amounts(parsed.get("Error")).values()),
        "non_2xx": non_2xx(by_status) or 0,
    }


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
        r"RPS\s+(?P<throughput_rps>NUM)$",
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
        *("Writes ", "Error:", "Statistics ", "Latency Percentile", "Latency Histogram", "@ Real"),
    ),
    more=_more,
    read_json=_json_figures,
)
