"""What time goes into: the servers' CPU time for a request, and the time that its response takes.

Of two variants' CPU per request the difference is taken apart. Each part is what the kernel's
counters say of the servers in the slots that count, divided by the responses: time in the programs'
own code, time in the kernel on their behalf, and interrupts on their CPUs, most of which are the
network's; or what samples of their CPUs say, where a run has these. In each round the parts'
differences add up to the whole one's, so their means do. Intervals are Student's over rounds,
narrow enough to hold together (Bonferroni).

In a closed loop without pauses each connection has a request under way at any time, so the mean
time of a response is connections over throughput (Little, Operations Research 1961). What servers
work is counted, and so is how long their threads wait for a CPU (schedstat). Where a service has a
fixed number of workers that take a request each and all of them are taken, the connections beyond
that number wait in front of it: their share of the time is Little's law again. What is left is
spent in sockets and event loops, on the way, and in the client.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from webdyno.judge.comparison import ALPHA
from webdyno.judge.interval import mean_interval
from webdyno.judge.point_data import PointData
from webdyno.judge.validity import valid_for
from webdyno.model import format as text
from webdyno.model.base import Interval
from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.explain import CpuPart, Explanation, Waiting
from webdyno.model.judgement import Comparison, Judgement, Verdict
from webdyno.model.metrics import CPU_TIME, THROUGHPUT, responses, server_cpu_us, throughput_rps
from webdyno.model.records import SlotRecord

Tell = Callable[[SlotRecord], float]

WHOLE = "all of it"
OWN_CODE = "in the programs"
PARTS: dict[str, Tell] = {
    OWN_CODE: lambda slot: slot.servers.cpu_user_s,
    "in the kernel": lambda slot: slot.servers.cpu_sys_s,
    "in interrupts": lambda slot: slot.servers.interrupts_s,
}
SMALL = 0.05
"""Share of the whole difference that a part needs to be told."""

FEWEST_ROUNDS, CONFIDENCE = 2, 0.95
IDLE_BELOW = 0.5
"""CPUs that servers keep busy: with more of them, waiting is for others' work."""
MOST_OF_IT = 0.1
"""So many times the difference of waiting at most may that of work be."""
DELAYED_ACK_US = (35_000, 50_000)
"""Linux delays an acknowledgement by 40 ms (TCP_DELACK_MIN)."""


def explanations(data: PointData, comparisons: Sequence[Comparison]) -> Iterator[Explanation]:
    """Say what each difference of CPU time is made of, where there is one that can be believed."""
    valid = valid_for(data, CPU_TIME)
    for comparison in comparisons:
        if (
            comparison.metric == CPU_TIME
            and comparison.ratio
            and comparison.verdict is not Verdict.INVALID
        ):
            candidates = (
                explain(valid, comparison.a, comparison.b),
                _explain_by_samples(valid, comparison.a, comparison.b),
            )
            yield from filter(None, candidates)


def explain(valid: PointData, variant: str, baseline: str) -> Explanation | None:
    """Take the difference apart; None where two rounds don't tell both variants."""
    both = slots_of_both(valid, variant, baseline)
    return taken_apart(variant, baseline, both, counted_parts(valid), cpu_s)


def counted_parts(valid: PointData) -> Mapping[str, Tell]:
    """Give the parts that the kernel counts: databases are no code of the application's own."""
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
    """Give the CPU time of a slot's servers, as the kernel counts it."""
    return slot.servers.cpu_s


def _explain_by_samples(valid: PointData, variant: str, baseline: str) -> Explanation | None:
    """Take it apart by what was done; None where that wasn't sampled."""
    done = {what for slot in valid.slots for what in slot.profile or {}}
    parts = {what: partial(_sampled, what=what) for what in sorted(done)}
    both = slots_of_both(valid, variant, baseline)
    explanation = taken_apart(variant, baseline, both, parts, _sampled) if parts else None
    return explanation and explanation.replace(by_samples=True)


def _sampled(slot: SlotRecord, what: str | None = None) -> float:
    profile = slot.profile or {}
    return sum(profile.values()) if what is None else profile.get(what, 0.0)


Both = tuple[Sequence[SlotRecord], Sequence[SlotRecord]]
"""Slots of a variant in a round, and those of its baseline."""


def slots_of_both(valid: PointData, variant: str, *baselines: str) -> list[Both]:
    """Give the slots of rounds that tell a variant and its baseline, copies of which are one."""
    both = [
        (this_round.of(variant), [slot for name in baselines for slot in this_round.of(name)])
        for this_round in valid.rounds
    ]
    return [(a, b) for a, b in both if _answered(a) and _answered(b)]


