"""A sweep: the same question at several points, each answered by itself."""

from collections.abc import Sequence

from webdyno.comparison.asking import judge, question_of
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, levels_text
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.sweep import Point, PointJudgement, SweepJudgement
from webdyno.evidence.point_data import RunData

SHOWN_POINTS = 3
ARRIVALS = "load.arrivals"
RATE = "load.rate_per_s"
"""Headlines about costs say at which rate."""
WITHOUT_ANSWER = {Verdict.INCONCLUSIVE, Verdict.INVALID, Verdict.INCOMPLETE}


def judge_sweep(run: RunData) -> SweepJudgement:
    """Judge every point by its own records and settings.

    Confidence levels are those of a single point: of twenty points without any difference, one may
    come out different.
    """
    judged = [PointJudgement(point=data.point, judgement=judge(data)) for data in run.points]
    experiment = run.head.experiment
    sentences = points_together(experiment, judged)
    compares_loads = {"replay"} < set(experiment.factors.get(ARRIVALS, []))
    if compares_loads and question_of(experiment).has_baseline:
        variants, decide_on = list(experiment.variants), experiment.measure.decide_on
        sentences += [_next_to_the_log(variant, decide_on, judged) for variant in variants[1:]]
    return SweepJudgement(sentences=sentences, points=judged)


def points_together(experiment: Experiment, judged: Sequence[PointJudgement]) -> list[str]:
    """Say of each variant but the baseline what it is at which points; of costs, what they are."""
    costly = any(point.judgement.costs for point in judged)
    if costly and list(experiment.factors) == [RATE]:
        return [point.judgement.headline for point in judged]
    if costly or not question_of(experiment).has_baseline:
        return [f"{point.point.label}: {point.judgement.headline}" for point in judged]
    variants, decide_on = list(experiment.variants), experiment.measure.decide_on
    return [_sentence(variant, variants[0], decide_on, judged) for variant in variants[1:]]


def _next_to_the_log(variant: str, decide_on: str, judged: Sequence[PointJudgement]) -> str:
    """Say whether a log's own timetable and the load that was made of it give the same verdict.

    Where other things are varied as well, each point is held against its like.
    """
    verdicts = [(point.point, _comparison(variant, decide_on, point).verdict) for point in judged]
    of_log = {_but_arrivals(levels): verdict for levels, verdict in verdicts if _is_replay(levels)}
    pairs = [
        (of_log[_but_arrivals(levels)], verdict)
        for levels, verdict in verdicts
        if not _is_replay(levels)
    ]
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


def _is_replay(point: Point) -> bool:
    return point.levels[ARRIVALS] == "replay"


def _but_arrivals(point: Point) -> str:
    return levels_text({key: level for key, level in point.levels.items() if key != ARRIVALS})


def _sentence(variant: str, baseline: str, decide_on: str, judged: Sequence[PointJudgement]) -> str:
    """Say at which points a variant is what, most frequent verdict first."""
    places: dict[Verdict, list[str]] = {}
    for point in judged:
        comparisons = _comparison(variant, decide_on, point)
        places.setdefault(comparisons.verdict, []).append(point.point.label)
    ordered = sorted(places.items(), key=lambda item: -len(item[1]))
    if len(ordered) == 1:
        verdict, points = ordered[0]
        return f"{variant} against {baseline}: {verdict} at {_all(len(points))}"
    return f"{variant} against {baseline}: " + ", ".join(
        f"{verdict} at {_named(points, len(judged))}" for verdict, points in ordered
    )


def _all(points: int) -> str:
    return "the only point" if points == 1 else f"all {count(points, 'point')}"


def _named(points: Sequence[str], total: int) -> str:
    share = f"{len(points)} of {count(total, 'point')}"
    return f"{share} ({'; '.join(points)})" if len(points) <= SHOWN_POINTS else share


def _comparison(variant: str, decide_on: str, point: PointJudgement) -> Comparison:
    return next(c for c in point.judgement.comparisons if c.a == variant and c.metric == decide_on)
