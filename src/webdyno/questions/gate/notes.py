"""What a reader of a gate's answer should know with it: causes, and other responses."""

from collections.abc import Collection, Iterator, Sequence
from math import expm1
from typing import Literal

from webdyno.core.format import count, level, listed_to, number, percent
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD
from webdyno.core.records import PreflightRecord, Response
from webdyno.evidence.busy import (
    MUCH_TAKEN,
    are_mostly_idle,
    busy_by_variant,
    mostly_idle_words,
)
from webdyno.evidence.cost import other_statements
from webdyno.evidence.noise import taken_share
from webdyno.evidence.point_data import PointData, RunData
from webdyno.questions.gate.claims import EndpointWarning, MeasuredClaim
from webdyno.questions.gate.words import first_line
from webdyno.statistics.verdict import RISK
from webdyno.validity.starts import STARTS_DIFFER

OTHER_RULES = (
    "the baseline has no webdyno.toml, or one with other limits, requests or the like; those of "
    "the working tree hold for both"
)
ABSENT = {404, 405, 410, 501}
"""Statuses by which a server says that it has no such thing."""
MOST_NAMED = 4

OnlyIn = Literal["baseline", "head"]


def endpoint_of(data: PointData) -> str:
    """Return what was asked there: the point's levels, or else all that the load asks for."""
    named = [level(value) for value in data.point.levels.values()]
    labels = [request.label for request in data.experiment.selected_requests]
    return ", ".join(named or labels or data.experiment.load.paths)


def notes_on_starts(warnings: Sequence[EndpointWarning]) -> list[str]:
    """Return a note on each variant whose starts differ, which is why more of them help."""
    rule = STARTS_DIFFER.name
    differing = [each for each in warnings if each.warning.rule == rule]
    first = {each.warning.variant: each for each in reversed(differing)}
    return [f"{each.endpoint}: {each.warning.what}. {each.warning.fix}" for each in first.values()]


def statement_notes(run: RunData) -> list[str]:
    """Return where a request of head takes other statements, which may have made it worse."""
    return [
        f"{endpoint_of(point)}: {sentence}"
        for point in run.points
        for sentence in other_statements(point)
    ]


def cpu_notes(run: RunData) -> Iterator[str]:
    """Yield where servers had little to do, or others much: that sets throughput then."""
    for point in run.points:
        busy, taken = busy_by_variant(point), taken_share(point.slots)
        if are_mostly_idle(point, busy):
            yield f"{endpoint_of(point)}: {mostly_idle_words(filter(None, busy.values()))}"
        if taken >= MUCH_TAKEN:
            others = f"others took {percent(taken)} of the servers' CPUs, so only ratios count"
            yield f"{endpoint_of(point)}: {others}"


def differing(claims: Sequence[MeasuredClaim], among: int) -> list[str]:
    return [
        f"{claim.endpoint}: two copies of baseline differ by up to {percent(expm1(differs))} in "
        f"{claim.rule.short}; the limit is widened by as much"
        for claim in claims
        if (differs := claim.baseline_differs(RISK / among))
    ]


def invalidating(
    warnings: Sequence[EndpointWarning], metric: str, variants: Sequence[str]
) -> EndpointWarning | None:
    """Return the first that invalidates a metric of some variants."""
    those = (each for each in warnings if each.warning.invalidates(metric, variants))
    return next(those, None)


def notes_on(
    invalidated: Sequence[EndpointWarning],
    warnings: Sequence[EndpointWarning],
    headline: EndpointWarning | None,
) -> list[str]:
    """Return a note for each rule that invalidated a claim, with all places where it fired."""
    broken: dict[str, list[EndpointWarning]] = {each.warning.rule: [] for each in invalidated}
    for warning in warnings:
        if warning.warning.severity == "invalid" and warning.warning.rule in broken:
            broken[warning.warning.rule].append(warning)
    return [_note(those, headline) for those in broken.values()]


def fixes(rules: Collection[str], warnings: Sequence[EndpointWarning]) -> list[str]:
    """Return a note for each rule that left too few rounds: what it found, and what to do."""
    latest_first = (each.warning for each in reversed(warnings))
    by_rule = {warning.rule: warning for warning in latest_first if warning.rule in rules}
    return [f"{_sentence(first_line(warning.what))} {warning.fix}" for warning in by_rule.values()]


