"""Figures as people read them, the same wherever they stand: verdict, tables, charts, warnings.

No more digits than an interval bears, but three of large numbers; an estimate and its interval
always have the same ones, so that rounding never puts one outside the other. Numbers and units are
parted by a plain space; the page makes narrow ones of them. And what programs said, as messages
quote it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, isfinite, log10

from webdyno.core.base import ENDLESS, Interval
from webdyno.core.experiment import Level
from webdyno.core.hiding import hidden

TIMES = "×"
DASH = "–"
MISSING = "—"
KNOWN_EXACTLY = 1e-9
"""Relative half-width below which a value is known, but for the rounding of logarithms."""
DIGITS, FEWEST_DIGITS = 4, 3
"""Significant digits that are shown, as many as an interval bears; of large numbers these at least:
their ratio should look like their quotient."""
MOST_DECIMALS = 6
WIDEST = 100.0
"""An interval of a ratio is of no use if its upper end is more than so many times the lower one."""
LEAST_US = 0.1
"""No clock says shorter times."""
LATENCY_UNITS = ((1e6, "s"), (1e3, "ms"), (1.0, "µs"))
"""Microseconds from which on a latency is written in this unit."""
LATENCY_DIGITS = 3
SINGLE_LEVEL = 0.9501
"""Confidence from which on an interval is one of several whose verdicts hold together."""
MOST_RATIO_DECIMALS = 4
"""Ratios are distinguished from 1, so that more of their digits matter."""


BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|µs|ms|s|min|bytes|[KMGT]iB|rounds?)(?!\w))")


def bound(said: str, space: str) -> str:
    """Put another space between numbers and their units, one at which no line ends."""
    return BEFORE_UNIT.sub(space, said)


def number(value: float, decimals: int = 0) -> str:
    """Round to `decimals` places (negative: to tens, hundreds…) and set thousands apart."""
    if not isfinite(value):
        return MISSING
    rounded = round(value, decimals) + 0.0  # no minus zero
    return f"{rounded:,.{max(decimals, 0)}f}".replace("-", "−")


def significant(value: float, digits: int = DIGITS) -> str:
    """Return a value of unknown precision with this many significant digits at most."""
    return number(value, decimals_of(value, digits))


def decimals_of(value: float, digits: int) -> int:
    """Return the decimals of a value with this many significant digits."""
    return min(digits - 1 - _magnitude(value), MOST_DECIMALS)


BEHIND_A_NOUN = re.compile(r" (?:with|without|that|reset|in)\b")


def count(n: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `12 rounds`, `2 requests without a response`."""
    more = BEHIND_A_NOUN.search(noun)
    end = more.start() if more else len(noun)
    return f"{number(n)} {noun[:end]}{'' if n == 1 else 's'}{noun[end:]}"


def ordinal(n: int) -> str:
    """Return a place in an order: `1st`, `22nd`, `13th`."""
    ending = {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n}{'th' if 10 < n % 100 < 14 else ending}"


def decimals_for(half_width: float) -> int:
    """Places to which an estimate is worth writing when its interval is this wide to each side.

    Two digits of the half-width when it begins with 1 or 2, else one (after the Particle Data
    Group's rule for uncertainties, Review of Particle Physics, section 5.3).
    """
    exponent = floor(log10(half_width))
    return -exponent + (1 if half_width < 3 * 10.0**exponent else 0)


def quantity(interval: Interval) -> str:
    """Return the estimate of a quantity with the digits that its interval bears: `48,200`."""
    return number(interval.estimate, _decimals(interval))


def quantity_bounds(interval: Interval) -> str:
    """Return the interval of a quantity, to the same digits: `47,800–48,600`."""
    decimals = _decimals(interval)
    return f"{number(interval.low, decimals)}{DASH}{number(interval.high, decimals)}"


def ratio(interval: Interval) -> str:
    """Return the estimate of a ratio, to three digits at least: `1.92`, `21.5`."""
    return number(interval.estimate, ratio_decimals(interval))


def times(interval: Interval) -> str:
    """Return the estimate of a ratio as a factor: `1.92×`."""
    return ratio(interval) + TIMES


def ratio_bounds(interval: Interval) -> str:
    """Return the interval of a ratio for a table: `1.87–1.97`; nothing of one that is constant."""
    if is_constant(interval):
        return ""
    if not is_useful(interval):
        return "not useful yet"
    return DASH.join(_ratio_ends(interval))


def ratio_range(interval: Interval) -> str:
    """Return the interval of a ratio for a sentence: `95% CI 1.87–1.97×`."""
    return ci(interval) if is_useful(interval) else "no useful CI yet"


def ci(interval: Interval) -> str:
    """Return any interval of a ratio with its level: `95% CI 1.87–1.97×`, `95% CI from 3.05×`."""
    return f"{ci_level(interval.confidence)} {between(interval)}"


def ci_level(confidence: float) -> str:
    """Return an interval's name: `95% CI`, or `adjusted 95% CI` of one of several.

    Each of those has the higher level at which it was asked, so that all verdicts hold together
    with 95%. The intervals needn't: of Holm's steps the last has 95% for itself.
    """
    return "95% CI" if confidence < SINGLE_LEVEL else "adjusted 95% CI"


