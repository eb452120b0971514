"""Files of rows, one for each user: CSV with a line of names, or JSON, an object a line."""

import csv
import hashlib
import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.config.reading import PlaceOf
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import MIB, read_named
from webdyno.core.format import count
from webdyno.core.request import WrittenRequest
from webdyno.core.session import MOST_ROWS, Row, Values, places

MOST_BYTES = 16 * MIB
JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})


def read_rows(path: Path, place: str = "", sha256: str | None = None) -> tuple[list[Row], str]:
    """Give a file's rows and its SHA-256; raise UserError, with the line, for what is no row.

    `sha256`: what it was when a run began, which needs the same rows to the end.
    """
    content = read_named(path, MOST_BYTES, place)
    named = f"{place}: {path}" if place else str(path)
    digest = hashlib.sha256(content).hexdigest()
    if sha256 not in {None, digest}:
        raise UserError(f"{named}: has changed since the run began; put back what it was")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{named}: is not UTF-8 text") from None
    rows = _of_json(text, named) if path.suffix in JSON_LINES else _of_csv(text, named)
    if not rows:
        raise UserError(f"{named}: has no rows; CSV has a line of names, then one for each row")
    if len(rows) > MOST_ROWS:
        raise UserError(f"{named}: has more than {MOST_ROWS:,} rows; cut it down")
    return rows, digest


def _of_csv(text: str, named: str) -> list[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[Row] = []
    try:
        names = [name.strip() for name in next(reader, [])]
        if not all(names) or len(set(names)) < len(names):
            raise UserError(f"{named}:1: should name each column, as in name,password")
        for values in reader:
            if not values:
                continue
            if len(values) != len(names):
                raise UserError(
                    f"{named}:{reader.line_num}: has {len(values)} values for the {len(names)} "
                    f"columns {', '.join(names)}"
                )
            rows.append(dict(zip(names, values, strict=True)))
    except csv.Error as error:
        raise UserError(f"{named}:{reader.line_num}: is no CSV: {error}") from None
    return rows


def _of_json(text: str, named: str) -> list[Row]:
    rows: list[Row] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{named}:{number}: is no JSON, an object a line: {error}") from None
        if not isinstance(fields, dict) or not fields:
            raise UserError(f'{named}:{number}: should be an object such as {{"name": "ann"}}')
        row = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in fields.items()
        }
        if rows and list(row) != list(rows[0]):
            raise UserError(f"{named}:{number}: has not the keys {', '.join(rows[0])}")
        rows.append(row)
    return rows


def with_rows(data: dict[str, Any], folder: Path, place: PlaceOf) -> dict[str, Any]:
    """Give an experiment's data with where its files of rows lie, and what they were.

    Rows may hold passwords: a run doesn't keep them.
    """
    values = data.get("values")
    if not isinstance(values, dict):
        return data
    files = {
        name: _found(its, folder, place(("values", name, "file"))) for name, its in values.items()
    }
    return {**data, "values": files}


def _found(values: Any, folder: Path, place: str) -> Any:  # noqa: ANN401 (TOML)
    if not isinstance(values, dict) or not isinstance(values.get("file"), str):
        return values
    path = (folder / values["file"]).resolve()
    given = values.get("sha256")
    _, sha256 = read_rows(path, place, given if isinstance(given, str) else None)
    return {**values, "file": str(path), "sha256": sha256}


class _Table(NamedTuple):
    """What there is of rows, without them."""

    columns: tuple[str, ...]
    rows: int


def check_rows(experiment: Experiment, place: PlaceOf) -> None:
    """Raise UserError where rows lack a column that requests need, or are fewer than users."""
    for variant in experiment.variants:
        requests = [*experiment.login, *experiment.requests_of(variant)]
        users = experiment.load_of(variant).connections
        for name, its in experiment.values.items():
            where = "file" if its.file else "rows"
            if fault := _fault(name, its, requests, users):
                raise UserError(f"{place(('values', name, where))}: {fault}")


def _fault(name: str, its: Values, requests: list[WrittenRequest], users: int) -> str | None:
    if its.file is None and its.rows is None:
        return None
    what = its.file or f"values.{name}"
    table = _table(its.file, its.sha256) if its.file else _Table(*_shape(its.rows or []))
    needed = places(text for request in requests for text in request.texts)
    columns = (value.partition(".") for value in needed)
    for owner, _, column in columns:
        if owner == name and column not in table.columns:
            return (
                f"{what} has no column for {{{{{owner}.{column}}}}}; it has "
                f"{', '.join(table.columns)}"
            )
    if its.each == "user" and table.rows < users:
        return (
            f"{what} has {count(table.rows, 'row')} for {users} users, one for each connection: "
            'give it more rows, load.connections fewer, or let users take turns with each = "turn"'
        )
    return None


@lru_cache(maxsize=8)
def _table(file: str, sha256: str | None) -> _Table:
    """Give what a file has, which is read once for all levels of factors."""
    rows, _ = read_rows(Path(file), sha256=sha256)
    return _Table(*_shape(rows))


def _shape(rows: list[Row]) -> tuple[tuple[str, ...], int]:
    return tuple(rows[0]), len(rows)
