"""A long look by the part: its figures, its slopes, and an end as soon as these are known."""

import pytest

from evidence.stretches import Truth, stretch
from simulations.soaks import LOOK_S, PART_S, PARTS, is_accused, soak, until_over
from webdyno.evidence.long_look import look_at
from webdyno.evidence.look_course import FEWEST_PARTS, course_of, slopes_of


def test_a_part_shows_its_figures_with_intervals() -> None:
    parts = soak(1)[:3]
    course = look_at(*parts).parts
    assert [it.at_s for it in course] == [0, PART_S, 2 * PART_S]
    for part in course:
        assert part.p50_us is not None
        assert part.p99_us is not None
        assert part.server_cpu_us is not None
        assert part.memory is not None
        assert part.throughput_rps.low < 20_000 * 1.01
        assert part.throughput_rps.high > 20_000 * 0.99
        assert part.p50_us.low <= part.p50_us.estimate <= part.p50_us.high < part.p99_us.low
        assert part.memory.least <= part.memory.median <= part.memory.most


def test_a_part_in_which_next_to_nothing_was_measured_has_no_figures() -> None:
    first, second, _ = soak(1)[:3]
    torn = second.model_copy(update={"responses": [], "failed": [], "samples": []})
    assert [it.at_s for it in look_at(first, torn).parts] == [0]


def test_stalls_are_reported_in_the_parts_that_they_begin_in() -> None:
    parts = soak(1, every_s=2.0, stall_s=0.3)[:2]
    course = look_at(*parts).parts
    assert all(part.stalls in {1, 2, 3} for part in course)
    assert sum(part.stalled_s for part in course) == pytest.approx(1.2, abs=0.4)


@pytest.mark.long
def test_the_interval_of_a_slope_holds_the_truth() -> None:
    held, runs = 0, 40
    hours = LOOK_S / 3600
    for seed in range(runs):
        slopes = {it.metric: it for it in slopes_of(course_of(soak(seed, decline=0.02), []))}
        slope = slopes["throughput_rps"].per_hour
        held += slope.low * hours <= -0.02 / 0.99 <= slope.high * hours
    assert held >= 0.88 * runs


@pytest.mark.long
def test_a_steady_look_ends_early_and_accuses_no_more_often_than_a_whole_one() -> None:
    runs = 40
    looks = [until_over(soak(seed)) for seed in range(runs)]
    assert sum(len(parts) < PARTS for parts in looks) >= 0.9 * runs
    assert sum(map(is_accused, looks)) <= 0.02 * runs + 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", [{"growth": 0.1}, {"decline": 0.1}])
def test_what_changes_is_looked_at_for_all_of_its_time(trouble: dict[str, float]) -> None:
    whole = sum(len(until_over(soak(seed, **trouble))) == PARTS for seed in range(10))
    assert whole == 10


def test_a_stall_keeps_a_look_going() -> None:
    parts = soak(1)
    parts[0] = stretch(Truth(looked_s=PART_S, every_s=3.0, stall_s=0.5), seed=2).model_copy(
        update={"ended_by": None}
    )
    assert len(until_over(parts)) == PARTS


def test_no_look_ends_before_there_are_parts_enough() -> None:
    assert len(until_over(soak(1, part_noise=0.0001))) >= FEWEST_PARTS
