"""What a difference of server CPU time per request is made of: parts that add up.

Each part is what the kernel's counters say of the servers in the slots that count, divided by the
answers: time in the programs' own code, time in the kernel on their behalf, and interrupts on their
CPUs, most of which are the network's; or what samples of their CPUs say, where a run has these. In
each block the parts' differences add up to the whole
one's, so their means do. Intervals are Student's over blocks, narrow enough to hold together
(Bonferroni).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from webdyno.judge.comparison import ALPHA
from webdyno.judge.interval import estimate
from webdyno.judge.point_data import PointData
from webdyno.model.explanation import CpuPart, Explanation
from webdyno.model.metrics import answers
from webdyno.model.records import SlotRecord

Tell = Callable[[SlotRecord], float]

WHOLE = "all of it"
PARTS: dict[str, Tell] = {
    "in the programs": lambda slot: slot.servers.cpu_user_s,
    "in the kernel": lambda slot: slot.servers.cpu_sys_s,
    "in interrupts": lambda slot: slot.servers.interrupts_s,
}


def explain(data: PointData, arm: str, baseline: str) -> Explanation | None:
    """Take the difference apart; None where two blocks don't tell both arms.

    `measured` holds the slots that count for CPU time.
    """
    return _apart(data, arm, baseline, PARTS, lambda slot: slot.servers.cpu_s)


def explain_by_samples(data: PointData, arm: str, baseline: str) -> Explanation | None:
    """Take it apart by what was done; None where that wasn't sampled."""
    done = {what for slot in data.slots for what in slot.profile or {}}
    parts = {what: partial(_sampled, what=what) for what in sorted(done)}
    found = _apart(data, arm, baseline, parts, _sampled) if parts else None
    return found and found.replace(by_samples=True)


def _sampled(slot: SlotRecord, what: str | None = None) -> float:
    profile = slot.profile or {}
    return sum(profile.values()) if what is None else profile.get(what, 0.0)


def _apart(
    data: PointData, arm: str, baseline: str, parts: Mapping[str, Tell], whole: Tell
) -> Explanation | None:
    both = [(block.of(arm), block.of(baseline)) for block in data.blocks]
    told = [(a, b) for a, b in both if _answered(a) and _answered(b)]
    if len(told) < 2:
        return None
    there = {
        what: tell
        for what, tell in parts.items()
        if any(tell(slot) for a, b in told for slot in (*a, *b))
    }
    confidence = 1 - ALPHA / max(len(there), 1)
    return Explanation(
        a=arm,
        b=baseline,
        whole=_part(WHOLE, whole, told, 1 - ALPHA),
        parts=[_part(what, tell, told, confidence) for what, tell in there.items()],
    )


def _part(
    what: str,
    tell: Tell,
    blocks: Sequence[tuple[Sequence[SlotRecord], Sequence[SlotRecord]]],
    confidence: float,
) -> CpuPart:
    a_us, b_us = (
        np.array([_per_answer_us(slots, tell) for slots in arm])
        for arm in zip(*blocks, strict=True)
    )
    found = estimate(a_us - b_us, confidence)
    return CpuPart(
        what=what,
        a_us=float(a_us.mean()),
        b_us=float(b_us.mean()),
        more_us=found.interval(confidence),
    )


def _per_answer_us(slots: Sequence[SlotRecord], tell: Tell) -> float:
    return sum(tell(slot) for slot in slots) * 1e6 / _answered(slots)


def _answered(slots: Sequence[SlotRecord]) -> int:
    return sum(map(answers, slots))
