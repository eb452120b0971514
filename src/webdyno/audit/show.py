"""The audit in the terminal: what was read, and by rule what can't be believed."""

from collections import Counter
from itertools import groupby

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from webdyno.audit.judge import COMMAND, TABLE, Audit, AuditWarning, Read
from webdyno.audit.unread import FIGURES
from webdyno.model.command import as_called
from webdyno.readers.tools import TOOLS

WIDTH = 100
"""Columns that it takes at most."""

MOST_PLACES = 6
"""Places of one rule that are shown; JSON has them all."""

STYLES = {"serious": "bold red", "note": "bold yellow"}


def audit_shown(audit: Audit, name: str) -> RenderableType:
    return Group(
        Text(name, style="bold"),
        Text(_what_was_read(audit), style="dim"),
        *(Text(f"Not read: {unread_words(each)}", style="bold yellow") for each in audit.not_read),
        Text(),
        _headline(audit),
        *(part for group in _by_rule(audit.warnings) for part in (Text(), _rule(group, audit))),
    )


def _headline(audit: Audit) -> Text:
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


def unread_words(part: Read) -> str:
    """Name lines that were not read: where, and what they seem to be."""
    what = f"output of {part.kind}"
    if part.kind == FIGURES:
        what = "figures in a form that isn't known"
    elif part.kind in {tool.name for tool in TOOLS}:
        what += ", of which too little is there"
    return f"{lines_of(part)}, {what}"


def lines_of(part: Read) -> str:
    """Say where a part is."""
    if part.first_line == part.last_line:
        return f"line {part.first_line}"
    return f"lines {part.first_line} to {part.last_line}"


def _what_was_read(audit: Audit) -> str:
    counts = Counter(
        "command without its output" if each.kind == COMMAND else each.kind for each in audit.read
    )
    parts = [f"{count} × {kind}" if count > 1 else kind for kind, count in counts.items()]
    parts = parts or ["nothing"]
    last = max((each.last_line for each in audit.read), default=0)
    lines = f" (lines {audit.read[0].first_line} to {last})" if audit.read else ""
    left = f", and {audit.unread} more" if audit.unread else ""
    return f"Read: {', '.join(parts)}{left}{lines}"


def _by_rule(warnings: list[AuditWarning]) -> list[list[AuditWarning]]:
    """Group warnings by rule, in the order of their first line; serious ones first."""

    def key(each: AuditWarning) -> tuple[bool, str, str]:
        return (each.severity == "note", each.rule, each.why)

    groups = [list(group) for _, group in groupby(sorted(warnings, key=key), key)]
    return sorted(groups, key=lambda group: (group[0].severity == "note", group[0].line))


def _rule(group: list[AuditWarning], audit: Audit) -> Padding:
    first = group[0]
    places = [
        Text.assemble((f"line {each.line}: ", "dim"), each.what) for each in group[:MOST_PLACES]
    ]
    hidden = len(group) - len(places) + audit.more.get(first.rule, 0)
    if hidden:
        places.append(Text(f"… and {hidden} more (--json lists them)", style="dim"))
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
