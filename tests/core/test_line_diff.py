"""Differences of texts, line by line."""

import re

from hypothesis import given
from hypothesis.strategies import lists, sampled_from

from webdyno.core.text import CUT, MOST_COMPARED, line_diff

LINES = lists(sampled_from("abc"), max_size=12)
PLACE = re.compile(r"@@ -(\d+)(?:,(\d+))? ")


@given(LINES, LINES)
def test_a_diff_makes_the_one_of_the_other(before: list[str], after: list[str]) -> None:
    common = ["same"] * 20
    one, other = [*common, *before], [*common, *after]
    made, done = list[str](), 0
    for line in line_diff(one, other, ("one", "other"), around=2)[2:]:
        if place := PLACE.match(line):
            lines = int(place[2]) if place[2] else 1
            begin = int(place[1]) - (lines > 0)
            made, done = made + one[done:begin], begin + lines
            assert begin >= len(common) - 2
        elif not line.startswith("-"):
            made.append(line[1:])
    assert made + one[done:] == other


def test_texts_that_repeat_take_no_time() -> None:
    """Every other line differs: of 64 KiB of that difflib takes half an hour."""
    before, after = (
        [line for number in range(20_000) for line in (f"{number % 101}", f"{name}{number}")]
        for name in "ab"
    )
    lines = line_diff(before, after)
    assert lines[-1] == CUT
    assert lines[3:5] == ["-a0", "+b0"]
    assert len(lines) <= 4 * MOST_COMPARED


def test_only_what_follows_the_first_difference_is_compared() -> None:
    before = [f"{number}" for number in range(5 * MOST_COMPARED)]
    after = [*before[:-1], "other"]
    assert line_diff(before, after)[2:] == ["@@ -5000 +5000 @@", "-4999", "+other"]