def is_useful(interval: Interval) -> bool:
    """Whether an interval of a ratio says anything: the first ones may reach from 0 to millions."""
    return interval.high <= WIDEST * interval.low


def is_constant(interval: Interval) -> bool:
    """Whether all values were the same, so that an interval around them says nothing."""
    return interval.high - interval.low <= 2 * KNOWN_EXACTLY * abs(interval.estimate)


def between(interval: Interval) -> str:
    """Return a ratio's bounds: `3.05–3.21×`, or `from 3.05×` where nothing bounds it above."""
    wide = not is_useful(interval)
    if interval.low < 1 / ENDLESS or (wide and interval.high < 1):
        return "unknown" if interval.high > ENDLESS else f"up to {_end(interval.high)}"
    if interval.high > ENDLESS or (wide and interval.low > 1):
        return f"from {_end(interval.low)}"
    return "unknown" if wide else DASH.join(_ratio_ends(interval)) + TIMES


def _end(ratio: float) -> str:
    return significant(ratio, 3) + TIMES


def _ratio_ends(interval: Interval) -> tuple[str, str]:
    decimals = ratio_decimals(interval)
    return number(interval.low, decimals), number(interval.high, decimals)


def ratio_decimals(interval: Interval) -> int:
    """Return with how many decimals a ratio is shown."""
    digits = max(2 - _magnitude(interval.estimate), -_magnitude(interval.low), 0)
    return max(_decimals(interval, MOST_RATIO_DECIMALS), min(digits, 2))


def _decimals(interval: Interval, most: int | None = None) -> int:
    """Decimals that an interval bears, `most` at most, and so many that the estimate has a digit.

    Unless `most` is given it is as many as make four digits, and three of a large number.
    """
    magnitude = _magnitude(interval.estimate)
    before_point = min(FEWEST_DIGITS - 1 - magnitude, 0)
    fewest = -magnitude if most is not None else max(before_point, -magnitude)
    most = max(DIGITS - 1 - magnitude, 0) if most is None else most
    half_width = (interval.high - interval.low) / 2
    if not isfinite(half_width) or half_width <= KNOWN_EXACTLY * abs(interval.estimate):
        is_whole = abs(interval.estimate - round(interval.estimate)) < KNOWN_EXACTLY
        return 0 if is_whole else max(DIGITS - 1 - magnitude, 0)
    return max(fewest, min(decimals_for(half_width), most))


def _magnitude(value: float) -> int:
    """Return the power of ten of the first digit."""
    return floor(log10(abs(value))) if value and isfinite(value) else 0


def percent(share: float) -> str:
    """Return a share of one: `2%`, `0.55%`, `97%`."""
    if abs(share) >= 0.1:
        return f"{number(share * 100)}%"
    return f"{share * 100:.2g}%".replace("-", "\N{MINUS SIGN}", 1 if share < 0 else 0)


FACTOR_ABOVE = 2.0
"""A ratio beyond this, or its inverse, is written as a factor: nobody reads 1,200%."""


def change(ratio: Interval) -> str:
    """Return a ratio as a change: `+4.3% (95% CI +2.4 to +6.1%)`, a large one as a factor."""
    if max(ratio.high, 1 / ratio.low) > FACTOR_ABOVE:
        one_end = ratio.low > 1 or ratio.high < 1  # which `between` names
        return f"{times(ratio)} ({ci(ratio) if one_end else ratio_range(ratio)})"
    low, high = signed_percent(ratio.low - 1), signed_percent(ratio.high - 1)
    level = ci_level(ratio.confidence)
    return f"{signed_percent(ratio.estimate - 1)} ({level} {low.rstrip('%')} to {high})"


def signed_percent(share: float) -> str:
    """Return a share of one with its sign: `+4.3%`, `−12%`."""
    digits = 1 if abs(share) < 0.1 else 0
    return f"{share * 100:+.{digits}f}%".replace("-", "\N{MINUS SIGN}")


def confidence_level(level: float) -> str:
    """Return a confidence level, less than 1: `95%`, `98.3%`, `99.96%`.

    With as many decimals as show what it excludes, so that none is reported as certainty.
    """
    excluded = (1 - level) * 100
    return f"{round(level * 100, max(1, -floor(log10(excluded)))):.10g}%"


