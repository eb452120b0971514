"""The command line: one file per command, imported when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    Parameter,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument
from cyclopts.exceptions import RepeatArgumentError

from webdyno.lab.ending import end_by_signals, leave_matrices_one_thread, told_end
from webdyno.model.command import COMMANDS, COMMANDS_FOR, command
from webdyno.model.errors import UserError
from webdyno.model.exit_codes import Exit

STDOUT, STANDARD_STREAMS = 1, 3
PLACES = {"list": "listing:list_known"}
"""Of commands that aren't called like their file and function: Python uses that name."""
HELP = ("--help", "-h", "--help-all")
SHOWN = 100
"""Letters of a word that messages show."""


def main() -> None:
    """Run the command line and end the process with the exit code that fits."""
    end_by_signals()
    _prepare_output()
    leave_matrices_one_thread()
    sys.exit(run_command_line(sys.argv[1:]))


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
    """Give the command line; a command is imported when it is called."""
    app = App(
        name="webdyno",
        version_flags=["--version"],
        help_flags=[],
        default_parameter=Parameter(negative=()),
    )
    for commands in COMMANDS_FOR.values():
        for name in commands:
            place = PLACES.get(name, f"{name}:{name}")
            app.command(f"webdyno.cli.{place}", name=name)
    return app


def run_command_line(words: Sequence[str]) -> int:
    """Run a command line without its first word; give the exit code that fits."""
    name = next(iter(words), "")
    try:
        code = _run(list(words), name)
        if sys.stdout:
            sys.stdout.flush()
    except BrokenPipeError:
        return _unread()
    except SystemExit as end:
        # rich ends the process with 1, which to us is an invalid verdict, when nobody reads on.
        if isinstance(end.__context__, BrokenPipeError):
            return _unread()
        raise
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 (a script takes 1 for a verdict)
        if isinstance(error, OSError):
            _drop_what_cannot_be_printed()
        return told_end(error, name)
    return code


def _run(words: list[str], name: str) -> int:
    if name == "--completion":
        return Exit(import_module("webdyno.cli.completion").print_completion(app(), words[1:]))
    if not words or name in HELP:
        return _print_help(app(), "", everything=False)
    before_end = words[: words.index("--")] if "--" in words else words
    if name in COMMANDS and (asked := [word for word in before_end if word in HELP]):
        return _print_help(app(), name, everything="--help-all" in asked)
    called = app()
    try:
        code: int = called(
            words,
            result_action="return_int_as_exit_code_else_zero",
            exit_on_error=False,
            print_error=False,
            help_on_error=False,
        )
    except CycloptsError as error:
        raise _in_our_words(error, name) from None
    return code


def _print_help(app: App, name: str, *, everything: bool) -> int:
    from webdyno.cli.help import help_page

    print(help_page(app, name, everything=everything), end="")  # noqa: T201
    return Exit.OK


def _unread() -> Exit:
    _drop_what_cannot_be_printed()
    return Exit.NOT_READ


def _drop_what_cannot_be_printed() -> None:
    """Keep Python from trying again at its end, and from complaining then."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)


def _in_our_words(error: CycloptsError, name: str) -> UserError:
    """Say what is wrong with a command line."""
    if name not in COMMANDS:
        return UserError(_no_command(name))
    all_flags = f"`{command(name, '--help-all')}` lists all"
    match error:
        case UnknownOptionError():
            flag = (error.token.keyword or error.token.value or "").partition("=")[0]
            known = [name for each in error.argument_collection for name in each.names]
            return UserError(
                f"{name} has no flag {flag:.{SHOWN}}{_nearest(flag, known)} {all_flags}"
            )
        case MissingArgumentError(argument=Argument() as argument):
            return UserError(_missing(name, argument, error.keyword))
        case CoercionError(argument=Argument() as argument):
            said = f"{_called(argument)} {error.token.value if error.token else ''}".strip()
            return UserError(f"{said:.{SHOWN}} can't be read; wanted is {_wanted(argument)}")
        case RepeatArgumentError():
            return UserError(f"{error.token.keyword}: is given twice; give it once")
        case UnusedCliTokensError():
            words = " ".join(error.unused_tokens or [])
            return UserError(f"{name} has no use for {words!r:.{SHOWN}}; {all_flags}")
        case UnknownCommandError():
            return UserError(_no_command(name))
        case _:
            return UserError(f"{name}: {' '.join(str(error).split())}")


def _no_command(name: str) -> str:
    near = _nearest(name, COMMANDS)
    return f"there is no command {name!r:.{SHOWN}}{near} `{command('--help')}` lists all"


def _nearest(name: str, known: "list[str] | tuple[str, ...]") -> str:
    from difflib import get_close_matches

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
    from webdyno.cli.help import shown

    return shown(argument).name


def _wanted(argument: Argument) -> str:
    from webdyno.cli.help import shown

    does = shown(argument).does
    return f"{does[:1].lower()}{does[1:]}".partition(" [default")[0].rstrip(".")
