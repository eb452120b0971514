"""Reads what other people's benchmarks printed, and says what can't be believed, and why."""

from webdyno.audit.finding import Audit, Finding
from webdyno.audit.judge import audit
from webdyno.audit.lines import read_lines
from webdyno.audit.show import WIDTH, shown
from webdyno.audit.tools import READABLE

__all__ = ["READABLE", "WIDTH", "Audit", "Finding", "audit", "read_lines", "shown"]
