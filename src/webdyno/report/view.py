"""What people see of a run, put in order once for terminal and page.

A plain run is a sweep of one point: whatever is shown is a list over points, and what has to be
said of several points only is left out where there is one.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from webdyno.judge.judgement import decisive
from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.questions import question_of
from webdyno.judge.sentences import place_words, sentence
from webdyno.judge.sweep import judge_sweep
from webdyno.model import format as text
from webdyno.model.experiment import Level
from webdyno.model.gate import GateJudgement
from webdyno.model.judgement import (
    ArmValue,
    Comparison,
    EndpointFigures,
    Judgement,
    League,
    Metric,
    Verdict,
)
from webdyno.model.point import PointJudgement, SweepJudgement
from webdyno.model.run import RunHead
from webdyno.report import bias
from webdyno.report.conditions import Facts, factor_facts, how_measured
from webdyno.report.costs import Cost, costs
from webdyno.report.fairness import Fairness, fairness
from webdyno.report.findings import FindingGroup, grouped
from webdyno.report.pilots import PilotView, pilot_views, remedies_taken
from webdyno.report.words import metric_title


@dataclass(frozen=True)
class Row:
    """One arm on one metric at one point."""

    arm: str
    value: ArmValue | None
    comparison: Comparison | None
    """None for the baseline, and for all arms of a run that ended too early."""
    place: str = ""
    """In a league: where the arm stands, or may stand."""


@dataclass(frozen=True)
class MetricTable:
    """One metric at one point: its arms beside each other."""

    metric: Metric
    rows: list[Row]

    @property
    def title(self) -> str:
        """The metric's words for people as a heading, with its unit where they don't imply it."""
        return metric_title(self.metric)

    @property
    def tells(self) -> bool:
        """Whether there is more to it than that nothing about it can be believed."""
        verdicts = [row.comparison.verdict for row in self.rows if row.comparison]
        return any(verdict is not Verdict.INVALID for verdict in verdicts)

    @property
    def bounded(self) -> bool:
        """Whether there is an interval with all bounds beside one as measured."""
        return any(found.bounded for found in self.compared)

    @property
    def of_times(self) -> bool:
        """Whether it is about a percentile, which a block's answers bound by themselves."""
        return any(row.value and row.value.within_blocks for row in self.rows)

    @property
    def placed(self) -> bool:
        """Whether it is about places."""
        return any(row.place for row in self.rows)

    @property
    def compared(self) -> list[Comparison]:
        """The comparisons for which there is a ratio."""
        found = [row.comparison for row in self.rows if row.comparison]
        return [comparison for comparison in found if comparison.ratio]


@dataclass(frozen=True)
class ArmAnswer:
    """The verdict on one arm, and the sentence that says it."""

    verdict: Verdict
    sentence: str


@dataclass(frozen=True)
class PointView:
    """All that there is to see of one point."""

    number: int
    levels: dict[str, Level]
    """By factor; empty in a run without factors."""
    data: PointData
    judgement: Judgement
    deciding: MetricTable | None
    """The metric that the verdict is about; None when nothing was measured."""
    beside: list[MetricTable]
    """The metrics that were measured as well."""
    endpoints: list[MetricTable]
    """The median response times of each endpoint, where several were asked for."""
    pilots: list[PilotView]
    """What each arm showed alone; empty where there was no pilot."""
    remedies: list[str]
    """What was mended while the run went on."""
    costs: dict[str, list[Cost]]
    """By group."""
    fairness: Fairness | None

    @property
    def endpoint_figures(self) -> dict[str, list[Cost]]:
        """By endpoint: what each arm did with its requests."""
        told: dict[str, Callable[[EndpointFigures], str]] = {
            "answers": lambda it: text.number(it.completed),
            "failures": lambda it: text.number(it.failed),
            "answers per second": lambda it: text.significant(it.rate_rps),
            "99th percentile of response times, µs": lambda it: (
                text.MISSING if it.p99_us is None else text.significant(it.p99_us)
            ),
        }
        return {
            judged.endpoint: [
                Cost(what, {figures.arm: tell(figures) for figures in judged.figures})
                for what, tell in told.items()
            ]
            for judged in self.judgement.endpoints
        }

    @property
    def label(self) -> str:
        """Its levels in words."""
        return text.levels_text(self.levels)

    @property
    def level_words(self) -> list[str]:
        """Its levels one by one, for the columns of a table."""
        return [text.level(level) for level in self.levels.values()]


