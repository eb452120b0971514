"""Reads what other people's benchmarks printed, and says what can't be believed, and why."""

from webdyno.audit.finding import Audit, Finding
from webdyno.audit.judge import audit
from webdyno.audit.show import WIDTH, lines_of, shown, unread_words
from webdyno.readers import READABLE
from webdyno.readers.lines import read_lines

__all__ = [
    "READABLE",
    "WIDTH",
    "Audit",
    "Finding",
    "audit",
    "lines_of",
    "read_lines",
    "shown",
    "unread_words",
]
