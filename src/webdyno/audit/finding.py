"""What the audit says: findings, and what it looked at."""

from typing import Literal

from webdyno.model.base import Model

TABLE, COMMAND = "table", "command"
"""Kinds of what is read that are no tool's output."""

Severity = Literal["serious", "note"]


class Finding(Model):
    """Something about a benchmark that can't be believed, or that says less than it seems to."""

    rule: str
    """Short stable name, such as `non-2xx`."""
    severity: Severity
    line: int
    """Line of the text, from 1."""
    tool: str | None
    """The tool whose output it is about; None for tables and prose."""
    what: str
    """With figures: `987 of 1,000 answers had no 2xx status`."""
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
    """The whole answer."""

    findings: list[Finding]
    """Serious ones first, then by line."""
    more: dict[str, int]
    """Findings that are not listed because their rule has too many: rule -> how many."""
    read: list[Read]
    unread: int
    """Outputs, tables and commands beyond those listed in `read`."""
    not_read: list[Read] = []
    """What looks like measurements and wasn't understood: a tool's name, or `figures`."""

    @property
    def serious(self) -> bool:
        """Whether anything is seriously wrong."""
        return any(finding.severity == "serious" for finding in self.findings)

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
