"""How long each variant is looked at after the rounds, and whether that was done."""

from collections.abc import Collection, Sequence

from webdyno.comparison.asking import question_of
from webdyno.core.experiment import Experiment
from webdyno.core.long_look import LookEnd, Stall
from webdyno.core.records import LongLookRecord, StopReason
from webdyno.evidence.long_look import look_at, seen_in
from webdyno.evidence.look_course import changes_no_more
from webdyno.evidence.look_records import length_s
from webdyno.evidence.point_data import PointData, look_parts

SEEN_STALLS = 4
"""A look goes on until so many were seen, where there was one, unless its length was given."""
PART_S, MOST_PARTS = 60.0, 20
"""A look is put on record by the minute, or by the twentieth, if that is longer."""
WITHOUT_ANSWER: tuple[StopReason, ...] = ("nothing-valid", "different-responses")
ROUNDING = 0.98
"""Windows at the edges of a part may be missing."""


def lacking_looks(data: PointData) -> list[str]:
    """Name the variants that are still to be looked at: none before the rounds are over.

    Nor where they came to no answer, no time was left, or a server died since.
    """
    stop, question = data.stop, question_of(data.experiment)
    if stop is None or stop.reason in WITHOUT_ANSWER or not question.long_look_s:
        return []
    if stop.reason == "time" and data.measure.soak_s is None:
        return []
    over = {variant for variant, parts in look_parts(data.records).items() if parts[-1].ended_by}
    return [
        variant
        for variant in question.next_variants(data)
        if variant not in over and question.loading.can_look_at(data, variant)
    ]


def doubtful(data: PointData) -> Collection[str]:
    """Name the variants to look at before another round: it may be in vain."""
    question = question_of(data.experiment)
    return question.loading.doubtful(data) if data.rounds and question.long_look_s else ()


def look_parts_of(data: PointData, variant: str) -> list[LongLookRecord]:
    """Give what is on record of the long look at a variant."""
    return look_parts(data.records).get(variant, [])


def part_s(look_s: float) -> float:
    """Give how long the parts of a look are."""
    return look_s / min(max(int(look_s / PART_S), 1), MOST_PARTS)


def left_s(parts: Sequence[LongLookRecord], experiment: Experiment) -> float:
    """Give how long a look still has to go on; 0 where it was long enough."""
    look_s = question_of(experiment).long_look_s
    looked_s = sum(map(length_s, parts))
    wanted_s = look_s
    if looked_s >= ROUNDING * look_s and experiment.measure.soak_s is None:
        wanted_s = min(_for_stalls_s(seen_in(*parts), look_s), SEEN_STALLS * look_s)
    return wanted_s - looked_s if looked_s < ROUNDING * wanted_s else 0.0


def why_over(parts: Sequence[LongLookRecord], experiment: Experiment) -> LookEnd | None:
    """Say why a look ends after these parts; None: it goes on.

    One whose length was given ends earlier where nothing was found, and where it is sure that in
    all of that length nothing would change by much. So an early end never adds a warning.
    """
    if parts[-1].died:
        return "died"
    if not left_s(parts, experiment):
        return "time"
    if experiment.measure.soak_s is None or not changes_no_more(parts, experiment.measure.soak_s):
        return None
    look = look_at(*parts)
    noticed = look.stalls, look.slow, look.drifts, look.growth, look.more_open, look.failing
    return None if any(noticed) else "precision"


def _for_stalls_s(seen: Sequence[Stall], look_s: float) -> float:
    """Give how long it takes to see stalls enough, by those that were seen."""
    if not 0 < len(seen) < SEEN_STALLS:
        return 0.0
    first, last = seen[0].at_s, seen[-1].at_s
    every_s = (last - first) / (len(seen) - 1) if len(seen) > 1 else look_s
    return max((SEEN_STALLS + 0.5) * every_s, 2 * look_s)
