"""A long look by the part: its figures, its slopes, and an end as soon as these are known."""

from collections.abc import Iterator
from itertools import accumulate

import numpy as np
import pytest

from builders import run_head
from judge.stretches import Truth, stretch
from webdyno.judge.long_look import look_at
from webdyno.judge.look_course import FEWEST_PARTS, course_of, slopes_of
from webdyno.judge.look_length import why_over
from webdyno.model.experiment import Experiment
from webdyno.model.measure import Measure
from webdyno.model.records import LongLookRecord

PART_S, PARTS = 4.0, 20
LOOK_S = PART_S * PARTS
BYTES = 50e6


def _soak() -> Experiment:
    measure = Measure(seed=1, soak_s=LOOK_S)
    return run_head({"nginx": "nginx", "apache": "apache-event"}, measure=measure).experiment


def _parts(
    seed: int,
    *,
    part_noise: float = 0.002,
    growth: float = 0.0,
    decline: float = 0.0,
    every_s: float | None = None,
    stall_s: float = 0.0,
) -> list[LongLookRecord]:
    """Draw a look: `growth` of memory and `decline` of throughput are shares in the whole of it."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(PARTS):
        level = (1 - decline * number / PARTS) * np.exp(rng.normal(0, part_noise))
        drawn = stretch(
            Truth(
                looked_s=PART_S,
                rate_rps=20_000 * level,
                pages=50_000.0,
                leak_bytes_per_s=BYTES * growth / LOOK_S,
                every_s=every_s,
                stall_s=stall_s,
            ),
            seed=seed * PARTS + number,
        )
        grown = round(BYTES * growth * number / PARTS)
        samples = [
            it.model_copy(update={"memory_bytes": it.memory_bytes and it.memory_bytes + grown})
            for it in drawn.samples
        ]
        update = {"part": number, "samples": samples, "ended_by": None}
        made.append(drawn.model_copy(update=update))
    return made


def _measured(parts: list[LongLookRecord]) -> list[LongLookRecord]:
    """Give the parts that are measured until the look is over."""
    experiment = _soak()
    prefixes: Iterator[list[LongLookRecord]] = accumulate([it] for it in parts)
    return next(it for it in prefixes if why_over(it, experiment))


def test_a_part_tells_its_figures_with_intervals() -> None:
    parts = _parts(1)[:3]
    course = look_at(*parts).parts
    assert [it.at_s for it in course] == [0, PART_S, 2 * PART_S]
    for part in course:
        assert part.p50_us is not None
        assert part.p99_us is not None
        assert part.server_cpu_us is not None
        assert part.memory is not None
        assert part.rate_rps.low < 20_000 * 1.01
        assert part.rate_rps.high > 20_000 * 0.99
        assert part.p50_us.low <= part.p50_us.estimate <= part.p50_us.high < part.p99_us.low
        assert part.memory.least <= part.memory.median <= part.memory.most


def test_stalls_are_told_in_the_parts_that_they_begin_in() -> None:
    parts = _parts(1, every_s=2.0, stall_s=0.3)[:2]
    course = look_at(*parts).parts
    assert all(part.stalls in {1, 2, 3} for part in course)
    assert sum(part.stalled_s for part in course) == pytest.approx(1.2, abs=0.4)


def test_the_interval_of_a_slope_holds_the_truth() -> None:
    held, runs = 0, 40
    hours = LOOK_S / 3600
    for seed in range(runs):
        slopes = {it.metric: it for it in slopes_of(course_of(_parts(seed, decline=0.02), []))}
        slope = slopes["rate_rps"].per_hour
        held += slope.low * hours <= -0.02 / 0.99 <= slope.high * hours
    assert held >= 0.88 * runs


def test_a_steady_look_ends_early_and_accuses_no_more_often_than_a_whole_one() -> None:
    early = accused = 0
    runs = 40
    for seed in range(runs):
        parts = _measured(_parts(seed))
        early += len(parts) < PARTS
        look = look_at(*parts)
        accused += bool(look.stalls or look.drifts or look.growth)
    assert early >= 0.9 * runs
    assert accused <= 0.02 * runs + 1


@pytest.mark.parametrize("trouble", [{"growth": 0.1}, {"decline": 0.1}])
def test_what_changes_is_looked_at_for_all_of_its_time(trouble: dict[str, float]) -> None:
    whole = sum(len(_measured(_parts(seed, **trouble))) == PARTS for seed in range(10))
    assert whole == 10


def test_a_stall_keeps_a_look_going() -> None:
    parts = _parts(1)
    parts[0] = stretch(Truth(looked_s=PART_S, every_s=3.0, stall_s=0.5), seed=2).model_copy(
        update={"ended_by": None}
    )
    assert len(_measured(parts)) == PARTS


def test_no_look_ends_before_there_are_parts_enough() -> None:
    assert len(_measured(_parts(1, part_noise=0.0001))) >= FEWEST_PARTS
