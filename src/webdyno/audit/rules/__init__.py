"""What can't be believed, and why: rules about one output, and rules about a whole text."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Evidence = TypeVar("Evidence")
Other = TypeVar("Other")


@dataclass(frozen=True)
class Violation:
    """One place where a rule is broken."""

    line: int
    what: str
    serious: bool = True
    tool: str | None = None


@dataclass(frozen=True)
class AuditRule(Generic[Evidence]):
    """A rule about one output, or about a whole text."""

    name: str
    check: Callable[[Evidence], Iterator[Violation]]
    why: str
    instead: str
    """How to measure it, with the command."""

    def also(self, check: Callable[[Other], Iterator[Violation]]) -> "AuditRule[Other]":
        """Make the same rule of another check."""
        return AuditRule(self.name, check, self.why, self.instead)


def rule(
    name: str, *, why: str, instead: str
) -> Callable[[Callable[[Evidence], Iterator[Violation]]], AuditRule[Evidence]]:
    """Make a rule of the function that checks it."""
    return lambda check: AuditRule(name, check, why, instead)


def numeral(value: float, digits: int = 3) -> str:
    """Write a number for people: 25,000, 0.45, 1.7."""
    if value == round(value) or abs(value) >= 10**digits:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"
