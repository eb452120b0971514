"""Whether the client was fast enough: a busy client measures itself."""

from collections.abc import Sequence

from webdyno.judge.validity.rule import (
    DISTURBANCES_TOLERATED,
    RESPONSE_METRICS,
    TIMING_METRICS,
    SlotRule,
    readings_of,
)
from webdyno.judge.words import percent
from webdyno.model.records import SlotRecord

BUSY_LIMIT = 0.85
"""Share of its time that the client's busiest thread may be on the CPU."""

WAITING_LIMIT = 1 - BUSY_LIMIT
"""Share of its time that a thread of the client may be ready and wait for a CPU."""

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


def _waited(slot: SlotRecord) -> bool:
    if slot.readings is None or slot.readings.shared_cpus:
        return False
    return (slot.readings.client_waiting or 0.0) > WAITING_LIMIT


def _most_waiting(slots: Sequence[SlotRecord]) -> str:
    waiting = max(readings.client_waiting or 0.0 for readings in readings_of(slots))
    return (
        f"a thread of the client waited for a CPU up to {percent(waiting)} of the time (limit "
        f"{percent(WAITING_LIMIT)}): something else had it, or a CPU quota held it back"
    )


CLIENT_BOUND = SlotRule(
    name="client-bound",
    broken=lambda slot: slot.load.client.busy > BUSY_LIMIT and not slot.load.client.busy_waits,
    what=_busiest,
    remedy="Give the client more cores (--server-cores 1), or decide on server CPU time per "
    "request, which the client's speed doesn't enter: --set measure.decide_on=server_cpu_us.",
    spoils=TIMING_METRICS,
)

CLIENT_HELD_BACK = SlotRule(
    name="client-held-back",
    broken=_waited,
    what=_most_waiting,
    remedy="Stop other programs on the client's CPUs, and look for a CPU quota of the container.",
    spoils=TIMING_METRICS,
    tolerated=DISTURBANCES_TOLERATED,
)

SEND_LAG = SlotRule(
    name="send-lag",
    broken=_lagged,
    what=_most_lag,
    remedy="Lower the rate, give the client more CPUs, or stop other work on its CPUs.",
    spoils=RESPONSE_METRICS,
)

RULES = (CLIENT_BOUND, CLIENT_HELD_BACK, SEND_LAG)
