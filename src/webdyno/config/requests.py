"""Entries of `[[requests]]` as TOML would have them: addresses, headers, bodies, weights.

And the content of files that an experiment names: bodies, replays, and rows, one for each user (CSV
with a line of names, or JSON, an object a line).
"""

import base64
import csv
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from webdyno.config.personal import is_secret, leaves, parsed_json
from webdyno.config.reading import KeyPath, PlaceOf
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.files import MIB, open_named, read_named, reading
from webdyno.core.format import count
from webdyno.core.paths import percent_encode
from webdyno.core.replay import Replay
from webdyno.core.request import (
    OWN_HEADERS,
    READABLE_ENCODINGS,
    SECRET_HEADERS,
    WrittenRequest,
    accepted_encodings,
)
from webdyno.core.session import MOST_ROWS, Row, Values, places
from webdyno.core.tables import is_table
from webdyno.core.text import SECRET
from webdyno.load.proto import compiled, imported

Entry = dict[str, Any]

_NOT_SENT = OWN_HEADERS | {"host", "keep-alive", "proxy-connection", "http2-settings"}
_BEFORE_PATH = re.compile(r"(?:\{\{[^{}]*\}\}|[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*|[^/?#\s]+)")
MOST_FILE_BYTES = 256 * 2**20
MOST_BODY_BYTES = 16 * MIB


def path_of(url: str, place: str) -> str:
    """Return path and query of a URL: the server is the variants' matter, a fragment never sent."""
    rest = url if url.startswith("/") else _BEFORE_PATH.sub("", url, count=1)
    parts = urlsplit("//x" + (rest if rest.startswith("/") else f"/{rest}"))
    if re.search(r"\{\{", rest):
        raise UserError(
            f"{place}: {url!r:.80} has a variable in its path; write what it stands for"
        )
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    # Braces stand for ranges in an experiment's paths.
    return re.sub(r"\s", "%20", percent_encode(path)).replace("{", "%7B").replace("}", "%7D")