def taken_apart(
    variant: str, baseline: str, both: Sequence[Both], parts: Mapping[str, Tell], whole: Tell
) -> Explanation | None:
    """Take the difference of CPU per request apart; None with fewer than two rounds."""
    if len(both) < FEWEST_ROUNDS:
        return None
    counters = {
        what: tell
        for what, tell in parts.items()
        if any(tell(slot) for a, b in both for slot in (*a, *b))
    }
    confidence = 1 - ALPHA / max(len(counters), 1)
    return Explanation(
        a=variant,
        b=baseline,
        whole=_part(WHOLE, whole, both, 1 - ALPHA),
        parts=[_part(what, tell, both, confidence) for what, tell in counters.items()],
    )


def _part(what: str, tell: Tell, rounds: Sequence[Both], confidence: float) -> CpuPart:
    a_us, b_us = (
        np.array([per_response_us(slots, tell) for slots in variant])
        for variant in zip(*rounds, strict=True)
    )
    return CpuPart(
        what=what,
        a_us=float(a_us.mean()),
        b_us=float(b_us.mean()),
        more_us=mean_interval(a_us - b_us, confidence),
    )


def per_response_us(slots: Sequence[SlotRecord], tell: Tell) -> float:
    """Give what is told of slots in seconds, in microseconds per response."""
    return sum(tell(slot) for slot in slots) * 1e6 / _answered(slots)


def _answered(slots: Sequence[SlotRecord]) -> int:
    return sum(map(responses, slots))


def explanation_sentence(explanation: Explanation) -> str | None:
    """Say the difference and its parts; None where there surely is none."""
    if not explanation.whole.is_sure:
        return None
    whole = abs(explanation.whole.more_us.estimate)
    sure_parts = [
        part
        for part in explanation.parts
        if part.is_sure and abs(part.more_us.estimate) >= SMALL * whole
    ]
    by = "for " if explanation.by_samples else ""
    largest = sorted(sure_parts, key=lambda part: -abs(part.more_us.estimate))
    parts = ", ".join(f"{_more(part)} {by}{part.what}" for part in largest)
    begins = "As sampled, a request" if explanation.by_samples else "A request"
    return (
        f"{begins} costs {explanation.a} {_more(explanation.whole)} CPU time than {explanation.b}"
        f"{f': {parts}' if parts else ''}."
    )


_IN_SHORT = {OWN_CODE: "own code", "in the kernel": "kernel", "in interrupts": "interrupts"}


def in_short(what: str) -> str:
    """Name a part of CPU time as one line has room for it."""
    return _IN_SHORT.get(what, what.removeprefix("in "))


def explanation_in_short(explanation: Explanation) -> str | None:
    """Say the same in one line, without intervals; None where there surely is no difference."""
    if not explanation.whole.is_sure or explanation.by_samples:
        return None
    whole = explanation.whole.more_us.estimate
    parts = [
        f"{text.significant(part.more_us.estimate * np.sign(whole), 2)} µs {in_short(part.what)}"
        for part in sorted(explanation.parts, key=lambda part: -abs(part.more_us.estimate))
        if part.is_sure and abs(part.more_us.estimate) >= SMALL * abs(whole)
    ]
    verb = "costs" if whole > 0 else "saves"
    more = "more " if whole > 0 else ""
    saving = f"{explanation.a} {verb} {text.significant(abs(whole), 2)} µs {more}CPU per request"
    return f"{saving} ({', '.join(parts)})." if parts else f"{saving}."


def _more(part: CpuPart) -> str:
    more = part.more_us
    word = "more" if more.estimate > 0 else "less"
    ends = sorted(map(abs, (more.low, more.high))) if part.is_sure else [more.low, more.high]
    around = f"{text.significant(ends[0], 3)} to {text.significant(ends[1], 3)}"
    return f"{text.significant(abs(more.estimate), 3)} µs ({around}) {word}"


class _Parts(NamedTuple):
    whole_us: float
    work_us: float
    cpu_us: float
    queue_us: float


def waiting(data: PointData) -> Iterator[Waiting]:
    """Take each variant's time apart, where the load and the probes can tell."""
    valid = valid_for(data, THROUGHPUT)
    yield from filter(None, (_waiting_of(valid, variant) for variant in data.experiment.variants))


def _waiting_of(valid: PointData, variant: str) -> Waiting | None:
    load = valid.experiment.load_of(variant)
    if load.loop == "open" or load.think_s or valid.experiment.generator != OWN_GENERATOR:
        return None
    crowd = _crowded(valid.of_variant(variant), load.connections)
    by_round = [
        parts
        for this_round in valid.rounds
        if (parts := _parts(this_round.of(variant), load.connections, crowd)) is not None
    ]
    if len(by_round) < FEWEST_ROUNDS:
        return None
    whole, work, cpu, queue = (np.array(part) for part in zip(*by_round, strict=True))
    return Waiting(
        variant=variant,
        connections=load.connections,
        whole_us=mean_interval(whole, CONFIDENCE),
        work_us=mean_interval(work, CONFIDENCE),
        cpu_us=mean_interval(cpu, CONFIDENCE),
        queue_us=mean_interval(queue, CONFIDENCE) if crowd else None,
        queue_at=crowd[0] if crowd else None,
        workers=crowd[1] if crowd else None,
        rest_us=mean_interval(whole - work - cpu - queue, CONFIDENCE),
    )


