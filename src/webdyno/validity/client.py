"""Whether the client could do what was asked of it: a saturated one measures itself.

It may be saturated (`client-limited`, `client-ceiling`), wait for a CPU (`client-cpu-starved`),
stall (`client-stalled`, `machine-stalled`), or send late (`send-delay`) or too little
(`offered-rate`).
"""

from collections.abc import Sequence
from math import inf, sqrt

from webdyno.core.capacity import is_at_least
from webdyno.core.format import duration, latency, number, percent
from webdyno.core.load_result import LoadResult
from webdyno.core.metrics import throughput_rps
from webdyno.core.records import SlotRecord
from webdyno.core.testbed import Limit
from webdyno.evidence.point_data import PointData
from webdyno.evidence.slot_stalls import client_still_s, own_stall_s, stalled_s
from webdyno.validity.rule import (
    INTERFERENCE_TOLERATED,
    LATENCY,
    TIMING,
    SlotRule,
    readings_of,
    with_readings,
)

BUSY_LIMIT = 0.85
"""Share of its time that the client's busiest thread may be on the CPU."""
WAITING_LIMIT = 1 - BUSY_LIMIT
"""Share of its time that a thread of the client may be ready and wait for a CPU."""
SEND_DELAY_LIMIT, SEND_DELAY_FLOOR_US = 0.05, 500.0
"""Open loop: the send delay's p99 may reach this share of the latency's, and in any case this much
beyond its budget: one late wake-up in a hundred says nothing about the client."""
NEAR, STALE = 0.9, 1.1
"""Between these times the ceiling it may be the ceiling that is measured; throughput above shows
that the calibration isn't true any more."""
TIME_LEFT_BELOW = 0.85
"""Share of the time that the busiest of the servers' CPUs is busy: below, it isn't what lacks."""
RATE_TOLERANCE = 0.02
CHANCE = 3.0
"""Standard deviations of a Poisson count that random arrivals may be off by chance."""
STILL_LIMIT = 0.02
"""Share of a slot in which the client may stall: it moves the throughput by as much."""
GONE_LIMIT = 0.25
"""Share of a slot whose windows may measure nothing because the client stalled: the rest was
measured next to a client, and servers, that were just beginning again."""
MORE_CLIENT_CPUS = (
    "Give the client more CPUs (--server-cores 1), or decide on CPU per request "
    "(--set measure.decide_on=server_cpu_us)."
)

CLIENT_LIMITED = SlotRule(
    name="client-limited",
    broken=lambda slot: slot.load.client.busy > BUSY_LIMIT and not slot.load.client.busy_waits,
    what=lambda slots: (
        "the client's busiest thread was on the CPU for up to "
        f"{percent(max(slot.load.client.busy for slot in slots))} of the time "
        f"(limit {percent(BUSY_LIMIT)}), so the server could have been faster than measured"
    ),
    fix=MORE_CLIENT_CPUS,
    invalidates=TIMING,
    censors=True,
)


def reaches_ceiling(slot: SlotRecord, limit: Limit) -> bool:
    """Whether a slot's throughput is the most that `doctor --calibrate` found, for this reason."""
    ceiling = slot.readings.ceiling if slot.readings else None
    share = _ceiling_share(slot)
    return ceiling is not None and ceiling.limited_by == limit and NEAR < share < STALE


def _ceiling_share(slot: SlotRecord) -> float:
    ceiling = slot.readings.ceiling if slot.readings else None
    if ceiling is None or not ceiling.throughput_rps:
        return 0.0
    return (throughput_rps([slot]) or 0.0) / ceiling.throughput_rps


def _highest(slots: Sequence[SlotRecord]) -> str:
    known = [readings.ceiling for readings in readings_of(slots) if readings.ceiling]
    return (
        f"it answered up to {percent(max(map(_ceiling_share, slots)))} of the "
        f"{number(round(known[0].throughput_rps))} req/s that this client reaches against "
        "a server that does nothing (webdyno doctor --calibrate)"
    )


CLIENT_CEILING = SlotRule(
    name="client-ceiling",
    broken=lambda slot: reaches_ceiling(slot, "client"),
    what=_highest,
    fix=MORE_CLIENT_CPUS,
    invalidates=TIMING,
    censors=True,
)


CLIENT_CPU_STARVED = SlotRule(
    name="client-cpu-starved",
    broken=with_readings(
        lambda readings: (
            not readings.shared_cpus and (readings.client_waiting or 0.0) > WAITING_LIMIT
        )
    ),
    what=lambda slots: (
        "a thread of the client waited for a CPU up to "
        f"{percent(max(readings.client_waiting or 0.0 for readings in readings_of(slots)))} of the "
        f"time (limit {percent(WAITING_LIMIT)}): something else had it, or a CPU quota held it back"
    ),
    fix="Stop other programs on the client's CPUs, or lift its container's CPU quota.",
    invalidates=TIMING,
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)


def _gone_s(load: LoadResult) -> float:
    """In windows that measure nothing, as the client stalled in them."""
    if not load.client.excluded_windows:
        return 0.0
    return sum(window.length_s for window in load.counted_windows if window.stalled)


def still_share(slot: SlotRecord) -> float:
    """Return the share of the time in which the client stalled, but for excluded windows."""
    gone_s = _gone_s(slot.load)
    left_s = slot.load.measured_s - gone_s
    return min(max(client_still_s(slot) - gone_s, 0.0) / left_s, 1.0) if left_s > 0 else 1.0


