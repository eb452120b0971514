"""What a run's records mean: pure functions from records to a judgement.

Nothing here touches a process, a clock or a file. Whoever measures, judges or shows an experiment
asks its question (`question_of`) what holds for it, and needn't know which one that is.
docs/validation/method.md has the formulas and sources; `ratio.py` makes the interval of a ratio.
"""

from collections.abc import Sequence

from webdyno.comparison.capacity_rules import CapacitySearch
from webdyno.comparison.question import Loading, Question
from webdyno.comparison.stop import Foresight, Stop
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, levels_text, times
from webdyno.core.judgement import DIFFERENT, Comparison, Judgement, Verdict
from webdyno.core.registry import import_part, question_parts
from webdyno.core.sweep import PointJudgement, SweepJudgement
from webdyno.evidence.point_data import PointData, RunData

__all__ = [
    "Foresight",
    "Stop",
    "decide",
    "foresee",
    "judge",
    "judge_sweep",
    "next_variants",
    "points_together",
    "question_of",
]

IN_SLOTS = Loading()
SHOWN_POINTS = 3
ARRIVALS = "load.arrivals"
RATE = "load.rate_per_s"
"""Headlines about costs say at which rate."""
WITHOUT_ANSWER = {Verdict.INCONCLUSIVE, Verdict.INVALID, Verdict.INCOMPLETE}


def question_of(experiment: Experiment) -> Question:
    """Return the question that an experiment asks."""
    decides: type[Question] = import_part(question_parts(experiment.asks.key).decides)
    searched = experiment.capacity
    return decides(experiment, CapacitySearch(searched) if searched else IN_SLOTS)


def judge(data: PointData) -> Judgement:
    return question_of(data.experiment).judge(data)


def decide(data: PointData, elapsed_s: float) -> Stop | None:
    """Return why to stop a run after a round; None means go on."""
    return question_of(data.experiment).stop(data, elapsed_s)


def foresee(data: PointData) -> Foresight | None:
    """Foresee how far a run is from stopping by itself; no verdict rests on it."""
    return question_of(data.experiment).foresee(data)


def next_variants(data: PointData) -> list[str]:
    return question_of(data.experiment).next_variants(data)


def judge_sweep(run: RunData) -> SweepJudgement:
    """Judge every point by itself: of twenty without any difference, one may come out different."""
    judged = [PointJudgement(point=data.point, judgement=judge(data)) for data in run.points]
    experiment = run.head.experiment
    sentences = points_together(experiment, judged)
    compares_loads = {"replay"} < set(experiment.factors.get(ARRIVALS, []))
    if compares_loads and question_of(experiment).has_baseline:
        variants, decide_on = list(experiment.variants), experiment.measure.decide_on
        sentences += [_next_to_the_log(variant, decide_on, judged) for variant in variants[1:]]
    return SweepJudgement(sentences=sentences, points=judged)


def points_together(experiment: Experiment, judged: Sequence[PointJudgement]) -> list[str]:
    """Describe each variant but the baseline at all points; of costs, what they are."""
    costly = any(point.judgement.costs for point in judged)
    if costly and list(experiment.factors) == [RATE]:
        return [point.judgement.headline for point in judged]
    if costly or not question_of(experiment).has_baseline:
        return [f"{point.point.label}: {point.judgement.headline}" for point in judged]
    variants, decide_on = list(experiment.variants), experiment.measure.decide_on
    return [_sentence(variant, variants[0], decide_on, judged) for variant in variants[1:]]


def _next_to_the_log(variant: str, decide_on: str, judged: Sequence[PointJudgement]) -> str:
    """State whether a log replayed and the load made of it give the same verdict."""
    of_log, of_model = dict[str, Verdict](), list[tuple[str, Verdict]]()
    for point in judged:
        levels = dict(point.point.levels)
        is_replay, others = levels.pop(ARRIVALS) == "replay", levels_text(levels)
        verdict = _comparison(variant, decide_on, point).verdict
        if is_replay:
            of_log[others] = verdict
        else:
            of_model.append((others, verdict))
    pairs = [(of_log[levels], verdict) for levels, verdict in of_model]
    differ = list(dict.fromkeys(pair for pair in pairs if pair[0] is not pair[1]))
    if not differ:
        return f"{variant}: the log replayed gives the verdict that the load made of it gives"
    unlike = ", ".join(f"{replayed} and {made}" for replayed, made in differ)
    sentence = (
        f"{variant}: the log replayed and the load made of it give different verdicts ({unlike}); "
    )
    if any(replayed in WITHOUT_ANSWER for replayed, _ in differ):
        return sentence + "the replay has the log's bursts and order, and no answer yet"
    return sentence + "the replay has the log's bursts and order, and is the one to go by"


def _sentence(variant: str, baseline: str, decide_on: str, judged: Sequence[PointJudgement]) -> str:
    places: dict[Verdict, list[str]] = {}
    compared = [_comparison(variant, decide_on, point) for point in judged]
    for point, comparison in zip(judged, compared, strict=True):
        places.setdefault(comparison.verdict, []).append(point.point.label)
    if len(places) == 1:
        all_of_them = "both points" if len(judged) == 2 else f"all {len(judged)} points"
        where = "the only point" if len(judged) == 1 else all_of_them
        return f"{variant} against {baseline}: {next(iter(places))} at {where}{_ratios(compared)}"
    parts = []
    for verdict, points in sorted(places.items(), key=lambda item: -len(item[1])):
        labels = f" ({'; '.join(points)})" if len(points) <= SHOWN_POINTS else ""
        parts.append(f"{verdict} at {len(points)} of {count(len(judged), 'point')}{labels}")
    return f"{variant} against {baseline}: {', '.join(parts)}"


def _ratios(compared: Sequence[Comparison]) -> str:
    """Return between which ratios those of several points with a difference lie."""
    known = [each.decisive for each in compared if each.decisive and each.verdict in DIFFERENT]
    if len(known) < len(compared) or len(known) < 2:
        return ""
    least, most = (end(known, key=lambda ratio: ratio.estimate) for end in (min, max))
    return f", {times(least)} to {times(most)}"


def _comparison(variant: str, decide_on: str, point: PointJudgement) -> Comparison:
    return next(c for c in point.judgement.comparisons if c.a == variant and c.metric == decide_on)
