"""Streamed responses: what is computed of their events, and limits that good ones keep."""

import re
from collections.abc import Iterable, Sequence
from typing import Annotated

from pydantic import Field

from webdyno.core.base import TIME
from webdyno.core.records import SlotRecord
from webdyno.core.text import readable_by

LIMITS = {"ttft": "first_event_s", "tpot": "per_event_s", "latency": "latency_s"}
"""By the field's word: what the engine's contract calls it. Time to first token, time per output
token after that one (on average), and the whole response."""
_WRITTEN = re.compile(r"([a-z]+)\s*<\s*(.+)", re.ASCII)


def _limit(text: str) -> tuple[str, float]:
    match = _WRITTEN.fullmatch(text.strip())
    if match is None or match[1] not in LIMITS:
        raise ValueError(
            f"{text!r:.60} is no limit of goodput; write 'ttft<500ms', 'tpot<50ms' or 'latency<5s'"
        )
    bound_s = TIME.read_with_unit(match[2])
    if not bound_s:
        raise ValueError(f"{match[2]!r:.60} is no time with a unit; write '{match[1]}<500ms'")
    return match[1], bound_s


def engine_limits(limits: Sequence[str]) -> dict[str, float]:
    """Return limits as the engine's contract has them; raise ValueError for what is none."""
    read = [_limit(text) for text in limits]
    if len({name for name, _ in read}) < len(read):
        raise ValueError("goodput has a limit twice; give it once")
    return {LIMITS[name]: bound_s for name, bound_s in read}


GoodputLimits = Annotated[list[str], Field(max_length=len(LIMITS)), readable_by(engine_limits)]


def have_events(slots: Sequence[SlotRecord]) -> bool:
    """Whether responses are streams."""
    return any(slot.load.events for slot in slots)


def have_goodput(slots: Sequence[SlotRecord]) -> bool:
    """Whether they are, and good ones were counted."""
    return any(slot.load.events and slot.load.events.goodput_rps is not None for slot in slots)


def events_per_response(slots: Sequence[SlotRecord]) -> float | None:
    """Events of a streamed response, on average."""
    counted = [slot.load.events for slot in slots if slot.load.events]
    answered = sum(each.responses for each in counted)
    events = sum(each.responses * each.per_response for each in counted)
    return events / answered if answered and events else None


def events_per_s(slots: Sequence[SlotRecord]) -> float | None:
    """Events per second over all slots together."""
    return _mean_rate((slot.load.events.per_s, slot) for slot in slots if slot.load.events)


def goodput_rps(slots: Sequence[SlotRecord]) -> float | None:
    """Valid responses per second that kept the limits of the goodput, over all slots together."""
    return _mean_rate((slot.load.events.goodput_rps, slot) for slot in slots if slot.load.events)


def _mean_rate(rates: Iterable[tuple[float | None, SlotRecord]]) -> float | None:
    known = [(rate, slot.load.measured_s) for rate, slot in rates if rate is not None]
    total, length_s = sum(rate * each_s for rate, each_s in known), sum(s for _, s in known)
    return total / length_s if total and length_s else None
