"""What spoils a gate's figures, told once, with what to do about it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from webdyno.model.judgement import Finding


@dataclass(frozen=True)
class FoundAt:
    """A validity rule that fired at an endpoint."""

    endpoint: str
    finding: Finding


def spoiling(found: Sequence[FoundAt], metric: str, arms: Sequence[str]) -> FoundAt | None:
    """Give the first that spoils a metric of some arms."""
    return next((it for it in found if it.finding.spoils(metric, arms)), None)


def notes_on(
    spoilt: Sequence[FoundAt], found: Sequence[FoundAt], headline: FoundAt | None
) -> list[str]:
    """Give a note for each rule that spoilt a claim, with all places where it fired.

    The headline's cause isn't told again, nor is what merely follows from a cause.
    """
    rules = dict.fromkeys(it.finding.rule for it in spoilt)
    broken = [it for it in found if it.finding.severity == "invalid"]
    return [_note([it for it in broken if it.finding.rule == rule], headline) for rule in rules]


def remedies(rules: Collection[str], found: Sequence[FoundAt]) -> list[str]:
    """Give a note for each rule that left too few blocks: what it found, and what to do."""
    by_rule = {it.finding.rule: it.finding for it in reversed(found) if it.finding.rule in rules}
    return [f"{_sentence(first_line(it.what))} {it.remedy}" for it in by_rule.values()]


def first_line(what: str) -> str:
    """Give what is wrong in one line, without the diff that may follow."""
    return what.partition("\n")[0].rstrip(":")


def _note(those: Sequence[FoundAt], headline: FoundAt | None) -> str:
    told = headline if headline in those else None
    first = told or those[0]
    what = first.finding.what
    said = what if told is None or what != first_line(what) else ""
    parts = [_sentence(said), _elsewhere(first, those), first.finding.remedy]
    return ("\n" if "\n" in said else " ").join(filter(None, parts))


def _sentence(text: str) -> str:
    return f"{text}." if text and "\n" not in text else text


def _elsewhere(first: FoundAt, those: Sequence[FoundAt]) -> str:
    """Name the other arms and endpoints of which the same is found."""
    arms = {it.finding.arm: None for it in those if it.finding.arm != first.finding.arm}
    endpoints = {it.endpoint: None for it in those if it.endpoint != first.endpoint}
    of_arms = f" for {' and '.join(map(str, filter(None, arms)))}" if arms else ""
    at_endpoints = f" at {', '.join(endpoints)}" if endpoints else ""
    also = ", and" if of_arms and at_endpoints else ""
    return f"The same holds{of_arms}{also}{at_endpoints}." if arms or endpoints else ""
