"""Requests as people have them at hand: a curl command, a file of requests, a browser's HAR file.

Files are `.http` ones as editors run them, or JSON, an object a line, or what `webdyno traffic`
writes.
"""

import base64
import getopt
import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote_from_bytes, quote_plus

from webdyno.config.checks import check_tables
from webdyno.config.experiment import Override
from webdyno.config.http_file import LOGIN, requests_of
from webdyno.config.reading import KeyPath, PlaceOf, TomlFile
from webdyno.config.requests import (
    MOST_BODY_BYTES,
    Entry,
    headers_of,
    host_header,
    json_objects,
    open_secrets,
    path_of,
    read_requests,
    refuse_variables,
    weighted_entries,
    with_body,
    with_contents,
    with_files,
)
from webdyno.core.errors import UserError
from webdyno.core.files import neighbor, read_named, reading
from webdyno.core.registry import spell_flag
from webdyno.core.request import JSON_TYPE
from webdyno.core.text import SECRET
from webdyno.core.whose import opened
from webdyno.formats.har import HarEntry, body_of, har_entries, own_requests

_SHORT = "X:H:d:b:u:A:e:GIksSiv"
_LONG = {
    "request=": "-X",
    "header=": "-H",
    "data=": "-d",
    "data-ascii=": "-d",
    "data-raw=": "--data-raw",
    "data-binary=": "--data-binary",
    "data-urlencode=": "--data-urlencode",
    "json=": "--json",
    "cookie=": "-b",
    "user=": "-u",
    "user-agent=": "-A",
    "referer=": "-e",
    "url=": "--url",
    "get": "-G",
    "head": "-I",
    "compressed": "--compressed",
    "insecure": "-k",
    "silent": "-s",
    "show-error": "-S",
    "include": "-i",
    "verbose": "-v",
}
"""Options that are understood, and the short one that they are the same as."""
_SAID_NOTHING = {"-k", "-s", "-S", "-i", "-v"}
"""What changes nothing of the request."""
_DATA = {"-d", "--data-raw", "--data-binary", "--data-urlencode", "--json"}
_HEADER_OF = {"-A": "User-Agent", "-e": "Referer"}
_ANSI = re.compile(r"(?<=\s)\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPES = re.compile(
    r"\\(?:u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))", re.DOTALL
)
_LETTERS = dict(zip("ntrabefv", "\n\t\r\a\b\x1b\f\v", strict=True))
NOT_MODIFIED, PARTIAL = 304, 206
_CONDITIONS = frozenset(
    {"if-none-match", "if-modified-since", "if-range", "range", "if-match", "if-unmodified-since"}
)
"""Headers without which a response comes in full."""
WORKLOAD_PARTS = ("load", "requests", "workload", "login", "values")
"""Of what `webdyno traffic` writes, and of what people add."""


def is_curl(text: str) -> bool:
    """Whether a text is, or begins with, a command of curl, as browsers copy it."""
    return text.lstrip().startswith("curl ")


def read_curl(command: str, file: Path | None = None) -> Entry:
    """Return the request that a curl command makes; raise UserError for what isn't understood.

    In a `file` it names, with @, files of that one's folder alone.
    """
    place = "--traffic curl …"
    options, addresses = _curl_words(command, place)
    urls = addresses + [value for option, value in options if option == "--url"]
    if len(urls) != 1:
        raise UserError(f"{place}: a curl command with one URL is needed, this has {len(urls)}")
    data = [(option, value) for option, value in options if option in _DATA]
    parts = [_data_part(option, value, file, place) for option, value in data]
    joint = b"" if any(option == "--json" for option, _ in data) else b"&"
    body = joint.join(parts) if data else None
    if any(option != "--data-raw" and value.startswith("@") for option, value in data):
        refuse_variables(with_body({}, body), f"{place} with @FILE")
    said = dict(options)
    path = path_of(urls[0], place)
    if "-G" in said and body is not None:
        path += f"{'&' if '?' in path else '?'}{quote_from_bytes(body, bytes(range(128)))}"
        body = None
    default = "HEAD" if "-I" in said else "POST" if body is not None else "GET"
    entry: Entry = {"path": path, "method": said.get("-X", default).upper()}
    said_headers = _curl_headers(options, data, place, sends_body=body is not None)
    headers = {**headers_of(said_headers), **host_header(said_headers)}
    return with_body(entry | ({"headers": headers} if headers else {}), body)


def _curl_words(command: str, place: str) -> tuple[list[tuple[str, str]], list[str]]:
    joined = re.sub(r"\\\r?\n", " ", command.strip())
    try:
        words = shlex.split(_ANSI.sub(lambda match: shlex.quote(_unescape(match[1])), joined))
    except ValueError as error:
        raise UserError(f"{place}: can't be taken apart as a shell would: {error}") from None
    if not words or Path(words[0]).name != "curl":
        raise UserError(
            f"{place}: should begin with curl, as in 'curl -X POST http://…', and not be "
            f"{joined!r:.60}"
        )
    try:
        pairs, addresses = getopt.gnu_getopt(words[1:], _SHORT, list(_LONG))
    except getopt.GetoptError as error:
        option = f"{'--' if len(error.opt) > 1 else '-'}{error.opt}"
        raise UserError(
            f"{place}: {option} is not understood here ({error.msg}); leave it out, or write the "
            "request as [[requests]]"
        ) from None
    by_long = {f"--{long.rstrip('=')}": short for long, short in _LONG.items()}
    options = [(by_long.get(option, option), value) for option, value in pairs]
    return [each for each in options if each[0] not in _SAID_NOTHING], addresses


