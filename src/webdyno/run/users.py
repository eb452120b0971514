"""Users of a load: what they request before it, and values as the load generator takes them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from webdyno.definitions.rows import read_rows
from webdyno.model.errors import UserError
from webdyno.model.request import FORM_TYPE, JSON_TYPE, Request, header
from webdyno.model.session import PLACE, Row, Values, places
from webdyno.model.text import with_secrets


def sent_path(path: str) -> str:
    """Give a path with its places as the load generator has them; one alone holds a whole link."""
    first = PLACE.match(path)
    if first is None:
        return with_places(path)
    return f"/{{{{{first[1]}|link}}}}{with_places(path[first.end() :])}"


def with_places(text: str, encoding: str = "") -> str:
    """Give a text with each place telling how it is written there."""
    return PLACE.sub(lambda match: f"{{{{{match[1]}{encoding}}}}}", text)


def sent_form(form: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Give a form's body, encoded all but places."""
    return "&".join(
        f"{quote(name, safe='')}={_sent_value(text, environment)}" for name, text in form.items()
    )


def _sent_value(text: str, environment: Mapping[str, str]) -> str:
    parts = PLACE.split(text)
    parts[::2] = [quote(with_secrets(part, environment), safe="") for part in parts[::2]]
    parts[1::2] = [f"{{{{{name}}}}}" for name in parts[1::2]]
    return "".join(parts)


def encoding_of(request: Request) -> str:
    """Say how values are written in a request's body, by its type."""
    kind = (header(request.sent_headers, "content-type") or "").partition(";")[0].strip().lower()
    return {JSON_TYPE: "|json", FORM_TYPE: "|url"}.get(kind, "")


def engine_values(
    values: Mapping[str, Values], requests: Sequence[Request], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Give values in the form of the engine's contract, files read.

    Raise UserError where a file lacks a column that a request needs.
    """
    needed = places(text for request in requests for text in request.texts)
    return {name: _engine_value(name, its, needed, environment) for name, its in values.items()}


def _engine_value(
    name: str, its: Values, needed: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    if its.file is not None:
        rows, _ = read_rows(Path(its.file), f"values.{name}", its.sha256)
        lacking = [
            value
            for value in needed
            if value.startswith(f"{name}.") and value[len(name) + 1 :] not in rows[0]
        ]
        if lacking:
            raise UserError(
                f"values.{name}: {its.file} has no column for {{{{{lacking[0]}}}}}; it has "
                f"{', '.join(rows[0])}"
            )
        return _table(rows, its.each)
    if its.rows is not None:
        filled = [
            {key: with_secrets(text, environment) for key, text in row.items()} for row in its.rows
        ]
        return _table(filled, its.each)
    if its.counter is not None:
        return {"counter": {"from": its.counter, "step": 1}}
    if its.choose is not None:
        return {"choose": list(its.choose)}
    if its.random is not None:
        return {"random": {"from": its.random[0], "to": its.random[1]}}
    return {"unique": {}}


def _table(rows: Sequence[Row], each: str) -> dict[str, Any]:
    columns = list(rows[0])
    table = [[row[column] for column in columns] for row in rows]
    return {"rows": {"columns": columns, "rows": table, "each": each}}
