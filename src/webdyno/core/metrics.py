"""The quantities that are compared. A new one is one entry of `METRICS`, and nothing else.

Judgements, tables, charts and CSV show whatever is registered here and can be said of a run. What a
probe has to read for it is in `readings.py`.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator

from webdyno.core.capacity import capacity_of
from webdyno.core.judgement import Metric
from webdyno.core.load_result import LoadResult, Times
from webdyno.core.records import SlotRecord
from webdyno.core.streams import (
    events_per_response,
    events_per_s,
    goodput_rps,
    have_events,
    have_goodput,
)

RoundValue = Callable[[Sequence[SlotRecord]], float | None]
"""One variant's slots in one round -> the metric's value; None when they can't report it."""

Kind = Literal["throughput", "latency", "work", "instructions", "memory", "size", "capacity"]
"""What a metric is about; validity rules say by kind which metrics they invalidate."""

THROUGHPUT, CPU_TIME, CAPACITY = "throughput_rps", "server_cpu_us", "capacity_rps"
GOODPUT = "goodput_rps"
INSTRUCTIONS = "instructions"

TimesOf = Callable[[LoadResult], Times]
"""Which times of a slot a percentile is of."""

CLOCK_TICK_S = 1e-9
"""No clock here says shorter times: a record with one is damaged."""


def latency_of(load: LoadResult) -> Times:
    return load.latency_us


@dataclass(frozen=True)
class MetricRule:
    """A metric: how it is computed, what that takes, and how a ratio of it is said."""

    metric: Metric
    kind: Kind
    round_value: RoundValue
    short: str
    """The metric in a sentence: "3.9× the … of nginx"."""
    needs: Literal[
        "load", "times", "events", "goodput", "probes", "counters", "databases", "trials"
    ] = "load"
    """What must have been at work: any load generator, one that reports a distribution of latency,
    streamed responses, limits on these, the probes, the CPUs' counters, a database that counts, or
    a search for the capacity, of which nothing else is reported."""
    decides: bool = True
    """Whether a verdict can be about it; what is only a side effect can't."""
    in_brief: bool = True
    """Whether the table on top of a report has it where it isn't the deciding one; the details have
    every metric."""
    quantile: float | None = None
    """For percentiles: which one, as a share. It says how many samples are needed."""
    times_of: TimesOf = latency_of
    """For percentiles: of which times."""

    @property
    def name(self) -> str:
        return self.metric.name


def responses(slot: SlotRecord) -> int:
    """Count what the servers worked on to the end: valid, late and wrong responses.

    Those of ramp-up and drain as well, since costs are counted over the same time.
    """
    return slot.load.all_of_it.responses


def throughput_rps(slots: Sequence[SlotRecord]) -> float | None:
    """Valid responses per second over all slots together."""
    counted = [slot.load.counted_responses for slot in slots]
    completed, took_s = sum(count for count, _ in counted), sum(took_s for _, took_s in counted)
    return completed / took_s if completed and took_s > CLOCK_TICK_S else None


def server_cpu_us(slots: Sequence[SlotRecord]) -> float | None:
    """Microseconds of server CPU time (user and system, all services) per response."""
    answered = sum(responses(slot) for slot in slots)
    cpu_s = sum(slot.servers.cpu_s for slot in slots)
    return cpu_s * 1e6 / answered if answered and cpu_s else None


def instructions(slots: Sequence[SlotRecord]) -> float | None:
    """Instructions that the servers executed in user space, all services, per response."""
    counted = [slot for slot in slots if slot.instructions is not None]
    executed = sum(slot.instructions or 0 for slot in counted)
    answered = sum(map(responses, counted))
    return executed / answered if answered and executed else None


def context_switches(slots: Sequence[SlotRecord]) -> float | None:
    """Context switches of the servers' threads, of either kind, per response."""
    switches = sum(
        use.switches_voluntary + use.switches_involuntary
        for slot in slots
        if slot.readings
        for use in slot.readings.services.values()
    )
    answered = sum(responses(slot) for slot in slots if slot.readings)
    return switches / answered if answered and switches else None


