# ruff: noqa: D101, ARG002 (each cheat is what its name says)
"""Programs for the sites of today that cheat, each in its own way."""

import random
from collections.abc import Mapping
from typing import Any

import psycopg

from measure.honest import Honest, Row, Said, as_json


class OtherMessage(Honest):
    def message(self) -> dict[str, str]:
        return {"message": "Hello, World!", "server": "mine"}


class OneRowForAll(Honest):
    kept: Row | None = None

    def row(self) -> Row:
        self.kept = self.kept or super().row()
        return self.kept


class TableInMemory(Honest):
    held: dict[int, int] | None = None

    def row(self) -> Row:
        if self.held is None:
            self.held = dict(self.asked("SELECT id, randomnumber FROM world"))
        number = random.choice([*self.held])
        return {"id": number, "randomNumber": self.held[number]}


class MadeUpRows(Honest):
    def row(self) -> Row:
        return {**super().row(), "randomNumber": random.randint(1, 10_000)}


class ManyRowsByOne(Honest):
    def rows(self, count: int) -> list[Row]:
        numbers = random.sample(range(1, 10_001), count)
        rows = self.asked("SELECT id, randomnumber FROM world WHERE id = ANY(%s)", numbers)
        return [{"id": number, "randomNumber": value} for number, value in rows]


class NoMost(Honest):
    def count(self, query: Mapping[str, list[str]]) -> int:
        return min(super().count(query), 500) if "501" not in str(query) else 501


class NoRows(Honest):
    def count(self, query: Mapping[str, list[str]]) -> int:
        return 0 if query.get("queries") == ["0"] else super().count(query)


class OnlyNumbers(Honest):
    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Said:
        if path.endswith("=none"):
            return as_json({"error": "no number"}, 400)
        return super().answer(method, path, headers, body)


class OtherKeys(Honest):
    def row(self) -> Row:
        row = super().row()
        return {"id": row["id"], "randomnumber": row["randomNumber"]}


class Unwritten(Honest):
    def write(self, values: Mapping[int, int]) -> None: ...


class OldNumbers(Honest):
    def new(self, old: int) -> int:
        return old


class NothingAdded(Honest):
    def added(self) -> list[tuple[int, str]]:
        return []


class Unsorted(Honest):
    def ordered(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(rows)


class LikeADictionary(Honest):
    def ordered(self, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return sorted(rows, key=lambda row: str(row[1]).casefold())


class Unescaped(Honest):
    def escaped(self, text: str) -> str:
        return text


class ScriptsEscaped(Honest):
    """Escapes angle brackets, and not the & in front of what looks like an entity."""

    def escaped(self, text: str) -> str:
        return super().escaped(super().escaped(text))


class KeptPage(Honest):
    kept = ""

    def page(self) -> str:
        self.kept = self.kept or super().page()
        return self.kept


class KeptMessages(Honest):
    kept: list[tuple[Any, ...]] | None = None

    def fortunes(self) -> list[tuple[Any, ...]]:
        self.kept = self.kept or super().fortunes()
        self.asked("SELECT 1")  # so that statements are counted
        return self.kept


class NoDoctype(Honest):
    def page(self) -> str:
        return super().page().removeprefix("<!DOCTYPE html>")


class KeptItems(Honest):
    def __init__(self, database: psycopg.Connection[tuple[Any, ...]]) -> None:
        super().__init__(database)
        self.kept: dict[int, list[tuple[Any, ...]]] = {}

    def found(self, number: int) -> list[tuple[Any, ...]]:
        if number not in self.kept:
            self.kept[number] = super().found(number)
        return self.kept[number]


class NoTags(Honest):
    def read(self, number: int, headers: Mapping[str, str]) -> Said:
        status, given, body = super().read(number, {})
        return status, {name: it for name, it in given.items() if name != "ETag"}, body


class NeverUnmodified(Honest):
    def read(self, number: int, headers: Mapping[str, str]) -> Said:
        return super().read(number, {})


class OneTagForAll(Honest):
    def tag(self, row: tuple[Any, ...]) -> str:
        return '"1"'


class TakesEmptyNames(Honest):
    def fault(self, body: bytes) -> str | None:
        fault = super().fault(body)
        return None if fault and body.startswith(b'{"name": "",') else fault


class TakesFractions(Honest):
    def fault(self, body: bytes) -> str | None:
        return super().fault(body.replace(b"1.5", b"1"))

    def created(self, body: bytes) -> Said:
        return super().created(body.replace(b"1.5", b"1"))


class SameVersion(Honest):
    def version(self) -> str:
        return "version = version"


class LeavesItems(Honest):
    def item(self, method: str, number: int, headers: Mapping[str, str], body: bytes) -> Said:
        if method == "DELETE":
            return 204, {}, b""
        return super().item(method, number, headers, body)


class FewItems(Honest):
    def items(self, query: Mapping[str, list[str]]) -> dict[str, object]:
        given = super().items(query)
        return {**given, "total": 20, "pages": 1}


class CreatedAs200(Honest):
    def created(self, body: bytes) -> Said:
        status, headers, given = super().created(body)
        return 200 if status == 201 else status, headers, given


class SumOfTheBeginning(Honest):
    def sum(self, body: bytes) -> dict[str, object]:
        return {**super().sum(body[:65_536]), "bytes": len(body)}


class FewBytes(Honest):
    def answer(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> Said:
        if len(body) > 1_000_000:
            return as_json({"error": "too large"}, 413)
        return super().answer(method, path, headers, body)
