"""What a reader of a gate's answer should know beside it: causes, what to do, what else differs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import expm1

from webdyno.judge.databases import other_statements
from webdyno.judge.one_sided import RISK
from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.questions.claims import MeasuredClaim, first_line
from webdyno.judge.validity.run import START_RULES
from webdyno.model.format import level, percent
from webdyno.model.judgement import ValidityWarning


@dataclass(frozen=True)
class FoundAt:
    """A validity rule that fired at an endpoint."""

    endpoint: str
    warning: ValidityWarning


def endpoint_of(data: PointData) -> str:
    """Name what was asked there: the point's levels, or else all that the load asks for."""
    named = [level(value) for value in data.point.levels.values()]
    labels = [request.label for request in data.experiment.asked]
    return ", ".join(named or labels or data.experiment.load.paths)


def notes_on_starts(warnings: Sequence[FoundAt]) -> list[str]:
    """Tell of variants whose starts differ, wherever it was seen first.

    It's why more of them help.
    """
    rule = START_RULES[0].name
    seen = {
        warning.warning.variant: warning
        for warning in reversed(warnings)
        if warning.warning.rule == rule
    }
    return [
        f"{noted.endpoint}: {noted.warning.what}. {noted.warning.fix}" for noted in seen.values()
    ]


def statement_notes(run: RunData) -> list[str]:
    """Tell where a request of head takes other statements: what made it worse, perhaps."""
    return [
        f"{endpoint_of(point)}: {sentence}"
        for point in run.points
        for sentence in other_statements(point)
    ]


def differing(claims: Sequence[MeasuredClaim], among: int) -> list[str]:
    """Tell baselines that differ from themselves."""
    return [
        f"{claim.endpoint}: two copies of baseline differ by up to {percent(expm1(differs))} in "
        f"{claim.rule.short}; the limit is widened by as much"
        for claim in claims
        if (differs := claim.baseline_differs(RISK / among))
    ]


def invalidating(
    warnings: Sequence[FoundAt], metric: str, variants: Sequence[str]
) -> FoundAt | None:
    """Give the first that invalidates a metric of some variants."""
    return next(
        (warning for warning in warnings if warning.warning.invalidates(metric, variants)), None
    )


def notes_on(
    invalidated: Sequence[FoundAt], warnings: Sequence[FoundAt], headline: FoundAt | None
) -> list[str]:
    """Give a note for each rule that invalidated a claim, with all places where it fired.

    The headline's cause isn't told again, nor is what merely follows from a cause.
    """
    rules = dict.fromkeys(warning.warning.rule for warning in invalidated)
    broken = [warning for warning in warnings if warning.warning.severity == "invalid"]
    return [
        _note([warning for warning in broken if warning.warning.rule == rule], headline)
        for rule in rules
    ]


def fixes(rules: Collection[str], warnings: Sequence[FoundAt]) -> list[str]:
    """Give a note for each rule that left too few rounds: what it found, and what to do."""
    by_rule = {
        warning.warning.rule: warning.warning
        for warning in reversed(warnings)
        if warning.warning.rule in rules
    }
    return [f"{_sentence(first_line(warning.what))} {warning.fix}" for warning in by_rule.values()]


def _note(those: Sequence[FoundAt], headline: FoundAt | None) -> str:
    said_before = headline if headline in those else None
    first = said_before or those[0]
    what = first.warning.what
    words = what if said_before is None or what != first_line(what) else ""
    parts = [_sentence(words), _elsewhere(first, those), first.warning.fix]
    return ("\n" if "\n" in words else " ").join(filter(None, parts))


def _sentence(text: str) -> str:
    return f"{text}." if text and "\n" not in text else text


def _elsewhere(first: FoundAt, those: Sequence[FoundAt]) -> str:
    """Name the other variants and endpoints of which the same is found."""
    variants = {
        warning.warning.variant: None
        for warning in those
        if warning.warning.variant != first.warning.variant
    }
    endpoints = {warning.endpoint: None for warning in those if warning.endpoint != first.endpoint}
    of_variants = f" for {' and '.join(map(str, filter(None, variants)))}" if variants else ""
    at_endpoints = f" at {', '.join(endpoints)}" if endpoints else ""
    also = ", and" if of_variants and at_endpoints else ""
    return f"The same holds{of_variants}{also}{at_endpoints}." if variants or endpoints else ""
