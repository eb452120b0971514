"""Command lines of load generators, as people write them down."""

import re
from typing import Any
from urllib.parse import urlsplit

from webdyno.model.quantities import TIMES_S
from webdyno.readers.lines import Line
from webdyno.readers.output import Command

_COMMAND = re.compile(
    r"(?:^|[\s`$#>(])(ab|httperf|wrk2?|h2load|hey|oha|siege|redis-benchmark)(?:\.exe)?\s+"
    r"([-\u2013\u2014].*)"
)
_LONG_DASH = re.compile(r"(?<!\S)[\u2013\u2014](?=\w)")
"""Typesetters turn `--` into one long dash."""

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|S|M|H)?$")

OPTIONS: dict[str, dict[str, str]] = {
    "ab": {"n": "requests", "c": "concurrency", "t": "time_limit_s", "k": "keepalive"},
    "wrk": {"c": "concurrency", "d": "time_limit_s", "R": "demanded_rps"},
    "h2load": {"n": "requests", "c": "concurrency", "D": "time_limit_s"},
    "hey": {"n": "requests", "c": "concurrency", "z": "time_limit_s"},
    "oha": {"n": "requests", "c": "concurrency", "z": "time_limit_s", "q": "demanded_rps"},
    "siege": {"c": "concurrency", "t": "time_limit_s"},
    "redis-benchmark": {"n": "requests", "c": "concurrency"},
    "httperf": {
        "num-conns": "connections",
        "num-calls": "calls_per_connection",
        "rate": "demanded_rps",
        "server": "host",
        "uri": "path",
    },
}
"""Options whose meaning matters here -> attribute of Command."""

_OPEN_LOOP = re.compile(r"--rate|-R\d|-R$|--latency-correction")
"""oha's -q alone still counts from when a request was sent."""

_LONG = {"--rate": "-R", "--connections": "-c", "--duration": "-d", "--requests": "-n"}
_FLAGS = {"k", "q", "r", "v", "l", "b", "L"}


def find_command(line: Line) -> Command | None:
    """Give the command that a line shows."""
    if "-" not in line.text and "\u2013" not in line.text and "\u2014" not in line.text:
        return None
    found = _COMMAND.search(line.text)
    if not found:
        return None
    # In quotation marks of any kind, and with a mark at its end, it is the same command.
    words = [word.strip("\"'`\u201c\u201d") for word in found[2].split()]
    known = OPTIONS[found[1].removesuffix("2")]
    dashed = [_LONG_DASH.sub("--" if len(word) > 3 else "-", word) for word in words]
    said: dict[str, Any] = {}
    for option, value in _options(dashed, known):
        name = known[option]
        if (read := _read(name, value)) is not None:
            said[name] = read
    said |= _url(words) if found[1] != "httperf" else {}
    if not said:
        return None
    open_loop = any(_OPEN_LOOP.match(word) for word in dashed)
    return Command(tool=found[1], line=line.number, open_loop=open_loop, **said)


def _options(words: list[str], known: dict[str, str]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if word.startswith("--") and name[2:] in known:
            found.append((name[2:], value if equals else following))
        elif name in _LONG:
            found += _cluster(_LONG[name][1:], value if equals else following, known)
        elif word.startswith("-") and not word.startswith("--"):
            found += _cluster(word[1:], following, known)
    return found


def _cluster(letters: str, following: str, known: dict[str, str]) -> list[tuple[str, str]]:
    """Read `-kc` followed by 100, or `-c100`."""
    found: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        if letter in known and known[letter] != "keepalive":
            return [*found, (letter, letters[place + 1 :] or following)]
        if letter in known:
            found.append((letter, ""))
        elif letter not in _FLAGS:
            break
    return found


def _read(name: str, value: str) -> object:
    if name == "keepalive":
        return True
    if name in {"host", "path"}:
        return value or None
    number = _DURATION.match(value)
    if number is None:
        return None
    if name == "time_limit_s":
        return int(number[1]) * TIMES_S[(number[2] or "s").lower()]
    return int(number[1]) if number[2] is None else None


def _url(words: list[str]) -> dict[str, object]:
    for word in words:
        if word.startswith(("http://", "https://")):
            try:
                parts = urlsplit(word)
            except ValueError:  # brackets that hold no address
                return {}
            return {"host": parts.hostname, "path": parts.path or "/"}
    return {}
