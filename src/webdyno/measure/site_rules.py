"""The rules of sites: what a program has to do for its answer, checked before it is measured.

A site's pages say what a single response is (`paths` in its `site.toml`). What shows only over
several requests, or in the database, is here: a function for each rule, which raises BrokenRule in
words for people. A rule that a site names in `rules` is an entry of RULES.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from webdyno.core.load import Load
from webdyno.core.stack import Rule, Site
from webdyno.load.asking import Conversation, NoResponse
from webdyno.measure.checked_program import (
    BrokenRule,
    CheckedProgram,
    Database,
    ProgramResponse,
    ShownTable,
    database_of,
    quoted,
)
from webdyno.servers.running import RunningStack

MESSAGE = {"message": "Hello, World!"}
SIZES_BYTES = (0, 1, 65_537, 10_000_000)

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

PATH = "/fortunes"
ADDED = (0, "Additional fortune added at request time.")
HEAD = ["id", "message"]
ELEMENTS = {"html", "head", "meta", "title", "body", "table", "thead", "tbody", "tr", "th", "td"}
INSERT = "INSERT INTO fortune VALUES (9001, 'Caches show this too late & <b>unescaped</b>.')"
REMOVE = "DELETE FROM fortune WHERE id = 9001"

PAGE = 20
TIMES_AN_ITEM = 10
UNKNOWN = 999_999_999
LONGEST = "é" * 100
WRONG: tuple[tuple[str, bytes], ...] = (
    ("no JSON", b"name=x&price=5"),
    ("a JSON array", b"[]"),
    ("an empty name", b'{"name": "", "price": 5}'),
    ("a name of 101 letters", b'{"name": "' + b"x" * 101 + b'", "price": 5}'),
    ("no name", b'{"price": 5}'),
    ("a name that is a number", b'{"name": 5, "price": 5}'),
    ("no price", b'{"name": "x"}'),
    ("a negative price", b'{"name": "x", "price": -1}'),
    ("a price with a fraction", b'{"name": "x", "price": 1.5}'),
    ("a price that is text", b'{"name": "x", "price": "5"}'),
)


def db(program: CheckedProgram) -> None:
    """One random row for each request."""
    requests = f"{TIMES} times GET /db"
    with program.reading(TIMES, requests):
        rows = [_row(program.ask("/db").with_status(200)) for _ in range(TIMES)]
    _refuse_same(rows, requests)
    _compare(program.known, rows, requests)
    program.known.rows(CHANGE)
    rows = [_row(program.ask("/db").with_status(200)) for _ in range(TIMES)]
    _compare(program.known, rows, f"{requests} after all rows were changed in the database")


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
    match row:
        case {"id": number, "randomNumber": value} if len(row) == 2:
            if all(type(each) is int and 1 <= each <= ROWS for each in (number, value)):
                return number, value
            raise BrokenRule(
                f"{answer.to}: id and randomNumber are from 1 to {ROWS}: {quoted(row)}"
            )
    raise BrokenRule(f"{answer.to}: a row has the keys id and randomNumber, unlike {quoted(row)}")


def _refuse_same(rows: Iterable[tuple[int, int]], requests: str) -> None:
    if (kinds := len({number for number, _ in rows})) < FEWEST_KINDS:
        raise BrokenRule(
            f"{requests} gave {kinds} different rows only: each has a random id from 1 to {ROWS}"
        )


def _compare(
    database: Database, rows: Iterable[tuple[int, int]], requests: str, then: str = "which it reads"
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
                f"{requests} gives {min(values)} for id {number}, and the database holds "
                f"{held.get(number)}, {then}"
            )


def _held(database: Database) -> dict[int, int]:
    rows = database.rows("SELECT id, randomnumber FROM world")
    return {int(number): int(value) for number, value in rows}


def fortunes(program: CheckedProgram) -> None:
    """Show what the database holds now."""
    _check_page(program)
    program.known.rows(INSERT)
    try:
        _check_page(program)
    finally:
        program.known.rows(REMOVE)


def _check_page(program: CheckedProgram) -> None:
    rows = program.known.rows("SELECT id, message FROM fortune")
    # A message may have a | in it, which divides values.
    held = [(int(number), "|".join(message)) for number, *message in rows]
    with program.reading(1, f"GET {PATH}", one_row_each=False):
        answer = program.ask(PATH).with_status(200)
    page = ShownTable()
    page.feed(answer.said.body.decode("utf-8", "replace"))
    page.close()
    if page.begin.lower() != "doctype html":
        raise BrokenRule(f"{answer.to} should begin with <!DOCTYPE html>: {answer.begin!r}")
    if unknown := page.tags - ELEMENTS:
        raise BrokenRule(
            f"{answer.to} has the element <{min(unknown)}>, which only a message has in its text: "
            "messages have to be escaped"
        )
    if page.rows[:1] != [HEAD]:
        raise BrokenRule(f"{answer.to}: its table should begin with the row id, message")
    shown = page.rows[1:]
    right = [[str(number), text] for number, text in sorted([ADDED, *held], key=lambda row: row[1])]
    if [str(ADDED[0]), ADDED[1]] not in shown:
        raise BrokenRule(
            f"{answer.to} lacks the row {ADDED[0]}, {ADDED[1]!r}, which the program adds to those "
            "of the database for each request"
        )
    if sorted(shown) == sorted(right) and shown != right:
        place = [one == other for one, other in zip(shown, right, strict=True)].index(False)
        raise BrokenRule(
            f"{answer.to} isn't sorted by message, by code points: row {place + 1} should be "
            f"{quoted(right[place][1])}, and is {quoted(shown[place][1])}"
        )
    if shown != right:
        unlike = next((row for row in right if row not in shown), None) or shown[-1]
        raise BrokenRule(
            f"{answer.to} should show {len(right)} rows as the database holds them, and shows "
            f"{len(shown)}; {quoted(unlike[1])} is missing, or shown otherwise"
        )


def crud(program: CheckedProgram) -> None:
    """Lists, single items, and what changes them."""
    _check_lists(program)
    _check_item(program)
    number = _create_item(program)
    _check_refusals(program, number)
    _change_item(program, number)
    _delete_item(program, number)


def _check_lists(program: CheckedProgram) -> None:
    items = _held_items(program, "TRUE")
    for text, page in (("", 1), ("?page=0", 1), ("?page=-1", 1), ("?page=3", 3)):
        answer = program.ask(f"/items{text}").with_status(200)
        right = {
            "page": page,
            "pages": -(-len(items) // PAGE),
            "total": len(items),
            "items": items[(page - 1) * PAGE : page * PAGE],
        }
        _compare_json(answer, answer.json(), right)


def _check_item(program: CheckedProgram) -> None:
    path, (item,) = "/items/1", _held_items(program, "id = 1")
    with program.reading(TIMES_AN_ITEM, f"{TIMES_AN_ITEM} times GET {path}", one_row_each=False):
        for _ in range(TIMES_AN_ITEM):
            answer = program.ask(path).with_status(200)
            _compare_json(answer, answer.json(), item)
    tag = f'"{item["version"]}"'
    _demand_tag(answer, tag)
    unchanged = program.ask(path, headers={"If-None-Match": tag})
    unchanged.with_status(304, f"its If-None-Match is {tag}, the item's version")
    if unchanged.said.body:
        raise BrokenRule(f"{unchanged.to}: a response with status 304 has no body")
    other = program.ask(path, headers={"If-None-Match": '"other"'})
    other.with_status(200, "its If-None-Match names another version")
    _missing(program, f"/items/{UNKNOWN}")


def _create_item(program: CheckedProgram) -> int:
    given = {"name": LONGEST, "price": 0}
    answer = _send(program, "POST", "/items", given).with_status(201)
    item = answer.json()
    number = item.get("id")
    if type(number) is not int:
        raise BrokenRule(f"{answer.to} should give the new item with its id: {answer.begin!r}")
    _compare_json(answer, item, {"id": number, **given, "version": 1})
    place = answer.header("Location")
    if not (place or "").endswith(f"/items/{number}"):
        raise BrokenRule(f"{answer.to} should have Location: /items/{number}, and has {place}")
    _demand_held(program, answer, item)
    return number


def _check_refusals(program: CheckedProgram, number: int) -> None:
    for method, path in (("POST", "/items"), ("PUT", f"/items/{number}")):
        for what, body in WRONG:
            answer = _send(program, method, path, body).with_status(400, f"the body is {what}")
            if not isinstance(answer.json().get("error"), str):
                raise BrokenRule(f'{answer.to} with {what} should give {{"error": "…"}}')


def _change_item(program: CheckedProgram, number: int) -> None:
    path, tag = f"/items/{number}", program.ask(f"/items/{number}").header("ETag") or ""
    given = {"name": "changed", "price": 12}
    answer = _send(program, "PUT", path, given).with_status(200)
    right = {"id": number, **given, "version": 2}
    _compare_json(answer, answer.json(), right)
    _demand_held(program, answer, right)
    again = program.ask(path, headers={"If-None-Match": tag})
    again.with_status(200, "the item was changed since the version that If-None-Match names")
    _demand_tag(again, '"2"')
    program.known.rows(f"UPDATE item SET version = 7 WHERE id = {number}")  # noqa: S608 (a number)
    third = program.ask(path, headers={"If-None-Match": '"2"'})
    third.with_status(200, "the item was changed in the database, which is read for each request")
    _missing(program, f"/items/{UNKNOWN}", "PUT", given)


def _delete_item(program: CheckedProgram, number: int) -> None:
    path = f"/items/{number}"
    answer = program.ask(path, method="DELETE").with_status(204)
    if _held_items(program, f"id = {number}"):
        raise BrokenRule(f"{answer.to} leaves the item in the database")
    _missing(program, path)
    _missing(program, path, "DELETE")


def _missing(
    program: CheckedProgram, path: str, method: str = "GET", given: dict[str, Any] | None = None
) -> None:
    answer = _send(program, method, path, given) if given else program.ask(path, method=method)
    answer.with_status(404, "there is no such item")
    _compare_json(answer, answer.json(), {"error": "not found"})


def _demand_tag(answer: ProgramResponse, tag: str) -> None:
    if (given := answer.header("ETag")) != tag:
        raise BrokenRule(f"{answer.to} should have ETag: {tag}, its version, and has {given}")


def _demand_held(program: CheckedProgram, answer: ProgramResponse, item: dict[str, Any]) -> None:
    if _held_items(program, f"id = {item['id']}") != [item]:
        raise BrokenRule(
            f"{answer.to} answers {quoted(item)}, which the database doesn't hold then"
        )


def _send(
    program: CheckedProgram, method: str, path: str, given: dict[str, Any] | bytes
) -> ProgramResponse:
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    return program.ask(path, method=method, headers={"Content-Type": "application/json"}, body=body)


def _held_items(program: CheckedProgram, where: str) -> list[dict[str, Any]]:
    items = f"SELECT id, name, price, version FROM item WHERE {where} ORDER BY id"  # noqa: S608
    sql = f"SELECT row_to_json(it) FROM ({items}) it"  # noqa: S608
    return [json.loads("|".join(row)) for row in program.known.rows(sql)]


def _compare_json(answer: ProgramResponse, given: Any, right: dict[str, Any]) -> None:  # noqa: ANN401 (JSON)
    if given == right:
        return
    unlike = next((key for key in right if given.get(key) != right[key]), None)
    if unlike is None:
        raise BrokenRule(f"{answer.to} has more keys than {', '.join(right)}: {answer.begin!r}")
    raise BrokenRule(
        f"{answer.to}: {unlike} should be {quoted(right[unlike])}, and is "
        f"{quoted(given.get(unlike))}"
    )


__all__ = ["RULES", "broken_rule"]


def json_object(program: CheckedProgram) -> None:
    """The object and nothing else."""
    answer = program.ask("/json").with_status(200)
    if (given := answer.json()) != MESSAGE:
        raise BrokenRule(f"{answer.to} should give {MESSAGE}, and gives {quoted(given)}")


def upload(program: CheckedProgram) -> None:
    """Length and sum of whatever was sent."""
    for size_bytes in SIZES_BYTES:
        body = Random(size_bytes).randbytes(size_bytes)
        headers = {"Content-Type": "application/octet-stream"}
        answer = program.ask("/upload", method="POST", headers=headers, body=body)
        given = answer.with_status(200, f"{size_bytes:,} bytes were sent").json()
        right = {"bytes": size_bytes, "sha256": hashlib.sha256(body).hexdigest()}
        if given != right:
            raise BrokenRule(
                f"{answer.to} with {size_bytes:,} bytes should give {right}, and gives "
                f"{quoted(given)}"
            )


RULES: Mapping[Rule, Callable[[CheckedProgram], None]] = {
    "json": json_object,
    "db": db,
    "queries": queries,
    "updates": updates,
    "fortunes": fortunes,
    "crud": crud,
    "upload": upload,
}


def broken_rule(
    stack: RunningStack, site: Site, load: Load, client_entry: Sequence[str]
) -> str | None:
    """Return which rule of its site a running stack breaks, and how; None if it keeps them all.

    Nothing is checked where the site's database is on another host, or can't be asked.
    """
    database = database_of(stack.services(), site)
    if site.services and database is None:
        return None
    with Conversation(stack.url, load, client_entry) as conversation:
        program = CheckedProgram(conversation, database)
        for rule in site.rules:
            try:
                RULES[rule](program)
            except BrokenRule as broken:
                return str(broken)
            except NoResponse as none:
                return f"{program.last} got no response: {none}"
    return None
