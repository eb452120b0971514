"""Commands of webdyno in the process of a test."""

from pathlib import Path

from webdyno.interfaces.cli import app


def webdyno(*arguments: str | Path | int) -> int:
    """Run a command and give its exit code."""
    return int(app()(list(map(str, arguments)), result_action="return_value"))
