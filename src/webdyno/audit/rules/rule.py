"""What a rule of the audit is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

Evidence = TypeVar("Evidence")


@dataclass(frozen=True)
class Seen:
    """One place where a rule is broken."""

    line: int
    what: str
    serious: bool = True
    tool: str | None = None


@dataclass(frozen=True)
class Rule(Generic[Evidence]):
    """A rule about one output, or about a whole text."""

    name: str
    check: Callable[[Evidence], Iterator[Seen]]
    why: str
    instead: str
    """How to measure it, with the command."""


def number(value: float, digits: int = 3) -> str:
    """Write a number for people: 25,000, 0.45, 1.7."""
    if value == round(value) or abs(value) >= 10**digits:
        return f"{round(value):,}"
    return f"{value:.{digits}g}"


def share(part: float, whole: float) -> str:
    """Write a share as a percentage that is 0 or 100 % only when it is exactly that."""
    percent = 100 * part / whole
    if 0 < percent < 0.1:
        return "less than 0.1 %"
    if 99.9 < percent < 100:
        return "more than 99.9 %"
    return f"{percent:.3g} %"
