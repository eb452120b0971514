"""The quantities that are compared: what each means and how a block's slots give its value."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from webdyno.judge.evidence import Evidence
from webdyno.judge.histogram import Histogram, merge
from webdyno.model.judgement import Metric
from webdyno.model.records import SlotRecord

BlockValue = Callable[[Sequence[SlotRecord]], float | None]
"""One arm's slots in one block -> the metric's value; None when they can't tell it."""


@dataclass(frozen=True)
class MetricRule:
    """A metric, how it is computed, and how a ratio of it is said."""

    metric: Metric
    block_value: BlockValue
    saying: str
    """With {a}, {ratio} and {b} to be filled in."""
    probed: bool = False
    """True when probes must have been at work; judgements without their readings leave it out."""


def rate_rps(slots: Sequence[SlotRecord]) -> float | None:
    """Valid answers per second over all slots together."""
    counted = [_counted(slot) for slot in slots]
    completed, took_s = sum(count for count, _ in counted), sum(took_s for _, took_s in counted)
    return completed / took_s if completed and took_s else None


def _counted(slot: SlotRecord) -> tuple[int, float]:
    """Give a slot's valid answers and the seconds that they took.

    Over a link with a limit the drain counts too: large answers that are under way at the slot's
    end can be most of what the link has carried in it.
    """
    load = slot.load
    if slot.readings is not None and slot.readings.network.link_bytes_per_s:
        drained = load.requests.completed + load.requests.drained
        return drained, load.measured_s + load.drain_s
    return load.requests.completed, load.measured_s


def answers(slot: SlotRecord) -> int:
    """Count what the servers worked on to the end: valid, late and wrong answers."""
    load = slot.load
    wrong = (load.failures.status or 0) + (load.failures.body or 0)
    return load.requests.completed + load.requests.drained + wrong


def server_cpu_us(slots: Sequence[SlotRecord]) -> float | None:
    """Microseconds of server CPU time (user and system, all services) per answer."""
    answered = sum(answers(slot) for slot in slots)
    cpu_s = sum(slot.servers.cpu_s for slot in slots)
    return cpu_s * 1e6 / answered if answered and cpu_s else None


def context_switches(slots: Sequence[SlotRecord]) -> float | None:
    """Context switches of the servers' threads, of either kind, per answer."""
    switches = sum(
        use.switches_voluntary + use.switches_involuntary
        for slot in slots
        if slot.readings
        for use in slot.readings.services.values()
    )
    answered = sum(answers(slot) for slot in slots if slot.readings)
    return switches / answered if answered and switches else None


def memory_mib(slots: Sequence[SlotRecord]) -> float | None:
    """Memory of all services after a slot (PSS), the largest of the slots, in MiB."""
    sums = [
        sum(use.pss_bytes or 0 for use in slot.readings.services.values())
        for slot in slots
        if slot.readings
    ]
    return max(sums) / 2**20 if any(sums) else None


def answer_bytes(slots: Sequence[SlotRecord]) -> float | None:
    """Bytes of head and body per answer of any status, compressed where the answer was."""
    told = [slot for slot in slots if slot.load.bytes.head is not None]
    total = sum((slot.load.bytes.head or 0) + (slot.load.bytes.body or 0) for slot in told)
    answered = sum(sum(slot.load.by_status.values()) for slot in told)
    return total / answered if answered and total else None


def response_quantile_us(share: float) -> BlockValue:
    """Give the metric "response time that this share of the requests stays below"."""

    def block_value(slots: Sequence[SlotRecord]) -> float | None:
        encoded = [slot.load.response_time_us.histogram for slot in slots]
        return merge(Histogram.decode(each) for each in encoded if each).quantile(share)

    return block_value


METRICS = (
    MetricRule(
        Metric(name="rate_rps", label="requests per second", unit="requests/s", better="higher"),
        rate_rps,
        "{a} answers {ratio}× as many requests per second as {b}",
    ),
    MetricRule(
        Metric(
            name="server_cpu_us", label="server CPU time per request", unit="µs", better="lower"
        ),
        server_cpu_us,
        "{a} needs {ratio}× as much server CPU time per request as {b}",
    ),
    MetricRule(
        Metric(name="response_p50_us", label="response time, median", unit="µs", better="lower"),
        response_quantile_us(0.5),
        "{a} has {ratio}× the median response time of {b}",
    ),
    MetricRule(
        Metric(
            name="response_p99_us",
            label="response time, 99th percentile",
            unit="µs",
            better="lower",
        ),
        response_quantile_us(0.99),
        "{a} has {ratio}× the 99th percentile of response time of {b}",
    ),
    MetricRule(
        Metric(
            name="context_switches", label="context switches per request", unit="", better="lower"
        ),
        context_switches,
        "{a} makes {ratio}× as many context switches per request as {b}",
        probed=True,
    ),
    MetricRule(
        Metric(name="memory_mib", label="memory of the servers", unit="MiB", better="lower"),
        memory_mib,
        "{a} needs {ratio}× as much memory as {b}",
        probed=True,
    ),
    MetricRule(
        Metric(
            name="answer_bytes",
            label="size of an answer, head included",
            unit="bytes",
            better="lower",
        ),
        answer_bytes,
        "{a} sends {ratio}× as many bytes per answer as {b}",
    ),
)


def told_by(slots: Sequence[SlotRecord]) -> list[MetricRule]:
    """Give the metrics that load generator and probes of these slots can tell; all if no slots."""
    probed = any(slot.readings for slot in slots)
    timed = not slots or any(slot.load.response_time_us.histogram for slot in slots)
    return [
        rule
        for rule in METRICS
        if (probed or not rule.probed) and (timed or not rule.metric.name.startswith("response_"))
    ]


def metric_rule(name: str) -> MetricRule:
    """Find a metric by name."""
    return next(rule for rule in METRICS if rule.metric.name == name)


def values_by_block(evidence: Evidence, arm: str, rule: MetricRule) -> dict[int, float]:
    """Give the arm's value in each block that can tell it, by block number."""
    values = {block.record.block: rule.block_value(block.of(arm)) for block in evidence.blocks}
    return {number: value for number, value in values.items() if value is not None}
