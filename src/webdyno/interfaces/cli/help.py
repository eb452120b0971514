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
from webdyno.interfaces.cli.flags import RARE

WIDTH = 80
FLAG_COLUMNS = 25
"""Columns of a flag, with what it wants."""
QUOTED, UNBROKEN = re.compile(r"'[^']*'"), "\N{NO-BREAK SPACE}"
"""What a shell takes as one word, and what stands for its spaces while lines are filled."""
ALL = "--help-all"
OPTIONS = "Options"
GROUPS = {
    OPTIONS: "",
    "Systems": "--site --set --catalog --dir --env --backend --containers --service --setup "
    "--prepare --ready --ready-within --root --vary",
    "Traffic": "--path --method --header --data --traffic --connections --host --generator "
    "--ignore --same-bodies",
    "Precision and time": "--time --precision --question --soak --explain --fail-if",
    "Network and hosts": "--testbed --link --delay --loss --server-cores --cluster "
    "--loads-other-machines --target-is-mine",
    "Output": "--output --format --yes --report --quiet --verbose",
}
"""Flags that several commands have, by what they are about; a command's own come first."""
FIRST_PAGE = {
    *("--site", "--set", "--path", "--method", "--header", "--data", "--traffic"),
    *("--connections", "--time", "--precision", "--fail-if", "--explain", "--output"),
    *("--format", "--yes"),
}
"""Of these flags, the ones that `--help` shows."""
WANTED = re.compile(r"(?P<wanted>[A-Z][A-Z,:=…-]*[A-Z…]|[A-Z]+=[A-Z,…]+): +(?P<does>.*)", re.DOTALL)
INTRODUCES = "For example"
AGAIN = "…"
NEAR = 2
"""Letters that may differ in what somebody can have meant."""
MOST_LETTERS = 100
"""Of a word that messages show."""


class HelpLine(NamedTuple):
    """A flag or argument, and what it does."""

    name: str
    does: str


def help_page(app: App, name: str, *, everything: bool) -> str:
    """Return the page of a command; of webdyno as a whole without a name."""
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
            yield from _fill(f"  {each.name:<{width}}  ", each.does)
    yield ""
    yield "Exit codes"
    for code, meaning in MEANINGS.items():
        yield from _fill(f"  {code.value:>3}  ", meaning)
    yield ""
    yield "webdyno COMMAND --help: the most common flags, examples; --help-all: all flags."
    yield f"webdyno COMMAND {DEBUG} FILE: also log what happens, line by line, to FILE."
    yield "webdyno --completion SHELL: completion for bash, zsh or fish. webdyno --version."


def _command_page(app: App, name: str, *, everything: bool) -> Iterator[str]:
    command = app[name]
    said, _, examples = command.help.partition(INTRODUCES)
    summary, *paragraphs = (" ".join(part.split()) for part in said.split("\n\n") if part.strip())
    collection = command.assemble_argument_collection(
        default_parameter=app.default_parameter, parse_docstring=False
    )
    shown = [each for each in collection if each.parameter.show is not False and not each.children]
    positional = [argument for argument in shown if argument.index is not None]
    flags = [argument for argument in shown if argument.index is None]
    chosen = [flag for flag in flags if everything or _is_first(flag)]
    yield from _fill("", summary)
    yield ""
    words = "".join(f" {_usage(argument)}" for argument in positional)
    repeatable = any(AGAIN in _help_line(argument).name for argument in chosen)
    again = f"   ({AGAIN}: may be given again)" if repeatable else ""
    yield f"Usage: webdyno {name}{words}{' [FLAGS]' if flags else ''}{again}"
    for paragraph in [] if everything else paragraphs:
        yield ""
        yield from _fill("", paragraph)
    if positional and not everything:
        yield ""
    for place in positional:
        yield from _lines_of(place)
    for group, names in GROUPS.items():
        order = names.split()
        members = [flag for flag in chosen if _group_of(flag) == group]
        if order:
            members.sort(key=lambda flag, order=order: order.index(_flag(flag)))  # type: ignore[misc]
        if members:
            yield ""
            yield group
        for member in members:
            yield from _lines_of(member)
    if everything:
        return
    yield from _examples([line.strip() for line in examples.splitlines() if line.strip()])
    if len(chosen) < len(flags):
        yield ""
        further = f"all {len(flags)} flags" if len(flags) > 1 else "its flag"
        yield f"webdyno {name} {ALL} shows {further}."


def _lines_of(argument: Argument) -> list[str]:
    line = _help_line(argument)
    return _fill(f"  {line.name:<{FLAG_COLUMNS}}", line.does)


def _examples(lines: Sequence[str]) -> Iterator[str]:
    if not lines:
        return
    yield ""
    yield "Examples"
    for line in lines:
        if len(line) + 2 <= WIDTH:
            yield f"  {line}"
            continue
        typed, sign, comment = line.partition(" # ")
        whole = QUOTED.sub(lambda quoted: quoted[0].replace(" ", UNBROKEN), typed.rstrip())
        for part in _fill("  ", whole, rest="      "):
            yield part.replace(UNBROKEN, " ")
        if sign:
            yield from _fill("      # ", comment)


def _group_of(flag: Argument) -> str:
    return next((group for group, names in GROUPS.items() if _flag(flag) in names.split()), OPTIONS)


