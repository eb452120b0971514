"""Load generators' command lines as people write them down, typesetters' dashes and all."""

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from itertools import takewhile
from typing import Any

from webdyno.formats import Command, Output
from webdyno.formats.facts import CommandLine, Tool, in_ms
from webdyno.formats.text import NumberedLine, url_figures
from webdyno.formats.tools import tools

FLAGS = {"keepalive", "reconnects"}
"""Attributes of options without a value."""

MOST_CHARACTERS = 2000
"""Those of a command that are read."""
_WORD = re.compile(r"(?:[^\s'\"]|'[^']*'|\"[^\"]*\")+|\S+")
_SHELL = re.compile(r"\||[12&]?>|<|&|;")
"""Where another command begins, or a file."""
_LEFT_OUT = re.compile(r"\.{3}|…|\$|\\$|<\w|\[\w[\w ]*\]$")
"""What stands for options that were left out, or that somebody fills in."""

_LONG_DASH = re.compile(r"(?<!\S)[\u2013\u2014](?=\w)")
"""Typesetters turn `--` into one long dash."""

_DURATION = re.compile(r"(\d{1,9})(ms|s|m|h|S|M|H)?$")
_MANY = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)([kKmM])$")
_THOUSANDS = {"k": 1000, "m": 1_000_000}
"""oha's numbers of requests, as in `-n 10k`."""
_SIEGE_S = {"": 60, "s": 1, "m": 60, "h": 3600}
"""Seconds of siege's units; it takes minutes where there is none."""

_RATE = re.compile(r"\d{1,12}(?:\.\d{1,9})?$")
_OPEN_LOOP = re.compile(r"--rate|-R\d|-R$|--latency-correction")
"""oha's -q alone still counts from when a request was sent."""

MORE = 1.01
"""Times the requests that a command asks for from which an output isn't its own."""

_CLOSE = re.compile(r"Connection: ?close", re.IGNORECASE)
_PIPELINE = re.compile(r"[\w./-]{0,100}pipelin[\w-]{0,40}\.lua$")
_PROMPT = re.compile(
    r"[\s$#>`%\u276f]*(?:[\w.@~:/-]{1,80}[$#>%]\s+)?(?:sudo |npx )?(?:[\w.~-]{0,80}/){0,10}$"
)
SEVERAL = 2
"""At least so many requests are sent at once by a script whose depth isn't known."""


@cache
def with_commands() -> dict[str, Tool]:
    """Return the tools that have command lines, by all names of their programs."""
    return {
        name: tool
        for tool in tools()
        if tool.command
        for name in (tool.name, *tool.command.other_names)
    }


def any_tool() -> str:
    """Return a regular expression of the names of all programs that have command lines."""
    return "|".join(sorted(map(re.escape, with_commands()), key=len, reverse=True))


@cache
def _command_pattern() -> re.Pattern[str]:
    return re.compile(
        rf"(?:^|[\s`$#>(/])({any_tool()})"
        r"(?:\.exe|[-_](?:linux|darwin|windows)(?:[-_]\w{1,10})?(?:\.exe)?)?\s+"
        r"((?:(?:run|attack|load)\s+)?(?:[-\u2013\u2014]|[\"'\u201c]?https?://|localhost[:/]).*)"
    )


def find_command(line: NumberedLine) -> Command | None:
    """Return the command that a line shows."""
    if not any(mark in line.text for mark in ("-", "\u2013", "\u2014", "://", "localhost")):
        return None
    match = _command_pattern().search(line.text)
    if not match:
        return None
    before, tool = line.text[: match.start(1)], match[1]
    text = match[2][:MOST_CHARACTERS]
    if before.count("`") % 2:  # the command ends with its quotation
        text = text.partition("`")[0]
    words, dashed = _words(text)
    its = _command_line(tool)
    said: dict[str, Any] = {}
    for option, value in _options(dashed, its.options):
        said |= _attribute(its.options[option], option, value)
    said |= _pipelining_by(said.pop("script", ""), dashed)
    if not said and not _PROMPT.match(before):
        return None  # a sentence with the tool's name and somebody's address
    if "host" not in its.options.values():
        addresses = ("http://", "https://", "localhost:", "localhost/")
        named = [word for word in [said.pop("url", ""), *words] if word.startswith(addresses)]
        said |= {"path": "/"} | url_figures(named[0]) if named else {}
    if not said:
        return None
    return Command(
        tool=tool,
        line=line.number,
        open_loop=its.open_loop or any(_OPEN_LOOP.match(word) for word in dashed),
        whole=not any(_LEFT_OUT.search(word) for word in words),
        unread=_unknown_options(dashed, its.known),
        **{"reconnects": _CLOSE.search(text) is not None} | said,
    )


def _command_line(tool: str) -> CommandLine:
    """Return the command line of a tool by any of its names; an empty one where it has none."""
    known = with_commands().get(tool)
    return known.command if known and known.command else CommandLine({}, "")


def _words(text: str) -> tuple[list[str], list[str]]:
    """Return the words up to where the shell would end the command; then with plain dashes."""
    words: list[str] = []
    for match in _WORD.finditer(text):
        if _SHELL.match(match[0]):
            break
        # In quotation marks of any kind, and with a mark at its end, it is the same command.
        words.append(match[0].strip("\"'`\u201c\u201d"))
    return words, [_LONG_DASH.sub("--" if len(word) > 3 else "-", word) for word in words]


