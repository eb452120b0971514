"""JMeter: the summary lines of a run without a window, the last one counts; statistics.json."""

from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import Figures, Tool, patterns
from webdyno.formats.values import amount, amounts_at, as_float, whole_amount

WHOLE_SECONDS_FROM = 60
"""Below this a length that is cut to whole seconds says too little to be held against a rate."""
PERCENTILES = {90.0: "pct1ResTime", 95.0: "pct2ResTime", 99.0: "pct3ResTime"}


def _seconds(text: str) -> float | None:
    """Read `00:01:30`, and `9.9s` as before version 2.11. Whole seconds are cut off."""
    if ":" not in text:
        return as_float(text.removesuffix("s"))
    hours, minutes, seconds = (int(part) for part in text.split(":"))
    total = (hours * 60 + minutes) * 60 + seconds
    return None if total < WHOLE_SECONDS_FROM else float(total)


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    total = parsed.get("Total")
    if not isinstance(total, dict) or "sampleCount" not in total:
        return None
    return {
        "requests": whole_amount(total.get("sampleCount")),
        "failed": whole_amount(total.get("errorCount")),
        "throughput_rps": amount(total.get("throughput")),
        "mean_ms": amount(total.get("meanResTime")),
        "max_ms": amount(total.get("maxResTime")),
        "percentiles_ms": amounts_at(total, PERCENTILES),
    }


JMETER = Tool(
    name="jmeter",
    opening=r"summary [=+]\s+\d",
    repeats=True,
    patterns=patterns(
        r"summary =\s+(?P<requests>INT) in\s+(?P<took>\d{1,4}:\d\d:\d\d|NUMs) =\s+"
        r"(?P<throughput_rps>NUM)/s Avg:\s+(?P<mean_ms>INT) Min:\s+INT Max:\s+(?P<max_ms>INT) "
        r"Err:\s+(?P<failed>INT) \(",
        r"summary \+\s+INT in\s",
    ),
    chatter=(
        "Waiting for possible",
        "Tidying up",
        "... end of run",
        "Starting ",
        "Created the tree",
    ),
    more=lambda facts, _: {"duration_s": _seconds(facts.texts["took"])},
    read_json=_json_figures,
)