def _is_first(flag: Argument) -> bool:
    name = _flag(flag)
    is_rare = flag.parameter.group == (RARE,)
    return name in FIRST_PAGE or (_group_of(flag) == OPTIONS and not is_rare)


def _flag(argument: Argument) -> str:
    long = next((name for name in argument.names if name.startswith("--")), None)
    return long or next(iter(argument.names), str(argument.field_info.name))


def _help_line(argument: Argument) -> HelpLine:
    text = argument.parameter.help or ""
    match = WANTED.fullmatch(text)
    wanted, does = (match["wanted"], match["does"]) if match else ("", text)
    if does.partition(" ")[0].isalpha():
        does = does[:1].upper() + does[1:]
    name = _flag(argument)
    if argument.index is not None:
        return HelpLine(wanted or name.upper(), f"{does}{_default(argument)}")
    short = next((each for each in argument.names if len(each) == 2), "")
    if any(argument.parameter.negative or ()):
        name = "--[no-]" + name.removeprefix("--")
    words = f"{short}, {name}" if short else name
    again = AGAIN if "Sequence" in str(argument.hint) else ""
    return HelpLine(f"{words} {wanted}{again}".rstrip(), f"{does}{_default(argument)}")


def _default(argument: Argument) -> str:
    """Return what counts where a flag isn't given, as a person writes it."""
    value = argument.field_info.default
    is_said = "[default:" in (argument.parameter.help or "")
    if is_said or not value or isinstance(value, bool | type):
        return ""
    if isinstance(value, tuple | list):
        return f" [default: {', '.join(map(str, value))}]"
    return f" [default: {value:g}]" if isinstance(value, float) else f" [default: {value}]"


def _usage(argument: Argument) -> str:
    name = _help_line(argument).name
    kind = argument.field_info.kind
    if kind == kind.VAR_POSITIONAL:
        return f"[{name}…]"
    return name if argument.required else f"[{name}]"


def _fill(first: str, text: str, rest: str | None = None) -> list[str]:
    """Fill lines; one that is too long for its column begins on a line of its own."""
    indent = " " * len(first) if rest is None else rest
    if rest is None and len(first.rstrip()) > FLAG_COLUMNS + 1 and first.startswith("  -"):
        indent = " " * (FLAG_COLUMNS + 2)
        return [first.rstrip(), *_fill(indent, text)]
    return textwrap.wrap(
        text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False
    ) or [first]


def in_our_words(error: CycloptsError, name: str) -> UserError:
    """Return what is wrong with a command line."""
    if name not in commands() or isinstance(error, UnknownCommandError):
        near = _nearest(name, [*commands()])
        what = f"there is no command {name!r:.{MOST_LETTERS}}{near}"
        return UserError(f"{what} `{command('--help')}` lists all")
    all_flags = f"`{command(name, '--help-all')}` lists all"
    match error:
        case UnknownOptionError():
            flag = (error.token.keyword or error.token.value or "").partition("=")[0]
            known = [name for each in error.argument_collection for name in each.names] + [DEBUG]
            near = _nearest(flag, known)
            return UserError(f"{name} has no flag {flag:.{MOST_LETTERS}}{near} {all_flags}")
        case MissingArgumentError(argument=Argument() as argument):
            lacking = f"{name} lacks {_typed_name(argument)}"
            if error.keyword:
                lacking = f"{error.keyword} lacks its value"
            return UserError(f"{lacking}: {_what_it_wants(argument)}")
        case CoercionError(argument=Argument() as argument):
            said = f"{_typed_name(argument)} {error.token.value if error.token else ''}".strip()
            wants = _what_it_wants(argument)
            if argument.hint is int and error.token:
                value = error.token.value
                return UserError(f"{error.token.keyword} takes a whole number, not {value!r}")
            return UserError(f"{said:.{MOST_LETTERS}} can't be read; wanted is {wants}")
        case RepeatArgumentError():
            return UserError(f"{error.token.keyword}: is given twice; give it once")
        case UnusedCliTokensError():
            words = " ".join(error.unused_tokens or [])
            if name == "gate":
                return UserError(f"gate takes no revision alone; did you mean --base {words}?")
            return UserError(f"{name} has no use for {words!r:.{MOST_LETTERS}}; {all_flags}")
        case _:
            return UserError(f"{name}: {' '.join(str(error).split())}")


def _nearest(name: str, known: Sequence[str]) -> str:
    near = [each for each in get_close_matches(name, known, n=1) if _distance(name, each) <= NEAR]
    return f"; did you mean {near[0]}?" if near else ";"


def _distance(one: str, other: str) -> int:
    """Return how many letters have to be added, dropped or exchanged to get from one to another."""
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        before, row = row, [place]
        for column, other_letter in enumerate(other, 1):
            exchanged = before[column - 1] + (letter != other_letter)
            row.append(min(row[-1] + 1, before[column] + 1, exchanged))
    return row[-1]


def _typed_name(argument: Argument) -> str:
    return max(argument.names, key=len) if argument.index is None else _help_line(argument).name


def _what_it_wants(argument: Argument) -> str:
    does = _help_line(argument).does
    return f"{does[:1].lower()}{does[1:]}".partition(" [default")[0].rstrip(".")
