"""Clients against known delays: which samples are judged, and what a table says of them."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from bench import outputs
from rig.delay_server import Punctuality
from rig.percentiles import Percentiles
from rig.process import Finished
from rig.reporters import REPORTERS
from rig.trials import Trial, add_round, goal, sound_ones, trial_of, truth_table, unsound_count
from rig.truth import PERCENTILES

TRUTH: Percentiles = dict.fromkeys(PERCENTILES, 5.0)


def trial(reported_ms: float = 5.1, too_late: int = 0, problem: str = "") -> Trial:
    percentiles = {} if problem else dict.fromkeys(PERCENTILES, reported_ms)
    kept = Punctuality(10_000, too_late, {"p50": 30, "p99": 90 + too_late, "max": 400 + too_late})
    return Trial(percentiles, 0.02, kept, problem)


RIGHT, WRONG, UNSOUND = trial(), trial(reported_ms=9), trial(reported_ms=60, too_late=64)
FAILED = trial(problem="exit code 1: refused")


def printed(trials: dict[str, list[Trial]], absent: list[str]) -> dict[str, str]:
    """Give the rows of a table by their first word, and its last line by "caption"."""
    console = Console(width=200)
    with console.capture() as capture:
        console.print(truth_table("constant 5 ms", TRUTH, trials, absent))
    lines = [" ".join(line.strip(" │").split()) for line in capture.get().splitlines()]
    return {line.partition(" ")[0]: line for line in lines if line} | {"caption": lines[-1]}


def finished(output: str, exit_code: int = 0) -> Finished:
    return Finished(output, "refused", exit_code, cpu_s=1.0, wall_s=1.0, others_s=0.1, peak_bytes=0)


def test_what_a_client_reports_or_why_not() -> None:
    wrk, kept = REPORTERS["wrk"], RIGHT.punctuality
    read = trial_of(wrk, finished(outputs.WRK), kept)
    assert (read.percentiles[99.9], read.others, read.problem) == (1.904, 0.1, "")
    assert trial_of(wrk, finished("", exit_code=1), kept).problem == "exit code 1: refused"
    assert "no percentiles" in trial_of(wrk, finished("nonsense"), kept).problem
    assert not FAILED.right(TRUTH)


@given(
    st.lists(st.booleans(), min_size=40, max_size=40),
    st.integers(min_value=1, max_value=10),
    st.integers(min_value=0, max_value=10),
)
def test_unsound_trials_are_repeated_but_not_for_ever(
    sound: list[bool], rounds: int, most_repeats: int
) -> None:
    ahead: Iterator[Trial] = iter([RIGHT if each else UNSOUND for each in sound])
    trials: list[Trial] = []
    for _ in range(rounds):
        add_round(trials, lambda: next(ahead), most_repeats)
    repeats = len(trials) - rounds
    assert repeats == min(unsound_count(trials), most_repeats)
    assert len(sound_ones(trials)) + unsound_count(trials) == len(trials)
    assert len(sound_ones(trials)) == rounds or repeats == most_repeats


def test_a_table_judges_sound_trials_only() -> None:
    rows = printed({"loadgen": [UNSOUND, RIGHT, RIGHT], "wrk": [WRONG, RIGHT, WRONG]}, ["oha"])
    shown = "5.10 (+0.10) " * len(PERCENTILES)
    assert (
        rows["loadgen"] == f"loadgen │ {shown.strip().replace(') ', ') │ ')} │ 2 of 2 │ 1 of 3 │ 2%"
    )
    assert "9.00 (+4.00) !" in rows["wrk"]
    assert "1 of 3 │ 0 of 3" in rows["wrk"]
    assert "not found on the PATH" in rows["oha"]
    assert "p99 90 µs (medians), at most 400 µs" in rows["caption"]


def test_a_table_says_what_failed_and_what_could_not_be_judged() -> None:
    rows = printed({"loadgen": [UNSOUND, UNSOUND], "wrk": [FAILED], "hey": [FAILED, RIGHT]}, [])
    assert "no sound sample │ 2 of 2" in rows["loadgen"]
    assert "0 of 1; exit code 1: refused" in rows["wrk"]
    assert "5.10 (+0.10)" in rows["hey"]
    assert "1 of 2; exit code 1: refused" in rows["hey"]
    assert "too many responses too late" in printed({"loadgen": [UNSOUND]}, [])["caption"]


@pytest.mark.parametrize(
    ("trials", "verdict"),
    [
        ([RIGHT, UNSOUND, RIGHT, RIGHT], "reached in 3 of 3 sound rounds"),
        ([RIGHT, WRONG], "missed: right in 1 of 2 sound rounds"),
        ([RIGHT, FAILED], "missed: right in 1 of 2 sound rounds"),
        ([UNSOUND], "inconclusive: no sound round"),
    ],
)
def test_the_goal_takes_all_sound_rounds(trials: list[Trial], verdict: str) -> None:
    expected = f"goal: loadgen within 2% + 1 ms of the truth at every percentile: {verdict}"
    assert goal("loadgen", trials, TRUTH) == expected
