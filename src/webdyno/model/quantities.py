"""Quantities as people write them in files and flags, with their units."""

import re
from collections.abc import Mapping

RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
TIMES_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
SHARES = {"%": 0.01, "": 1.0}


def read_rate(value: object) -> object:
    """Read `100mbit` as bits per second; let everything else through for the type to judge."""
    return _read(value, r"(bit|kbit|mbit|gbit)(?:/s)?", RATES, "a rate looks like 100mbit or 1gbit")


def read_delay(value: object) -> object:
    """Read `20ms` as seconds; let everything else through for the type to judge."""
    return _read(value, "(us|ms|s)", TIMES_S, "a delay looks like 20ms or 0.5s")


def read_share(value: object) -> object:
    """Read `2%` or `0.02` as a share of one; let everything else through for the type to judge."""
    return _read(value, "(%|)", SHARES, "a share looks like 2% or 0.02")


def _read(value: object, unit: str, units: Mapping[str, float], remedy: str) -> object:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*{unit}", value.strip().lower(), re.ASCII)
    if match is None:
        raise ValueError(f"{remedy}, unlike {value!r}")
    return float(match[1]) * units[match[2]]
