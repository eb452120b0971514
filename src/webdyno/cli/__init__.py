"""The command line: one file per command. What is heavy is imported when a command needs it."""

import sys

from cyclopts import App

from webdyno.cli.audit import audit
from webdyno.cli.calibrate import calibrate
from webdyno.cli.compare import compare
from webdyno.cli.doctor import doctor
from webdyno.cli.duel import duel
from webdyno.cli.exits import Exit
from webdyno.cli.export import export
from webdyno.cli.interrupts import end_by_signals
from webdyno.cli.load import load
from webdyno.cli.report import report
from webdyno.cli.resume import resume
from webdyno.cli.run import run
from webdyno.cli.setup import setup
from webdyno.cli.stacks import stacks
from webdyno.cli.studies import studies
from webdyno.cli.up import up
from webdyno.model.mistake import Mistake, Trouble

EPILOGUE = """
Exit codes: 0 done · 1 the measurement can't be believed (verdict invalid) · 2 a mistake in the
command, a file or a setting · 3 a server or tool failed on this machine · 4 worse than before, or
5 too close to call (both only of `compare`) · 130 interrupted.
"""

app = App(
    name="webdyno",
    help="A dynamometer for web stacks: which one is faster, by how much, how sure, and why.",
    help_epilogue=EPILOGUE,
    version_flags=["--version"],
)
for command in (
    run,
    duel,
    resume,
    report,
    compare,
    export,
    studies,
    stacks,
    setup,
    up,
    doctor,
    load,
    audit,
    calibrate,
):
    app.command(command)


def main() -> None:
    """Run the command line and end the process with the exit code that fits."""
    code: int = Exit.MISTAKE
    end_by_signals()
    try:
        if sys.argv[1:2] == ["load"]:  # the engine reads its own flags, --help among them
            load(*sys.argv[2:])
        code = app(result_action="return_int_as_exit_code_else_zero")
    except Mistake as mistake:
        _complain(str(mistake))
    except Trouble as trouble:
        _complain(str(trouble))
        code = Exit.FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        code = Exit.INTERRUPTED
    sys.exit(code)


def _complain(text: str) -> None:
    print(f"webdyno: {text}", file=sys.stderr)  # noqa: T201
