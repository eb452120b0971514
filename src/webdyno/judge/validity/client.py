"""Whether the client was fast enough: a busy client measures itself."""

from collections.abc import Sequence

from webdyno.judge.validity.rule import TIMING_METRICS, SlotRule
from webdyno.judge.words import percent
from webdyno.model.records import SlotRecord

BUSY_LIMIT = 0.85
"""Share of its time that the client's busiest thread may be on the CPU."""

LAG_LIMIT = 0.05
"""Share of the response time's 99th percentile that the send lag's may reach (open loop)."""


def _busiest(slots: Sequence[SlotRecord]) -> str:
    busiest = max(slot.load.client.busy for slot in slots)
    return (
        f"the client's busiest thread was on the CPU for up to {percent(busiest)} of the time "
        f"(limit {percent(BUSY_LIMIT)}), so the server could have been faster than measured"
    )


def _lagged(slot: SlotRecord) -> bool:
    lag, response = slot.load.send_lag_us.p99, slot.load.response_time_us.p99
    return slot.load.loop == "open" and bool(lag and response and lag > LAG_LIMIT * response)


def _most_lag(slots: Sequence[SlotRecord]) -> str:
    worst = max(slot.load.send_lag_us.p99 or 0.0 for slot in slots)
    return (
        f"requests left up to {worst:.0f} µs after they were due (99th percentile), more than "
        f"{percent(LAG_LIMIT)} of the response time"
    )


CLIENT_BOUND = SlotRule(
    name="client-bound",
    broken=lambda slot: slot.load.client.busy > BUSY_LIMIT,
    what=_busiest,
    remedy="Give the client more CPUs or the servers fewer, or decide on server CPU time per "
    "request, which the client's speed doesn't enter: --set measure.decide_on=server_cpu_us.",
    spoils=TIMING_METRICS,
)

SEND_LAG = SlotRule(
    name="send-lag",
    broken=_lagged,
    what=_most_lag,
    remedy="Lower the rate, give the client more CPUs, or stop other work on its CPUs.",
    spoils=TIMING_METRICS,
)

RULES = (CLIENT_BOUND, SEND_LAG)
