"""What a league lacks, and who is ranked together next."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.question import FEWEST_IN_RACE
from webdyno.league.planning import (
    ANCHORS,
    LONGEST_WARMUP_S,
    MOST_AT_ONCE,
    Held,
    anchors_of,
    cold_of,
    groups_left,
    long_warmup_s,
    missing,
    next_group,
    statements_together,
    time_of_run,
)

NOW = datetime(2026, 3, 14, tzinfo=UTC)
MONTH = timedelta(days=30)


def held(*stacks: str, days_ago: int = 1, changed: str = "") -> Held:
    return Held(NOW - timedelta(days=days_ago), [*stacks], [*stacks], frozenset(changed.split()))


def test_what_was_never_measured_is_missing_and_so_is_what_is_old_or_changed() -> None:
    runs = [held("a", "b", changed="b"), held("c", "d", days_ago=31)]
    assert missing(["a", "b", "c", "d", "e"], runs, NOW, MONTH) == ["b", "c", "d", "e"]
    assert missing(["c"], [held("c"), held("c", days_ago=31)], NOW, MONTH) == []


def test_a_run_that_no_warm_stack_joins_with_others_is_measured_again() -> None:
    first = held(*"abcd", days_ago=2)
    apart = Held(NOW, [*"abef"], [*"abef"], cold=frozenset("ab"))
    assert missing([*"abcdef"], [apart, first], NOW, MONTH) == [*"ef"]
    by_one = Held(NOW, [*"abef"], [*"abef"], cold=frozenset("a"))
    assert missing([*"abcdef"], [by_one, first], NOW, MONTH) == []


def test_the_first_run_has_no_anchors_and_later_ones_share_two() -> None:
    able = [f"s{number}" for number in range(20)]
    first = next_group(able, [], able)
    assert first
    assert first.anchors == []
    assert len(first.new) == MOST_AT_ONCE
    runs = [held(*first.stacks)]
    second = next_group(missing(able, runs, NOW, MONTH), runs, able)
    assert second
    assert len(second.anchors) == ANCHORS
    assert set(second.anchors) <= set(first.stacks)


def test_anchors_stand_in_the_middle_and_stay_the_same() -> None:
    first = held(*"abcdefg")
    anchors = anchors_of([first], set("abcdefg"))
    assert anchors == ["c", "e"]
    assert anchors_of([held("c", "x", "e", "y"), first], set("abcdefgxy")) == ["c", "e"]


def test_who_is_to_be_measured_again_is_no_anchor() -> None:
    runs = [held(*"abcdefg", changed="c")]
    group = next_group(missing([*"abcdefg"], runs, NOW, MONTH), runs, [*"abcdefg"])
    assert group
    assert group.new == ["c"]
    assert "c" not in group.anchors


def test_who_had_not_warmed_up_is_missing_and_is_no_anchor() -> None:
    able = [*"abcdefgh"]
    runs = [Held(NOW, [*"abcdef"], [*"abcdef"], cold=frozenset("bc"))]
    assert missing(able, runs, NOW, MONTH) == [*"bcgh"]
    first = next_group([*"gh"], runs, able)
    assert first
    assert first.new == [*"gh"]
    assert not {*"bc"} & {*first.anchors}
    runs.append(held(*first.stacks))
    then = next_group(missing(able, runs, NOW, MONTH), runs, able)
    assert then
    assert then.new == [*"bc"]
    runs.append(held(*then.stacks))
    assert cold_of(runs) == set()
    assert missing(able, runs, NOW, MONTH) == []
    another = next_group(["z"], runs, [*able, "z"])
    assert another
    assert not {*"bc"} & {*another.anchors}, "what a pilot missed once it may miss again"


def test_a_race_has_three_at_least() -> None:
    group = next_group(["c"], [Held(NOW, ["a", "b"], [])], ["a", "b", "c"])
    assert group
    assert sorted(group.stacks) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("runs", "lacking", "statements"), [(0, 10, 1), (0, 12, 4), (1, 1, 4), (1, 0, 1), (2, 8, 6)]
)
def test_all_runs_of_a_task_share_the_risk(runs: int, lacking: int, statements: int) -> None:
    there = [held(f"a{number}", f"b{number}", f"c{number}") for number in range(runs)]
    wanting = [f"s{number}" for number in range(lacking)]
    assert statements_together(there, wanting) == statements


@pytest.mark.parametrize(
    ("left_s", "runs_left", "time_s"),
    [
        pytest.param(7200, 60, 200, id="breadth before precision"),
        pytest.param(7200, 24, 300, id="its share"),
        pytest.param(7200, 6, 400, id="no more than is of use"),
        pytest.param(120, 6, 120, id="what is left"),
        pytest.param(120, 0, 120, id="one that goes on"),
    ],
)
def test_a_run_has_its_share_of_the_time(left_s: float, runs_left: int, time_s: float) -> None:
    assert time_of_run(100, left_s, runs_left) == time_s


@pytest.mark.parametrize(
    ("spare_s", "warmup_s"),
    [
        pytest.param(100, None, id="pilots know better"),
        pytest.param(1600, 3, id="most of what is left"),
        pytest.param(30_000, LONGEST_WARMUP_S, id="no longer than is of use"),
    ],
)
def test_what_was_cold_gets_a_long_warm_up(spare_s: float, warmup_s: float | None) -> None:
    assert long_warmup_s(spare_s, 16, 10) == warmup_s


@given(stacks=st.integers(min_value=3, max_value=70), most=st.integers(min_value=4, max_value=12))
def test_everybody_is_measured_once_and_joined_with_everybody(stacks: int, most: int) -> None:
    able = [f"s{number}" for number in range(stacks)]
    runs: list[Held] = []
    expected = groups_left(able, [], most)
    while group := next_group(missing(able, runs, NOW, MONTH), runs, able, most):
        assert FEWEST_IN_RACE <= len(group.stacks) <= most
        assert len(set(group.stacks)) == len(group.stacks)
        if runs:
            assert any(set(group.anchors) <= set(run.stacks) for run in runs)
        runs.insert(0, held(*group.stacks))
    assert len(runs) <= expected + 1
    times = Counter(stack for run in runs for stack in run.stacks)
    assert set(times) == set(able)
    shared = {stack for stack in times if times[stack] == len(runs)}
    assert len(runs) == 1 or shared, "one step leads from each run to any other"
