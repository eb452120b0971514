"""What the servers' CPU time for a request goes into.

Of two variants' CPU per request the difference is taken apart. Each part is what the kernel's
counters say of the servers in the slots that count, divided by the responses: time in the programs'
own code, time in the kernel on their behalf, and interrupts on their CPUs, most of which are the
network's; or what samples of their CPUs say, where a run has these. In each round the parts'
differences add up to the whole one's, so their means do. Intervals are Student's over rounds,
narrow enough to hold together (Bonferroni).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, log

import numpy as np

from webdyno.comparison.comparison import ALPHA
from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.findings import CpuPart, Explanation
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.metrics import CPU_TIME, responses
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import mean_interval
from webdyno.validity import valid_for

SecondsOf = Callable[[SlotRecord], float]

WHOLE = "all of it"
OWN_CODE = "in the programs"
PARTS: dict[str, SecondsOf] = {
    OWN_CODE: lambda slot: slot.servers.cpu_user_s,
    "in the kernel": lambda slot: slot.servers.cpu_sys_s,
    "in interrupts": lambda slot: slot.servers.interrupts_s,
}
DIGITS = 3
"""Of what a difference is made of, in one line."""
SMALL = 0.05
"""Share of the whole difference that a part needs to be reported."""
FEWEST_ROUNDS = 2
EXPLAINED = 0.8
"""Share (ln) of a ratio of speeds from which CPU per request counts as all of its cause."""
LEAST_US = 1e-6


def explanations(data: PointData, comparisons: Sequence[Comparison]) -> Iterator[Explanation]:
    """Yield what each difference of CPU time is made of, where it can be believed."""
    valid = valid_for(data, CPU_TIME)
    for comparison in comparisons:
        is_known = comparison.ratio and comparison.verdict is not Verdict.INVALID
        if comparison.metric == CPU_TIME and is_known:
            by_counters = explain(valid, comparison.a, comparison.b)
            by_samples = _explain_by_samples(valid, comparison.a, comparison.b)
            yield from filter(None, (by_counters, by_samples))


def explain(valid: PointData, variant: str, baseline: str) -> Explanation | None:
    """Take the difference apart; None where two rounds don't report both variants."""
    both = slots_of_both(valid, variant, baseline)
    return taken_apart(variant, baseline, both, counted_parts(valid), cpu_s)


def counted_parts(valid: PointData) -> Mapping[str, SecondsOf]:
    """Return the parts that the kernel counts: databases are no code of the application's own."""
    readings = [slot.readings for slot in valid.slots if slot.readings]
    roles = list(dict.fromkeys(role for reading in readings for role in reading.databases))
    of_databases = {f"in {role}": partial(_user_s, roles=[role]) for role in roles}

    def of_programs(slot: SlotRecord) -> float:
        return slot.servers.cpu_user_s - _user_s(slot, roles)

    return {**PARTS, OWN_CODE: of_programs, **of_databases}


def _user_s(slot: SlotRecord, roles: Sequence[str]) -> float:
    services = slot.readings.services if slot.readings else {}
    return sum(services[role].cpu_user_s for role in roles if role in services)


def cpu_s(slot: SlotRecord) -> float:
    return slot.servers.cpu_s


def _explain_by_samples(valid: PointData, variant: str, baseline: str) -> Explanation | None:
    done = {what for slot in valid.slots for what in slot.profile or {}}
    parts = {what: partial(_sampled_s, what=what) for what in sorted(done)}
    both = slots_of_both(valid, variant, baseline)
    explanation = taken_apart(variant, baseline, both, parts, _sampled_s) if parts else None
    return explanation and explanation.replace(by_samples=True)


def _sampled_s(slot: SlotRecord, what: str | None = None) -> float:
    profile = slot.profile or {}
    return sum(profile.values()) if what is None else profile.get(what, 0.0)


Both = tuple[Sequence[SlotRecord], Sequence[SlotRecord]]
"""Slots of a variant in a round, and those of its baseline."""


def slots_of_both(valid: PointData, variant: str, *baselines: str) -> list[Both]:
    """Return the slots of rounds that report a variant and its baseline; copies of it are one."""
    both = [
        (this_round.of(variant), [slot for name in baselines for slot in this_round.of(name)])
        for this_round in valid.rounds
    ]
    return [(a, b) for a, b in both if _count_responses(a) and _count_responses(b)]


def taken_apart(
    variant: str,
    baseline: str,
    both: Sequence[Both],
    parts: Mapping[str, SecondsOf],
    whole: SecondsOf,
) -> Explanation | None:
    """Take the difference of CPU per request apart; None with fewer than two rounds."""
    if len(both) < FEWEST_ROUNDS:
        return None
    counters = {
        what: seconds_of
        for what, seconds_of in parts.items()
        if any(seconds_of(slot) for a, b in both for slot in (*a, *b))
    }
    confidence = 1 - ALPHA / max(len(counters), 1)
    return Explanation(
        a=variant,
        b=baseline,
        whole=_part(WHOLE, whole, both, 1 - ALPHA),
        parts=[_part(what, seconds_of, both, confidence) for what, seconds_of in counters.items()],
    )


