"""Lengths of time, as people write them on the command line."""

import re

from webdyno.model.mistake import Mistake

UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}

_DURATION = re.compile(r"(?P<number>\d+(\.\d+)?)\s*(?P<unit>ms|s|m|h|)", re.ASCII)


def parse_duration_s(text: str, flag: str) -> float:
    """Read `90s`, `1.5m`, `2h` or a bare number of seconds; raise Mistake naming the flag."""
    found = _DURATION.fullmatch(text.strip())
    if not found or float(found["number"]) == 0:
        raise Mistake(f"{flag} {text}: not a length of time; write it like 90s, 5m or 1h")
    return float(found["number"]) * UNITS_S[found["unit"]]