CLIENT_STALLED = SlotRule(
    name="client-stalled",
    broken=lambda slot: (
        still_share(slot) > STILL_LIMIT or _gone_s(slot.load) > GONE_LIMIT * slot.load.measured_s
    ),
    what=lambda slots: (
        f"the load generator stalled for up to {duration(max(map(client_still_s, slots)))} of a "
        "slot, and sent nothing in that time: it was stopped, or had no CPU"
    ),
    fix="Look for what stops programs here: a debugger, a suspended machine, other programs on "
    "the client's CPUs.",
    invalidates=TIMING,
    tolerated=INTERFERENCE_TOLERATED,
    has_bias_bound=True,
)


MACHINE_STALLED = SlotRule(
    name="machine-stalled",
    broken=lambda slot: stalled_s(slot) > 0 and own_stall_s(slot) == 0,
    what=lambda slots: (
        f"for {duration(max(map(stalled_s, slots)))} of a slot next to nothing was answered, "
        "as the load generator or the machine stalled"
    ),
    fix="Look for what stops programs here: a suspended machine, a frozen container, a "
    "debugger, other programs on the servers' CPUs.",
    invalidates=TIMING,
    tolerated=INTERFERENCE_TOLERATED,
)


def _lags(slot: SlotRecord) -> bool:
    delay, response = slot.load.send_delay_us, slot.load.latency_us.p99
    if slot.load.loop != "open" or not delay.p99 or not response:
        return False
    return delay.p99 > max(SEND_DELAY_LIMIT * response, delay.budget + SEND_DELAY_FLOOR_US)


SEND_DELAY = SlotRule(
    name="send-delay",
    broken=_lags,
    what=lambda slots: (
        "the client sent requests up to "
        f"{latency(max(slot.load.send_delay_us.p99 or 0.0 for slot in slots))} late (99th "
        f"percentile, limit {percent(SEND_DELAY_LIMIT)} of the latency): so much of the latency "
        "may be its own"
    ),
    fix="Lower the arrival rate, or give the client more CPUs (--server-cores 1).",
    invalidates=LATENCY,
    has_bias_bound=True,
)


def _misses_rate(slot: SlotRecord) -> bool:
    """Whether an open loop's requests were not answered as fast as they were due.

    Those answered in the drain were due in the window as well, those carried into it weren't. A
    queue that grows shows in the last window, unless that begins before the first responses come.
    """
    load = slot.load
    if not load.offered_rps:
        return False
    answered = load.requests.completed + load.requests.drained - load.requests.carried
    # Requests of a flow or burst come together: chance does more than to as many that come alone.
    together = load.due_together or 1
    if _off(answered, load.offered_rps * load.measured_s, together):
        return True
    if not load.counted_windows:
        return False
    last = load.counted_windows[-1]
    if last.at_s < (load.latency_us.p50 or 0.0) / 1e6:
        return False
    of_last = load.offered_rps if load.last_offered_rps is None else load.last_offered_rps
    due = of_last * last.length_s
    return last.completed < due and _off(last.completed, due, together)


def _off(count: int, expected: float, together: int) -> bool:
    by_chance = CHANCE * sqrt(expected * together)
    return abs(count - expected) > max(RATE_TOLERANCE * expected, by_chance)


def _rates(slots: Sequence[SlotRecord]) -> str:
    worst = min(
        slots, key=lambda slot: (throughput_rps([slot]) or 0.0) / (slot.load.offered_rps or 1)
    )
    rates = (
        f"{number(worst.load.offered_rps or 0)} req/s were offered, but "
        f"{number(_answered_rps(worst))} were answered"
    )
    return f"{rates}: late ones came in addition" if _is_surplus(worst) else rates


def _is_surplus(slot: SlotRecord) -> bool:
    """Whether more was answered than was due: what had been due before came late."""
    return _answered_rps(slot) > (slot.load.offered_rps or inf)


def _answered_rps(slot: SlotRecord) -> float:
    """Return the last window's throughput where all was answered in the end, else the slot's."""
    over_all = throughput_rps([slot]) or 0.0
    last = slot.load.counted_windows[-1] if slot.load.counted_windows else None
    return min(over_all, last.completed / last.length_s) if last and last.length_s else over_all


def _more_at_a_time(slots: Sequence[SlotRecord]) -> str:
    """Advise where the servers' CPUs had time left: requests waited for something else."""
    busiest = [readings.host.busiest_server_cpu for readings in readings_of(slots)]
    known = [share for share in busiest if share is not None]
    if not known or max(known) > TIME_LEFT_BELOW:
        return ""
    return (
        "The servers' CPUs had time left: give the load more connections (-c 256) or the server "
        "more workers, or lower the arrival rate."
    )


OFFERED_RATE = SlotRule(
    name="offered-rate",
    broken=_misses_rate,
    what=_rates,
    fix="Lower the arrival rate below what every variant can answer; `webdyno capacity` finds it.",
    special_fix=lambda slots: (
        "Client or servers stalled before: look for what else uses their CPUs."
        if all(map(_is_surplus, slots))
        else _more_at_a_time(slots)
    ),
)

RULES = (
    CLIENT_LIMITED,
    CLIENT_CPU_STARVED,
    CLIENT_STALLED,
    MACHINE_STALLED,
    SEND_DELAY,
    OFFERED_RATE,
    CLIENT_CEILING,
)


def client_was_the_limit(data: PointData, variant: str) -> bool:
    """Whether in most rounds the load generator ended a variant's search upwards."""
    rounds = [
        [slot.trial for slot in this_round.of(variant) if slot.trial] for this_round in data.rounds
    ]
    ended = [is_at_least(trials) for trials in rounds if trials]
    return sum(ended) > len(ended) / 2
