"""What grew where a gate fails: in what a request of head costs more than one of the baseline.

The gate's own rounds have the kernel's counters. Profile rounds, a run of its own, have samples:
each is put down to one function (`probes/stacks.py`), so that functions add up to the whole. Those
that have next to nothing of either revision are reported together; the intervals of the others are
narrow enough to hold together (Bonferroni).
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from math import log1p
from statistics import fmean

from webdyno.comparison.time_spent import (
    OWN_CODE,
    SMALL,
    Both,
    counted_parts,
    cpu_s,
    in_short,
    per_response_us,
    slots_of_both,
    taken_apart,
)
from webdyno.core.findings import CpuPart, Explanation
from webdyno.core.format import (
    MISSING,
    count,
    latency,
    latency_and_bounds,
    latency_unit,
    percent,
    significant,
)
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD, CostGrowth, OtherCount
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.records import SlotRecord
from webdyno.core.registry import as_called
from webdyno.core.text import printable
from webdyno.evidence.log_ratios import log_ratios
from webdyno.evidence.point_data import PointData
from webdyno.media import document as doc
from webdyno.statistics.interval import estimate
from webdyno.validity import valid_for

LEAST_SHARE = 0.01
"""Of all CPU time of a revision, which a function needs for a part of its own."""
ALL_ELSE = "all else"
COUNTED = ("instructions", "statements", "response_bytes", "context_switches")
DIFFERENT = 0.05
"""Share by which they have to differ."""
CONFIDENCE = 0.95
NOT_MEASURED, TOO_FEW = "no profile rounds were measured", "too few profile rounds are valid"
NO_NAMES = (
    (
        re.compile(r"python(?:2|3\.(?:[0-9]|1[01])\b)"),
        "perf finds no functions of this Python; 3.12 and newer name theirs",
    ),
    (
        re.compile(r"python3"),
        "perf finds no functions of this Python, which is built without frame pointers",
    ),
    (re.compile(r"\bruby"), "perf finds no methods of Ruby"),
    (re.compile(r"\bphp"), "perf finds no functions of PHP"),
    (re.compile(r"\blibjvm\b"), "perf finds no methods of Java"),
)
"""What runtimes are called among functions that are known of them alone, and what that means."""

MOST_IN_LINE, MOST_IN_TABLE = 3, 12
"""Functions that are shown, those first that grew most."""
IN_WORDS = {OWN_CODE: "the app's own code", "in the kernel": "the kernel"}
MOST_OTHERS = 1
REPORTING = 0.01
"""Share of the whole difference that a row needs."""


def growth_at(
    data: PointData, endpoint: str, profile: PointData | None, lacking: str = ""
) -> CostGrowth:
    """Return what grew at a point; `profile` has its profile rounds, else `lacking` says why."""
    valid = valid_for(data, CPU_TIME)
    both = slots_of_both(valid, HEAD, BASELINE, BASELINE_AGAIN)
    sampled, rounds = functions_apart(profile) if profile else (None, 0)
    if sampled:
        lacking = _without_names(sampled)
    elif not lacking:
        lacking = TOO_FEW if profile else NOT_MEASURED
    return CostGrowth(
        endpoint=endpoint,
        counted=taken_apart(HEAD, BASELINE, both, counted_parts(valid), cpu_s),
        sampled=sampled,
        rounds=rounds,
        others=list(_other_counts(data)),
        lacking=lacking,
    )


def functions_apart(profile: PointData) -> tuple[Explanation | None, int]:
    """Return the difference in CPU per request by function, and how many rounds have it."""
    valid = valid_for(profile, CPU_TIME)
    both = [
        pair
        for pair in slots_of_both(valid, HEAD, BASELINE)
        if all(any(slot.functions for slot in slots) for slots in pair)
    ]
    apart = frozenset(_worth_a_part(both))
    parts = {name: partial(_in_function, name=name) for name in sorted(apart)}
    parts[ALL_ELSE] = partial(_in_others, names=apart)
    explanation = taken_apart(HEAD, BASELINE, both, parts, _sampled_s)
    return (explanation and explanation.replace(by_samples=True)), len(both)


def _worth_a_part(both: Sequence[Both]) -> Iterator[str]:
    if not both:
        return
    of_each = [[slot for slots in side for slot in slots] for side in zip(*both, strict=True)]
    least = LEAST_SHARE * max(per_response_us(slots, _sampled_s) for slots in of_each)
    for name in {name for slots in of_each for slot in slots for name in slot.functions or {}}:
        time_s = partial(_in_function, name=name)
        if any(per_response_us(slots, time_s) >= least for slots in of_each):
            yield name


def _sampled_s(slot: SlotRecord) -> float:
    return sum((slot.functions or {}).values())


def _in_function(slot: SlotRecord, name: str) -> float:
    return (slot.functions or {}).get(name, 0.0)


def _in_others(slot: SlotRecord, names: frozenset[str]) -> float:
    return sum(time_s for name, time_s in (slot.functions or {}).items() if name not in names)


def grown_parts(explanation: Explanation, least_share: float) -> list[CpuPart]:
    """Return the parts that head surely has more of, by a share of the whole, the largest first."""
    more = [part for part in explanation.sure_parts(least_share) if part.more_us.estimate > 0]
    return sorted(more, key=lambda part: -part.more_us.estimate)


def _without_names(sampled: Explanation) -> str:
    """Return why the largest part of what grew has no name of a function, where that is so."""
    largest = max(sampled.parts, key=lambda part: part.more_us.estimate)
    if any(".py)" in part.what for part in sampled.parts):
        return ""
    return next((why for runtime, why in NO_NAMES if runtime.search(largest.what)), "")


def _other_counts(data: PointData) -> Iterator[OtherCount]:
    """Yield what else is counted per request, where it differs for sure and by enough."""
    for name in COUNTED:
        rule = METRICS[name]
        baseline, head = (data.values(variant, rule) for variant in (BASELINE, HEAD))
        (pair,) = log_ratios({BASELINE: baseline, HEAD: head})
        if len(pair.d) < 2:
            continue
        interval = estimate(pair.d, CONFIDENCE)
        if interval.excludes_zero() and abs(interval.centre) >= log1p(DIFFERENT):
            yield OtherCount(
                what=rule.metric.label, baseline=fmean(baseline.values()), head=fmean(head.values())
            )


def growth_line(growth: CostGrowth, *, waits: bool = True) -> str:
    """Return by how much CPU per request grew at an endpoint, and which functions take it."""
    whole = growth.counted or growth.sampled
    if whole is None or whole.whole.more_us.low <= 0:
        said = f"{growth.endpoint}: CPU per request hasn't grown (95% confidence)"
        said += ", waiting has" if waits else ""
        said = said if whole else f"{growth.endpoint}: too few valid rounds"
    else:
        more, ends = latency_and_bounds(whole.whole.more_us)
        said = f"{growth.endpoint} +{more} CPU per request (95% CI {ends})"
        parts = []
        for part in _named_parts(growth):
            more, ends = latency_and_bounds(part.more_us)
            parts.append(f"{in_short(part.what)} +{more} ({ends})")
        if parts:
            said += f": {', '.join(parts)}"
    others = "; ".join(
        f"{other.what} {significant(other.baseline, 3)} → {significant(other.head, 3)}"
        for other in growth.others
    )
    whys = f"functions unknown: {growth.lacking}" if growth.lacking else ""
    return printable(as_called("; ".join(filter(None, [said, others, whys]))))


def growth_in_short(growth: CostGrowth, *, waits: bool = True) -> str:
    """Return the same in a line, without intervals: by how much, and what most of it is."""
    whole = growth.counted or growth.sampled
    if whole is None or whole.whole.more_us.low <= 0:
        return growth_line(growth, waits=waits)
    said = f"{growth.endpoint} +{latency(whole.whole.more_us.estimate)} per request"
    if parts := _named_parts(growth):
        apart = growth.sampled if growth.sampled and parts[0] in growth.sampled.parts else whole
        share = min(parts[0].more_us.estimate / apart.whole.more_us.estimate, 1.0)
        said += f", {percent(share)} of it in {IN_WORDS.get(parts[0].what, parts[0].what)}"
    for other in growth.others[:MOST_OTHERS]:
        said += f"; {other.what} {significant(other.baseline, 3)} → {significant(other.head, 3)}"
    if growth.lacking and growth.lacking != NOT_MEASURED:
        said += f"; functions unknown: {growth.lacking}"
    return as_called(said)


def _named_parts(growth: CostGrowth) -> list[CpuPart]:
    """Return the functions that grew most; where none is known, programs and kernel."""
    for apart in (growth.sampled, growth.counted):
        if apart and (parts := grown_parts(apart, SMALL)):
            return [part for part in parts if part.what != ALL_ELSE][:MOST_IN_LINE]
    return []


def growth_tables(growths: list[CostGrowth]) -> Iterator[doc.Section]:
    for growth in growths:
        if growth.sampled:
            rounds = count(growth.rounds, "profile round")
            heading = f"What grew at {growth.endpoint}, by {rounds}"
            yield doc.Section(heading, [_table(growth.sampled)])


def _table(apart: Explanation) -> doc.Table:
    reporting = apart.sure_parts(REPORTING)
    shown = sorted(reporting, key=lambda part: -part.more_us.estimate)[:MOST_IN_TABLE]
    rows = []
    for part in (*shown, apart.whole):
        each_us, unit = latency_unit(abs(part.more_us.estimate))
        low, high = (significant(end / each_us, 3) for end in (part.more_us.low, part.more_us.high))
        both = (latency(us) if us else MISSING for us in (part.b_us, part.a_us))
        rows.append([printable(part.what), *both, f"{low} to {high} {unit}"])
    return doc.simple_table(
        {"function": "name", "baseline": "value", "head": "value", "more (95% CI)": "range"},
        rows,
        style="listed",
    )