def _options(words: list[str], known: Mapping[str, str]) -> list[tuple[str, str]]:
    options: list[tuple[str, str]] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        bare = name.lstrip("-")
        if word.startswith("-") and len(bare) > 1 and bare in known:
            options.append((bare, value if equals else following))
        elif word.startswith("-") and not word.startswith("--"):
            options += _cluster(word[1:], following, known)
    return options


_CLUSTERED = {"k", "q", "r", "v", "l", "b", "L"}


def _cluster(letters: str, following: str, known: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read `-kc` followed by 100, or `-c100`."""
    options: list[tuple[str, str]] = []
    for place, letter in enumerate(letters):
        if letter in known and known[letter] not in FLAGS:
            return [*options, (letter, letters[place + 1 :].lstrip("=") or following)]
        if letter in known:
            options.append((letter, ""))
        elif letter not in _CLUSTERED:
            break
    return options


def _unknown_options(words: list[str], known: Collection[str]) -> tuple[str, ...]:
    unknown: dict[str, None] = {}
    for word in takewhile(lambda word: word != "--", words):
        name = word.partition("=")[0]
        bare = name.lstrip("-")
        if not word.startswith("-") or not bare[:1].isalpha() or bare in known:
            continue
        if name.startswith("--"):
            unknown[name] = None
        elif bare[0] not in known:
            unknown[f"-{bare[0]}" if len(bare) < 3 else name] = None
    return tuple(unknown)


def _attribute(name: str, option: str, value: str) -> dict[str, Any]:
    if name == "minutes":
        match = _DURATION.match(value)
        unit = (match[2] or "").lower() if match else ""
        return {"time_limit_s": int(match[1]) * _SIEGE_S[unit]} if match and unit != "ms" else {}
    read = _value_of(name, value)
    if read is None:
        return {}
    if name == "pipelining":
        dashes = "-" if len(option) == 1 else "--"
        return {name: read, "pipelined_by": f"{dashes}{option} {value}"}
    return {name: read}


def _value_of(name: str, value: str) -> object:
    if name in FLAGS:
        return True
    if name in {"host", "path", "script", "url"}:
        return value or None
    if name in {"demanded_rps", "each_rps"}:
        return _rate(value) or None
    numeral = _DURATION.match(value)
    if name == "requests" and (many := _MANY.match(value)):
        return int(float(many[1]) * _THOUSANDS[many[2].lower()])
    if name == "time_limit_s":
        text = f"{value}s" if numeral and numeral[2] is None else value.lower()
        length_ms = in_ms(text) if text else None
        return None if length_ms is None else length_ms / 1000
    return int(numeral[1]) if numeral and numeral[2] is None else None


def _rate(value: str) -> float | None:
    """Read `2000`, and vegeta's and plow's `50/1s`, `100/m`."""
    numeral, slash, unit = value.partition("/")
    if not _RATE.match(numeral):
        return None
    if not slash:
        return float(numeral)
    unit_ms = in_ms(unit if unit[:1].isdigit() else f"1{unit}")
    return float(numeral) * 1000 / unit_ms if unit_ms else None


def _pipelining_by(script: str, words: list[str]) -> dict[str, Any]:
    """Return the pipelining of wrk's `-s pipeline.lua -- 16`."""
    if not script or not _PIPELINE.match(script):
        return {}
    after = words[words.index("--") + 1 :] if "--" in words else []
    depth = next((int(word) for word in after if word.isdecimal() and len(word) < 6), SEVERAL)
    return {"pipelining": depth, "pipelined_by": f"-s {script}"}


def prints_for(tool: str) -> str:
    return with_commands()[tool].name if tool in with_commands() else tool


def is_another(command: Command, output: Output) -> bool:
    """Whether an output can't be of this command, by its connections or number of requests."""
    asked, printed = command.concurrency, output.concurrency
    if asked and printed and asked != printed and not _command_line(output.tool).users_vary:
        return True
    if command.time_limit_s or command.unread or not command.requests or not output.requests:
        return False
    most = (printed or asked or 1) * (command.streams or 1)
    return output.requests > MORE * command.requests + most


def with_command(output: Output, command: Command) -> Output:
    """Return an output with what its command line says."""
    if command.streams and output.protocol == "http/1.1":  # that is what h2load's -m means there
        by = f"-m {command.streams}"
        command = replace(command, streams=None, pipelining=command.streams, pipelined_by=by)
    is_known = command.whole and not command.unread
    defaults = _command_line(output.tool).defaults if is_known else {}
    concurrency = output.concurrency or command.concurrency
    if concurrency is None and defaults:
        concurrency = min(defaults["concurrency"], command.requests or defaults["requests"])
    each_rps = command.each_rps * (concurrency or 1) if command.each_rps else None
    demanded = output.demanded_rps or command.demanded_rps or each_rps
    # wrk has no -R: whatever its output looks like, with one it is wrk2.
    wrk2 = output.tool == "wrk" and command.demanded_rps is not None
    return replace(
        output,
        tool="wrk2" if wrk2 else output.tool,
        command=command,
        host=output.host or command.host,
        port=output.port or command.port,
        path=output.path or command.path,
        pipelining=output.pipelining or command.pipelining or 1,
        streams=command.streams or (1 if command.whole else None),
        concurrency=concurrency,
        keepalive_requested=output.keepalive_requested or command.keepalive or None,
        time_limit_s=command.time_limit_s or output.time_limit_s,
        demanded_rps=demanded,
        loop="open" if command.open_loop else output.loop or "closed",
    )
