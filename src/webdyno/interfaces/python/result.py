"""What came of a run, for Python: verdict, ratios with their intervals, tables, charts."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdyno.core.base import Interval
from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import write_whole
from webdyno.core.judgement import Comparison, Judgement, ValidityWarning, Verdict
from webdyno.core.limits import GateAnswer, GateJudgement
from webdyno.core.metrics import CAPACITY
from webdyno.core.records import SlotRecord
from webdyno.core.registry import import_part, question_parts
from webdyno.core.run import RunHead
from webdyno.core.sweep import SweepComparison
from webdyno.measure.folder import RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.report.view import JudgedRun

Cell = str | int | float | bool | None
Row = dict[str, Any]
RATIOS = "ratios"
PICTURE_SCALE = 2.0
"""Pixels of a PNG for each of the SVG's."""


class Rows(list[Row]):
    """A table in plain rows: dictionaries that all have the same keys."""

    def to_arrow(self) -> Any:  # noqa: ANN401 (a type of pyarrow)
        """Return it as a `pyarrow.Table`; raise OperationError where pyarrow isn't installed."""
        try:
            import pyarrow as arrow  # type: ignore[import-not-found, unused-ignore]
        except ModuleNotFoundError:
            raise OperationError("to_arrow() takes pyarrow, which isn't installed here") from None
        return arrow.Table.from_pylist(list(self))

    def to_pandas(self) -> Any:  # noqa: ANN401 (a type of pandas)
        """Return it as a `pandas.DataFrame`; raise OperationError where pandas isn't installed."""
        try:
            import pandas  # type: ignore[import-not-found, import-untyped, unused-ignore]
        except ModuleNotFoundError:
            raise OperationError("to_pandas() takes pandas, which isn't installed here") from None
        return pandas.DataFrame.from_records(list(self))

    def _repr_html_(self) -> str:
        from webdyno.media.page import table_html

        return table_html(self)


@dataclass(frozen=True)
class Chart:
    """A picture of the report's, by itself."""

    name: str
    """Unique within a run, such as `ratios`."""
    title: str
    description: str
    """What a reader who can't see it should know."""
    svg: str

    def save(self, file: str | Path) -> Path:
        """Write it as SVG or PNG, as the file's name ends; raise UserError for another ending.

        Raise OperationError where it can't be written.
        """
        path = Path(file)
        if path.suffix not in {".svg", ".png"}:
            raise UserError(f"{path}: a chart is written as .svg or .png")
        content = self.svg.encode()
        if path.suffix == ".png":
            import vl_convert

            content = vl_convert.svg_to_png(self.svg, scale=PICTURE_SCALE)
        write_whole(path, content)
        return path

    def _repr_svg_(self) -> str:
        return self.svg


