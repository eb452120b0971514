"""What can't be read of a command line, in our words, with the nearest name that there is."""

from difflib import get_close_matches

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.argument import Argument
from cyclopts.exceptions import RepeatArgumentError

from webdyno.model.command import COMMANDS, command
from webdyno.model.errors import UserError

SHOWN = 100
"""Letters of a word that messages show."""


def in_our_words(error: CycloptsError, name: str) -> UserError:
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
