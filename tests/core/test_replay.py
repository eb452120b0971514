"""A log's own timetable: kept as it was, and played in stretches."""

import os
import tracemalloc
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.errors import UserError
from webdyno.core.replay import Replay

GAPS_S = st.floats(0, 5_000).map(lambda gap_s: round(gap_s, 6))
EVEN = Replay([0.5 * n for n in range(20)], list(range(20)))
"""Two a second, for ten seconds."""


@st.composite
def replays(draw: st.DrawFn) -> Replay:
    gaps = [*draw(st.lists(GAPS_S, min_size=1, max_size=30)), 1.0]
    times_s = [0.0, *accumulate(gaps)]
    number = st.integers(0, 2**32 - 1)
    return Replay(times_s, draw(st.lists(number, min_size=len(times_s), max_size=len(times_s))))


@given(replays())
def test_packed_and_unpacked_it_is_the_same(replay: Replay) -> None:
    again = Replay.unpack(replay.pack())
    assert again.numbers == replay.numbers
    assert again.times_s == pytest.approx(replay.times_s, abs=1e-6 * len(replay.times_s))


@given(replays())
def test_written_and_read_it_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, replay: Replay
) -> None:
    path = tmp_path_factory.mktemp("r") / "traffic.replay"
    path.write_text("".join(replay.written()))
    again = Replay.read(path)
    assert again.numbers == replay.numbers
    assert again.times_s == pytest.approx(replay.times_s, abs=1e-5)


@given(
    replays(),
    st.floats(0, 1, exclude_max=True),
    st.floats(0.1, 20),
    st.floats(0, 2),
    st.floats(0.01, 1e3),
)
def test_a_stretch_ascends_and_goes_on_beyond_its_end(
    replay: Replay, begin: float, window_s: float, ramp_up_s: float, rate_per_s: float
) -> None:
    whole_s = len(replay.times_s) / rate_per_s
    if window_s + ramp_up_s > 20 * whole_s:
        return  # the whole log over and over again
    stretch = replay.stretch(begin, window_s, rate_per_s, ramp_up_s=ramp_up_s)
    assert len(stretch.times_s) == len(stretch.numbers)
    assert stretch.times_s == sorted(stretch.times_s)
    assert stretch.times_s[0] >= 0
    assert stretch.times_s[-1] >= ramp_up_s + window_s - 1e-5
    assert stretch.times_s[-2:-1] < [ramp_up_s + window_s + 1e-5]


def test_it_is_played_at_the_rate_that_is_asked_for() -> None:
    assert EVEN.rate_per_s == pytest.approx(2)
    stretch = EVEN.stretch(0.2, 1.0, 20)
    assert stretch.times_s == pytest.approx([0.05 * n for n in range(21)])
    assert stretch.numbers == [*range(4, 20), *range(5)]
    assert stretch.due_between(0, 1) == 20


def test_windows_are_the_same_whatever_came_before_them() -> None:
    without, after = EVEN.stretch(0.2, 1.0, 4), EVEN.stretch(0.2, 1.0, 4, ramp_up_s=0.5)
    assert after.numbers[2:] == without.numbers
    assert after.times_s[2:] == pytest.approx([0.5 + at_s for at_s in without.times_s])


def test_a_window_in_which_nothing_is_due_begins_with_the_next_request() -> None:
    rare = Replay([0.0, 100.0], [7, 8])
    stretch = rare.stretch(0.1, 1.0, rare.rate_per_s, ramp_up_s=0.5)
    assert stretch.times_s[0] == pytest.approx(0.5)
    assert stretch.numbers[0] == 8


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "fewer than two requests"),
        ("0 1\n0 2\n", "all at the same time"),
        ("0 1\n2 1\n1 1\n", "times that go back"),
        ("0 1\nx 1\n", "line 2: should be a time in seconds and the number"),
        ("0 1\n1 1 1\n", "line 2"),
        ("0 0\n1 1\n", "number below 1"),
        ("nan 1\n1 1\n", "times that go back"),
        ("0 1\ninf 1\n", "times that go back"),
    ],
)
def test_what_is_no_timetable_is_reported(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "traffic.replay"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        Replay.read(path)


@pytest.mark.parametrize("text", ["", "!", "AAAA", "eJwDAAAAAAE="])
def test_what_was_not_packed_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not what webdyno makes|fewer than two"):
        Replay.unpack(text)


@pytest.mark.timeout(30)
def test_a_pipe_is_no_timetable_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "traffic.replay")
    with pytest.raises(UserError, match="is not a regular file"):
        Replay.read(tmp_path / "traffic.replay")


def test_of_a_line_without_an_end_a_part_is_read(tmp_path: Path) -> None:
    path = tmp_path / "traffic.replay"
    with path.open("wb") as file:
        file.truncate(200_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="line 1: should be a time"):
            Replay.read(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files away")
def test_another_users_link_is_no_timetable(tmp_path: Path) -> None:
    """The line that is wrong in it would be shown."""
    (tmp_path / "key").write_text("a key")
    (link := tmp_path / "traffic.replay").symlink_to("key")
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(OSError, match="a link of user 12345's"):
        Replay.read(link)
