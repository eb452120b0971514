"""Reads a curl command as people copy it from a browser."""

import base64
import getopt
import re
import shlex
from pathlib import Path
from urllib.parse import quote_plus

from webdyno.definitions.entries import MOST_BODY_BYTES, Entry, headers_of, path_of, with_body
from webdyno.model.files import read_named
from webdyno.model.mistake import Mistake
from webdyno.model.request import JSON_TYPE
from webdyno.model.text import SECRET

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
_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "f": "\f",
    "v": "\v",
}


def read_curl(command: str, folder: Path = Path()) -> Entry:
    """Give the request that a curl command makes; raise Mistake for what isn't understood.

    `folder` is where files lie that it names with @.
    """
    place = "--curl"
    options, addresses = _taken_apart(command, place)
    urls = addresses + [value for option, value in options if option == "--url"]
    if len(urls) != 1:
        raise Mistake(f"{place}: a curl command with one URL is needed, this has {len(urls)}")
    data = [(option, value) for option, value in options if option in _DATA]
    body = _body(data, folder, place)
    said = dict(options)
    path = path_of(urls[0], place)
    if "-G" in said and body is not None:
        path, body = f"{path}{'&' if '?' in path else '?'}{body.decode()}", None
    default = "HEAD" if "-I" in said else "POST" if body is not None else "GET"
    entry: Entry = {"path": path, "method": said.get("-X", default).upper()}
    said_headers = _headers(options, data, place, sends_body=body is not None)
    headers = {**headers_of(said_headers), **_host(said_headers)}
    return with_body(entry | ({"headers": headers} if headers else {}), body)


def _taken_apart(command: str, place: str) -> tuple[list[tuple[str, str]], list[str]]:
    joined = re.sub(r"\\\r?\n", " ", command.strip())
    try:
        words = shlex.split(_ANSI.sub(lambda it: shlex.quote(_unescaped(it[1])), joined))
    except ValueError as error:
        raise Mistake(f"{place}: can't be taken apart as a shell would: {error}") from None
    if not words or Path(words[0]).name != "curl":
        raise Mistake(
            f"{place}: should begin with curl, as in --curl 'curl -X POST http://…', and not be "
            f"{joined!r:.60}"
        )
    try:
        found, addresses = getopt.gnu_getopt(words[1:], _SHORT, list(_LONG))
    except getopt.GetoptError as error:
        option = f"{'--' if len(error.opt) > 1 else '-'}{error.opt}"
        raise Mistake(
            f"{place}: {option} is not understood here ({error.msg}); leave it out, or write the "
            "request as [[requests]]"
        ) from None
    by_long = {f"--{long.rstrip('=')}": short for long, short in _LONG.items()}
    options = [(by_long.get(option, option), value) for option, value in found]
    return [each for each in options if each[0] not in _SAID_NOTHING], addresses


def _unescaped(text: str) -> str:
    r"""Read what bash takes $'…' for: browsers write ! as \u0021."""

    def letter(found: re.Match[str]) -> str:
        short, long, hexadecimal, octal, other = found.groups()
        if code := short or long or hexadecimal:
            number = int(code, 16)
        elif octal:
            number = int(octal, 8)
        else:
            return _LETTERS.get(other, other)
        return chr(number) if number <= 0x10FFFF else "\N{REPLACEMENT CHARACTER}"

    return _ESCAPES.sub(letter, text)


def _headers(
    options: list[tuple[str, str]], data: list[tuple[str, str]], place: str, *, sends_body: bool
) -> list[tuple[str, str]]:
    """Give all headers, those that curl sends by itself where nothing else is said."""
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
                raise Mistake(f"{place}: -H {value!r:.60} should look like 'Name: value'")
            headers.append((name.strip(), text))
        elif option in _HEADER_OF:
            headers.append((_HEADER_OF[option], value))
        elif option == "-b":
            if "=" not in value:
                raise Mistake(
                    f"{place}: -b {value!r:.60} should be name=value; files of cookies aren't read"
                )
            headers.append(("Cookie", value))
        elif option == "-u":
            headers.append(("Authorization", _basic(value, place)))
        elif option == "--compressed":
            headers.append(("Accept-Encoding", "gzip, deflate"))
    return headers


def _host(headers: list[tuple[str, str]]) -> dict[str, str]:
    """Give the host that is asked for by -H; the URL's own is the arms' matter."""
    return {name: value.strip() for name, value in headers if name.lower() == "host"}


def _basic(credentials: str, place: str) -> str:
    if SECRET.search(credentials):
        raise Mistake(
            f"{place}: -u is sent encoded, so nothing can be filled in; give "
            "-H 'Authorization: Basic ${env:NAME}' with NAME=$(printf %s user:password | base64)"
        )
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


def _body(data: list[tuple[str, str]], folder: Path, place: str) -> bytes | None:
    if not data:
        return None
    parts = [_part(option, value, folder, place) for option, value in data]
    return (b"" if any(option == "--json" for option, _ in data) else b"&").join(parts)


def _part(option: str, value: str, folder: Path, place: str) -> bytes:
    if option == "--data-urlencode":
        name, equals, text = value.partition("=")
        if not equals and "@" in value:
            raise Mistake(f"{place}: --data-urlencode with a file is not understood here")
        text = quote_plus(text if equals else value)
        return f"{name}={text}".encode() if equals and name else text.encode()
    if option == "--data-raw" or not value.startswith("@"):
        return value.encode(errors="surrogateescape")
    content = read_named(folder / value[1:], MOST_BODY_BYTES, f"{place}: {option} {value}")
    return content.replace(b"\r", b"").replace(b"\n", b"") if option == "-d" else content
