"""`--help` and `--help-all`: pages that fit a terminal of 80 columns and 60 lines.

A page shows the flags that most people need, `--help-all` all of them, in groups. What a flag wants
stands at the beginning of its description, in capitals: `DURATION: time to measure`.
What isn't understood of a command line is said in the same words, with the nearest known name.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument
from cyclopts.exceptions import RepeatArgumentError

from webdyno.core.errors import MEANINGS, UserError
from webdyno.core.registry import DEBUG, command, commands

WIDTH = 80
FLAG_COLUMNS = 25
"""Columns of a flag, with what it wants."""
ALL = "--help-all"
OPTIONS = "Options"
GROUPS = {
    OPTIONS: "",
    "Systems": "--site --set --catalog --dir --env --backend --service --setup --prepare --ready "
    "--ready-within --root --vary",
    "Traffic": "--path --traffic --connections --host --generator --ignore --same-bodies",
    "Precision and time": "--time --precision --question --soak --explain --fail-if",
    "Network and hosts": "--testbed --link --delay --loss --server-cores --cluster "
    "--loads-other-machines --target-is-mine",
    "Output": "--output --format --yes --report --quiet --verbose",
}
"""Flags that several commands have, by what they are about; a command's own come first."""
FIRST_PAGE = {
    *("--site", "--set", "--path", "--traffic", "--connections"),
    *("--time", "--precision", "--fail-if", "--explain", "--output", "--format", "--yes"),
}
"""Of these flags, the ones that `--help` shows."""
RARE = {
    *("--think", "--think-distribution", "--seed", "--stage", "--times", "--conn-rate"),
    *("--requests-per-conn", "--poisson", "--max-backlog", "--zipf", "--replay", "--replay-speed"),
    *("--cookies", "--exclude-client-limited", "--window", "--source", "--slow-readers"),
    *("--slow-rate", "--idle-connections", "--http2", "--streams", "--cacert", "--tls-verify"),
    *("--expect-bytes", "--expect-sha256", "--cpus", "--ramp-up", "--kernel-times"),
    *("--conn-ramp", "--rate-per-conn", "--burst", "--prometheus", "--log-requests"),
    *("--resolve", "--ipv4", "--ipv6", "--cert", "--key", "--tls-version", "--bearer"),
    *("--tls-resumption", "--send-delay-budget"),
}
"""A command's own flags that only `--help-all` shows."""
WANTED = re.compile(r"(?P<wanted>[A-Z][A-Z,:=…-]*[A-Z…]|[A-Z]+=[A-Z,…]+): +(?P<does>.*)", re.DOTALL)
INTRODUCES = "For example"
AGAIN = "…"
MOST_LETTERS = 100
"""Of a word that messages show."""


class HelpLine(NamedTuple):
    """A flag or argument, and what it does."""

    name: str
    does: str


def help_page(app: App, name: str, *, everything: bool) -> str:
    """Give the page of a command; of webdyno as a whole without a name."""
    lines = _command_page(app, name, everything=everything) if name else _overview()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _overview() -> Iterator[str]:
    yield "Compare web servers and apps with statistics you can trust."
    yield ""
    yield "Usage: webdyno COMMAND"
    width = max(map(len, commands()))
    for group, members in groupby(commands().values(), key=attrgetter("wanted")):
        yield ""
        yield group
        for each in members:
            yield from _filled(f"  {each.name:<{width}}  ", each.does)
    yield ""
    yield "Exit codes"
    for code, meaning in MEANINGS.items():
        yield from _filled(f"  {code.value:>3}  ", meaning)
    yield ""
    yield "webdyno COMMAND --help: the most common flags, examples; --help-all: all flags."
    yield f"webdyno COMMAND {DEBUG} FILE: also log what happens, line by line, to FILE."
    yield "webdyno --completion SHELL: completion for bash, zsh or fish. webdyno --version."


def _command_page(app: App, name: str, *, everything: bool) -> Iterator[str]:
    command = app[name]
    says, examples = _parts(command.help)
    arguments = list(
        command.assemble_argument_collection(
            default_parameter=app.default_parameter, parse_docstring=False
        )
    )
    given = [
        argument
        for argument in arguments
        if argument.parameter.show is not False and argument.children == []
    ]
    positional = [argument for argument in given if argument.index is not None]
    flags = [argument for argument in given if argument.index is None]
    chosen = [flag for flag in flags if everything or _is_first(flag)]
    yield from _filled("", says[0])
    yield ""
    words = "".join(f" {_usage(argument)}" for argument in positional)
    again = (
        f"   ({AGAIN}: may be given again)"
        if any(AGAIN in shown(argument).name for argument in chosen)
        else ""
    )
    yield f"Usage: webdyno {name}{words}{' [FLAGS]' if flags else ''}{again}"
    if not everything:
        for paragraph in says[1:]:
            yield ""
            yield from _filled("", paragraph)
    if positional:
        if not everything:
            yield ""
        for place in positional:
            yield from _lines_of(place)
    for group, members in _grouped(chosen):
        yield ""
        yield group
        for member in members:
            yield from _lines_of(member)
    if not everything:
        yield from _examples(examples)
        if len(chosen) < len(flags):
            yield ""
            yield f"webdyno {name} {ALL} shows all {len(flags)} flags."


def _lines_of(argument: Argument) -> list[str]:
    line = shown(argument)
    return _filled(f"  {line.name:<{FLAG_COLUMNS}}", line.does)


