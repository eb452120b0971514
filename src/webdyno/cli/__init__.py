"""The command line: one file per command, imported when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from cyclopts import App, Group, Parameter

from webdyno.lab.ending import Exit, end_by_signals, leave_matrices_one_thread, told_end
from webdyno.model.command import COMMANDS_FOR

STDOUT, STANDARD_STREAMS = 1, 3

EPILOGUE = """
Exit codes: 0 done · 1 the measurement can't be believed (verdict invalid) · 2 a mistake in the
command, a file or a setting · 3 a server, a tool or the disk failed on this machine · 4 worse than
before, or as --fail-on names · 5 inconclusive (both of compare, fleet, gate and --fail-on)
· 130 interrupted · 141 nobody read the output to its end.
"""


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


def app(called: str | None = None) -> App:
    """Give the command line; a command is imported when it is called.

    The command that is `called` tells of itself in full, with examples; the others in a sentence.
    """
    app = App(
        name="webdyno",
        help="A dynamometer for web stacks: which one is faster, by how much, how sure, and why.",
        help_epilogue=EPILOGUE,
        version_flags=["--version"],
        default_parameter=Parameter(negative=(), show_default=_default_in_words),
    )
    for place, (wanted, commands) in enumerate(COMMANDS_FOR.items()):
        group = Group(wanted, sort_key=place)
        for rank, (name, does) in enumerate(commands.items()):
            path = f"webdyno.cli.{name}:{name}"
            told = {} if name == called else {"help": does}
            app.command(path, name=name, group=group, sort_key=rank, **told)
    return app


def _default_in_words(value: object) -> str | None:
    """Say in a command's help what counts where a flag isn't given; None where it is nothing."""
    if not value or isinstance(value, bool):
        return None
    return " ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def run_command_line(words: Sequence[str]) -> int:
    """Run a command line without its first word; give the exit code that fits."""
    try:
        if words and words[0] == "load":  # the engine reads its own flags, --help among them
            import_module("webdyno.cli.load").load(*words[1:])
        code: int = app(next(iter(words), None))(
            words, result_action="return_int_as_exit_code_else_zero"
        )
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
        return told_end(error, next(iter(words), ""))
    return code


def _unread() -> Exit:
    _drop_what_cannot_be_printed()
    return Exit.NOT_READ


def _drop_what_cannot_be_printed() -> None:
    """Keep Python from trying again at its end, and from complaining then."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
