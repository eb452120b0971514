"""vegeta: its text report and its JSON."""

import re
from collections.abc import Mapping
from typing import Any

from webdyno.readers.facts import Facts, Tool, in_ms, patterns
from webdyno.readers.json_figures import amount, inside, scaled, whole_amounts
from webdyno.readers.numbers import as_count
from webdyno.readers.output import Output

NO_ANSWER = "0"
"""Its status code of a request without an answer."""

_CODE = re.compile(r"(\d{1,3}):(\d{1,20})")


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if not {"requests", "rate_rps", "codes"} <= facts.texts.keys():
        return None
    codes = {code: as_count(number) or 0 for code, number in _CODE.findall(facts.texts["codes"])}
    figures["duration_s"], figures["ended_s"] = facts.time_s("attack"), facts.time_s("took")
    figures.pop("by_status")
    figures["mean_bytes"] = facts.number("mean_bytes")
    figures |= _by_name(facts.texts.get("heads", ""), facts.texts.get("times", ""))
    return _counted(figures, codes)


def _by_name(heads: str, times: str) -> dict[str, Any]:
    """Read `mean, 50, 95, 99, max` with the times below."""
    named = dict(zip(heads.split(", "), (in_ms(time) for time in times.split(", ")), strict=False))
    return {
        "mean_ms": named.get("mean"),
        "max_ms": named.get("max"),
        "percentiles_ms": {
            float(name): at for name, at in named.items() if name.isdecimal() and at is not None
        },
    }


def _counted(figures: dict[str, Any], codes: dict[str, int]) -> Output:
    """Set apart what got no answer; the mean of bytes means a document only where all got one."""
    failed = codes.pop(NO_ANSWER, 0)
    mean_bytes = figures.pop("mean_bytes", None)
    return Output(
        tool="vegeta",
        loop="open",
        **figures,
        failed=failed,
        by_status=codes,
        non_2xx=sum(number for code, number in codes.items() if not code.startswith("2")),
        document_bytes=None if failed or len(codes) != 1 or mean_bytes is None else int(mean_bytes),
    )


VEGETA = Tool(
    name="vegeta",
    opening=r"Requests\s+\[total, rate(?:, throughput)?\]",
    patterns=patterns(
        r"Requests\s+\[total, rate(?:, throughput)?\]\s+(?P<requests>INT), (?P<rate_rps>NUM)",
        r"Duration\s+\[total, attack, wait\]\s+(?P<took>[\w.µμ]+), (?P<attack>[\w.µμ]+), ",
        r"Latencies\s+\[(?P<heads>[a-z0-9, ]{5,80})\]\s+(?P<times>[\w.µμ, ]{5,200})$",
        r"Bytes In\s+\[total, mean\]\s+(?P<body_bytes>INT), (?P<mean_bytes>NUM)",
        r"Status Codes\s+\[code:count\]\s*(?P<codes>.{0,400})$",
    ),
    chatter=("Bytes Out ", "Success ", "Error Set:", 'Get "', "Get http", "Post "),
    output=_output,
)


def vegeta_json(found: Mapping[str, Any], first_line: int, last_line: int) -> list[Output]:
    """Read its JSON; empty when it is the JSON of something else."""
    if not isinstance(found.get("latencies"), dict) or "status_codes" not in found:
        return []
    duration_s, wait_s = (scaled(found.get(name), 1e-9) for name in ("duration", "wait"))
    figures: dict[str, Any] = {
        "first_line": first_line,
        "last_line": last_line,
        "requests": whole_amounts(found).get("requests"),
        "rate_rps": amount(found.get("rate")),
        "duration_s": duration_s,
        "ended_s": None if duration_s is None else duration_s + (wait_s or 0),
        "body_bytes": whole_amounts(found.get("bytes_in")).get("total"),
        "mean_bytes": amount(inside(found, "bytes_in", "mean")),
        "mean_ms": scaled(inside(found, "latencies", "mean"), 1e-6),
        "max_ms": scaled(inside(found, "latencies", "max"), 1e-6),
        "percentiles_ms": {
            percent: at
            for percent in (50.0, 90.0, 95.0, 99.0)
            if (at := scaled(inside(found, "latencies", f"{percent:g}th"), 1e-6)) is not None
        },
    }
    return [_counted(figures, whole_amounts(found.get("status_codes")))]
