"""What an answer's time is made of, on simulated runs whose parts are known."""

import pytest

from builders import SimulatedArm, SimulatedRun, service_use, simulated_run
from judge.validity.broken import quiet_readings
from webdyno.judge import judge
from webdyno.model.readings import ServerStatus
from webdyno.model.records import Record, SlotRecord
from webdyno.model.waiting import Waiting
from webdyno.report.waiting import sentences

RATE, WORK_US, CPU_WAIT_US, WORKERS = 4_000, 200.0, 50.0, 16


def run(*, most_busy: int | None = None, told: bool = True) -> SimulatedRun:
    """64 connections; each answer waits 50 µs for a CPU."""
    made = simulated_run(
        {
            "a": SimulatedArm(rate_rps=RATE, server_cpu_us=WORK_US),
            "b": SimulatedArm(rate_rps=RATE, server_cpu_us=WORK_US),
        },
        blocks=6,
    )

    def with_probes(record: Record) -> Record:
        if not isinstance(record, SlotRecord):
            return record
        waited_s = record.load.all_of_it.completed * CPU_WAIT_US / 1e6 if told else None
        readings = quiet_readings(record).model_copy(
            update={
                "services": {
                    "php": service_use().model_copy(update={"waited_for_cpu_s": waited_s})
                },
                "front": "nginx",
                "status": {"php": ServerStatus(workers=WORKERS, most_busy=most_busy)},
            }
        )
        return record.model_copy(update={"readings": readings})

    return SimulatedRun(made.head, [with_probes(record) for record in made.records])


def found(made: SimulatedRun) -> list[Waiting]:
    return judge(made.data).waiting


def test_the_parts_are_found_and_add_up() -> None:
    first, second = found(run(most_busy=WORKERS))
    assert (first.arm, second.arm) == ("a", "b")
    whole_us = first.connections / RATE * 1e6
    assert first.whole_us.estimate == pytest.approx(whole_us, rel=0.05)
    assert first.work_us.estimate == pytest.approx(WORK_US, rel=0.05)
    assert first.cpu_us.estimate == pytest.approx(CPU_WAIT_US, rel=0.05)
    assert first.queue_us is not None
    expected_us = whole_us * (first.connections - WORKERS) / first.connections
    assert first.queue_us.estimate == pytest.approx(expected_us, rel=0.05)
    parts = (first.work_us, first.cpu_us, first.queue_us, first.rest_us)
    assert sum(it.estimate for it in parts) == pytest.approx(first.whole_us.estimate)
    said = next(sentences([first]))
    assert said.startswith("a: with 64 connections an answer takes 1")
    assert "in front of the 16 workers of php, all of them taken" in said


def test_workers_that_were_not_all_taken_have_no_queue() -> None:
    first, _ = found(run(most_busy=WORKERS - 1))
    assert first.queue_us is None
    assert "in front of" not in next(sentences([first]))


def test_what_the_kernel_does_not_tell_is_not_made_up() -> None:
    assert found(run(told=False)) == []