def headers_of(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the headers that a load sends as they were, but for those of each connection.

    Of several of one name the last counts; cookies are joined. Of encodings those stay that can be
    looked into: a browser's br and zstd can't.
    """
    headers: dict[str, tuple[str, str]] = {}
    for name, value in pairs:
        key, value = name.lower(), value.strip()
        if key in _NOT_SENT or key.startswith(":") or not value:
            continue
        if key == "cookie" and key in headers:
            value = f"{headers[key][1]}; {value}"
        headers[key] = (name, value)
    if "accept-encoding" in headers:
        name, value = headers.pop("accept-encoding")
        readable = accepted_encodings({name: value}) & READABLE_ENCODINGS
        if readable:
            headers["accept-encoding"] = (name, ", ".join(sorted(readable, reverse=True)))
    return dict(headers.values())


def host_header(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Return the host that a header asks for; the URL's own is the variants' matter."""
    return {name: value.strip() for name, value in headers if name.lower() == "host"}


def with_body(entry: Entry, body: bytes | None) -> Entry:
    """Return an entry with a body, as text where it is text."""
    return {**entry, **_body_key(body)} if body else entry


def _body_key(body: bytes) -> Entry:
    try:
        return {"body": body.decode()}
    except UnicodeDecodeError:
        return {"body_base64": base64.b64encode(body).decode()}


def weighted_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Return each entry once, its weight being how often it came."""
    distinct: dict[str, Entry] = {}
    weights = Counter[str]()
    for entry in entries:
        distinct.setdefault(key := json.dumps(entry, sort_keys=True), entry)
        weights[key] += 1
    if len(set(weights.values())) <= 1:
        return list(distinct.values())
    return [{**entry, "weight": float(weights[key])} for key, entry in distinct.items()]


def read_requests(path: Path, flag: str) -> str:
    """Read a file of requests; raise UserError, with the flag that names it, where that fails."""
    with reading(flag), io.BufferedReader(open_named(path, flag)) as file:
        return text_of(file, flag).replace("\r\n", "\n").replace("\r", "\n")


def text_of(file: BinaryIO, place: str) -> str:
    """Read all of an open file; raise UserError where it is too large or no text."""
    whole = file.read(MOST_FILE_BYTES + 1)
    if len(whole) > MOST_FILE_BYTES:
        raise UserError(f"{place}: is larger than {MOST_FILE_BYTES // 2**20} MiB; cut it down")
    try:
        return whole.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{place}: is not UTF-8 text") from None


def open_secrets(entries: Iterable[Entry]) -> list[str]:
    """Return headers and fields that look like secrets and would be kept in the run's folder."""
    names = set[str]()
    for entry in entries:
        headers = entry.get("headers", {}).items()
        secret = [pair for pair in headers if pair[0].lower() in SECRET_HEADERS]
        secret += [pair for pair in _fields(entry) if is_secret(pair[0])]
        # What is filled in isn't kept.
        names |= {name for name, value in secret if not re.search(r"\$\{env:|\{\{", str(value))}
    return sorted(name.removeprefix(".") for name in names)


def _fields(entry: Entry) -> Iterable[tuple[str, str]]:
    """Return the fields of a body, of JSON or a form, with what they hold."""
    yield from ((name, str(value)) for name, value in (entry.get("form") or {}).items())
    yield from leaves(entry.get("json"))
    if isinstance(body := entry.get("body"), str):
        read = parsed_json(body)
        yield from parse_qsl(body) if read is None else leaves(read)


def with_files(
    data: dict[str, Any], put: Callable[[dict[str, Any], KeyPath, str], dict[str, Any]]
) -> dict[str, Any]:
    """Return an experiment's data with what `put` makes of each table that names a file to send.

    It gets the table, where the name stands in the data, and the name. No other file is sent.
    """

    def changed(table: dict[str, Any], where: KeyPath, *keys: str) -> dict[str, Any]:
        for key in keys:
            if (name := table.get(key)) is not None:
                table = put(table, (*where, key), name)
        return table

    tables: dict[str, Any] = {
        key: [
            changed(request, (key, number), "body_file", "json_file")
            for number, request in enumerate(requests)
        ]
        for key in ("login", "requests")
        if (requests := data.get(key)) is not None
    }
    if "load" in data:
        tables["load"] = changed(data["load"], ("load",), "replay_file", "proto_file")
    if "values" in data:
        tables["values"] = {
            name: changed(values, ("values", name), "file")
            for name, values in data["values"].items()
        }
    return {**data, **tables}


def files_sent(
    data: dict[str, Any], folder: Path, place: PlaceOf
) -> Iterator[tuple[KeyPath, Path]]:
    """Yield the files that an experiment's data has sent: where each is named, and its path.

    What a `.proto` file imports comes after it, read when it is asked for.
    """
    files: list[tuple[KeyPath, Path]] = []

    def noted(table: dict[str, Any], where: KeyPath, name: str) -> dict[str, Any]:
        files.append((where, folder / name))
        return table

    with_files(data, noted)
    for where, path in files:
        yield where, path
        if where[-1] == "proto_file":
            yield from ((where, each) for each in imported(path, folder, place(where)))


def with_contents(data: dict[str, Any], folder: Path, place: PlaceOf) -> dict[str, Any]:
    """Return an experiment's data with the content of each file that it names.

    Rows may hold passwords, so a run doesn't keep them, but where they lie and what they were.
    """
    read: dict[str, Callable[[dict[str, Any], Path, str], dict[str, Any]]] = {
        "body_file": _with_body_of_file,
        "json_file": _with_json_of_file,
        "replay_file": _with_replay,
        "proto_file": partial(_with_descriptors, folder),
        "file": _with_sum,
    }
    return with_files(
        data, lambda table, where, name: read[str(where[-1])](table, folder / name, place(where))
    )


def _without(table: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name != key}


def _with_replay(load: dict[str, Any], path: Path, place: str) -> dict[str, Any]:
    try:
        with reading(f"{place}: {path}"):
            return {**_without(load, "replay_file"), "replay": Replay.read(path).pack()}
    except ValueError as error:
        raise UserError(f"{place}: {path}: {error}") from None


def _with_descriptors(folder: Path, load: dict[str, Any], path: Path, place: str) -> dict[str, Any]:
    return {**_without(load, "proto_file"), "descriptors": compiled(path, folder, place)}


def _with_json_of_file(request: Entry, path: Path, place: str) -> Entry:
    if "json" in request:
        return request  # two bodies: that is reported with all that is wrong
    try:
        content = json.loads(read_named(path, MOST_BODY_BYTES, place))
        refuse_variables(content, f"{place}: {path}")
    except (ValueError, RecursionError) as error:
        raise UserError(f"{place}: {path}: is no JSON: {error}") from None
    return {**_without(request, "json_file"), "json": content}


def _with_body_of_file(request: Entry, path: Path, place: str) -> Entry:
    if "body" in request or "body_base64" in request:
        return request  # two bodies: that is reported with all that is wrong
    content = _body_key(read_named(path, MOST_BODY_BYTES, place))
    refuse_variables(content, f"{place}: {path}")
    return {**_without(request, "body_file"), **content}


def refuse_variables(sent: object, place: str, own: Collection[str] = ()) -> None:
    """Raise UserError where what others may have made, as it stands in `[[requests]]`, names yours.

    `own`: variables that webdyno itself put there. The texts are those that secrets are filled in
    later, so that nothing has to be known of how they were read.
    """
    secrets = SECRET.finditer(json.dumps(sent, default=str))
    if yours := next((secret for secret in secrets if secret[1] not in own), None):
        raise UserError(
            f"{place}: {yours[0]} would be filled in by yours; change that file, or write the body"
        )


MOST_BYTES = 16 * MIB
JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})


