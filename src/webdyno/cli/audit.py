"""`webdyno audit`: what can't be believed about somebody's benchmark, and why."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from webdyno.cli.flags import TEXT, Format, is_json
from webdyno.model.errors import OperationError, UserError
from webdyno.model.exit_codes import Exit
from webdyno.report.console import plain_console

if TYPE_CHECKING:
    from webdyno.audit.judge import Audit

STANDARD_INPUT = "-"
STANDARD_INPUT_DESCRIPTOR = 0


def audit(
    file: Annotated[
        str,
        Parameter(
            help="FILE: a text with outputs of load generators; - reads standard input.",
            allow_leading_hyphen=True,
        ),
    ],
    *,
    format_: Format = TEXT,
) -> Exit:
    """Find what can't be believed in a benchmark's output, and why.

    Reads outputs of ab, autobench, autocannon, bombardier, Gatling, ghz, h2load, hey, httperf,
    JMeter, k6, Locust, oha, plow, redis-benchmark, rewrk, siege, vegeta, wrk, wrk2 and zrk.
    Several of them may stand in one text, with prose and tables between them.
    Exit code 1: something is seriously wrong; 2: nothing is, but something that looks like a result
    wasn't read.

    For example

        ab -k -c 50 -n 100000 http://127.0.0.1:8080/ | webdyno audit -

        webdyno audit article.txt --format json
    """
    from webdyno.audit.judge import audit_lines
    from webdyno.audit.show import WIDTH, audit_shown
    from webdyno.readers.lines import read_lines
    from webdyno.readers.tools import READABLE

    as_json = is_json(format_)
    name = "standard input" if file == STANDARD_INPUT else file
    with _opened(file, name) as stream:
        try:
            found = audit_lines(read_lines(stream))
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    if nothing := _nothing_to_judge(found):
        raise UserError(f"{name}: {nothing}. webdyno audit reads what {READABLE} print")
    with _output_that_may_fail():
        if as_json:
            print(found.model_dump_json(indent=2), flush=True)  # noqa: T201
        else:
            console = plain_console()
            with console.capture() as captured:
                width = min(console.width, WIDTH)
                console.print(audit_shown(found, name), width=width, highlight=False)
            lines = captured.get().splitlines()
            print("\n".join(line.rstrip() for line in lines), flush=True)  # noqa: T201
    if found.serious:
        return Exit.INVALID
    return Exit.OK if found.complete else Exit.USER_ERROR


def _nothing_to_judge(found: "Audit") -> str | None:
    """Say why there is nothing to show; None when there is."""
    from webdyno.audit.show import lines_of, unread_words

    if found.warnings or found.outputs or len(found.read) > len(found.commands):
        return None
    if found.not_read:
        return f"nothing in it can be judged: {unread_words(found.not_read[0])}"
    if found.commands:
        return f"the command in {lines_of(found.commands[0])} stands there without its output"
    return "no output of a known load generator, no command of one and no table of figures is in it"


@contextmanager
def _opened(file: str, name: str) -> Iterator[BufferedReader]:
    try:
        with open(_source(file), "rb") as stream:  # noqa: PTH123 (a Path has no descriptor)
            kind = os.fstat(stream.fileno()).st_mode
            if file != STANDARD_INPUT and not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
                raise UserError(f"{name}: neither a file nor a pipe")
            yield stream
    except OSError as error:
        raise UserError(f"{name}: {(error.strerror or str(error)).lower()}") from None


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
            raise OperationError(f"the result could not be printed: {error.strerror}") from None
