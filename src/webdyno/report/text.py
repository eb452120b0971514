"""Numbers as people read them: no more digits than the interval bears, thousands apart, units."""

from collections.abc import Iterable, Mapping
from math import floor, isfinite, log10

from webdyno.model.experiment import Level
from webdyno.model.judgement import ArmValue, Interval

THIN = "\u202f"
"""Narrow no-break space, between a number and its unit."""
TIMES = "×"
DASH = "–"
MISSING = "—"
ROUNDING = 1e-9
"""Relative half-width below which a value is known exactly, but for the rounding of logarithms."""


def number(value: float, decimals: int = 0) -> str:
    """Round to `decimals` places (negative: to tens, hundreds…) and set thousands apart."""
    if not isfinite(value):
        return MISSING
    rounded = round(value, decimals) + 0.0  # no minus zero
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", "−")


def count(n: int, noun: str) -> str:
    """Give a number with its noun: `1 block`, `12 blocks`."""
    return f"{number(n)}{THIN}{noun}" + ("" if n == 1 else "s")


def decimals_for(half_width: float) -> int:
    """Places to which an estimate is worth writing when its interval is this wide to each side.

    Two digits of the half-width when it begins with 1 or 2, else one (after the Particle Data
    Group's rule for uncertainties, Review of Particle Physics, section 5.3).
    """
    exponent = floor(log10(half_width))
    return -exponent + (1 if half_width < 3 * 10.0**exponent else 0)


def significant(value: float, digits: int = 4) -> str:
    """Give a value of unknown precision with this many significant digits at most."""
    if value == 0 or not isfinite(value):
        return number(value)
    return number(value, min(digits - 1 - floor(log10(abs(value))), 6))


def _decimals(interval: Interval, at_least: int) -> int:
    half_width = (interval.high - interval.low) / 2
    if not isfinite(half_width) or half_width <= ROUNDING * abs(interval.estimate):
        return max(at_least, 3)
    return max(at_least, min(decimals_for(half_width), 6))


def estimate(interval: Interval) -> str:
    """Give the estimate of a quantity with the digits that its interval bears, and one at least."""
    value = abs(interval.estimate)
    first_digit = -floor(log10(value)) if value and isfinite(value) else 0
    return number(interval.estimate, _decimals(interval, first_digit))


def only(value: ArmValue | None) -> str:
    """Give a value without an interval: that of the only block there is."""
    return significant(value.by_block[0]) if value and len(value.by_block) == 1 else MISSING


def bounds(interval: Interval) -> str:
    """Give an interval of a quantity: `47,800–48,600`."""
    decimals = _decimals(interval, -9)
    return f"{number(interval.low, decimals)}{DASH}{number(interval.high, decimals)}"


def ratio(interval: Interval) -> str:
    """Give the estimate of a ratio: `1.92×`."""
    return number(interval.estimate, _decimals(interval, 2)) + TIMES


def ratio_bounds(interval: Interval) -> str:
    """Give an interval of a ratio: `1.87–1.97`."""
    decimals = _decimals(interval, 2)
    return f"{number(interval.low, decimals)}{DASH}{number(interval.high, decimals)}"


def percent(share: float) -> str:
    """Give a share of one in per cent, to three digits at most: `2 %`, `0.5 %`."""
    return f"{share * 100:.3g}{THIN}%"


def probability(p: float) -> str:
    """Give a p-value: `p = 0.031`, never more exact than it is."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def duration(seconds: float) -> str:
    """Give a length of time: `0.5 s`, `90 s`, `12 min`."""
    if seconds < 120:
        return f"{seconds:.3g}{THIN}s"
    return f"{number(seconds / 60)}{THIN}min"


def size(n: float) -> str:
    """Give a number of bytes in binary multiples."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while n >= 1024 and len(units) > 1:
        n /= 1024
        units.pop(0)
    whole = units[0] == "bytes" or n >= 10
    return f"{number(n, 0 if whole else 1)}{THIN}{units[0]}"


def cpu_list(cpus: list[int]) -> str:
    """Give a set of CPUs as the kernel writes it: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def level(value: Level) -> str:
    """Give a level of a factor: `64`, `always`, `true`, `/a, /b`."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def factor_names(factors: Iterable[str]) -> dict[str, str]:
    """Give each factor a short name: the setting's own, with its arm's, or all of its key.

    `load.connections` is `connections`, `arms.nginx.knobs.workers` is `nginx workers`.
    """
    keys = [(key, key.split(".")) for key in factors]
    short = {
        key: f"{parts[1]} {parts[-1]}" if parts[0] == "arms" and len(parts) > 2 else parts[-1]
        for key, parts in keys
    }
    taken = list(short.values())
    return {key: key if taken.count(name) > 1 else name for key, name in short.items()}


def levels(of: Mapping[str, Level]) -> str:
    """Name a point by its levels: `connections = 64, keepalive = always`."""
    names = factor_names(of)
    return ", ".join(f"{names[key]} = {level(value)}" for key, value in of.items())
