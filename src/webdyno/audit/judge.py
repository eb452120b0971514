"""From a text's lines to its findings."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from webdyno.audit.document import Document
from webdyno.audit.finding import COMMAND, TABLE, Audit, Finding, Read, Severity
from webdyno.audit.reader import read
from webdyno.audit.rules import DOCUMENT_RULES, OUTPUT_RULES, Evidence, Rule, Seen
from webdyno.audit.tables import Table
from webdyno.audit.unread import outside
from webdyno.readers.lines import NumberedLine
from webdyno.readers.output import Command, Output

MOST_FINDINGS = 50
"""Findings of one rule and severity that are listed; the rest is counted."""


def audit(lines: Iterable[NumberedLine]) -> Audit:
    """Read a text in one pass and judge it."""
    document, found = Document(), _Findings()
    for item in read(lines):
        if isinstance(item, Output):
            for rule in OUTPUT_RULES:
                for seen in rule.check(item):
                    found.add(rule, seen, item.tool)
        document.keep(item)
    for text_rule in DOCUMENT_RULES:
        for seen in text_rule.check(document):
            found.add(text_rule, seen, seen.tool)
    return Audit(
        findings=sorted(found.listed, key=lambda each: (each.severity == "note", each.line)),
        more=dict(found.more),
        read=_read(document),
        unread=document.left_out,
        not_read=_not_read(document),
    )


@dataclass
class _Findings:
    listed: list[Finding] = field(default_factory=list)
    more: Counter[str] = field(default_factory=Counter)
    counts: Counter[tuple[str, Severity]] = field(default_factory=Counter)

    def add(self, rule: Rule[Evidence], seen: Seen, tool: str | None) -> None:
        severity: Severity = "serious" if seen.serious else "note"
        self.counts[rule.name, severity] += 1
        if self.counts[rule.name, severity] > MOST_FINDINGS:
            self.more[rule.name] += 1
            return
        self.listed.append(
            Finding(
                rule=rule.name,
                severity=severity,
                line=seen.line,
                tool=tool,
                what=seen.what,
                why=rule.why,
                instead=rule.instead,
            )
        )


def _read(document: Document) -> list[Read]:
    items: list[Output | Table | Command] = [
        *document.outputs,
        *(table for table in document.tables if not table.is_list),
        *document.commands,
    ]
    found = [_part(item) for item in items]
    return sorted(found, key=lambda part: part.first_line)


def _not_read(document: Document) -> list[Read]:
    read = [(each.first_line, each.last_line) for each in _read(document)]
    return [
        Read(kind=part.kind, first_line=part.first_line, last_line=part.last_line)
        for part in outside(document.unread, read)
    ]


def _part(item: Output | Table | Command) -> Read:
    if isinstance(item, Output):
        return Read(kind=item.tool, first_line=item.first_line, last_line=item.last_line)
    if isinstance(item, Table):
        return Read(kind=TABLE, first_line=item.first_line, last_line=item.last_line)
    return Read(kind=COMMAND, first_line=item.line, last_line=item.line)