class Result:
    """What a run came to, read and judged from its folder; nothing is measured for it.

    What is known of it is worked out when it is first requested. A run of an experiment with
    factors has several points: `ratios` and `values` have a row for each, and what there can be
    only one of, such as `verdict`, raises UserError.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.path = folder.path
        """The folder of the run."""
        self.head: RunHead = folder.head
        """What was run, by what, where."""
        self._folder = folder

    @cached_property
    def _seen(self) -> "JudgedRun":
        from webdyno.report.view import see

        return see(self._folder.data())

    @property
    def points(self) -> list[Judgement]:
        """All that the judge says, at each point; `experiment.factors` has what was varied."""
        return [point.judgement for point in self._seen.judged.points]

    @property
    def judgement(self) -> Judgement:
        """All that the judge says of a run of one point."""
        if len(self.points) > 1:
            raise UserError(
                f"{self.path} has {len(self.points)} points, each with an answer of its own: "
                "see .points, .ratios() and .values()"
            )
        return self.points[0]

    @property
    def verdict(self) -> Verdict:
        """What the first variant after the baseline is against it: `faster` and so on."""
        return self.judgement.verdict

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        judged = self._seen.judged
        return judged.headline if len(self.points) > 1 else self.judgement.headline

    @property
    def comparison(self) -> Comparison:
        """The first variant against the baseline on the deciding metric, with all it rests on."""
        decide_on = self.head.experiment.measure.decide_on
        for compared in self.judgement.comparisons:
            if compared.metric == decide_on:
                return compared
        raise UserError(f"{self.path} compares nothing on {decide_on}: {self.headline}")

    @property
    def ratio(self) -> Interval:
        """How many times the baseline's value the first variant has, of the deciding metric.

        With the CI that the verdict rests on: the worst-case CI, where there is interference;
        `comparison.ratio` has the sampling CI. Raise UserError where there were too few rounds.
        """
        comparison = self.comparison
        if comparison.decisive is None:
            raise UserError(f"{self.path} has no ratio: {comparison.why}")
        return comparison.decisive

    @property
    def warnings(self) -> list[ValidityWarning]:
        """Interference with the run, what makes it invalid, and what can be done."""
        return [warning for judged in self.points for warning in judged.warnings]

    @property
    def scope(self) -> str:
        """What was measured, and what the answer says nothing about."""
        from webdyno.report.card import scope_of

        return scope_of(self._seen.view)

    def text(self, *, verbose: bool = False) -> str:
        """Return what a terminal shows of it; with `verbose` all that the page has in words."""
        from webdyno.media.terminal import document_text
        from webdyno.report.brief import brief, in_full

        return document_text((in_full if verbose else brief)(self._seen.view))

    def ratios(self) -> Rows:
        """Return a row for each point, metric and variant: its ratio to the baseline.

        `worst_case_low` and `worst_case_high`: the worst-case CI, where there was
        interference. `low`, `high` and these are for `confidence`, a share.
        """
        return Rows(
            {
                **levels,
                "metric": comparison.metric,
                "variant": comparison.a,
                "baseline": comparison.b,
                **_ends_of("ratio", comparison.ratio),
                "worst_case_low": comparison.worst_case.low if comparison.worst_case else None,
                "worst_case_high": comparison.worst_case.high if comparison.worst_case else None,
                "verdict": str(comparison.verdict),
                "why": comparison.why,
            }
            for levels, judged in self._at_points()
            for comparison in judged.comparisons
        )

    def values(self) -> Rows:
        """Return a row for each point, metric and variant: its value in `unit`, over all rounds."""
        return Rows(
            {
                **levels,
                "metric": value.metric,
                "unit": units.get(value.metric, ""),
                "variant": value.variant,
                **_ends_of("value", value.interval),
                "rounds": len(value.by_round),
            }
            for levels, judged in self._at_points()
            for units in [{metric.name: metric.unit for metric in judged.metrics}]
            for value in judged.variants
        )

    def slots(self) -> Rows:
        """Return a row for each slot, warm-ups included, as `report --format parquet` writes them.

        Columns are named by their path in slots.jsonl, with units in the names.
        """
        from webdyno.report.exports import flat_slots

        slots = [record for record in self._folder.records() if isinstance(record, SlotRecord)]
        rows = flat_slots(slots)
        keys = dict.fromkeys(key for row in rows for key in row)
        return Rows({key: row.get(key) for key in keys} for row in rows)

    def chart(self, name: str = "") -> Chart:
        """Return a chart of the report; the one of the ratios unless another is named.

        Raise UserError where there is none of that name.
        """
        charts = self.charts()
        if name and name not in charts:
            raise UserError(f"there is no chart named {name!r}; there are {', '.join(charts)}")
        if not charts:
            raise UserError(f"{self.path}: there is nothing to draw: {self.headline}")
        return charts[name or (RATIOS if RATIOS in charts else next(iter(charts)))]

    def charts(self) -> dict[str, Chart]:
        """Return all charts of the report by name, in its order."""
        return dict(self._charts)

    @cached_property
    def _charts(self) -> dict[str, Chart]:
        from webdyno.report.result_page import charts

        return {
            panel.name: Chart(panel.name, figure.title, panel.alt, svg)
            for figure, panel, svg in charts(self._seen.view)
        }

    def since(self, earlier: "Result") -> SweepComparison:
        """Return what changed since an earlier run of the same experiment, point by point."""
        from webdyno.comparison.runs import compare_sweeps

        return compare_sweeps(earlier._folder.data(), self._folder.data())

    def report(self) -> Path:
        """Write `report.html` and `summary.csv` into the run's folder; return the page's path."""
        from webdyno.report.result_page import write_report

        return write_report(self.path, self._seen.view)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}: {self.headline}>"

    def _repr_html_(self) -> str:
        from webdyno.media.page import answer_html
        from webdyno.report.words import SIGNS

        signs = " ".join(dict.fromkeys(SIGNS[judged.verdict] for judged in self.points))
        drawn = self.chart().svg if self.charts() else ""
        return answer_html(f"{signs} {self.headline}", self.ratios() or self.values()) + drawn

    def _at_points(self) -> Iterator[tuple[Row, Judgement]]:
        for point in self._seen.judged.points:
            yield dict(point.point.levels), point.judgement


class CapacityResult(Result):
    """How much one or two systems can take while objectives hold."""

    @property
    def capacities(self) -> dict[str, Interval]:
        """By variant of two rounds or more: requests per second, with the interval."""
        return {
            variant.variant: variant.interval
            for variant in self.judgement.variants
            if variant.metric == CAPACITY and variant.interval is not None
        }


class GateRun(Result):
    """What was measured for a gate."""

    @cached_property
    def gate(self) -> "GateResult":
        """The answer, which is one for all endpoints."""
        whole: Any = self._seen.view.whole
        return GateResult(whole.gate, self)


@dataclass(frozen=True)
class GateResult:
    """Whether head is worse than the baseline by more than is tolerated."""

    judgement: GateJudgement
    """All of the answer."""
    run: Result | None
    """What was measured; None where no change was left to be measured."""

    @property
    def answer(self) -> GateAnswer:
        """`pass`, `fail`, `inconclusive`, or `invalid` where nothing can be believed."""
        return self.judgement.answer

    @property
    def passed(self) -> bool:
        """Whether head is not worse (95% confidence)."""
        return self.answer is GateAnswer.PASS

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return self.judgement.headline

    def claims(self) -> Rows:
        """Return a row for each endpoint and metric: how many times worse head is (`low`, `high`).

        Shares (`tolerance`, `noise`) are of 1; `baseline` and `head` are in the metric's unit.
        """
        return Rows(
            {
                "endpoint": claim.endpoint,
                "metric": claim.metric,
                "answer": claim.answer,
                "tolerance": claim.tolerance,
                **_ends_of("worse", claim.worse),
                "noise": claim.noise,
                "baseline": claim.baseline,
                "head": claim.head,
                "rounds": claim.rounds,
                "why": claim.why,
            }
            for claim in self.judgement.claims
        )

    def _repr_html_(self) -> str:
        from webdyno.media.page import answer_html

        return answer_html(f"{self.answer}: {self.headline}", self.claims())


def result_in(folder: RunFolder) -> Result:
    """Return what came of a run, as its question has it."""
    experiment = folder.head.experiment
    if own := question_parts(experiment.asks.key).result:
        result: Result = import_part(own)(folder)
        return result
    return (CapacityResult if experiment.capacity else Result)(folder)


def _ends_of(name: str, interval: Interval | None) -> Row:
    if interval is None:
        return {name: None, "low": None, "high": None, "confidence": None}
    return {
        name: interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "confidence": interval.confidence,
    }
