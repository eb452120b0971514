"""Where the difference is waiting, the report says so, and not where the CPU time goes alone."""

import pytest

from builders import SimulatedArm, simulated_run
from webdyno.judge.judgement import judge
from webdyno.model.interval import Interval
from webdyno.model.judgement import Judgement
from webdyno.model.waiting import Waiting
from webdyno.report.waiting import sentences, what_waits


def us(value: float) -> Interval:
    return Interval(low=value, estimate=value, high=value)


def arm(name: str, whole_us: float, work_us: float, connections: int = 1) -> Waiting:
    return Waiting(
        arm=name,
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
    arms = {"one": SimulatedArm(rate_rps=20_000), "two": SimulatedArm(rate_rps=10_000)}
    run = simulated_run(arms, blocks=6)
    return judge(run.data)


def said(judged: Judgement, *found: Waiting) -> str:
    return " ".join(what_waits(judged.model_copy(update={"waiting": list(found)})))


def test_a_server_that_waits_for_acknowledgements_is_known_by_its_40_ms(faster: Judgement) -> None:
    told = said(faster, arm("one", 400.0, 60.0), arm("two", 44_000.0, 100.0))
    assert told.startswith("two waits: of the 44.0 ms that its answer takes, 100 µs are work")
    assert "TCP_NODELAY" in told


def test_another_wait_is_only_told(faster: Judgement) -> None:
    told = said(faster, arm("one", 400.0, 60.0), arm("two", 5_400.0, 100.0))
    assert "two waits" in told
    assert "TCP_NODELAY" not in told


@pytest.mark.parametrize(
    "two",
    [arm("two", 44_000.0, 30_000.0), arm("two", 44_000.0, 650.0, connections=64)],
)
def test_work_and_queues_for_busy_cpus_are_not_waiting(faster: Judgement, two: Waiting) -> None:
    assert said(faster, arm("one", 400.0, 60.0), two) == ""


def test_no_time_is_told_that_no_clock_can_tell() -> None:
    (told,) = sentences([arm("one", 400.0, 60.0)])
    assert "less than 0.1 µs of waiting for a CPU" in told
