"""Whether an open loop offered the rate that was asked for, and got it answered."""

from collections.abc import Sequence
from math import sqrt

from webdyno.judge.validity.rule import SlotRule
from webdyno.judge.words import number
from webdyno.model.records import SlotRecord

RATE_TOLERANCE = 0.02
CHANCE = 3.0
"""Standard deviations of a Poisson count that random arrivals may be off by chance."""


def _missed(slot: SlotRecord) -> bool:
    offered = slot.load.offered_rps
    if not offered:
        return False
    expected = offered * slot.load.measured_s
    allowed = max(RATE_TOLERANCE * expected, CHANCE * sqrt(expected))
    return abs(slot.load.requests.completed - expected) > allowed


def _rates(slots: Sequence[SlotRecord]) -> str:
    worst = min(slots, key=lambda slot: slot.load.rate_rps / (slot.load.offered_rps or 1))
    return (
        f"{number(worst.load.offered_rps or 0)} requests/s were offered, but "
        f"{number(worst.load.rate_rps)} were answered"
    )


OFFERED_RATE = SlotRule(
    name="offered-rate",
    broken=_missed,
    what=_rates,
    remedy="Lower the rate below what every arm can answer: a queue that grows without end has no "
    "response time. To find the most that an arm can do use a closed loop.",
)

RULES = (OFFERED_RATE,)
