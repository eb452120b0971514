"""What a comparison says, in sentences: for the headline, and beside a verdict's name."""

from collections.abc import Sequence
from math import ceil, floor

from webdyno.model.base import ENDLESS
from webdyno.model.format import (
    DASH,
    TIMES,
    between,
    confidence_level,
    count,
    minutes,
    number,
    percent,
    ratio,
    ratio_range,
    times,
)
from webdyno.model.judgement import Comparison, League, LeaguePlace, Verdict
from webdyno.model.metrics import metric_rule

MOST_PLACES_SAID = 4
"""After the first ones; the table has them all."""


def headline(deciding: Sequence[Comparison]) -> str:
    """Say the comparisons on the deciding metric; a reason that several share is said once."""
    return "; ".join(dict.fromkeys(with_verdict(comparison) for comparison in deciding))


def league_headline(league: League, metric: str) -> str:
    """Say who comes first, and the places of those after them."""
    by = f"by {metric_rule(metric).metric.label}"
    first = [it.arm for it in league.places if it.best == 1]
    then = [it for it in league.places if it.best != 1]
    if not first:
        return f"no arm has a place {by}"
    of = f"of {len(league.places)} {by}"
    said = f"{first[0]} comes first {of}"
    if len(first) > 1:
        said = f"{', '.join(first[:-1])} and {first[-1]} share the first places {of}"
    shown = [f"{it.arm} ({place_words(it)})" for it in then[:MOST_PLACES_SAID]]
    if left := len(then) - len(shown):
        shown.append(f"{left} more")
    return f"{said}; then {', '.join(shown)}" if shown else said


def place_words(place: LeaguePlace) -> str:
    """Give the places that an arm may have: `2`, or `2–4`."""
    return str(place.best) if place.best == place.worst else f"{place.best}{DASH}{place.worst}"


def sentence(comparison: Comparison) -> str:
    """Say what was found and how sure it is, where the verdict's name stands beside it."""
    if comparison.verdict is Verdict.INVALID:
        return comparison.why
    outlook = _outlook(comparison)
    if comparison.verdict is Verdict.EQUIVALENT and not comparison.negligible:
        outlook = f"the same {outlook}"
    return f"{_found(comparison)}: {outlook}" if outlook else f"{_found(comparison)}."


def with_verdict(comparison: Comparison) -> str:
    """Say the same with the verdict's name in it."""
    if comparison.verdict is Verdict.INVALID:
        return _lower_first(comparison.why)
    within = comparison.verdict is Verdict.EQUIVALENT and not comparison.negligible
    parting = " " if within else ", "
    said = f"{comparison.verdict}{parting}{_outlook(comparison)}".rstrip(", ")
    return f"{_found(comparison)}: {said}"


def _found(comparison: Comparison) -> str:
    """Say the ratio and its evidence; only who was compared where there is no ratio yet."""
    if comparison.ratio is None:
        return f"{comparison.a} against {comparison.b}"
    said = metric_rule(comparison.metric).saying.format(
        a=comparison.a, b=comparison.b, ratio=ratio(comparison.ratio)
    )
    return f"{said} ({_interval(comparison)}, {count(len(comparison.by_block), 'block')})"


def _interval(comparison: Comparison) -> str:
    """Give the interval on which the verdict rests: with all bounds, where there are any."""
    bounded = comparison.bounded
    if bounded is None or comparison.ratio is None:
        return ratio_range(comparison.ratio) if comparison.ratio else ""
    level = confidence_level(bounded.confidence)
    return f"{level} interval {between(bounded)} with all bounds of disturbance"


def _outlook(comparison: Comparison) -> str:
    """Say what the verdict's name leaves open: how equal, at least how much, what is needed."""
    parts = [_certainty(comparison), _asked(comparison), comparison.reason, comparison.later]
    said = ", ".join(part for part in parts if part)
    return f"{said}; {comparison.clear_beside}" if comparison.clear_beside else said


def _certainty(comparison: Comparison) -> str | None:
    if comparison.negligible:
        return "the difference being too small to matter"
    if comparison.verdict is Verdict.EQUIVALENT:
        more = f", {comparison.excludes}" if comparison.excludes else ""
        return f"within {percent(comparison.delta)}{more}"
    if comparison.verdict is Verdict.INCOMPLETE:
        return _lower_first(comparison.why)
    if comparison.verdict is not Verdict.UNDECIDED:
        return _at_least(comparison)
    if comparison.ratio is None:
        return _lower_first(comparison.why)
    if comparison.is_beyond_client:
        return comparison.excludes
    needed = _needed(comparison)
    return f"but {comparison.excludes} ({needed})" if comparison.excludes else needed


def _at_least(comparison: Comparison) -> str | None:
    """Say what is sure of a ratio whose better arm could have been faster still."""
    better = comparison.a if comparison.verdict is Verdict.FASTER else comparison.b
    sure = comparison.sure
    if better not in comparison.limited_by or sure is None:
        return None
    by_client = comparison.limited_by[better] == "client"
    least = f"at least {number(floor(sure.low * 100) / 100, 2)}{TIMES}"
    most = f"at most {number(ceil(sure.high * 100) / 100, 2)}{TIMES}"
    ends = (least, most) if comparison.verdict is Verdict.FASTER else (most, least)
    # What an arm does beyond a link, or a client whose servers tell of no CPU time, nobody knows.
    has_both = by_client and sure.high <= ENDLESS and sure.low >= 1 / ENDLESS
    limit = "load generator" if by_client else "link"
    return f"{' and '.join(ends if has_both else ends[:1])}: the {limit} was the limit of {better}"


def _asked(comparison: Comparison) -> str | None:
    """Give the answer to a question in one direction."""
    asked = comparison.one_sided
    return f"{asked.question}? {asked.answer}: {asked.why}" if asked else None


def _needed(comparison: Comparison) -> str:
    blocks = "too close to call in reasonable time"
    if comparison.more_blocks is not None and comparison.more_minutes is not None:
        needed_s = comparison.more_minutes * 60
        blocks = f"about {count(comparison.more_blocks, 'more block')} ({minutes(needed_s)}) needed"
    if not comparison.bounded or comparison.as_measured is Verdict.UNDECIDED:
        return blocks
    said = f"{comparison.as_measured} as measured, but what disturbed it may have made it so"
    return said if comparison.more_blocks is None else f"{said}: {blocks}"


def _lower_first(sentence: str) -> str:
    return (sentence[:1].lower() + sentence[1:]).rstrip(".")


def ratio_words(compared: Sequence[Comparison]) -> list[str]:
    """Give each ratio with its interval, as far as there are any: `nginx ÷ apache 2.1× (…)`."""
    return [
        f"{it.a} ÷ {it.b} {times(it.ratio)} ({ratio_range(it.ratio)})"
        for it in compared
        if it.ratio
    ]
