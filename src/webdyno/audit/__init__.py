"""From a text's lines to what can't be believed of it, and what was read.

How the output of a tool is read is in `formats/tools/`, a file for each family of tools; the rules
by which figures can't be believed are in `audit/rules/`.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from webdyno.audit.prose import UnreadPart, outside
from webdyno.audit.reader import AuditedText, read_items
from webdyno.audit.rules import (
    AuditRule,
    Evidence,
    Violation,
    client,
    columns,
    figures,
    responses,
    under_way,
    variants,
)
from webdyno.audit.tables import TextTable
from webdyno.core.base import Model
from webdyno.formats import Command, Output
from webdyno.formats.text import NumberedLine

TABLE, COMMAND = "table", "command"
"""Kinds of what is read that are no tool's output."""

Severity = Literal["serious", "note"]
OUTPUT_RULES: tuple[AuditRule[Output], ...] = (
    *responses.RULES,
    *client.OUTPUT_RULES,
    *under_way.OUTPUT_RULES,
    *figures.RULES,
    *responses.SAMPLE_RULES,
)
DOCUMENT_RULES: tuple[AuditRule[AuditedText], ...] = (
    *variants.RULES,
    *columns.RULES,
    *under_way.DOCUMENT_RULES,
    *client.DOCUMENT_RULES,
)
MOST_WARNINGS = 50
"""Warnings of one rule and severity that are listed; the rest is counted."""


class AuditWarning(Model):
    """Something about a benchmark that can't be believed, or that says less than it seems to."""

    rule: str
    """Short stable name, such as `non-2xx`."""
    severity: Severity
    line: int
    """Line of the text, from 1."""
    tool: str | None
    """The tool whose output it is about; None for tables and prose."""
    what: str
    """With figures: `987 of 1,000 responses had no 2xx status`."""
    why: str
    """Why it matters."""
    instead: str
    """How to measure it, with the command."""


class Read(Model):
    """Something that was recognised in the text."""

    kind: str
    """A tool's name, `table`, or `command` for a command line without its output."""
    first_line: int
    last_line: int


class Audit(Model):
    """The whole response."""

    warnings: list[AuditWarning]
    """Serious ones first, then by line."""
    more: dict[str, int]
    """Warnings that are not listed because their rule has too many: rule -> how many."""
    read: list[Read]
    unread: int
    """Outputs, tables and commands beyond those listed in `read`."""
    not_read: list[Read] = []
    """What looks like measurements and wasn't understood: a tool's name, or `figures`."""

    @property
    def serious(self) -> bool:
        return any(warning.severity == "serious" for warning in self.warnings)

    @property
    def outputs(self) -> list[Read]:
        """Outputs of tools, which alone can be judged."""
        return [each for each in self.read if each.kind not in {TABLE, COMMAND}]

    @property
    def commands(self) -> list[Read]:
        """Command lines without their output."""
        return [each for each in self.read if each.kind == COMMAND]

    @property
    def complete(self) -> bool:
        """Whether there is an output, and nothing that looks like a result is left unread."""
        return bool(self.outputs) and not self.not_read


def audit_lines(lines: Iterable[NumberedLine]) -> Audit:
    """Read a text in one pass and judge it."""
    document, warnings = AuditedText(), _Warnings()
    for item in read_items(lines):
        if isinstance(item, Output):
            for rule in OUTPUT_RULES:
                for seen in rule.check(item):
                    warnings.add(rule, seen, item.tool)
        document.keep(item)
    for text_rule in DOCUMENT_RULES:
        for seen in text_rule.check(document):
            warnings.add(text_rule, seen, seen.tool)
    read = _what_was_read(document)
    unread = outside(document.of(UnreadPart), [(each.first_line, each.last_line) for each in read])
    return Audit(
        warnings=sorted(warnings.listed, key=lambda each: (each.severity == "note", each.line)),
        more=dict(warnings.more),
        read=read,
        unread=document.excluded,
        not_read=[_lines_of(part.kind, part) for part in unread],
    )


@dataclass
class _Warnings:
    listed: list[AuditWarning] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    counts: Counter[tuple[str, Severity]] = field(default_factory=Counter)

    def add(self, rule: AuditRule[Evidence], seen: Violation, tool: str | None) -> None:
        severity: Severity = "serious" if seen.serious else "note"
        self.counts[rule.name, severity] += 1
        if self.counts[rule.name, severity] > MOST_WARNINGS:
            self.more[rule.name] += 1
            return
        self.listed.append(
            AuditWarning(
                rule=rule.name,
                severity=severity,
                line=seen.line,
                tool=tool,
                what=seen.what,
                why=rule.why,
                instead=rule.instead,
            )
        )


def _what_was_read(document: AuditedText) -> list[Read]:
    outputs = [_lines_of(output.tool, output) for output in document.of(Output)]
    tables = [_lines_of(TABLE, each) for each in document.of(TextTable) if not each.is_list]
    commands = [
        Read(kind=COMMAND, first_line=each.line, last_line=each.line)
        for each in document.of(Command)
    ]
    return sorted([*outputs, *tables, *commands], key=lambda each: each.first_line)


def _lines_of(kind: str, part: Output | TextTable | UnreadPart) -> Read:
    return Read(kind=kind, first_line=part.first_line, last_line=part.last_line)