def _parts(doc: str) -> tuple[list[str], list[str]]:
    """Take what a command says of itself apart: its paragraphs, and its examples."""
    said, _, examples = doc.partition(INTRODUCES)
    paragraphs = [" ".join(part.split()) for part in said.split("\n\n") if part.strip()]
    return paragraphs, [line.strip() for line in examples.splitlines() if line.strip()]


def _examples(lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield "Examples"
    for line in lines:
        if len(line) + 2 <= WIDTH:
            yield f"  {line}"
        else:
            yield from _filled("  ", line, rest="      ")


def _grouped(flags: Sequence[Argument]) -> Iterator[tuple[str, list[Argument]]]:
    for group, names in GROUPS.items():
        order = names.split()
        members = [flag for flag in flags if _group_of(flag) == group]
        if members:
            members.sort(key=lambda flag, order=order: order.index(_flag(flag)) if order else 0)  # type: ignore[misc]
            yield group, members


def _group_of(flag: Argument) -> str:
    return next((group for group, names in GROUPS.items() if _flag(flag) in names.split()), OPTIONS)


def _is_first(flag: Argument) -> bool:
    name = _flag(flag)
    return name in FIRST_PAGE or (_group_of(flag) == OPTIONS and name not in RARE)


def _flag(argument: Argument) -> str:
    """Give a flag's long name; of what stands by its place that one's."""
    long = next((name for name in argument.names if name.startswith("--")), None)
    return long or next(iter(argument.names), str(argument.field_info.name))


def shown(argument: Argument) -> HelpLine:
    """Give how a flag or argument stands in a page."""
    text = argument.parameter.help or ""
    match = WANTED.fullmatch(text)
    wanted, does = (match["wanted"], match["does"]) if match else ("", text)
    if does.partition(" ")[0].isalpha():
        does = does[:1].upper() + does[1:]
    name = _flag(argument)
    if argument.index is not None:
        return HelpLine(wanted or name.upper(), f"{does}{_default(argument)}")
    short = next((each for each in argument.names if len(each) == 2), "")
    negative = argument.parameter.negative
    if any(negative or ()):
        name = "--[no-]" + name.removeprefix("--")
    words = f"{short}, {name}" if short else name
    again = AGAIN if "Sequence" in str(argument.hint) else ""
    return HelpLine(f"{words} {wanted}{again}".rstrip(), f"{does}{_default(argument)}")


def _default(argument: Argument) -> str:
    """Say what counts where a flag isn't given, as a person writes it."""
    value = argument.field_info.default
    if (
        "[default:" in (argument.parameter.help or "")
        or not value
        or isinstance(value, bool | type)
    ):
        return ""
    if isinstance(value, tuple | list):
        return f" [default: {', '.join(map(str, value))}]"
    return f" [default: {value:g}]" if isinstance(value, float) else f" [default: {value}]"


def _usage(argument: Argument) -> str:
    name = shown(argument).name
    kind = argument.field_info.kind
    if kind == kind.VAR_POSITIONAL:
        return f"[{name}…]"
    return name if argument.required else f"[{name}]"


def _filled(first: str, text: str, rest: str | None = None) -> list[str]:
    """Fill lines; one that is too long for its column begins on a line of its own."""
    indent = " " * len(first) if rest is None else rest
    if rest is None and len(first.rstrip()) > FLAG_COLUMNS + 1 and first.startswith("  -"):
        indent = " " * (FLAG_COLUMNS + 2)
        return [first.rstrip(), *_filled(indent, text)]
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    ) or [first]


def in_our_words(error: CycloptsError, name: str) -> UserError:
    """Say what is wrong with a command line."""
    if name not in commands():
        return UserError(_no_command(name))
    all_flags = f"`{command(name, '--help-all')}` lists all"
    match error:
        case UnknownOptionError():
            flag = (error.token.keyword or error.token.value or "").partition("=")[0]
            known = [name for each in error.argument_collection for name in each.names] + [DEBUG]
            return UserError(
                f"{name} has no flag {flag:.{MOST_LETTERS}}{_nearest(flag, known)} {all_flags}"
            )
        case MissingArgumentError(argument=Argument() as argument):
            return UserError(_missing(name, argument, error.keyword))
        case CoercionError(argument=Argument() as argument):
            said = f"{_called(argument)} {error.token.value if error.token else ''}".strip()
            return UserError(f"{said:.{MOST_LETTERS}} can't be read; wanted is {_wanted(argument)}")
        case RepeatArgumentError():
            return UserError(f"{error.token.keyword}: is given twice; give it once")
        case UnusedCliTokensError():
            words = " ".join(error.unused_tokens or [])
            return UserError(f"{name} has no use for {words!r:.{MOST_LETTERS}}; {all_flags}")
        case UnknownCommandError():
            return UserError(_no_command(name))
        case _:
            return UserError(f"{name}: {' '.join(str(error).split())}")


def _no_command(name: str) -> str:
    near = _nearest(name, [*commands()])
    return f"there is no command {name!r:.{MOST_LETTERS}}{near} `{command('--help')}` lists all"


def _nearest(name: str, known: "list[str] | tuple[str, ...]") -> str:
    near = get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]}?" if near else ";"


def _missing(name: str, argument: Argument, keyword: str | None) -> str:
    if keyword:
        return f"{keyword} lacks its value: {_wanted(argument)}"
    return f"{name} lacks {_called(argument)}: {_wanted(argument)}"


def _called(argument: Argument) -> str:
    """Give a flag as it is typed; what stands by its place by what is wanted there."""
    if argument.index is None:
        return max(argument.names, key=len)
    return shown(argument).name


def _wanted(argument: Argument) -> str:
    does = shown(argument).does
    return f"{does[:1].lower()}{does[1:]}".partition(" [default")[0].rstrip(".")