def probability(p: float) -> str:
    """Return a p-value, never more exact than it is: `p = 0.031`, `p < 0.001`."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def duration(seconds: float) -> str:
    """Return a length of time: `3.3 ms`, `0.5 s`, `90 s`, `12 min`."""
    if 0 < seconds < 0.1:
        return f"{seconds * 1000:.2g} ms"
    return f"{seconds:.3g} s" if seconds < 120 else f"{number(seconds / 60)} min"


def latency(us: float) -> str:
    """Return the time of a response, or a part of it: `85.3 µs`, `4.21 ms`, `1.20 s`."""
    if us < LEAST_US:
        return f"less than {LEAST_US} µs"
    rounded_us = float(f"{us:.{LATENCY_DIGITS - 1}e}")
    each_us, unit = latency_unit(rounded_us)
    return f"{significant(rounded_us / each_us, LATENCY_DIGITS)} {unit}"


def latency_and_bounds(us: Interval) -> tuple[str, str]:
    """Return a latency and its interval in the estimate's unit: `4.21 ms`, `4.15–4.30`."""
    each_us, unit = latency_unit(us.estimate)
    here = us.map(lambda time_us: time_us / each_us)
    most = max(LATENCY_DIGITS - 1 - _magnitude(here.estimate), 0)
    decimals = min(_decimals(here), most)
    ends = DASH.join(number(end, decimals) for end in (here.low, here.high))
    return f"{number(here.estimate, decimals)} {unit}", ends


def latency_unit(us: float) -> tuple[float, str]:
    """Return the unit in which so long a time is written: its microseconds and its name."""
    return next((unit for unit in LATENCY_UNITS if us >= unit[0]), LATENCY_UNITS[-1])


def typed_duration(seconds: float) -> str:
    """Return a length of time as a flag takes it, rounded up: `90s`, `19m`."""
    return f"{ceil(seconds)}s" if seconds < 120 else f"{ceil(seconds / 60)}m"


def minutes(seconds: float) -> str:
    """Return a time that is only an estimate: rounded up to minutes."""
    return count(ceil(seconds / 60), "minute")


def size(n: float) -> str:
    """Return a number of bytes in binary multiples: `785 bytes`, `1.5 KiB`."""
    units = ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while n >= 1024 and len(units) > 1:
        n /= 1024
        units.pop(0)
    whole = units[0] == "bytes" or n >= 10
    return f"{number(n, 0 if whole else 1)} {units[0]}"


def cpu_list(cpus: Iterable[int]) -> str:
    """Return a set of CPUs as the kernel writes it: `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1].append(cpu)
        else:
            runs.append([cpu])
    return ",".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def level(value: Level) -> str:
    """Return a level of a factor: `64`, `always`, `true`, `/a, /b`."""
    if isinstance(value, list):
        return ", ".join(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return f"{value:,}" if is_whole else scalar(value)


def setting_value(value: object) -> str:
    """Return a setting's value, six digits of a number with a point: `true`, `0.1`, `64`."""
    return f"{value:g}" if isinstance(value, float) else scalar(value)


def scalar(value: object) -> str:
    """Write a single value in full, as files have it: `true`, `0.1`, `64`, `text`."""
    return str(value).lower() if isinstance(value, bool) else str(value)


FACTORS_IN_WORDS = {"load.rate_per_s": "requests/s"}


def factor_names(factors: Iterable[str]) -> dict[str, str]:
    """Return each factor a short name: the setting's own, with its variant's, or all of its key.

    `load.connections` is `connections`, `variants.nginx.settings.workers` is `nginx workers`, and
    an arrival rate has its unit for a name.
    """
    keys = [(key, key.split(".")) for key in factors]
    short = {
        key: f"{parts[1]} {parts[-1]}" if parts[0] == "variants" and len(parts) > 2 else parts[-1]
        for key, parts in keys
    }
    short |= {key: words for key, words in FACTORS_IN_WORDS.items() if key in short}
    taken = list(short.values())
    return {key: key if taken.count(name) > 1 else name for key, name in short.items()}


def levels_text(of: Mapping[str, Level]) -> str:
    """Return the name of a point by its levels: `connections = 64, keepalive = always`."""
    names = factor_names(of)
    return ", ".join(f"{names[key]} = {level(value)}" for key, value in of.items())


def upper_first(said: str) -> str:
    """Return words with a capital letter, to begin a sentence."""
    return said[:1].upper() + said[1:]


def lower_first(said: str) -> str:
    """Return a sentence as it goes on within another one; an abbreviation stays as it is."""
    return said if said[1:2].isupper() else said[:1].lower() + said[1:]


def listed(words: Iterable[str], joined_by: str = "and") -> str:
    """Write some words as a sentence has them: `a, b and c`."""
    *others, last = [*words] or [""]
    return f"{', '.join(others)} {joined_by} {last}" if others else last


def listed_to(most: int, words: Sequence[str]) -> str:
    """Write the first of some words, and how many more there are: `a, b and 3 more`."""
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    between = "; " if any("," in word for word in words) else ", "
    return between.join(words[:most]) + more


LONGEST_LINE = 500
"""Letters of a line of a log."""
COLORS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def indent(lines: Iterable[str]) -> str:
    """Return indented lines, as they stand below a message; `(nothing)` where there are none.

    Colors are dropped, and the ends of lines that nobody would read.
    """
    plain = (COLORS.sub("", hidden(line)) for line in lines)
    shown = (line[:LONGEST_LINE] + "…" * (len(line) > LONGEST_LINE) for line in plain)
    return "\n".join(f"    {line}" for line in shown) or "    (nothing)"


def last_lines(said: str, most: int) -> str:
    return indent(said.strip().splitlines()[-most:])
