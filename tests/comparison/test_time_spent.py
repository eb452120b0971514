"""What time goes into, and where waiting makes the difference: not where CPU time goes alone."""

import re

import pytest

from builders import SimulatedRun, SimulatedVariant, service_use, simulated_run
from validity.broken import quiet_readings
from webdyno.comparison import judge
from webdyno.comparison.time_spent import explain, explanation_sentence, speed_by_cpu_alone
from webdyno.comparison.waiting import what_waits, where_time_goes
from webdyno.core.base import Interval
from webdyno.core.findings import CpuPart, Explanation, Waiting
from webdyno.core.judgement import Judgement
from webdyno.core.readings import BlockedBy, ServerStatus
from webdyno.core.records import Record, ServerUse, SlotRecord

VARIANTS = {
    "nginx": SimulatedVariant(server_cpu_us=10.0),
    "apache": SimulatedVariant(server_cpu_us=40.0),
}


def with_interrupts(run: SimulatedRun, variant: str, share: float) -> SimulatedRun:
    """Give interrupts a share of what a variant's servers used."""

    def use(slot: SlotRecord) -> ServerUse:
        return slot.servers.model_copy(update={"interrupts_s": share * slot.servers.cpu_s})

    records = [
        it.model_copy(update={"servers": use(it)})
        if isinstance(it, SlotRecord) and it.variant == variant
        else it
        for it in run.records
    ]
    return SimulatedRun(run.head, records)


def explained(run: SimulatedRun) -> Explanation:
    found = explain(run.data, "apache", "nginx")
    assert found
    return found


def costs(b_us: float, more_us: float, half_width_us: float = 0.1) -> Explanation:
    """A request of which a takes so much more CPU time than b."""
    more = Interval(low=more_us - half_width_us, estimate=more_us, high=more_us + half_width_us)
    whole = CpuPart(what="all of it", a_us=b_us + more_us, b_us=b_us, more_us=more)
    return Explanation(a="a", b="b", whole=whole, parts=[])


def ratio(estimate: float, half_width: float = 0.02) -> Interval:
    return Interval(low=estimate - half_width, estimate=estimate, high=estimate + half_width)


@pytest.mark.parametrize(
    ("explanation", "found", "alone"),
    [
        (costs(10, 2), ratio(0.52), 1 / 1.2),
        (costs(10, -2), ratio(2.5), 1 / 0.8),
        (costs(10, 9), ratio(0.52), None),  # that is all of it
        (costs(10, 20), ratio(0.52), None),  # and that more than all of it
        (costs(10, -2), ratio(0.52), None),  # which is said as a "But"
        (costs(10, 2, half_width_us=8), ratio(0.52), None),  # that may be all of it
        (costs(10, 2), ratio(0.7, half_width=0.2), None),
        (costs(0, 2), ratio(0.52), None),
        (costs(10, 2), Interval(low=0, estimate=0, high=1), None),
    ],
)
def test_cpu_time_that_is_only_a_part_of_a_difference(
    explanation: Explanation, found: Interval, alone: float | None
) -> None:
    """+2.33 µs per request was the cause of 48% less throughput."""
    assert speed_by_cpu_alone(explanation, found) == (alone and pytest.approx(alone))


def test_parts_add_up_to_the_whole() -> None:
    run = with_interrupts(simulated_run(VARIANTS), "apache", 0.1)
    found = explained(run)
    assert [it.what for it in found.parts] == ["in the programs", "in the kernel", "in interrupts"]
    for value in ("a_us", "b_us"):
        parts = sum(getattr(it, value) for it in found.parts)
        assert parts == pytest.approx(getattr(found.whole, value))
    difference = sum(it.more_us.estimate for it in found.parts)
    assert difference == pytest.approx(found.whole.more_us.estimate)


def test_each_part_is_found() -> None:
    found = explained(simulated_run(VARIANTS))
    programs, kernel = found.parts
    assert programs.more_us.low < 10 < programs.more_us.high
    assert kernel.more_us.low < 20 < kernel.more_us.high
    said = explanation_sentence(found)
    assert said
    assert said.startswith("A request costs apache ")
    assert " in the kernel, " in said  # the larger part
    assert said.endswith(" in the programs.")


def test_equals_are_not_explained() -> None:
    alike = {"nginx": SimulatedVariant(), "apache": SimulatedVariant()}
    sure = [explanation_sentence(explained(simulated_run(alike, seed=seed))) for seed in range(20)]
    assert sum(it is not None for it in sure) <= 4


def test_one_round_explains_nothing() -> None:
    run = simulated_run(VARIANTS, rounds=1)
    assert explain(run.data, "apache", "nginx") is None


def test_a_judgement_says_what_differences_are_made_of() -> None:
    run = simulated_run(VARIANTS)
    (found,) = judge(run.data).explanations
    assert (found.a, found.b) == ("apache", "nginx")


THROUGHPUT, WORK_US, CPU_WAIT_US, WORKERS = 4_000, 200.0, 50.0, 16


