"""Paths as people write them."""

import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from webdyno.core.paths import WrittenPaths, count_paths, percent_encode, spell_out
from webdyno.core.request import WrittenRequest


@given(st.integers(0, 10**6), st.integers(0, 300))
def test_a_range_counts_up_from_its_first_to_its_last(first: int, more: int) -> None:
    paths = spell_out(f"/a/{{{first}..{first + more}}}.txt")
    assert paths == [f"/a/{number}.txt" for number in range(first, first + more + 1)]


@given(st.from_regex(r"/[a-z0-9.{}/?=]*", fullmatch=True).filter(lambda path: ".." not in path))
def test_a_path_without_a_range_stands_for_itself(path: str) -> None:
    assert spell_out(path) == [path]


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("/{2..1}", "should count up"),
        ("/{0..100000}", "100000 paths at most"),
        ("/{1..2}/{1..2}", "more than one range"),
    ],
)
def test_what_a_pattern_can_not_be(pattern: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        spell_out(pattern)


@given(st.text(alphabet="/aé€{}.0123%"))
def test_paths_are_counted_without_making_them(pattern: str) -> None:
    with suppress(ValueError):
        assert count_paths(pattern) == len(spell_out(pattern))


@pytest.mark.parametrize("letters", [5_000, 10**6])
def test_a_short_pattern_does_not_take_much_memory(letters: int) -> None:
    """A stranger's run may have it, and is read wherever runs are listed."""
    pattern = "/" + "é" * (letters // 2) + "{0..99999}"
    tracemalloc.start()
    for read in (
        lambda: TypeAdapter(WrittenPaths).validate_python([pattern]),
        lambda: WrittenRequest(path=pattern),
    ):
        with pytest.raises(ValidationError, match="more than 33554432 letters in all"):
            read()
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 20 * letters + 10**6
    many = ["/" + "a" * 300 + "{1..50000}", "/" + "b" * 500 + "{1..50000}"]
    with pytest.raises(ValidationError, match="more than 33554432 letters"):
        TypeAdapter(WrittenPaths).validate_python(many)


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("/é", "/%C3%A9"),
        ("/hällo.txt?q=ß", "/h%C3%A4llo.txt?q=%C3%9F"),
        ("/%C3%A9", "/%C3%A9"),
        ("/a b", "/a%20b"),
        ("/é/{1..2}ü", "/%C3%A9/1%C3%BC"),
    ],
)
def test_any_letter_can_be_asked_for(written: str, asked: str) -> None:
    assert spell_out(written)[0] == asked


@given(st.text())
def test_what_is_asked_for_is_ascii_and_stays_as_it_is(path: str) -> None:
    asked = percent_encode(path)
    assert asked.isascii()
    assert " " not in asked
    assert percent_encode(asked) == asked
