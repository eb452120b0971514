"""`webdyno audit`: what can't be believed about somebody's benchmark, and why."""

import os
import stat
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.core.registry import as_called
from webdyno.interfaces.cli.flags import TEXT, Format, is_json
from webdyno.media.console import plain_console

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.audit import Audit, AuditWarning, Read

STANDARD_INPUT = "-"
STANDARD_INPUT_DESCRIPTOR = 0

WIDTH = 100
"""Columns that it takes at most."""
MOST_PLACES = 6
"""Places of one rule that are shown; JSON has them all."""
STYLES = {"serious": "bold red", "note": "bold yellow"}


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

    Reads outputs of ab, artillery, autobench, autocannon, bombardier, Gatling, ghz, h2load, hey,
    httperf, JMeter, k6, Locust, oha, plow, redis-benchmark, rewrk, siege, vegeta, wrk, wrk2 and
    zrk. Several of them may stand in one text, with prose and tables between them.
    Exit code 1: something is seriously wrong; 2: nothing is, but something that looks like a result
    wasn't read.

    For example

        ab -k -c 50 -n 100000 http://127.0.0.1:8080/ | webdyno audit -

        webdyno audit article.txt --format json
    """
    from webdyno.audit import audit_lines
    from webdyno.formats.text import read_lines
    from webdyno.formats.tools import readable

    as_json = is_json(format_)
    name = "standard input" if file == STANDARD_INPUT else file
    with _open_text(file, name) as stream:
        try:
            judged = audit_lines(read_lines(stream))
        except UserError as error:
            raise UserError(f"{name}: {error}") from None
    if nothing := _nothing_to_judge(judged):
        raise UserError(f"{name}: {nothing}. webdyno audit reads what {readable()} print")
    with _output_that_may_fail():
        if as_json:
            print(judged.model_dump_json(indent=2), flush=True)  # noqa: T201
        else:
            console = plain_console()
            with console.capture() as captured:
                width = min(console.width, WIDTH)
                console.print(_shown(judged, name), width=width, highlight=False)
            lines = captured.get().splitlines()
            print("\n".join(line.rstrip() for line in lines), flush=True)  # noqa: T201
    if judged.serious:
        return Exit.INVALID
    return Exit.OK if judged.complete else Exit.USER_ERROR


def _nothing_to_judge(audit: "Audit") -> str | None:
    if audit.warnings or audit.outputs or len(audit.read) > len(audit.commands):
        return None
    if audit.not_read:
        return f"nothing in it can be judged: {_unread_words(audit.not_read[0])}"
    if audit.commands:
        return f"the command in {_lines_of(audit.commands[0])} stands there without its output"
    return "no output of a known load generator, no command of one and no table of figures is in it"


@contextmanager
def _open_text(file: str, name: str) -> Iterator[BufferedReader]:
    source = STANDARD_INPUT_DESCRIPTOR if file == STANDARD_INPUT else file
    try:
        with open(source, "rb") as stream:  # noqa: PTH123 (a Path has no descriptor)
            kind = os.fstat(stream.fileno()).st_mode
            if file != STANDARD_INPUT and not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
                raise UserError(f"{name}: neither a file nor a pipe")
            yield stream
    except OSError as error:
        raise UserError(f"{name}: {(error.strerror or str(error)).lower()}") from None


@contextmanager
def _output_that_may_fail() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        # What is left in the buffer would fail once more at the end of the process.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):  # `| head` has read enough
            raise OperationError(f"the result could not be printed: {error.strerror}") from None


def _shown(audit: "Audit", name: str) -> RenderableType:
    return Group(
        Text(name, style="bold"),
        Text(_what_was_read(audit), style="dim"),
        *(Text(f"Not read: {_unread_words(each)}", style="bold yellow") for each in audit.not_read),
        Text(),
        _headline(audit),
        *(part for group in _by_rule(audit.warnings) for part in (Text(), _rule(group, audit))),
    )


def _headline(audit: "Audit") -> Text:
    from webdyno.audit import TABLE

    rules = {each.rule for each in audit.warnings if each.severity == "serious"}
    if rules:
        words = "reason" if len(rules) == 1 else "reasons"
        return Text(f"Can't be believed as it stands: {len(rules)} {words}.", style="bold red")
    if not audit.outputs:
        words = "Not judged: no tool's output was read, and without one there is little to check."
        return Text(words, style="bold yellow")
    if audit.not_read:
        return Text("Nothing serious in what was read; not all was.", style="bold yellow")
    if audit.warnings:
        return Text("Nothing serious; some things to know.", style="bold green")
    if any(each.kind == TABLE for each in audit.read):
        words = "Nothing to object to in the outputs. Of tables only a few things can be checked."
        return Text(words, style="bold green")
    return Text("Nothing to object to.", style="bold green")


def _unread_words(part: "Read") -> str:
    from webdyno.audit.prose import FIGURES
    from webdyno.formats.tools import tools

    what = f"output of {part.kind}"
    if part.kind == FIGURES:
        what = "figures in a form that isn't known"
    elif part.kind in {tool.name for tool in tools()}:
        what += ", of which too little is there"
    return f"{_lines_of(part)}, {what}"


def _lines_of(part: "Read") -> str:
    if part.first_line == part.last_line:
        return f"line {part.first_line}"
    return f"lines {part.first_line} to {part.last_line}"


def _what_was_read(audit: "Audit") -> str:
    from webdyno.audit import COMMAND

    counts = Counter(
        "command without its output" if each.kind == COMMAND else each.kind for each in audit.read
    )
    parts = [f"{count} × {kind}" if count > 1 else kind for kind, count in counts.items()]
    parts = parts or ["nothing"]
    last = max((each.last_line for each in audit.read), default=0)
    lines = f" (lines {audit.read[0].first_line} to {last})" if audit.read else ""
    left = f", and {audit.unread} more" if audit.unread else ""
    return f"Read: {', '.join(parts)}{left}{lines}"


def _by_rule(warnings: list["AuditWarning"]) -> list[list["AuditWarning"]]:
    """Group warnings by rule, in the order of their first line; serious ones first."""

    def key(each: "AuditWarning") -> tuple[bool, str, str]:
        return (each.severity == "note", each.rule, each.why)

    groups = [list(group) for _, group in groupby(sorted(warnings, key=key), key)]
    return sorted(groups, key=lambda group: (group[0].severity == "note", group[0].line))


def _rule(group: list["AuditWarning"], audit: "Audit") -> Padding:
    first = group[0]
    places = [
        Text.assemble((f"line {each.line}: ", "dim"), each.what) for each in group[:MOST_PLACES]
    ]
    hidden = len(group) - len(places) + audit.more.get(first.rule, 0)
    if hidden:
        places.append(Text(f"… and {hidden} more (--format json lists them)", style="dim"))
    return Padding(
        Group(
            Text.assemble((first.rule, STYLES[first.severity]), (f"  {first.severity}", "dim")),
            *places,
            Text(first.why),
            Text.assemble(("→ ", "dim"), as_called(first.instead)),
        ),
        (0, 0, 0, 2),
        expand=False,
    )