def statements_per_response(slots: Sequence[SlotRecord]) -> float | None:
    """Statements that the databases behind a variant were given, per response."""
    counted = [slot for slot in slots if slot.readings and slot.readings.databases]
    calls = sum(
        use.calls for slot in counted if slot.readings for use in slot.readings.databases.values()
    )
    answered = sum(map(responses, counted))
    return calls / answered if answered and calls else None


def memory_mib(slots: Sequence[SlotRecord]) -> float | None:
    """Memory of all services after a slot (PSS), the largest of the slots, in MiB."""
    sums = [
        sum(use.pss_bytes or 0 for use in slot.readings.services.values())
        for slot in slots
        if slot.readings
    ]
    return max(sums) / 2**20 if any(sums) else None


def response_bytes(slots: Sequence[SlotRecord]) -> float | None:
    """Bytes of head and body per response of any status, compressed where the response was."""
    wholes = [whole for slot in slots if (whole := slot.load.all_of_it).bytes.head is not None]
    total = sum((whole.bytes.head or 0) + (whole.bytes.body or 0) for whole in wholes)
    answered = sum(sum(whole.by_status.values()) for whole in wholes)
    return total / answered if answered and total else None


def capacity_rps(slots: Sequence[SlotRecord]) -> float | None:
    """Requests per second up to which the objectives hold, by the trials of one search."""
    return capacity_of([slot.trial for slot in slots if slot.trial is not None])


def _latency(
    name: str,
    share: float,
    words: str,
    floor_us: float,
    *,
    what: str = "latency",
    needs: Literal["times", "events"] = "times",
    times_of: TimesOf = latency_of,
    in_brief: bool = True,
) -> MetricRule:
    """Make the metric "time that this share of the requests, or events, stays below"."""

    def round_value(slots: Sequence[SlotRecord]) -> float | None:
        from webdyno.core.histogram import merge_encoded  # numpy takes a while to import

        return merge_encoded(times_of(slot.load).histogram for slot in slots).quantile(share)

    return MetricRule(
        Metric(name=name, label=f"{what} {words}", unit="µs", better="lower", floor=floor_us),
        kind="latency",
        round_value=round_value,
        short=f"{words} {what}",
        needs=needs,
        in_brief=in_brief,
        quantile=share,
        times_of=times_of,
    )


def _event_times(
    name: str, what: str, times_of: TimesOf, *, in_brief: Collection[str]
) -> Iterator[MetricRule]:
    """Make p50 and p99 of what is timed of events."""
    for words, share, floor_us in (("p50", 0.5, 1.0), ("p99", 0.99, 10.0)):
        yield _latency(
            *(f"{name}_{words}_us", share, words, floor_us),
            what=what,
            needs="events",
            times_of=times_of,
            in_brief=words in in_brief,
        )


