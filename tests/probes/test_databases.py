"""What databases print of themselves, and what was done between two readings of it."""

import json

import pytest

from webdyno.probes.status import MOST_STATEMENTS, DatabaseCounts, read, used_between

JOIN = "SELECT title\n  FROM book"


def counted(*statements: tuple[str, int, int | None, float | None], **tables: int) -> str:
    return f"{json.dumps({'statements': statements})}\n\n{json.dumps({'tables': tables})}\n"


def test_what_was_done_between_two_readings() -> None:
    then = read(counted((JOIN, 5, 50, 0.5), ("DELETE FROM note", 2, 9, 0.1), note=8192, book=100))
    more = ((JOIN, 25, 250, 2.5), ("DELETE FROM note", 2, 9, 0.1), ("INSERT INTO note", 3, 3, 0.3))
    used = used_between(then, read(counted(*more, note=16384, book=100)))
    assert used.calls == 23
    assert used.time_s == pytest.approx(2.3)
    assert used.rows_written == 3
    assert [(it.text, it.calls) for it in used.statements] == [
        ("SELECT title FROM book", 20),
        ("INSERT INTO note", 3),
    ]
    assert (used.bytes_before, used.bytes_after, used.grown) == (8292, 16484, {"note": 8192})


def test_a_database_that_only_counts_shows_no_times_and_no_rows() -> None:
    used = used_between(
        read(counted(("SELECT", 5, None, None))), read(counted(("SELECT", 9, None, None)))
    )
    assert (used.calls, used.time_s, used.rows_written) == (4, None, None)


def test_counts_that_began_again_are_those_since() -> None:
    used = used_between(read(counted((JOIN, 500, 1, 9.0))), read(counted((JOIN, 7, 2, 0.5))))
    assert (used.calls, used.time_s) == (7, 0.5)


def test_of_very_many_statements_the_frequent_and_the_slow_are_kept() -> None:
    many = [(f"SELECT {it}", 1 + it, 0, 1 / (1 + it)) for it in range(100)]
    used = used_between(DatabaseCounts(), read(counted(*many)))
    assert used.calls == sum(range(1, 101))
    assert [it.text for it in used.statements[:2]] == ["SELECT 99", "SELECT 98"]
    assert used.statements[MOST_STATEMENTS].text == "SELECT 0"


@pytest.mark.parametrize("said", ["ERROR", "[1]", '{"tables": 5}', '{"statements": [["x"]]}', "7"])
def test_what_is_something_else_is_refused(said: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        read(said)
