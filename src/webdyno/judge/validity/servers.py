"""Whether the servers had what they need, and had ended their work from the slot before."""

from collections.abc import Sequence

from webdyno.judge.metrics import answers
from webdyno.judge.validity.rule import TIMING_METRICS, SlotRule, readings_of, with_readings
from webdyno.judge.words import number, percent, plural
from webdyno.model.quantities import memory_words
from webdyno.model.readings import Readings
from webdyno.model.records import SlotRecord

LEFT_OVER_LIMIT = 0.02
"""Share of the slot's CPU time that arms which should be idle may use."""

WORK_METRICS = (*TIMING_METRICS, "server_cpu_us", "context_switches")
"""What depends on who had the CPUs, and when; what a server keeps in memory doesn't."""

UNDRAINED_LIMIT = 0.01
"""Share of the answers that may still be missing after the drain."""


def _left_over(readings: Readings) -> float:
    total_s = readings.host.servers.total_s
    return sum(readings.other_arms_cpu_s.values()) / total_s if total_s else 0.0


def _busy_others(slots: Sequence[SlotRecord]) -> str:
    names = {
        name
        for readings in readings_of(slots)
        for name, cpu_s in readings.other_arms_cpu_s.items()
        if cpu_s > 0
    }
    return (
        f"{', '.join(sorted(names))} went on working, without load, with up to "
        f"{percent(max(map(_left_over, readings_of(slots))))} of the servers' CPUs"
    )


def _undrained(slot: SlotRecord) -> int:
    return (slot.load.requests.unanswered or 0) - slot.load.requests.drained


def _limit_reached(readings: Readings) -> bool:
    """Whether the kernel had to take memory back; not every kernel counts how often it did."""
    memory = readings.memory
    return memory is not None and (
        memory.oom_kills > 0 or memory.reclaims > 0 or memory.peak_bytes >= memory.limit_bytes
    )


def _killed_for_memory(slots: Sequence[SlotRecord]) -> str:
    uses = [readings.memory for readings in readings_of(slots) if readings.memory]
    killed = sum(use.oom_kills for use in uses)
    limit = memory_words(max(use.limit_bytes for use in uses))
    deaths = f", and the kernel killed {number(killed)} of its processes" if killed else ""
    return f"its memory limit of {limit} was reached{deaths}"


MEMORY_LIMIT = SlotRule(
    name="memory-limit",
    broken=with_readings(_limit_reached),
    what=_killed_for_memory,
    remedy="Raise the limit or give the services fewer workers; what is measured at the limit is "
    "the kernel taking memory back.",
)

LEFT_OVER = SlotRule(
    name="left-over-work",
    broken=with_readings(lambda readings: _left_over(readings) > LEFT_OVER_LIMIT),
    what=_busy_others,
    remedy="These servers were still working off their last slot: use fewer connections or a lower "
    "rate, or turn off what they do by themselves.",
    spoils=WORK_METRICS,
)

UNDRAINED = SlotRule(
    name="undrained",
    broken=lambda slot: _undrained(slot) > UNDRAINED_LIMIT * max(answers(slot), 1),
    what=lambda slots: (
        f"{plural(sum(map(_undrained, slots)), 'request')} still had no answer when the slot's "
        "drain was over, and went on using the server in the next slot"
    ),
    remedy="Use fewer connections or a lower rate, or raise load.timeout_s.",
)

RULES = (MEMORY_LIMIT, LEFT_OVER, UNDRAINED)
