"""Whether an arm came up to what the client can do at most, as `webdyno calibrate` measured it."""

from collections.abc import Sequence

from webdyno.judge.metrics import rate_rps
from webdyno.judge.validity.rule import TIMING_METRICS, SlotRule, readings_of
from webdyno.judge.words import number, percent
from webdyno.model.calibration import Limit
from webdyno.model.records import SlotRecord

NEAR, STALE = 0.9, 1.1
"""From `NEAR` times the ceiling on it may be the ceiling that is measured. A rate above `STALE`
times the ceiling shows that the calibration isn't true any more, so it says nothing."""


def reaches_ceiling(slot: SlotRecord, limit: Limit) -> bool:
    """Whether a slot's rate is that of a ceiling of some kind."""
    share = _share(slot)
    ceiling = slot.readings.ceiling if slot.readings else None
    return ceiling is not None and ceiling.limited_by == limit and NEAR < share < STALE


def _share(slot: SlotRecord) -> float:
    """Give the slot's rate as a share of the ceiling."""
    ceiling = slot.readings.ceiling if slot.readings else None
    return (rate_rps([slot]) or 0.0) / ceiling.rate_rps if ceiling else 0.0


def _highest(slots: Sequence[SlotRecord]) -> str:
    known = [readings.ceiling for readings in readings_of(slots) if readings.ceiling]
    return (
        f"it answered up to {percent(max(map(_share, slots)))} of the "
        f"{number(round(known[0].rate_rps))} requests per second that this client reaches against "
        "a server that does nothing (webdyno calibrate)"
    )


CLIENT_CEILING = SlotRule(
    name="client-ceiling",
    broken=lambda slot: reaches_ceiling(slot, "client"),
    what=_highest,
    remedy="Give the client more cores (--server-cores 1), or decide on server CPU time per "
    "request: --set measure.decide_on=server_cpu_us. After changes to this machine, calibrate "
    "again.",
    spoils=TIMING_METRICS,
)

RULES = (CLIENT_CEILING,)