@dataclass(frozen=True)
class RunView:
    """All that there is to see of a run."""

    head: RunHead
    points: list[PointView]
    answers: list[ArmAnswer]
    """Of the only point; empty where there are several, and where a gate has one for all."""
    counts: dict[Verdict, int]
    """How often each verdict was found over all points and arms, most frequent first."""
    sentences: list[str]
    """What the points say together; empty where there is only one, and for a gate."""
    findings: list[FindingGroup]
    """Those that spoil a verdict come first."""
    factors: list[str]
    """What was varied, by short names."""
    how: Facts
    gate: GateJudgement | None = None
    """Of a gate: its one answer."""

    @property
    def several(self) -> bool:
        """Whether the arms were compared at more than one point."""
        return len(self.points) > 1

    @property
    def placed(self) -> bool:
        """Whether it is a league."""
        return any(table.placed for table in self.deciding)

    @property
    def undisturbed(self) -> bool:
        """Whether no rule fired, and nothing was there that could have moved what decides."""
        compared = chain.from_iterable(table.compared for table in self.deciding)
        return not self.findings and not any(it.biases or it.limited_by for it in compared)

    @property
    def deciding(self) -> list[MetricTable]:
        """The deciding metric at every point where anything was measured."""
        return [point.deciding for point in self.points if point.deciding]


class JudgedRun(NamedTuple):
    """A run as it was judged, and how it is shown."""

    judged: SweepJudgement
    view: RunView


def see(run: RunData) -> JudgedRun:
    """Judge a run."""
    judged = judge_sweep(run)
    return JudgedRun(judged, run_view(run, judged))


def run_view(run: RunData, judged: SweepJudgement) -> RunView:
    """Put a run's records and judgements in the order in which they are shown."""
    head = run.head
    points = [_point(at, data) for at, data in zip(judged.points, run.points, strict=True)]
    several = len(points) > 1
    gate = question_of(head.experiment).judge_all_points(run)
    return RunView(
        head=head,
        points=points,
        answers=[] if several or gate else list(_answers(points[0])),
        counts=_counts(points),
        sentences=judged.sentences if several and not gate else [],
        findings=grouped(judged.points),
        factors=list(text.factor_names(head.experiment.factors).values()),
        how=factor_facts(head.experiment)
        + how_measured(run, [at.judgement for at in judged.points]),
        gate=gate,
    )


def _point(at: PointJudgement, data: PointData) -> PointView:
    head = data.head
    tables = _tables(head, at.judgement)
    decide_on = data.measure.decide_on
    return PointView(
        number=at.point.number,
        levels=at.point.levels,
        data=data,
        judgement=at.judgement,
        deciding=next((table for table in tables if table.metric.name == decide_on), None),
        beside=[it for it in tables if it.metric.name != decide_on and it.tells],
        endpoints=[
            MetricTable(it.metric, _rows(head, it.arms, it.comparisons, at.judgement.league))
            for it in at.judgement.endpoints
        ],
        pilots=pilot_views(data),
        remedies=list(remedies_taken(data)),
        costs=costs(data, at.judgement.facts),
        fairness=fairness(data),
    )