def _unescape(text: str) -> str:
    r"""Read what bash takes $'…' for: browsers write ! as \u0021, others in two halves."""

    def letter(match: re.Match[str]) -> str:
        short, long, hexadecimal, octal, other = match.groups()
        if other:
            return _LETTERS.get(other, other)
        code = short or long or hexadecimal
        number = int(code, 16) if code else int(octal, 8)
        return chr(number) if number <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"

    units = _ESCAPES.sub(letter, text).encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")


def _curl_headers(
    options: list[tuple[str, str]], data: list[tuple[str, str]], place: str, *, sends_body: bool
) -> list[tuple[str, str]]:
    """Return all headers, also those that curl sends by itself where nothing else is said."""
    headers: list[tuple[str, str]] = []
    if sends_body:
        as_json = any(option == "--json" for option, _ in data)
        kind = JSON_TYPE if as_json else "application/x-www-form-urlencoded"
        headers.append(("Content-Type", kind))
        headers += [("Accept", JSON_TYPE)] if as_json else []
    for option, value in options:
        if option == "-H":
            name, colon, text = value.partition(":")
            if not colon:
                raise UserError(f"{place}: -H {value!r:.60} should look like 'Name: value'")
            headers.append((name.strip(), text))
        elif option in _HEADER_OF:
            headers.append((_HEADER_OF[option], value))
        elif option == "-b":
            if "=" not in value:
                raise UserError(
                    f"{place}: -b {value!r:.60} should be name=value; files of cookies aren't read"
                )
            headers.append(("Cookie", value))
        elif option == "-u":
            if SECRET.search(value):
                raise UserError(
                    f"{place}: -u is sent encoded, so nothing can be filled in; give "
                    "-H 'Authorization: Basic ${env:NAME}' "
                    "with NAME=$(printf %s user:password | base64)"
                )
            basic = base64.b64encode(value.encode()).decode()
            headers.append(("Authorization", f"Basic {basic}"))
        elif option == "--compressed":
            headers.append(("Accept-Encoding", "gzip, deflate"))
    return headers


def _data_part(option: str, value: str, file: Path | None, place: str) -> bytes:
    if option == "--data-urlencode":
        name, equals, text = value.partition("=")
        if not equals and "@" in value:
            raise UserError(f"{place}: --data-urlencode with a file is not understood here")
        text = quote_plus(text if equals else value)
        return f"{name}={text}".encode() if equals and name else text.encode()
    if option == "--data-raw" or not value.startswith("@"):
        return value.encode(errors="surrogateescape")
    name, where = value[1:], f"{place}: {option} {value}"
    path = Path(name) if file is None else neighbor(file, name, where)
    content = read_named(path, MOST_BODY_BYTES, where)
    return content.replace(b"\r", b"").replace(b"\n", b"") if option == "-d" else content


def read_request_file(path: Path) -> list[Entry]:
    """Return a file's requests; raise UserError, with file and line, for what isn't understood.

    Lines of JSON have the keys of `[[requests]]`, or `url` instead of `path`; a file that begins
    with curl has commands of it. All else is read as a `.http` file.
    """
    text = read_requests(path, f"--traffic {path}")
    if is_curl(text):
        commands = re.sub(r"\\\n", " ", text).splitlines()
        return [
            read_curl(command, path)
            for command in commands
            if command.strip() and not command.lstrip().startswith("#")
        ]
    lines = [line for line in text.splitlines() if line.strip()]
    as_json = path.suffix in {".jsonl", ".ndjson", ".json"} or all(
        re.match(r"\s*\{(?!\{)", line) for line in lines
    )
    if as_json:
        objects = json_objects(text, path, '{"path": "/"}')
        entries = [_of_json(path.absolute(), entry, place) for place, entry in objects]
    else:
        entries = requests_of(path, text)
    if not entries:
        raise UserError(f"--traffic {path}: there is no request in it")
    return entries


def _of_json(path: Path, entry: Entry, place: str) -> Entry:
    if "url" in entry and "path" not in entry:
        entry["path"] = path_of(str(entry.pop("url")), place)

    def here(_: KeyPath) -> str:
        return place

    parts = check_tables({"requests": [entry]}, here)
    read = with_contents(_with_neighbors(parts, path, here), path.parent, here)
    (read_entry,) = read["requests"]
    return dict(read_entry)


def read_har(path: Path) -> tuple[list[Entry], str | None]:
    """Return the requests to the first one's server, and what was excluded, in words.

    Raise UserError where it is no HAR file or holds nothing to ask for. What was requested several
    times has that as its weight. The status that was recorded is the expected one; conditions
    (`If-None-Match` and the like) are excluded, so that every response comes in full.
    """
    flag = f"--traffic {path}"
    own = own_requests(har_entries(read_requests(path, flag), flag), flag)
    return weighted_entries(_of_har(entry, flag) for _, entry in own.entries), own.excluded