def _crowded(slots: Sequence[SlotRecord], connections: int) -> tuple[str, int] | None:
    """Name the service all of whose workers were taken in each slot, and how many these are."""
    seen: list[dict[str, int]] = []
    for slot in slots:
        readings = slot.readings
        status = readings.status if readings else {}
        seen.append(
            {
                role: value.workers
                for role, value in status.items()
                if readings
                and role != readings.front
                and value.workers
                and value.most_busy is not None
                and value.workers <= min(value.most_busy, connections - 1)
            }
        )
    for role, workers in (seen[0] if seen else {}).items():
        if all(each.get(role) == workers for each in seen):
            return role, workers
    return None


def _parts(
    slots: Sequence[SlotRecord], connections: int, crowd: tuple[str, int] | None
) -> _Parts | None:
    throughput, work_us = throughput_rps(slots), server_cpu_us(slots)
    waited_s = [
        use.waited_for_cpu_s
        for slot in slots
        for use in (slot.readings.services.values() if slot.readings else ())
    ]
    known_s = [wait_s for wait_s in waited_s if wait_s is not None]
    if throughput is None or work_us is None or not known_s or len(known_s) < len(waited_s):
        return None
    return _Parts(
        whole_us=connections / throughput * 1e6,
        work_us=work_us,
        cpu_us=sum(known_s) / sum(map(responses, slots)) * 1e6,
        queue_us=(connections - crowd[1]) / throughput * 1e6 if crowd else 0.0,
    )


def where_time_goes(waitings: Sequence[Waiting]) -> Iterator[str]:
    """Say of each variant how long a response takes, is worked on, and waits for what."""
    for took in waitings:
        parts = [
            f"{_time(took.work_us)} of work on the servers' CPUs",
            f"{_time(took.cpu_us)} of waiting for a CPU",
        ]
        if took.queue_us is not None:
            parts.append(
                f"{_time(took.queue_us)} in front of the {took.workers} workers of "
                f"{took.queue_at}, all of them taken"
            )
        yield (
            f"{took.variant}: with {took.connections} connections a response takes "
            f"{_time(took.whole_us)}: {', '.join(parts)}, and {_time(took.rest_us)} in sockets "
            "and event loops, on the way, and in the client."
        )


def what_waits(judged: Judgement) -> Iterator[str]:
    """Say where a difference of throughput is one of waiting, not of work on the servers' CPUs."""
    by_variant = {part.variant: part for part in judged.waiting}
    for comparison in judged.comparisons:
        is_told = comparison.metric == THROUGHPUT and comparison.verdict in {
            Verdict.FASTER,
            Verdict.SLOWER,
        }
        if (
            not is_told
            or comparison.limited_by
            or not {comparison.a, comparison.b} <= by_variant.keys()
        ):
            continue
        slow, fast = sorted(
            (by_variant[comparison.a], by_variant[comparison.b]),
            key=lambda part: -part.whole_us.estimate,
        )
        longer_us = slow.rest_us.estimate - fast.rest_us.estimate
        work_us = abs(slow.work_us.estimate - fast.work_us.estimate)
        if _busy(slow) > IDLE_BELOW or work_us > MOST_OF_IT * longer_us:
            continue
        yield (
            f"{slow.variant} waits: of the {_time(slow.whole_us)} that its response takes, "
            f"{_time(slow.work_us)} are work on the servers' CPUs ({fast.variant}: "
            f"{_time(fast.work_us)} of {_time(fast.whole_us)}).{_nagle(longer_us)}"
        )


def _busy(times: Waiting) -> float:
    """Give how many CPUs its servers keep busy: requests under way times the share of work."""
    return times.connections * times.work_us.estimate / times.whole_us.estimate


def _nagle(longer_us: float) -> str:
    """Name what makes a connection wait for the kernel's delayed acknowledgement."""
    low_us, high_us = DELAYED_ACK_US
    if not low_us <= longer_us <= high_us:
        return ""
    return (
        " Steps of 40 ms come from Nagle's algorithm and delayed acknowledgements, where head and "
        "body are written apart: set TCP_NODELAY, or write them at once."
    )


def _time(us: Interval) -> str:
    return text.latency(max(us.estimate, 0.0))