def read_rows(path: Path, place: str = "", sha256: str | None = None) -> tuple[list[Row], str]:
    """Return a file's rows and its SHA-256; raise UserError, with the line, for what is no row.

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
    for place, fields in json_objects(text, named, '{"name": "ann"}'):
        row = {
            key: value if isinstance(value, str) else json.dumps(value)
            for key, value in fields.items()
        }
        if rows and list(row) != list(rows[0]):
            raise UserError(f"{place}: has not the keys {', '.join(rows[0])}")
        rows.append(row)
    return rows


def json_objects(text: str, named: object, example: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Read JSON, an object a line, each with its place; raise UserError for what is none."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        place = f"{named}:{number}"
        try:
            node = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UserError(f"{place}: is no JSON, an object a line: {error}") from None
        if not is_table(node) or not node:
            raise UserError(f"{place}: should be an object such as {example}")
        yield place, node


def _with_sum(values: dict[str, Any], path: Path, place: str) -> dict[str, Any]:
    path = path.absolute()  # and as it is written, so that links are looked at each time
    _, sha256 = read_rows(path, place, values.get("sha256"))
    return {**values, "file": str(path), "sha256": sha256}


class _Table(NamedTuple):
    """What there is of rows, without them."""

    columns: tuple[str, ...]
    rows: int

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "_Table":
        return cls(tuple(rows[0]), len(rows))


def check_rows(experiment: Experiment, place: PlaceOf) -> None:
    """Raise UserError where rows lack a column that requests need, or are fewer than users."""
    for variant in experiment.variants:
        requests = [*experiment.login, *experiment.requests_of(variant)]
        users = experiment.load_of(variant).connections if experiment.has_users else 0
        for name, its in experiment.values.items():
            where = "file" if its.file else "rows"
            if fault := _fault(name, its, requests, users):
                raise UserError(f"{place(('values', name, where))}: {fault}")


def _fault(name: str, its: Values, requests: list[WrittenRequest], users: int) -> str | None:
    if its.file is None and its.rows is None:
        return None
    what = its.file or f"values.{name}"
    table = _table_of_file(its.file, its.sha256) if its.file else _Table.of(its.rows or [])
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
def _table_of_file(file: str, sha256: str | None) -> _Table:
    """Return what a file has, which is read once for all levels of factors."""
    return _Table.of(read_rows(Path(file), sha256=sha256)[0])
