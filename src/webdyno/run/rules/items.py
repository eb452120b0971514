"""The rule of `crud`: items of a database by REST, with pages, ETags, checks and changes."""

import json
from typing import Any

from webdyno.run.rules.program import BrokenRule, CheckedProgram, ProgramResponse

PAGE = 20
TIMES = 10
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


def crud(program: CheckedProgram) -> None:
    """Lists, single items, and what changes them."""
    _lists(program)
    _single(program)
    number = _created(program)
    _refusals(program, number)
    _changed(program, number)
    _deleted(program, number)


def _lists(program: CheckedProgram) -> None:
    items = _held(program, "TRUE")
    for text, page in (("", 1), ("?page=0", 1), ("?page=-1", 1), ("?page=3", 3)):
        answer = program.ask(f"/items{text}").with_status(200)
        right = {
            "page": page,
            "pages": -(-len(items) // PAGE),
            "total": len(items),
            "items": items[(page - 1) * PAGE : page * PAGE],
        }
        _compare(answer, answer.json(), right)


def _single(program: CheckedProgram) -> None:
    path, (item,) = "/items/1", _held(program, "id = 1")
    with program.reading(TIMES, f"{TIMES} times GET {path}", one_row_each=False):
        for _ in range(TIMES):
            answer = program.ask(path).with_status(200)
            _compare(answer, answer.json(), item)
    tag = f'"{item["version"]}"'
    _demand_tag(answer, tag)
    _not_modified(program, path, tag)
    other = program.ask(path, headers={"If-None-Match": '"other"'})
    other.with_status(200, "its If-None-Match names another version")
    _missing(program, f"/items/{UNKNOWN}")


def _created(program: CheckedProgram) -> int:
    given = {"name": LONGEST, "price": 0}
    answer = _send(program, "POST", "/items", given).with_status(201)
    item = answer.json()
    number = item.get("id")
    if type(number) is not int:
        raise BrokenRule(f"{answer.to} should give the new item with its id: {answer.begin!r}")
    _compare(answer, item, {"id": number, **given, "version": 1})
    place = answer.header("Location")
    if not (place or "").endswith(f"/items/{number}"):
        raise BrokenRule(f"{answer.to} should have Location: /items/{number}, and has {place}")
    _demand_held(program, answer, item)
    return number


def _refusals(program: CheckedProgram, number: int) -> None:
    for method, path in (("POST", "/items"), ("PUT", f"/items/{number}")):
        for what, body in WRONG:
            answer = _send(program, method, path, body).with_status(400, f"the body is {what}")
            if not isinstance(answer.json().get("error"), str):
                raise BrokenRule(f'{answer.to} with {what} should give {{"error": "…"}}')


def _changed(program: CheckedProgram, number: int) -> None:
    path, tag = f"/items/{number}", program.ask(f"/items/{number}").header("ETag") or ""
    given = {"name": "changed", "price": 12}
    answer = _send(program, "PUT", path, given).with_status(200)
    right = {"id": number, **given, "version": 2}
    _compare(answer, answer.json(), right)
    _demand_held(program, answer, right)
    again = program.ask(path, headers={"If-None-Match": tag})
    again.with_status(200, "the item was changed since the version that If-None-Match names")
    _demand_tag(again, '"2"')
    program.known.rows(f"UPDATE item SET version = 7 WHERE id = {number}")  # noqa: S608 (a number)
    third = program.ask(path, headers={"If-None-Match": '"2"'})
    third.with_status(200, "the item was changed in the database, which is read for each request")
    _missing(program, f"/items/{UNKNOWN}", "PUT", given)


def _deleted(program: CheckedProgram, number: int) -> None:
    path = f"/items/{number}"
    answer = program.ask(path, method="DELETE").with_status(204)
    if _held(program, f"id = {number}"):
        raise BrokenRule(f"{answer.to} leaves the item in the database")
    _missing(program, path)
    _missing(program, path, "DELETE")


def _not_modified(program: CheckedProgram, path: str, tag: str) -> None:
    answer = program.ask(path, headers={"If-None-Match": tag})
    answer.with_status(304, f"its If-None-Match is {tag}, the item's version")
    if answer.said.body:
        raise BrokenRule(f"{answer.to}: a response with status 304 has no body")


def _missing(
    program: CheckedProgram, path: str, method: str = "GET", given: dict[str, Any] | None = None
) -> None:
    answer = _send(program, method, path, given) if given else program.ask(path, method=method)
    answer.with_status(404, "there is no such item")
    _compare(answer, answer.json(), {"error": "not found"})


def _demand_tag(answer: ProgramResponse, tag: str) -> None:
    if (given := answer.header("ETag")) != tag:
        raise BrokenRule(f"{answer.to} should have ETag: {tag}, its version, and has {given}")


def _demand_held(program: CheckedProgram, answer: ProgramResponse, item: dict[str, Any]) -> None:
    if _held(program, f"id = {item['id']}") != [item]:
        raise BrokenRule(f"{answer.to} answers {item!r:.100}, which the database doesn't hold then")


def _send(
    program: CheckedProgram, method: str, path: str, given: dict[str, Any] | bytes
) -> ProgramResponse:
    body = given if isinstance(given, bytes) else json.dumps(given).encode()
    return program.ask(path, method=method, headers={"Content-Type": "application/json"}, body=body)


def _held(program: CheckedProgram, where: str) -> list[dict[str, Any]]:
    """Give items that the database holds."""
    items = f"SELECT id, name, price, version FROM item WHERE {where} ORDER BY id"  # noqa: S608
    sql = f"SELECT row_to_json(it) FROM ({items}) it"  # noqa: S608
    return [json.loads("|".join(row)) for row in program.known.rows(sql)]


def _compare(answer: ProgramResponse, given: Any, right: dict[str, Any]) -> None:  # noqa: ANN401 (JSON)
    if given == right:
        return
    unlike = next((key for key in right if given.get(key) != right[key]), None)
    if unlike is None:
        raise BrokenRule(f"{answer.to} has more keys than {', '.join(right)}: {answer.begin!r}")
    raise BrokenRule(
        f"{answer.to}: {unlike} should be {right[unlike]!r:.100}, and is {given.get(unlike)!r:.100}"
    )