def run(
    *,
    most_busy: int | None = None,
    reported: bool = True,
    blocked: dict[BlockedBy, float] | None = None,
) -> SimulatedRun:
    """64 connections; each response waits 50 µs for a CPU."""
    made = simulated_run(
        {
            "a": SimulatedVariant(throughput_rps=THROUGHPUT, server_cpu_us=WORK_US),
            "b": SimulatedVariant(throughput_rps=THROUGHPUT, server_cpu_us=WORK_US),
        },
        rounds=6,
    )

    def with_probes(record: Record) -> Record:
        if not isinstance(record, SlotRecord):
            return record
        waited_s = record.load.all_of_it.completed * CPU_WAIT_US / 1e6 if reported else None
        readings = quiet_readings(record).model_copy(
            update={
                "services": {
                    "php": service_use().model_copy(update={"waited_for_cpu_s": waited_s})
                },
                "front": "nginx",
                "status": {"php": ServerStatus(workers=WORKERS, most_busy=most_busy)},
                "blocked": blocked,
            }
        )
        return record.model_copy(update={"readings": readings})

    return SimulatedRun(made.head, [with_probes(record) for record in made.records])


def waited(made: SimulatedRun) -> list[Waiting]:
    return judge(made.data).waiting


def test_the_parts_are_found_and_add_up() -> None:
    first, second = waited(run(most_busy=WORKERS))
    assert (first.variant, second.variant) == ("a", "b")
    whole_us = first.connections / THROUGHPUT * 1e6
    assert first.whole_us.estimate == pytest.approx(whole_us, rel=0.05)
    assert first.work_us.estimate == pytest.approx(WORK_US, rel=0.05)
    assert first.cpu_us.estimate == pytest.approx(CPU_WAIT_US, rel=0.05)
    assert first.queue_us is not None
    expected_us = whole_us * (first.connections - WORKERS) / first.connections
    assert first.queue_us.estimate == pytest.approx(expected_us, rel=0.05)
    parts = (first.work_us, first.cpu_us, first.queue_us, first.rest_us)
    assert sum(it.estimate for it in parts) == pytest.approx(first.whole_us.estimate)
    said = next(where_time_goes([first]))
    assert said.startswith("a: with 64 connections a response takes 1")
    assert "in front of the 16 workers of php, all of them taken" in said


def test_what_threads_are_blocked_by_is_reported_apart() -> None:
    """40 of 64 requests wait for a lock, 2 for a backend: of a thread in 1,000 nothing is said."""
    first, _ = waited(run(blocked={"locks": 40.0, "backends": 2.0, "disks": 0.05}))
    assert first.blocked_us["locks"].estimate == pytest.approx(40 / THROUGHPUT * 1e6, rel=0.05)
    assert first.blocked_us["backends"].estimate == pytest.approx(2 / THROUGHPUT * 1e6, rel=0.05)
    parts = (first.work_us, first.cpu_us, *first.blocked_us.values(), first.rest_us)
    assert sum(it.estimate for it in parts) == pytest.approx(first.whole_us.estimate)
    said = next(where_time_goes([first]))
    assert re.search(r"ms of waiting for locks, \d+ µs of waiting for backends, and ", said), said
    assert "disks" not in said


def test_threads_that_wait_for_each_other_take_no_more_than_there_is() -> None:
    first, _ = waited(run(blocked={"locks": 60.0, "backends": 60.0}))
    assert first.rest_us.estimate == pytest.approx(0, abs=1e-6)


def test_workers_that_were_not_all_taken_have_no_queue() -> None:
    first, _ = waited(run(most_busy=WORKERS - 1))
    assert first.queue_us is None
    assert "in front of" not in next(where_time_goes([first]))


def test_what_the_kernel_does_not_report_is_not_made_up() -> None:
    assert waited(run(reported=False)) == []


def us(value: float) -> Interval:
    return Interval(low=value, estimate=value, high=value)


def variant(name: str, whole_us: float, work_us: float, connections: int = 1) -> Waiting:
    return Waiting(
        variant=name,
        connections=connections,
        whole_us=us(whole_us),
        work_us=us(work_us),
        cpu_us=us(0.007),
        queue_us=None,
        rest_us=us(whole_us - work_us),
    )


@pytest.fixture(scope="module")
def faster() -> Judgement:
    """Twice as fast, by far enough."""
    variants = {
        "one": SimulatedVariant(throughput_rps=20_000),
        "two": SimulatedVariant(throughput_rps=10_000),
    }
    run = simulated_run(variants, rounds=6)
    return judge(run.data)


def said(judged: Judgement, *found: Waiting) -> str:
    return " ".join(what_waits(judged.model_copy(update={"waiting": list(found)})))


def test_a_server_that_waits_for_acknowledgements_is_known_by_its_40_ms(faster: Judgement) -> None:
    reported = said(faster, variant("one", 400.0, 60.0), variant("two", 44_000.0, 100.0))
    assert reported.startswith("two waits: of the 44.0 ms that its response takes, 100 µs are work")
    assert "TCP_NODELAY" in reported


def test_another_wait_is_only_reported(faster: Judgement) -> None:
    reported = said(faster, variant("one", 400.0, 60.0), variant("two", 5_400.0, 100.0))
    assert "two waits" in reported
    assert "TCP_NODELAY" not in reported


@pytest.mark.parametrize(
    "two",
    [variant("two", 44_000.0, 30_000.0), variant("two", 44_000.0, 650.0, connections=64)],
)
def test_work_and_queues_for_busy_cpus_are_not_waiting(faster: Judgement, two: Waiting) -> None:
    assert said(faster, variant("one", 400.0, 60.0), two) == ""


def test_no_time_is_reported_that_no_clock_can_report() -> None:
    (reported,) = where_time_goes([variant("one", 400.0, 60.0)])
    assert "less than 0.1 µs of waiting for a CPU" in reported