def _part(what: str, seconds_of: SecondsOf, rounds: Sequence[Both], confidence: float) -> CpuPart:
    a_us, b_us = (
        np.array([per_response_us(slots, seconds_of) for slots in variant])
        for variant in zip(*rounds, strict=True)
    )
    return CpuPart(
        what=what,
        a_us=float(a_us.mean()),
        b_us=float(b_us.mean()),
        more_us=mean_interval(a_us - b_us, confidence),
    )


def per_response_us(slots: Sequence[SlotRecord], seconds_of: SecondsOf) -> float:
    """Return what is said of slots in seconds, in microseconds per response."""
    return sum(seconds_of(slot) for slot in slots) * 1e6 / _count_responses(slots)


def _count_responses(slots: Sequence[SlotRecord]) -> int:
    return sum(map(responses, slots))


def explanation_sentence(explanation: Explanation) -> str | None:
    """Describe the difference and its parts; None where there surely is none."""
    if not explanation.whole.is_sure:
        return None
    whole, decimals = explanation.whole, _decimals(explanation)
    by = "for " if explanation.by_samples else ""
    parts = ", ".join(
        f"{_more(part, us, decimals)} {by}{part.what}" for part, us in _shown_parts(explanation)
    )
    begins = "As sampled, a request" if explanation.by_samples else "A request"
    more = _more(whole, whole.more_us.estimate, decimals)
    return (
        f"{begins} costs {explanation.a} {more} CPU time than {explanation.b}"
        f"{f': {parts}' if parts else ''}."
    )


_IN_SHORT = {OWN_CODE: "own code", "in the kernel": "kernel", "in interrupts": "interrupts"}


def in_short(what: str) -> str:
    """Name a part of CPU time as one line has room for it."""
    return _IN_SHORT.get(what, what.removeprefix("in "))


def explanation_in_short(explanation: Explanation) -> str | None:
    """Describe a sure difference of CPU time in one line, without intervals; else None."""
    if not explanation.whole.is_sure or explanation.by_samples:
        return None
    whole, decimals = explanation.whole.more_us.estimate, _decimals(explanation)
    parts = [
        f"{text.number(us, decimals)} µs {in_short(part.what)}"
        for part, us in _shown_parts(explanation)
    ]
    more = f"{text.number(abs(whole), decimals)} µs {'more' if whole > 0 else 'less'}"
    takes = f"{explanation.a} takes {more} CPU per request"
    return f"{takes}, of which {', '.join(parts)}" if parts else takes


def speed_by_cpu_alone(explanation: Explanation, measured: Interval) -> float | None:
    """Return which ratio of speeds CPU per request alone makes, where that surely is only a part.

    `measured` is the ratio of throughputs. With as many CPUs at work it is one over that of CPU per
    request.
    """
    whole = explanation.whole
    if whole.b_us <= 0 or measured.estimate <= 0:
        return None
    alone = whole.more_us.map(lambda us: whole.b_us / max(whole.b_us + us, LEAST_US))
    if not 0 < alone.low <= alone.high < inf:
        return None
    ours, theirs = (
        (alone, measured) if measured.estimate > 1 else (alone.inverse(), measured.inverse())
    )
    is_part = 0 < log(ours.estimate) < EXPLAINED * log(theirs.estimate)
    return alone.estimate if is_part and ours.high < theirs.low else None


def only_a_part(metric: str, alone: str, measured: str) -> str:
    """Describe how much of a difference CPU per request explains by itself."""
    rest = "the rest is waiting or idle CPUs"
    return f"by CPU alone {metric} would be at {alone}, not {measured}: {rest}"


def _decimals(explanation: Explanation) -> int:
    return text.decimals_of(explanation.whole.more_us.estimate, DIGITS)


def _shown_parts(explanation: Explanation) -> Iterator[tuple[CpuPart, float]]:
    """Yield large parts in µs, more than 0 where they add to the difference, rounded as a sum."""
    sign, before = float(np.sign(explanation.whole.more_us.estimate)), 0.0
    decimals = _decimals(explanation)
    large = explanation.sure_parts(SMALL)
    for part in sorted(large, key=lambda part: -abs(part.more_us.estimate)):
        until = before + part.more_us.estimate * sign
        yield part, round(until, decimals) - round(before, decimals)
        before = until


def _more(part: CpuPart, shown_us: float, decimals: int) -> str:
    more = part.more_us
    word = "more" if more.estimate > 0 else "less"
    low, high = (text.number(us, decimals) for us in sorted(map(abs, (more.low, more.high))))
    return f"{text.number(abs(shown_us), decimals)} µs ({low} to {high}) {word}"