METRICS: dict[str, MetricRule] = {
    rule.name: rule
    for rule in (
        MetricRule(
            Metric(name=THROUGHPUT, label="throughput", unit="req/s", better="higher"),
            kind="throughput",
            round_value=throughput_rps,
            short="throughput",
        ),
        MetricRule(
            Metric(
                name=CPU_TIME,
                label="CPU per request",
                unit="µs",
                better="lower",
                floor=0.05,  # what a probe at a slot's edge costs, over the responses of a slot
            ),
            kind="work",
            round_value=server_cpu_us,
            short="CPU per request",
        ),
        MetricRule(
            Metric(
                name=INSTRUCTIONS,
                label="instructions per request",
                unit="",
                better="lower",
                floor=100,  # about 0.05 µs of CPU time, as above
            ),
            kind="instructions",
            round_value=instructions,
            short="instructions per request",
            needs="counters",
        ),
        _latency("latency_p50_us", 0.5, "p50", floor_us=1),  # the clock's own step
        _latency("latency_p99_us", 0.99, "p99", floor_us=10),  # one wake-up
        *_event_times(
            "first_event",
            "time to first event (TTFT)",
            lambda load: load.events.time_to_first_us if load.events else Times(),
            in_brief=("p50",),
        ),
        *_event_times(
            "event_gap",
            "event gap (inter-token latency, ITL)",
            lambda load: load.events.gap_us if load.events else Times(),
            in_brief=("p50", "p99"),
        ),
        *_event_times(
            "per_event",
            "time per event (TPOT)",
            lambda load: load.events.per_event_us if load.events else Times(),
            in_brief=(),
        ),
        MetricRule(
            Metric(
                name="events_per_s", label="events per second", unit="events/s", better="higher"
            ),
            kind="throughput",
            round_value=events_per_s,
            short="events per second (tokens/s)",
            needs="events",
        ),
        MetricRule(
            Metric(name=GOODPUT, label="goodput", unit="req/s", better="higher"),
            kind="throughput",
            round_value=goodput_rps,
            short="goodput",
            needs="goodput",
        ),
        MetricRule(
            Metric(
                name="events",
                label="events per response",
                unit="",
                better="higher",
                floor=0.5,  # a stream more or less that was cut
            ),
            kind="size",
            round_value=events_per_response,
            short="events per response",
            needs="events",
            decides=False,
            in_brief=False,
        ),
        MetricRule(
            Metric(
                name="context_switches",
                label="context switches per request",
                unit="",
                better="lower",
                floor=0.05,  # one in twenty requests; a switch costs about a microsecond
            ),
            kind="work",
            round_value=context_switches,
            short="context switches per request",
            needs="probes",
            decides=False,
            in_brief=False,
        ),
        MetricRule(
            Metric(
                name="statements",
                label="database statements per request",
                unit="",
                better="lower",
                floor=0.05,  # one in twenty requests, as of connections that are opened again
            ),
            kind="size",
            round_value=statements_per_response,
            short="database statements per request",
            needs="databases",
        ),
        MetricRule(
            Metric(
                name="memory_mib",
                label="memory",
                unit="MiB",
                better="lower",
                floor=0.5,  # what allocators and page tables differ by from start to start
            ),
            kind="memory",
            round_value=memory_mib,
            short="memory",
            needs="probes",
        ),
        MetricRule(
            Metric(
                name="response_bytes",
                label="size of a response, head included",
                unit="bytes",
                better="lower",
                floor=64,  # a header or two: neither fills a packet
            ),
            kind="size",
            round_value=response_bytes,
            short="bytes per response",
            decides=False,
            in_brief=False,
        ),
        MetricRule(
            Metric(name=CAPACITY, label="capacity", unit="req/s", better="higher"),
            kind="capacity",
            round_value=capacity_rps,
            short="capacity",
            needs="trials",
        ),
    )
}
"""By name, in the order in which they are shown."""


def metrics_of_kind(kinds: Collection[Kind], slots: Sequence[SlotRecord]) -> list[str]:
    """Return the metrics of some kinds; those of events only where slots have any."""
    of_streams = {"events": have_events(slots), "goodput": have_goodput(slots)}
    return [
        name
        for name, rule in METRICS.items()
        if rule.kind in kinds and of_streams.get(rule.needs, True)
    ]


def metrics_reported_by(slots: Sequence[SlotRecord], decide_on: str) -> list[MetricRule]:
    """Return the metrics that load generator and probes of these slots say.

    The deciding one is always among them, reported or not: a verdict on it was asked for. Without
    any slots all are, but the capacity; where that is searched for, it is the only one.
    """
    if any(slot.trial for slot in slots):
        return [METRICS[CAPACITY]]
    is_reported = {
        "load": True,
        "times": not slots or any(slot.load.latency_us.histogram for slot in slots),
        "events": have_events(slots),
        "goodput": have_goodput(slots),
        "probes": not slots or any(slot.readings for slot in slots),
        "counters": any(slot.instructions is not None for slot in slots),
        "databases": any(slot.readings and slot.readings.databases for slot in slots),
        "trials": False,
    }
    return [rule for rule in METRICS.values() if is_reported[rule.needs] or rule.name == decide_on]


def _known(name: str) -> str:
    if name not in METRICS:
        raise ValueError(f"there is no metric {name!r:.60}; the metrics are {', '.join(METRICS)}")
    return name


def _deciding(name: str) -> str:
    able = [rule.name for rule in METRICS.values() if rule.decides]
    if name not in able:
        raise ValueError(f"decide_on can't be {name!r:.60}; it can be {', '.join(able)}")
    return name


MetricName = Annotated[str, AfterValidator(_known)]
DecidingMetric = Annotated[str, AfterValidator(_deciding)]
"""A metric that a verdict can be about."""
