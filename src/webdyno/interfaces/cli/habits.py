"""Habits of those who know curl, oha, wrk, k6 and others: their words, and webdyno's for them.

`help compare`, `version`, `--duration 30s`, `-n 1000`, `--rate 2k`. A flag that a command has
itself means what it says there.
"""

import re
from collections.abc import Collection, Iterator, Sequence

from webdyno.core.errors import UserError
from webdyno.core.registry import commands

SAME = {
    "--duration": "--time",
    "-z": "--time",
    "--concurrency": "--connections",
    "--clients": "--connections",
    "--users": "--connections",
    "--vus": "--connections",
    "--rps": "--rate",
    "--qps": "--rate",
    "--requests": "--count",
    "--iterations": "--count",
    "-n": "--count",
    "--headers": "--header",
    "-H": "--header",
    "--request": "--method",
    "-X": "--method",
    "--body": "--data",
    "--data-raw": "--data",
    "--baseline": "--base",
    "--threshold": "--fail-if",
    "--out": "--output",
    "-q": "--rate",
    "-v": "--verbose",
}
BY_VALUE = {"-d": "--data", "-t": "--threads"}
"""Flags that mean the time where a duration follows, as with wrk and ab."""
NUMBERS = {
    *("-c", "--connections", "--rate", "--count", "--burst", "--conn-rate", "--rate-per-conn"),
}
DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|h)")
THOUSANDS = re.compile(r"(\d+(?:\.\d+)?)([kKmM])")
FACTORS = {"k": 1e3, "m": 1e6}
ATTACHED = re.compile(r"(-[cdnqtzHX])([^-=].*)", re.DOTALL)
"""A value that follows its flag's letter at once: `-c64`."""
ELSEWHERE = {
    "--json": "the results are printed as JSON by `webdyno report last --format json`",
    "--list": "`webdyno list` shows what there is",
    "--count": "webdyno measures until the answer is sure, at most for --time",
    "--threads": "the load generator takes the CPUs that it needs; --server-cores is for servers",
}
"""Flags that a command hasn't and needn't have, and what does it instead."""
WITHOUT_VALUE = {"--json", "--insecure", "-k", "-v"}
FOREIGN = {*SAME, *BY_VALUE, "--json", "--url", "--insecure", "-k"}


def in_webdynos_words(words: Sequence[str]) -> list[str]:
    """Return a command line with the words of other tools replaced; raise UserError for some."""
    match words:
        case ["help"]:
            return ["--help"]
        case ["help", name, *_]:
            return [name, "--help"]
        case ["version" | "-V"]:
            return ["--version"]
        case [name, *rest] if name in commands() and name != "traffic":
            return [name, *_translated(name, rest)]
        case _:
            return list(words)


def _translated(name: str, words: Sequence[str]) -> Iterator[str]:
    end = words.index("--") if "--" in words else len(words)
    ours = [part for word in words[:end] for part in _taken_apart(word)]
    has = flags_of(name) if any(word.partition("=")[0] in FOREIGN for word in ours) else set()
    rest = iter(ours)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag in NUMBERS:
            yield f"{flag}={_plain_number(value)}" if equals else flag
            if not equals and (number := next(rest, None)) is not None:
                yield _plain_number(number)
        elif flag not in FOREIGN or flag in has:
            yield word
        else:
            value = value if equals or flag in WITHOUT_VALUE else next(rest, "")
            yield from _in_our_flag(name, flag, value, has)
    yield from words[end:]


def _taken_apart(word: str) -> list[str]:
    attached = ATTACHED.fullmatch(word)
    return [*attached.groups()] if attached else [word]


def flags_of(name: str) -> set[str]:
    """Return all flags of a command."""
    from webdyno.interfaces.cli import app

    whole = app()
    arguments = whole[name].assemble_argument_collection(
        default_parameter=whole.default_parameter, parse_docstring=False
    )
    return {flag for argument in arguments if argument.index is None for flag in argument.names}


def _in_our_flag(name: str, flag: str, value: str, has: Collection[str]) -> Iterator[str]:
    if flag == "--url":
        yield value
        return
    if flag == "--json" and "--format" in has:
        yield from ("--format", "json")
        return
    if flag in {"-k", "--insecure"} and "--tls-verify" in has:
        yield "--tls-verify=off"
        return
    wanted = SAME.get(flag) or BY_VALUE.get(flag, flag)
    if flag in BY_VALUE and DURATION.fullmatch(value):
        wanted = "--time"
    elif flag == "-d" and value.isdecimal():
        raise UserError(f"-d {value}: write --time {value}s or --data {value}")
    if wanted not in has:
        instead = ELSEWHERE.get(wanted, f"`webdyno {name} --help-all` lists all")
        raise UserError(f"{name} has no flag {flag}; {instead}")
    if flag == "-v":
        yield wanted
    else:
        yield f"{wanted}={_plain_number(value) if wanted in NUMBERS else value}"


def _plain_number(text: str) -> str:
    """Return `2000` for `2k`, of several each; anything else as it is."""
    parts = [THOUSANDS.fullmatch(part) for part in text.split(",")]
    if not any(parts):
        return text
    numbers = [
        f"{float(match[1]) * FACTORS[match[2].lower()]:.12g}" if match else part
        for part, match in zip(text.split(","), parts, strict=True)
    ]
    return ",".join(numbers)
