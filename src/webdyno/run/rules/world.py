"""Rules of `db`, `queries` and `updates`: rows of the table `world`, each read by its key."""

from collections.abc import Iterable
from typing import Any

from webdyno.run.rules.program import BrokenRule, CheckedProgram, Database, ProgramResponse

ROWS = 10_000
TIMES = 20
FEWEST_KINDS = 10
"""Different rows among so many random ones: fewer don't happen by chance."""
NUMBERS = (
    ("", 1),
    ("?queries=", 1),
    ("?queries=none", 1),
    ("?queries=0", 1),
    ("?queries=-3", 1),
    ("?queries=2", 2),
    ("?queries=500", 500),
    ("?queries=501", 500),
    ("?queries=1000000", 500),
)
"""What is asked for, and how many rows that is."""
CLAMPED = "a number that is missing, no number or below 1 is 1, one above 500 is 500"
CHANGE = "UPDATE world SET randomnumber = randomnumber % 10000 + 1"


def db(program: CheckedProgram) -> None:
    """One random row for each request."""
    told = f"{TIMES} times GET /db"
    with program.reading(TIMES, told):
        rows = [_row(program.ask("/db").with_status(200)) for _ in range(TIMES)]
    _refuse_same(rows, told)
    _compare(program.known, rows, told)
    program.known.rows(CHANGE)
    rows = [_row(program.ask("/db").with_status(200)) for _ in range(TIMES)]
    _compare(program.known, rows, f"{told} after all rows were changed in the database")


def queries(program: CheckedProgram) -> None:
    """As many random rows as are requested, each by a statement of its own."""
    for text, count in NUMBERS:
        path = f"/queries{text}"
        with program.reading(count, f"GET {path}"):
            rows = _rows(program.ask(path).with_status(200), count)
        _compare(program.known, rows, f"GET {path}")
    _refuse_same(_rows(program.ask(f"/queries?queries={TIMES}"), TIMES), f"{TIMES} rows")


def updates(program: CheckedProgram) -> None:
    """As many random rows as are requested, read one by one and written back changed."""
    for text, count in NUMBERS:
        path, before = f"/updates{text}", _held(program.known)
        with program.reading(count, f"GET {path}", one_row_each=False):
            rows = _rows(program.ask(path).with_status(200), count)
        _compare(program.known, rows, f"GET {path}", "which is what it should have written")
        if count >= TIMES and all(before[number] == value for number, value in rows):
            raise BrokenRule(f"GET {path} writes the numbers that were there; new ones are right")
    _refuse_same(_rows(program.ask(f"/updates?queries={TIMES}"), TIMES), f"{TIMES} rows")


def _row(answer: ProgramResponse) -> tuple[int, int]:
    return _pair(answer, answer.json())


def _rows(answer: ProgramResponse, count: int) -> list[tuple[int, int]]:
    """Read an array of rows; raise BrokenRule where they aren't as many as they should be."""
    given = answer.json(list)
    if len(given) != count:
        raise BrokenRule(f"{answer.to} gives {len(given)} rows, {count} are right: {CLAMPED}")
    return [_pair(answer, key) for key in given]


def _pair(answer: ProgramResponse, row: Any) -> tuple[int, int]:  # noqa: ANN401 (JSON)
    keys = {"id", "randomNumber"}
    if not isinstance(row, dict) or row.keys() != keys:
        raise BrokenRule(f"{answer.to}: a row has the keys id and randomNumber, unlike {row!r:.80}")
    if not all(type(row[key]) is int and 1 <= row[key] <= ROWS for key in keys):
        raise BrokenRule(f"{answer.to}: id and randomNumber are from 1 to {ROWS}: {row!r:.80}")
    return row["id"], row["randomNumber"]


def _refuse_same(rows: Iterable[tuple[int, int]], told: str) -> None:
    if (kinds := len({number for number, _ in rows})) < FEWEST_KINDS:
        raise BrokenRule(
            f"{told} gave {kinds} different rows only: each has a random id from 1 to {ROWS}"
        )


def _compare(
    database: Database, rows: Iterable[tuple[int, int]], told: str, then: str = "which it reads"
) -> None:
    """Raise BrokenRule where rows aren't what the database holds.

    A row that was written twice may hold either number.
    """
    held, given = _held(database), dict[int, set[int]]()
    for number, value in rows:
        given.setdefault(number, set()).add(value)
    for number, values in given.items():
        if held.get(number) not in values:
            raise BrokenRule(
                f"{told} gives {min(values)} for id {number}, and the database holds "
                f"{held.get(number)}, {then}"
            )


def _held(database: Database) -> dict[int, int]:
    rows = database.rows("SELECT id, randomnumber FROM world")
    return {int(number): int(value) for number, value in rows}