def _note(those: Sequence[EndpointWarning], headline: EndpointWarning | None) -> str:
    said_before = headline if headline in those else None
    first = said_before or those[0]
    what = first.warning.what
    words = what if said_before is None or what != first_line(what) else ""
    parts = [_sentence(words), _elsewhere(first, those), first.warning.fix]
    return ("\n" if "\n" in words else " ").join(filter(None, parts))


def _sentence(text: str) -> str:
    return f"{text}." if text and "\n" not in text else text


def _elsewhere(first: EndpointWarning, those: Sequence[EndpointWarning]) -> str:
    variants = dict.fromkeys(each.warning.variant for each in those)
    variants.pop(first.warning.variant)
    endpoints = dict.fromkeys(each.endpoint for each in those)
    endpoints.pop(first.endpoint)
    of_variants = f" for {' and '.join(map(str, filter(None, variants)))}" if variants else ""
    at_endpoints = f" at {', '.join(endpoints)}" if endpoints else ""
    also = ", and" if of_variants and at_endpoints else ""
    return f"The same holds{of_variants}{also}{at_endpoints}." if variants or endpoints else ""


def only_in(preflights: Sequence[PreflightRecord]) -> OnlyIn | None:
    """Return which revision alone has what an endpoint asks for; None where that can't be said.

    Whatever is asked there first has to be absent from the other one, and to be right in this one.
    """
    for record in preflights[:1]:
        baseline, head = record.responses.get(BASELINE, []), record.responses.get(HEAD, [])
        if baseline and head and len(baseline) == len(head):
            if all(map(_is_absent, baseline)) and all(map(_is_right, head)):
                return "head"
            if all(map(_is_absent, head)) and all(map(_is_right, baseline)):
                return "baseline"
    return None


def _is_absent(response: Response) -> bool:
    return response.status in ABSENT and not response.has_right_status


def _is_right(response: Response) -> bool:
    return response.has_right_status and response.error is None and response.lacks is None


def absent_words(only: OnlyIn, preflights: Sequence[PreflightRecord]) -> str:
    """Return why an endpoint isn't judged that only one revision has."""
    other = HEAD if only == "baseline" else BASELINE
    responses = [response for record in preflights for response in record.responses.get(other, [])]
    status = next((response.status for response in responses if _is_absent(response)), None)
    if only == "head":
        return f"new in head, and not judged: the baseline answers {status}"
    return f"gone from head, and not judged: it answers {status}"


def other_responses(preflights: Sequence[PreflightRecord], endpoint: str) -> Iterator[str]:
    """Yield how head's responses differ from the baseline's, but for pages that always differ."""
    whole = [record for record in preflights if record.responses.keys() >= {BASELINE, HEAD}]
    if not whole:
        return
    first = whole[0].responses
    for index, (before, after) in enumerate(zip(first[BASELINE], first[HEAD], strict=False)):
        bodies = {
            response.body_sha256
            for record in whole
            for name in (BASELINE, BASELINE_AGAIN)
            for response in record.responses.get(name, [])[index : index + 1]
        }
        is_other = len(bodies) == 1 and after.body_sha256 not in bodies
        if is_other and _is_right(before) and _is_right(after):
            place = "" if before.path == endpoint else f" to {before.path}"
            yield f"responses{place} differ: {_differs(before, after)}; head may do other work"


def _differs(before: Response, after: Response) -> str:
    words = [f"{number(before.body_bytes)} → {count(after.body_bytes, 'byte')}"]
    if before.body_bytes == after.body_bytes:
        words = [f"both {count(after.body_bytes, 'byte')}"]
    for word, names in (("more", after.fields_more), ("less", after.fields_less)):
        if names:
            words.append(f"{count(len(names), 'field')} {word} ({listed_to(MOST_NAMED, names)})")
    return ", ".join(words)


def response_notes(preflights: Sequence[PreflightRecord], endpoint: str) -> list[str]:
    """Return what a reader should know of the responses at an endpoint."""
    if only := only_in(preflights):
        return [f"{endpoint}: {absent_words(only, preflights)}"]
    return [f"{endpoint}: {sentence}" for sentence in other_responses(preflights, endpoint)]
