"""What the long looks saw that the servers do only later. Nothing here makes a run invalid."""

from collections.abc import Iterator

from webdyno.judge.later import drift_words, stall_words
from webdyno.judge.measured import Measured
from webdyno.judge.validity.client import own_stall_s
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.format import duration, number, percent
from webdyno.model.judgement import Finding
from webdyno.model.quantities import memory_words
from webdyno.model.run import RunHead

LOG_REMEDY = (
    "Look in the server's log for what it does then: garbage collection, compaction, rotation of "
    "logs, a lock. `webdyno why --profile` shows where the time goes."
)


def _stalls(measured: Measured, head: RunHead) -> Iterator[Finding]:
    yield from _in_slots(measured, head)
    for look in measured.looks:
        if look.stalls is None:
            continue
        share = look.stalls.share
        yield note(
            "stalls",
            look.arm,
            f"it answers next to nothing for {percent(share.estimate)} of the time "
            f"({percent(share.low)} to {percent(share.high)}): {stall_words(look)}, seen in "
            f"{duration(look.looked_s)} without a restart; nothing else on this machine explains "
            "that, so it counts",
            LOG_REMEDY,
        )


def _in_slots(measured: Measured, head: RunHead) -> Iterator[Finding]:
    """Tell of stalls in slots, where no long look tells more of them."""
    known = {look.arm for look in measured.looks if look.stalls}
    for arm in head.experiment.arms:
        stalled = [own_stall_s(slot) for slot in measured.of_arm(arm) if slot.trial is None]
        if arm in known or not any(stalled):
            continue
        yield note(
            "stalls",
            arm,
            f"for {duration(max(stalled))} of a slot next to nothing was answered, though all was "
            "well before or after; nothing else on this machine explains that, so it counts",
            LOG_REMEDY,
        )


def _drifts(measured: Measured, _: RunHead) -> Iterator[Finding]:
    for look in measured.looks:
        for drift in look.drifts:
            yield note(
                "drift",
                look.arm,
                f"{drift_words(drift)} in {duration(look.looked_s)} of load; how far it moved "
                "counts against the verdict",
                "Measure for longer: --soak 2m. Where it settles later, set "
                "measure.warmup_s to as much.",
            )


def _growth(measured: Measured, _: RunHead) -> Iterator[Finding]:
    for look in measured.looks:
        if look.growth is None:
            continue
        per_request = look.growth.bytes_per_request
        yield note(
            "memory-growth",
            look.arm,
            f"its memory grew all through {duration(look.looked_s)} of load, by "
            f"{memory_words(round(look.growth.bytes_per_s.estimate))} a second: "
            f"{number(round(per_request.estimate))} bytes per request "
            f"({number(round(per_request.low))} to {number(round(per_request.high))})",
            "A cache that fills, or a leak: --soak 10m shows whether it stops.",
        )


RULES = (
    RunRule("stalls", _stalls),
    RunRule("drift", _drifts),
    RunRule("memory-growth", _growth),
)
