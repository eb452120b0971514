"""`webdyno audit`: what can't be believed about somebody's benchmark, and why."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.model.mistake import Mistake, Trouble

STANDARD_INPUT = "-"
STANDARD_INPUT_DESCRIPTOR = 0


def audit(
    file: Annotated[
        str,
        Parameter(
            help="A text with outputs of load generators; - reads standard input.",
            allow_leading_hyphen=True,
        ),
    ],
    *,
    json: Annotated[bool, Parameter(help="Print the findings as JSON.", negative=())] = False,
) -> Exit:
    """Say what can't be believed about a benchmark, why, and how to measure it instead.

    Reads outputs of ab, httperf, autobench, wrk, wrk2, h2load, hey, oha, siege and
    redis-benchmark, several of them in one text as well, with prose and tables between them.
    The exit code is 1 when something is seriously wrong.

    For example

        ab -k -c 50 -n 100000 http://127.0.0.1:8080/ | webdyno audit -

        webdyno audit article.txt --json
    """
    from webdyno.audit import READABLE, WIDTH, read_lines, shown
    from webdyno.audit import audit as audit_lines

    name = "standard input" if file == STANDARD_INPUT else file
    with _opened(file, name) as stream:
        found = audit_lines(read_lines(stream))
    if not found.read:
        raise Mistake(
            f"{name}: no output of a known load generator, no command of one and no table of "
            f"figures is in it. webdyno audit reads what {READABLE} print"
        )
    with _output_that_may_fail():
        if json:
            print(found.model_dump_json(indent=2), flush=True)  # noqa: T201
        else:
            console = plain_console()
            width = min(console.width, WIDTH)
            console.print(shown(found, name), width=width, highlight=False)
    return Exit.INVALID if found.serious else Exit.OK


@contextmanager
def _opened(file: str, name: str) -> Iterator[BufferedReader]:
    try:
        with open(_source(file), "rb") as stream:  # noqa: PTH123 (a Path has no descriptor)
            yield stream
    except OSError as error:
        raise Mistake(f"{name}: {(error.strerror or str(error)).lower()}") from None


def _source(file: str) -> str | int:
    return STANDARD_INPUT_DESCRIPTOR if file == STANDARD_INPUT else file


@contextmanager
def _output_that_may_fail() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # What is left in the buffer would fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # `| head` has read enough
            raise Trouble(f"the result could not be printed: {error.strerror}") from None
