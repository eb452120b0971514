"""The command line. One file per command; each is imported only when it is called."""

import sys

from cyclopts import App

from webdyno.cli.exits import Exit
from webdyno.model.mistake import Mistake, Trouble

EPILOGUE = """
Exit codes: 0 done · 1 the measurement can't be believed (verdict invalid) · 2 a mistake in the
command, a file or a setting · 3 a server or tool failed on this machine · 130 interrupted.
"""

app = App(
    name="webdyno",
    help="A dynamometer for web stacks: which one is faster, by how much, how sure, and why.",
    help_epilogue=EPILOGUE,
    version_flags=["--version"],
)
app.command("webdyno.cli.run:run")
app.command("webdyno.cli.report:report")
app.command("webdyno.cli.stacks:stacks")
app.command("webdyno.cli.up:up")
app.command("webdyno.cli.doctor:doctor")
app.command("webdyno.cli.load:load", help="Put load on a URL: the engine's own command line.")


def main() -> None:
    """Run the command line and end the process with the exit code that fits."""
    try:
        if sys.argv[1:2] == ["load"]:  # the engine reads its own flags, --help among them
            from webdyno.cli.load import load

            load(*sys.argv[2:])
        code = app(result_action="return_value")
    except Mistake as mistake:
        _complain(str(mistake))
        code = Exit.MISTAKE
    except Trouble as trouble:
        _complain(str(trouble))
        code = Exit.FAILED
    except KeyboardInterrupt:
        _complain("interrupted")
        code = Exit.INTERRUPTED
    sys.exit(code)


def _complain(text: str) -> None:
    print(f"webdyno: {text}", file=sys.stderr)  # noqa: T201
