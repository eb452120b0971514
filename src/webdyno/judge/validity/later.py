"""What the long looks saw that the servers do only later.

What stalls or drifts can still be measured; only who serves no more makes a run invalid.
"""

from collections.abc import Iterator

from webdyno.judge.long_look import (
    MORE_OPEN,
    drift_words,
    failing_words,
    look_words,
    slow_words,
    stall_words,
)
from webdyno.judge.point_data import PointData
from webdyno.judge.stalls import gone
from webdyno.judge.validity.client import own_stall_s
from webdyno.judge.validity.rule import RunRule, note
from webdyno.model.format import count, duration, number, percent
from webdyno.model.judgement import Finding
from webdyno.model.long_look import Failing, LongLook
from webdyno.model.quantities import memory_words

FAILS_SHARE = 0.01
"""Who fails so many requests to the end isn't what was measured before."""
LENGTHS_S = {"2m": 120.0, "10m": 600.0, "1h": 3_600.0, "4h": 14_400.0}
LONGEST = "24h"
MUCH_LONGER = 3
LOG = "`webdyno why --profile` shows where the time goes."
LOG_REMEDY = (
    "Look in the server's log for what it does then: garbage collection, compaction, rotation of "
    f"logs, a lock. {LOG}"
)


def _stalls(data: PointData) -> Iterator[Finding]:
    yield from _in_slots(data)
    for look in data.looks:
        if look.stalls is None:
            continue
        share = look.stalls.share
        yield note(
            "stalls",
            look.arm,
            f"it answers next to nothing for {percent(share.estimate)} of the time "
            f"({percent(share.low)} to {percent(share.high)}): {stall_words(look)}, seen in "
            f"{look_words(look)}; nothing else on this machine explains that, so it counts",
            LOG_REMEDY,
        )


def _slow(data: PointData) -> Iterator[Finding]:
    for look in data.looks:
        if look.slow:
            yield note(
                "slow-stretches",
                look.arm,
                f"{slow_words(look.slow, look)}, seen in {look_words(look)}; nothing else on this "
                "machine explains that, so what it costs counts against the verdict",
                f"A cache that expires all at once, a checkpoint, work in the background? {LOG}",
            )


def _in_slots(data: PointData) -> Iterator[Finding]:
    """Tell of stalls in slots, where no long look tells more of them."""
    known = {look.arm for look in data.looks if look.stalls}
    for arm in data.experiment.arms:
        stalled = [own_stall_s(slot) for slot in data.of_arm(arm) if slot.trial is None]
        if arm in known or not any(stalled):
            continue
        yield note(
            "stalls",
            arm,
            f"for {duration(max(stalled))} of a slot next to nothing was answered, though all was "
            "well before or after; nothing else on this machine explains that, so it counts",
            LOG_REMEDY,
        )


def _drifts(data: PointData) -> Iterator[Finding]:
    for look in data.looks:
        for drift in look.drifts:
            yield note(
                "drift",
                look.arm,
                f"{drift_words(drift)} in {duration(look.unbroken_s)} of load; how far it moved "
                "counts against the verdict",
                f"Measure for longer: --soak {_longer(look)}. Where it settles later, set "
                "measure.warmup_s to as much.",
            )


def _growth(data: PointData) -> Iterator[Finding]:
    for look in data.looks:
        if look.growth is None:
            continue
        per_request = look.growth.bytes_per_request
        yield note(
            "memory-growth",
            look.arm,
            f"its memory grew all through the second half of {duration(look.unbroken_s)} of load, "
            f"by {memory_words(round(look.growth.bytes_per_s.estimate))} a second: "
            f"{number(round(per_request.estimate))} bytes per request "
            f"({number(round(per_request.low))} to {number(round(per_request.high))})",
            f"A cache that fills, or a leak: --soak {_longer(look)} shows whether it stops.",
        )


def _longer(look: LongLook) -> str:
    """Give a length by which more can be seen."""
    return next((it for it, s in LENGTHS_S.items() if s >= MUCH_LONGER * look.looked_s), LONGEST)


def _more_open(data: PointData) -> Iterator[Finding]:
    for look in data.looks:
        if look.more_open is None:
            continue
        every = 1 / look.more_open.per_request.estimate
        yield note(
            "more-open",
            look.arm,
            f"its {MORE_OPEN} became more all through the second half of "
            f"{duration(look.unbroken_s)} of load, by "
            f"{number(look.more_open.per_s.estimate)} a second: one for every "
            f"{number(round(every))} requests",
            "What is opened and not closed ends at the limit on open files (ulimit -n): look at "
            "what the descriptors are (ls -l /proc/PID/fd).",
        )


def _failing(data: PointData) -> Iterator[Finding]:
    for look in data.looks:
        end = gone(look.failing)
        if look.failing:
            yield _of_failures(look, end or max(look.failing, key=lambda it: it.failed))
        if look.died:
            died = note(
                "died-later",
                look.arm,
                f"{look.died}, after {look_words(look, end.at_s if end else None)}",
                "What was measured before is kept. The whole log is in the run's folder; look for "
                "a crash, and give it more memory where it was killed for that.",
            )
            yield died.replace(severity="invalid")


def _of_failures(look: LongLook, worst: Failing) -> Finding:
    more = f" (and {count(len(look.failing) - 1, 'time')} more)" if len(look.failing) > 1 else ""
    if worst.by_client:
        return note(
            "client-out-of-ports",
            look.arm,
            f"{failing_words(worst)}{more}; it is the load generator that could open no more "
            "connections, so that says nothing of the servers, and nothing after it is counted",
            "Use keep-alive or a lower rate, widen net.ipv4.ip_local_port_range, or allow "
            "net.ipv4.tcp_tw_reuse.",
        )
    found = note(
        "fails-later",
        look.arm,
        f"{failing_words(worst)}{more}",
        "What was measured before is kept. Look in the server's log, in the run's folder, "
        "for what it has no more of then: open files, ports, memory, connections to others.",
    )
    spoils = worst.to_the_end and worst.share >= FAILS_SHARE
    return found.replace(severity="invalid") if spoils else found


RULES = (
    RunRule("fails-later", _failing),
    RunRule("stalls", _stalls),
    RunRule("slow-stretches", _slow),
    RunRule("drift", _drifts),
    RunRule("memory-growth", _growth),
    RunRule("more-open", _more_open),
)