def _of_har(recorded: HarEntry, flag: str) -> Entry:
    request, status = recorded.request, recorded.response.status
    pairs = [
        (header.name, header.value)
        for header in request.headers
        if header.name.lower() not in _CONDITIONS
    ]
    entry: Entry = {"path": path_of(request.url, flag), "method": request.method.upper()}
    if headers := headers_of(pairs):
        entry["headers"] = headers
    if 200 <= status < 600 and status not in {NOT_MODIFIED, PARTIAL}:
        entry["status"] = status
    entry = with_body(entry, body_of(recorded, flag))
    refuse_variables(entry, flag)
    return entry


def read_workload_file(path: Path) -> dict[str, Any]:
    """Return `load`, `requests` and `workload` of a file; raise UserError for anything else.

    What they hold is checked with the experiment that they become a part of.
    """
    file = TomlFile(path)
    for key in file.data:
        if key not in WORKLOAD_PARTS:
            raise UserError(
                f"{file.place((key,))}: {key} is no part of a file of traffic, which has "
                f"{', '.join(WORKLOAD_PARTS)}; `webdyno run {path}` runs whole experiments"
            )
    parts = check_tables(file.data, file.place)
    if not parts.get("requests"):
        raise UserError(f"{path}: there is no [[requests]] in it")
    # Files are named from where this one lies, wherever the experiment does.
    path = path.absolute()
    _refuse_variables(path, file.data)

    return _with_neighbors(parts, path, file.place)


def _with_neighbors(data: dict[str, Any], path: Path, place: PlaceOf) -> dict[str, Any]:
    """Name the files that a file of traffic has sent by their whole paths; see `neighbor`."""

    def found(table: dict[str, Any], where: KeyPath, name: str) -> dict[str, Any]:
        return {**table, str(where[-1]): str(neighbor(path, name, place(where)))}

    return with_files(data, found)


def _refuse_variables(path: Path, asked: object) -> None:
    """Raise UserError where somebody else may have named variables of yours, to be sent."""
    with reading(path), opened(path) as end:
        others = end.others
    if others and (secret := SECRET.search(json.dumps(asked, default=str))):
        raise UserError(
            f"{path}: others may change {others}, and {secret[0]} would be sent: copy the file to "
            "where only you can write"
        )


@dataclass(frozen=True)
class AskedTraffic:
    """What is requested, instead of what the experiment says: docs/how-to/traffic.md."""

    sources: Sequence[str] = ()
    """Each a file (HAR, .http, JSON lines, curl commands, or what `webdyno traffic` wrote), or a
    curl command itself."""
    by_keyword: bool = False

    @property
    def words(self) -> str:
        """How it was given; of curl commands, which may hold secrets, that they are ones."""
        shown = ["curl …" if is_curl(source) else source for source in self.sources]
        return " ".join(map(self._flag, dict.fromkeys(shown)))

    def _flag(self, source: str) -> str:
        return spell_flag("--traffic", source, by_keyword=self.by_keyword)

    def overrides(
        self, own: Sequence[Override], notify: Callable[[str], None]
    ) -> Iterator[Override]:
        """Return the requests, and what a file says next to them, as settings of the experiment.

        What the caller's `own` settings are about, a file doesn't change.
        """
        if not self.sources:
            return
        entries, login = list[Entry](), list[Entry]()
        further: list[Override] = []
        for source in self.sources:
            if source.endswith(".toml") and not is_curl(source):
                traffic = read_workload_file(Path(source))
                entries += traffic["requests"]
                login += traffic.get("login", [])
                flag = self._flag(source)
                load = traffic.get("load", {}).items()
                further += [Override(("load", key), value, flag) for key, value in load]
                further += [
                    Override((key,), traffic[key], flag)
                    for key in ("workload", "values")
                    if key in traffic
                ]
            else:
                for entry in _read(source, notify):
                    (login if entry.pop(LOGIN, False) else entries).append(entry)
        check_tables({"requests": entries, "login": login}, lambda _: self.words)
        if names := open_secrets([*login, *entries]):
            notify(
                f"the run's folder will hold {', '.join(names)} as given; ${{env:NAME}} in its "
                "place, filled from the environment, keeps it out"
            )
        yield Override(("requests",), entries, self.words)
        if login:
            yield Override(("login",), login, self.words)
        set_here = {override.sets for override in own}
        yield from (
            setting
            for setting in further
            if setting.key[0] != "load" or setting.sets not in set_here
        )


def _read(source: str, notify: Callable[[str], None]) -> list[Entry]:
    """Read what isn't a workload."""
    if is_curl(source):
        return [read_curl(source)]
    path = Path(source)
    if path.suffix == ".har":
        recorded, note = read_har(path)
        if note:
            notify(note)
        return recorded
    entries = read_request_file(path)
    _refuse_variables(path, entries)
    return entries
