"""vegeta: its text report and its JSON."""

import re
from collections.abc import Mapping
from typing import Any

from webdyno.formats.facts import MOST_ROWS, Facts, Figures, Tool, in_ms, non_2xx, patterns
from webdyno.formats.values import amount, amounts_at, as_count, inside, whole_amount, whole_amounts

PERCENTILES = {50.0: "50th", 90.0: "90th", 95.0: "95th", 99.0: "99th"}
NO_RESPONSE = "0"
"""Its status code of a request without a response."""

_CODE = re.compile(r"(\d{1,3}):(\d{1,20})")


def _more(facts: Facts, _: Figures) -> Figures:
    codes = {code: as_count(number) or 0 for code, number in _CODE.findall(facts.texts["codes"])}
    return {
        "ended_s": facts.time_s("ended"),
        "longest_above_ms": _longest_above_ms(facts),
        **_by_name(facts.texts.get("heads", ""), facts.texts.get("times", "")),
        **_counted(codes, facts.number("mean_bytes")),
    }


def _longest_above_ms(facts: Facts) -> float | None:
    """Give where the highest bucket with a response begins, of a histogram of the same requests."""
    filled = [in_ms(low) or 0.0 for low, count in facts.parts.items() if count]
    return (
        max(filled) if filled and sum(facts.parts.values()) == facts.integer("requests") else None
    )


def _by_name(heads: str, times: str) -> Figures:
    """Read `mean, 50, 95, 99, max` with the times below."""
    named = dict(zip(heads.split(", "), (in_ms(time) for time in times.split(", ")), strict=False))
    return {
        "min_ms": named.get("min"),
        "mean_ms": named.get("mean"),
        "max_ms": named.get("max"),
        "percentiles_ms": {
            float(name): time_ms
            for name, time_ms in named.items()
            if name.isdecimal() and time_ms is not None
        },
    }


def _counted(codes: dict[str, int], mean_bytes: float | None) -> Figures:
    """Set apart what got no response; the mean of bytes means a document only where all got one."""
    failed = codes.pop(NO_RESPONSE, 0)
    mixed = failed or len(codes) != 1
    return {
        "failed": failed,
        "by_status": codes,
        "non_2xx": non_2xx(codes) or 0,
        "document_bytes": None if mixed or mean_bytes is None else int(mean_bytes),
    }


def _json_figures(parsed: Mapping[str, Any]) -> Figures | None:
    latencies = parsed.get("latencies")
    if not isinstance(latencies, dict) or "status_codes" not in parsed:
        return None
    duration_s, wait_s = (amount(parsed.get(name), 1e-9) for name in ("duration", "wait"))
    return {
        "requests": whole_amount(parsed.get("requests")),
        "throughput_rps": amount(parsed.get("rate")),
        "duration_s": duration_s,
        "ended_s": None if duration_s is None else duration_s + (wait_s or 0),
        "body_bytes": whole_amount(inside(parsed, "bytes_in", "total")),
        "min_ms": amount(latencies.get("min"), 1e-6),
        "mean_ms": amount(latencies.get("mean"), 1e-6),
        "max_ms": amount(latencies.get("max"), 1e-6),
        "percentiles_ms": amounts_at(latencies, PERCENTILES, 1e-6),
        "errors": _named(parsed.get("errors")),
        **_counted(
            whole_amounts(parsed["status_codes"]), amount(inside(parsed, "bytes_in", "mean"))
        ),
    }


def _named(errors: object) -> dict[str, int]:
    """Give the errors, which aren't counted."""
    listed = errors if isinstance(errors, list) else []
    return {error: 0 for error in listed[:MOST_ROWS] if isinstance(error, str)}


VEGETA = Tool(
    name="vegeta",
    opening=r"Requests\s+\[total, rate(?:, throughput)?\]|Bucket\s+#\s+%\s+Histogram",
    restart=r"Requests\s+\[total, rate(?:, throughput)?\]",
    patterns=patterns(
        r"Requests\s+\[total, rate(?:, throughput)?\]\s+(?P<requests>INT), (?P<throughput_rps>NUM)",
        r"Duration\s+\[total, attack, wait\]\s+(?P<ended>[\w.µμ]+), (?P<took>[\w.µμ]+), ",
        r"Latencies\s+\[(?P<heads>[a-z0-9, ]{5,80})\]\s+(?P<times>[\w.µμ, ]{5,200})$",
        r"Bytes In\s+\[total, mean\]\s+(?P<body_bytes>INT), (?P<mean_bytes>NUM)",
        r"Status Codes\s+\[code:count\]\s*(?P<codes>.{0,400})$",
        r"(?P<error>(?:Get|Head|Post|Put|Patch|Delete|Options) \"?https?://.{1,300})$",
        r"Bucket\s+#\s+%\s+(?P<banner>Histogram)",
        r"\[(?P<part>[\w.µμ]+),\s+[\w.µμ+]+\]\s+(?P<count>INT)\s+(?P<share>NUM)%",
    ),
    chatter=("Bytes Out ", "Success ", "Error Set:"),
    loop="open",
    needed=("requests", "throughput_rps", "codes"),
    more=_more,
    read_json=_json_figures,
)
