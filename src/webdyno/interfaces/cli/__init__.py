"""The command line: one file per command, imported when it is called."""

import logging
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Literal, get_args

from cyclopts import App, CycloptsError, Parameter

from webdyno.core.debug_log import debug_log
from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import DEBUG, commands
from webdyno.launch.ending import (
    end_by_signals,
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
        from webdyno.interfaces.cli.habits import in_webdynos_words

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
