"""What is computed of the events of streamed responses."""

from collections.abc import Iterable, Sequence

from webdyno.core.records import SlotRecord


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
