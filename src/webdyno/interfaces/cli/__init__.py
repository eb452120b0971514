"""The command line: one file per command, imported when it is called.

Habits of those who know curl, oha, wrk, k6 and others are understood: `help compare`, `version`,
`--duration 30s`, `-n 1000`, `--rate 2k`. A flag that a command has itself means what it says there.
"""

import logging
import os
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, get_args

from cyclopts import App, CycloptsError, Parameter

from webdyno.core.debug_log import debug_log
from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import DEBUG, commands
from webdyno.launch.ending import (
    end_by_signals,
    end_with,
    leave_matrices_one_thread,
    leave_session_keyring,
    reported_end,
)

STDOUT, STANDARD_STREAMS = 1, 3
HELP = ("--help", "-h", "--help-all")
Shell = Literal["bash", "zsh", "fish"]

logger = logging.getLogger(__name__)


def main() -> None:
    """Run the command line and end the process with the exit code that fits."""
    end_by_signals()
    _prepare_output()
    leave_matrices_one_thread()
    leave_session_keyring()
    end_with(run_command_line(sys.argv[1:]))


def _prepare_output() -> None:
    """Make output possible where it was closed, or can't show all of our signs."""
    for number in range(STANDARD_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # else the next file opened would get what is printed
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def app() -> App:
    """Return the command line; a command is imported when it is called."""
    app = App(
        name="webdyno",
        version_flags=["--version"],
        help_flags=[],
        default_parameter=Parameter(negative=()),
    )
    for name, command in commands().items():
        app.command(command.typed, name=name)
    return app


def run_command_line(words: Sequence[str]) -> int:
    """Run a command line without its first word; return the exit code that fits."""
    name = next(iter(words), "")
    try:
        words, debug_file = take_debug_file(words)
        words = in_webdynos_words(words)
        name = next(iter(words), "")
        with debug_log(words, debug_file):
            code = _run(words, name)
            logger.debug("exit code %d", code)
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        _drop_what_cannot_be_printed()
        return Exit.NOT_READ
    except SystemExit as end:
        # rich ends the process with 1, which to us is an invalid verdict, when nobody reads on.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        _drop_what_cannot_be_printed()
        return Exit.NOT_READ
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (a script takes 1 for a verdict)
        if isinstance(error, OSError):
            _drop_what_cannot_be_printed()
        return reported_end(error, name)
    return code


def take_debug_file(words: Sequence[str]) -> tuple[list[str], Path | None]:
    """Return a command line without the flag that all commands have, and the file that it names.

    Raise UserError where it names none.
    """
    kept: list[str] = []
    file = None
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if flag != DEBUG:
            kept.append(word)
        elif name := value if equals else next(rest, ""):
            file = Path(name)
        else:
            raise UserError(f"{DEBUG} lacks its file: {DEBUG} FILE")
        if word == "--":
            break
    return [*kept, *rest], file


def _run(words: list[str], name: str) -> int:
    if name == "--completion":
        return _print_completion(words[1:])
    if not words or name in HELP:
        return _print_help("", everything=False)
    before_end = words[: words.index("--")] if "--" in words else words
    if name in commands() and (asked := [word for word in before_end if word in HELP]):
        return _print_help(name, everything="--help-all" in asked)
    try:
        code: int = app()(
            words,
            result_action="return_int_as_exit_code_else_zero",
            exit_on_error=False,
            print_error=False,
            help_on_error=False,
        )
    except CycloptsError as error:
        from webdyno.interfaces.cli.help import in_our_words

        raise in_our_words(error, name) from None
    return code


def _print_completion(words: Sequence[str]) -> Exit:
    """Print what lets a shell complete commands and flags; raise UserError for another one."""
    for shell in get_args(Shell):
        if list(words) == [shell]:
            print(app().generate_completion(shell=shell))  # noqa: T201 (a script, as it is)
            return Exit.OK
    raise UserError(f"--completion takes one of {', '.join(get_args(Shell))}")


def _print_help(name: str, *, everything: bool) -> Exit:
    from webdyno.interfaces.cli.help import help_page

    print(help_page(app(), name, everything=everything), end="")  # noqa: T201
    return Exit.OK


def _drop_what_cannot_be_printed() -> None:
    """Keep Python from trying again at its end, and from complaining then."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


OUR_NAMES = {
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
TAKE_NUMBERS = {
    *("-c", "--connections", "--rate", "--count", "--burst", "--conn-rate", "--rate-per-conn"),
}
DURATION = re.compile(r"\d+(\.\d+)?(ms|s|m|h)")
THOUSANDS = re.compile(r"(\d+(?:\.\d+)?)([kKmM])")
FACTORS = {"k": 1e3, "m": 1e6}
ATTACHED = re.compile(r"(-[cdnqtzHX])([^-=].*)", re.DOTALL)
"""A value that follows its flag's letter at once: `-c64`."""
NOT_NEEDED = {
    "--json": "the results are printed as JSON by `webdyno report last --format json`",
    "--list": "`webdyno list` shows what there is",
    "--count": "webdyno measures until the answer is sure, at most for --time",
    "--threads": "the load generator takes the CPUs that it needs; --server-cores is for servers",
}
"""Flags that a command hasn't and needn't have, and what does it instead."""
WITHOUT_VALUE = {"--json", "--insecure", "-k", "-v"}
FOREIGN = {*OUR_NAMES, *BY_VALUE, "--json", "--url", "--insecure", "-k"}


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
        if flag in TAKE_NUMBERS:
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
    wanted = OUR_NAMES.get(flag) or BY_VALUE.get(flag, flag)
    if flag in BY_VALUE and DURATION.fullmatch(value):
        wanted = "--time"
    elif flag == "-d" and value.isdecimal():
        raise UserError(f"-d {value}: write --time {value}s or --data {value}")
    if wanted not in has:
        instead = NOT_NEEDED.get(wanted, f"`webdyno {name} --help-all` lists all")
        raise UserError(f"{name} has no flag {flag}; {instead}")
    if flag == "-v":
        yield wanted
    else:
        yield f"{wanted}={_plain_number(value) if wanted in TAKE_NUMBERS else value}"


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
