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

    def also(
        self, rules: "list[AuditRule[Other]]"
    ) -> "Callable[[Callable[[Other], Iterator[Violation]]], AuditRule[Other]]":
        """Add the same rule, checked by another function, to some rules."""
        return rule(rules, self.name, why=self.why, instead=self.instead)


def rule(
    rules: list[AuditRule[Evidence]], name: str, *, why: str, instead: str
) -> Callable[[Callable[[Evidence], Iterator[Violation]]], AuditRule[Evidence]]:
    """Add a rule to some rules: the function that checks it becomes the rule."""

    def add(check: Callable[[Evidence], Iterator[Violation]]) -> AuditRule[Evidence]:
        rules.append(AuditRule(name, check, why, instead))
        return rules[-1]

    return add


def numeral(value: float, digits: int = 3) -> str:
    """Write a number for people: 25,000, 0.45, 1.7."""
    if value == round(value) or abs(value) >= 10**digits:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"
