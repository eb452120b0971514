"""What slots and a long look say together of a variant that stalls."""

from random import Random
from statistics import fmean

import pytest

from builders import SimulatedRun, SimulatedVariant, latencies, simulated_run
from evidence.stretches import Truth, stretch
from webdyno.comparison import judge
from webdyno.core.judgement import Verdict
from webdyno.core.load_result import SendDelay, Window
from webdyno.core.measure import Measure
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity import excluded_slots

RATE_RPS = 20_000
P99 = "latency_p99_us"
WINDOW_S, WINDOWS = 0.1, 5


def stalling(stall_s: float, every_s: float, seed: int) -> SimulatedRun:
    """Slots of half a second, at random moments between a variant's stalls."""
    variants = {
        "baseline": SimulatedVariant(throughput_rps=RATE_RPS),
        "other": SimulatedVariant(throughput_rps=RATE_RPS),
    }
    run = simulated_run(variants, rounds=6, restart_sd=0.002, slot_sd=0.002, seed=seed)
    random = Random(seed)
    for n, it in enumerate(run.records):
        if isinstance(it, SlotRecord) and it.phase == "measure":
            at_s = random.uniform(0, every_s) if it.variant == "other" else 0.0
            run.records[n] = _with_windows(it, at_s, stall_s, every_s, random)
    return run


def _with_windows(
    slot: SlotRecord, at_s: float, stall_s: float, every_s: float, random: Random
) -> SlotRecord:
    windows = []
    for n in range(WINDOWS):
        begin_s = at_s + n * WINDOW_S
        served_s = WINDOW_S
        if slot.variant == "other":
            period_s = begin_s // every_s * every_s
            stalls_s = [period_s + every_s - stall_s, period_s + 2 * every_s - stall_s]
            lost_s = (min(begin_s + WINDOW_S, it + stall_s) - max(begin_s, it) for it in stalls_s)
            served_s -= sum(max(it, 0.0) for it in lost_s)
        expected = slot.load.throughput_rps * max(served_s, 0.0)
        completed = max(round(random.gauss(expected, expected**0.5)), 0)
        windows.append(Window(at_s=n * WINDOW_S, length_s=WINDOW_S, completed=completed))
    total = sum(it.completed for it in windows)
    load = slot.load.model_copy(
        update={
            "windows": windows,
            "measured_s": WINDOWS * WINDOW_S,
            "throughput_rps": total / (WINDOWS * WINDOW_S),
            "requests": slot.load.requests.model_copy(update={"completed": total, "drained": 0}),
        }
    )
    return slot.model_copy(update={"load": load})


@pytest.mark.parametrize(
    ("stall_s", "every_s"), [(0.05, 2.0), (0.03, 2.0), (0.05, 0.5), (0.3, 4.0), (1.0, 6.0)]
)
def test_stalls_are_counted_once_whether_slots_hold_them_or_not(
    stall_s: float, every_s: float
) -> None:
    """Stalls may be shorter than a slot's windows, or come more often than slots."""
    truth = 1 - stall_s / every_s
    estimates, held = [], 0
    for seed in range(8):
        run = stalling(stall_s, every_s, seed)
        looked_s = max(10.0, 4.5 * every_s)
        look = stretch(
            Truth(every_s=every_s, stall_s=stall_s, looked_s=looked_s), variant="other", seed=seed
        )
        ratio = judge(PointData.of(run.head, [*run.records, look])).comparisons[0].ratio
        assert ratio is not None
        estimates.append(ratio.estimate)
        held += ratio.low <= truth <= ratio.high
    assert fmean(estimates) == pytest.approx(truth, rel=0.006)
    assert held >= 7


def test_slots_stay_where_most_of_them_hold_a_stall_that_the_look_calls_rare() -> None:
    """As those of collectors that come more often in restarts than later: nothing else is left."""
    run = stalling(0.03, 0.4, seed=1)
    look = stretch(Truth(every_s=2.0, stall_s=0.03, looked_s=10.0), variant="other", seed=1)
    data = PointData.of(run.head, [*run.records, look])
    assert excluded_slots(data) == []
    ratio = judge(data).comparisons[0].ratio
    assert ratio is not None
    assert ratio.low <= 1 - 0.03 / 0.4 <= ratio.high < 1.1 * ratio.low


def test_what_left_late_counts_against_the_percentile_of_the_look_that_has_stalls() -> None:
    """A send delay of milliseconds explains no percentile of a second, but may those of slots."""
    variants = {
        "baseline": SimulatedVariant(throughput_rps=500),
        "other": SimulatedVariant(throughput_rps=500),
    }
    run = simulated_run(variants, rounds=6, measure=Measure(decide_on=P99), slot_sd=0.002)
    delay = SendDelay(p50=200.0, p99=2_000.0, max=4_000.0)
    slots = {n: it for n, it in enumerate(run.records) if isinstance(it, SlotRecord)}
    for n, slot in slots.items():
        open_loop = {
            "loop": "open",
            "offered_rps": slot.load.throughput_rps,
            "send_delay_us": delay,
            "requests": slot.load.requests.replace(drained=0, unanswered=0),
        }
        run.records[n] = slot.replace(load=slot.load.model_copy(update=open_loop))
    look = stretch(
        Truth(every_s=6.0, stall_s=1.0, throughput_rps=500.0, looked_s=30.0), variant="other"
    )
    in_stalls = latencies(15_000, 900_000.0, 0.1)
    look = look.replace(load=look.load.model_copy(update={"latency_us": in_stalls}))
    (compared,) = [
        it
        for it in judge(PointData.of(run.head, [*run.records, look])).comparisons
        if it.metric == P99
    ]
    assert compared.verdict is Verdict.SLOWER, compared.why
    assert compared.worst_case is not None
    assert compared.worst_case.low > 200