def _tables(head: RunHead, judgement: Judgement) -> list[MetricTable]:
    """Give the metrics that were measured; the baseline comes last in each."""
    measured = {value.metric for value in judgement.arms if value.by_block}
    return [
        MetricTable(
            metric=metric,
            rows=_rows(
                head,
                [value for value in judgement.arms if value.metric == metric.name],
                [found for found in judgement.comparisons if found.metric == metric.name],
                judgement.league,
                decides=metric.name == head.experiment.measure.decide_on,
            ),
        )
        for metric in judgement.metrics
        if metric.name in measured
    ]


def _rows(
    head: RunHead,
    values: Sequence[ArmValue],
    comparisons: Sequence[Comparison],
    league: League | None,
    *,
    decides: bool = False,
) -> list[Row]:
    """Give the arms in their order, the baseline last; those of a league in that of their places.

    `decides`: whether it is what places are about.
    """
    value_of = {value.arm: value for value in values}
    comparison_of = {found.a: found for found in comparisons}
    if league is not None:
        places = {it.arm: place_words(it) for it in league.places}
        places |= dict.fromkeys(league.out, text.MISSING)
        return [
            Row(arm, value_of.get(arm), comparison_of.get(arm), place if decides else "")
            for arm, place in places.items()
        ]
    baseline = comparisons[0].b if comparisons else next(iter(head.experiment.arms))
    arms = sorted(head.experiment.arms, key=lambda arm: arm == baseline)
    return [Row(arm, value_of.get(arm), comparison_of.get(arm)) for arm in arms]


def _deciding(point: PointView) -> list[Comparison]:
    decide_on = point.data.measure.decide_on
    return [found for found in point.judgement.comparisons if found.metric == decide_on]


def _answers(point: PointView) -> Iterator[ArmAnswer]:
    """Give an answer for each arm that was asked about; arms spoilt alike have one together.

    A league has one for all, and one for those without a place.
    """
    if point.judgement.league is not None:
        yield ArmAnswer(point.judgement.verdict, f"{point.judgement.headline}.")
        told = {(it.verdict, it.why): None for it in _deciding(point) if it.ratio is None}
        yield from (ArmAnswer(verdict, why) for verdict, why in told)
        return
    if not point.judgement.comparisons:
        yield ArmAnswer(point.judgement.verdict, f"{point.judgement.headline}.".replace("..", "."))
        return
    decide_on = point.data.measure.decide_on
    decided = decisive(point.judgement.comparisons, decide_on)
    told = {(it.verdict, sentence(it)): None for it in decided}
    yield from (ArmAnswer(verdict, said) for verdict, said in told)


def _counts(points: Sequence[PointView]) -> dict[Verdict, int]:
    found = Counter(comparison.verdict for point in points for comparison in _deciding(point))
    return dict(found.most_common())


def why_nothing(points: Sequence[PointView]) -> str:
    """Say why there are no figures."""
    if any(point.judgement.blocks for point in points):
        return "No slot counts for what decides: each broke a rule, as the findings say."
    return "Nothing was measured: the run ended before its first block was finished."


def confidence(tables: Sequence[MetricTable]) -> str:
    """Name the confidence of the ratios' intervals: `95 %`, or `95–98.3 %` where it differs.

    It differs with several arms, where Holm's correction asks more of the clearer differences.
    """
    ratios = [found.ratio for found in chain.from_iterable(it.compared for it in tables)]
    levels = {ratio.confidence for ratio in ratios if ratio}
    low, high = min(levels, default=0.95), max(levels, default=0.95)
    if low == high:
        return text.confidence_level(low)
    return (
        f"{text.confidence_level(low).removesuffix(' %')}{text.DASH}{text.confidence_level(high)}"
    )


def reasons(table: MetricTable) -> Iterator[tuple[str, str]]:
    """Say what each verdict rests on; where there is none, the answer has said why."""
    for found in table.compared:
        if found.verdict is not Verdict.INVALID:
            yield f"{found.a} against {found.b}", " ".join([found.why, *bias.told(found)])
