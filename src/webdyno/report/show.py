"""What is shown of a run: its points, what they come to, and what its question adds to that.

Whoever composes or draws asks a view's shows, and needn't know which question a run is about.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Protocol, TypeVar

from webdyno.comparison import question_of
from webdyno.comparison.judgement import decisive
from webdyno.core import format as text
from webdyno.core.errors import Exit
from webdyno.core.experiment import Experiment, Level
from webdyno.core.judgement import Comparison, Judgement, Metric, VariantValue, Verdict
from webdyno.core.run import RunHead
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Block, Callout, Facts, Figure, Headline, Paragraph, Section
from webdyno.report.words import metric_title


@dataclass(frozen=True)
class Row:
    """One variant on one metric at one point."""

    variant: str
    value: VariantValue | None
    comparison: Comparison | None
    """None for the baseline, and for all variants of a run that ended too early."""
    rank: str = ""
    """In a ranking: where the variant stands, or may stand."""

    @property
    def valid_value(self) -> VariantValue | None:
        """None also where a rule withdrew the verdict: nobody should quote what doesn't count."""
        is_invalid = self.comparison and self.comparison.verdict is Verdict.INVALID
        return None if is_invalid else self.value


@dataclass(frozen=True)
class MetricTable:
    """One metric at one point: its variants next to each other."""

    metric: Metric
    rows: list[Row]

    @property
    def title(self) -> str:
        """The metric's words for people as a heading, with its unit where they don't imply it."""
        return metric_title(self.metric)

    @property
    def informs(self) -> bool:
        """Whether there is more to it than that nothing about it can be believed."""
        verdicts = [row.comparison.verdict for row in self.rows if row.comparison]
        return any(verdict is not Verdict.INVALID for verdict in verdicts)

    @property
    def has_ranks(self) -> bool:
        """Whether it is about ranks."""
        return any(row.rank for row in self.rows)

    @property
    def comparisons(self) -> list[Comparison]:
        """The comparisons for which there is a ratio."""
        comparisons = [row.comparison for row in self.rows if row.comparison]
        return [comparison for comparison in comparisons if comparison.ratio]


@dataclass(frozen=True)
class PointView:
    """All that there is to see of one point."""

    number: int
    levels: dict[str, Level]
    """By factor; empty in a run without factors."""
    variants: list[str]
    """In the order in which they are shown: of a ranking that of the ranks."""
    data: PointData
    judgement: Judgement
    deciding: MetricTable | None
    """The metric that the verdict is about; None when nothing was measured."""
    alongside: list[MetricTable]
    endpoints: list[MetricTable]
    """The median latency of each endpoint, where several were requested."""
    shows: Sequence["Show"]

    @property
    def label(self) -> str:
        return text.levels_text(self.levels)

    @property
    def level_words(self) -> list[str]:
        """Its levels one by one, for the columns of a table."""
        return [text.level(level) for level in self.levels.values()]

    @property
    def on_deciding(self) -> list[Comparison]:
        """What was compared on the deciding metric."""
        decide_on = self.data.measure.decide_on
        return [each for each in self.judgement.comparisons if each.metric == decide_on]

    @property
    def decisive(self) -> list[Comparison]:
        """What the answer is about."""
        return decisive(self.judgement.comparisons, self.data.measure.decide_on)

    @property
    def has_one_load(self) -> bool:
        """Whether slots are alike; the trials of a search have rates of their own."""
        return question_of(self.data.experiment).loading.has_windows


@dataclass(frozen=True)
class RunView:
    """All that there is to see of a run."""

    head: RunHead
    points: list[PointView]
    answers: list[Headline]
    """Of the only point; empty where there are several, and where there is one for all."""
    counts: dict[Verdict, int]
    """How often each verdict was found over all points and variants, most frequent first."""
    sentences: list[str]
    """What the points say together; empty where there is only one, or one answer for all."""
    warnings: list[Callout]
    """Those that invalidate a verdict come first."""
    factors: list[str]
    how: Facts
    shows: Sequence["Show"]
    whole: "WholeAnswer | None" = None
    """The one answer for all points, where the question has one."""

    @property
    def several(self) -> bool:
        return len(self.points) > 1

    @property
    def headlines(self) -> list[Headline]:
        """The one answer for all points, or those of the only point."""
        return [self.whole.headline] if self.whole else self.answers

    @property
    def variants(self) -> list[str]:
        """The variants in the order in which they are shown."""
        return self.points[0].variants

    @property
    def has_ranks(self) -> bool:
        """Whether variants are shown by their ranks."""
        return any(table.has_ranks for table in self.deciding)

    @property
    def without_interference(self) -> bool:
        """Whether no rule fired, and nothing was there that could have moved what decides."""
        compared = chain.from_iterable(table.comparisons for table in self.deciding)
        return not self.warnings and not any(
            comparison.biases or comparison.limited_by for comparison in compared
        )

    @property
    def deciding(self) -> list[MetricTable]:
        """The deciding metric at every point where anything was measured."""
        return [point.deciding for point in self.points if point.deciding]


T = TypeVar("T")


def first(own: Iterable[T | None]) -> T | None:
    """Return what the first show says in its own way that does."""
    return next((said for said in own if said is not None), None)


class Show:
    """What a question adds to how a run is shown, or says in its own way.

    This one adds nothing: each overrides what is its own. A run may be about several of them, such
    as a ranking of tuned stacks by their capacity, so that each looks whether there is anything.
    """

    # What is said in another way; None: as usual.

    def ranks(self, judged: Judgement) -> Mapping[str, str] | None:
        """Return variants in the order of their rows, with their ranks."""
        return None

    def answers(self, point: PointView) -> Sequence[Headline] | None:
        """Return what a point comes to, in place of an answer for each comparison."""
        return None

    def about_verdicts(self, view: RunView) -> Sequence[Paragraph] | None:
        """Return what the verdicts rest on, in place of a reason for each ratio."""
        return None

    def adjustment(self, judged: Judgement) -> str | None:
        """Return what intervals are adjusted for, in place of Holm's correction."""
        return None

    def in_practice(self, point: PointView) -> Sequence[str] | None:
        """Return what the answer means in practice, in place of CPUs that are needed."""
        return None

    def confidence(self, judged: Judgement) -> str | None:
        """Return how sure the answer is, in place of a level for each variant."""
        return None

    def pairs(self, experiment: Experiment) -> Sequence[tuple[str, str]] | None:
        """Return the variants whose configurations are compared, in place of the baseline's."""
        return None

    # What else came out.

    def lower_bounds(self, judged: Judgement) -> Sequence[str]:
        """Return the variants that may have more of what decides than was found."""
        return []

    def found(self, point: PointView) -> Iterator[Section]:
        """Yield what was found at a point besides comparisons."""
        yield from ()

    def about_run(self, view: RunView, *, to_paste: bool) -> Iterator[Section]:
        """Yield what was done before the rounds; `to_paste` also as lines for a file."""
        yield from ()

    def pages(self, folder: Path) -> Iterator[Section]:
        """Yield links to pages of what was measured besides the run, in its folder."""
        yield from ()

    def results(self, point: PointView) -> Iterator[Figure]:
        """Draw what came out."""
        yield from ()

    def figures(self, point: PointView) -> Iterator[Figure]:
        """Draw how it came out."""
        yield from ()


class WholeAnswer(Protocol):
    """The one answer for all points of a run, which is shown in place of theirs."""

    @property
    def word(self) -> str:
        """The answer in one word."""

    @property
    def headline(self) -> Headline:
        """The answer in large letters, and why it is that."""

    @property
    def exit_code(self) -> Exit:
        """What the command ends with."""

    def blocks(self) -> Iterator[Block]:
        """Return what the answer rests on, in every medium."""

    def sections(self, folder: Path, view: RunView) -> Iterator[Block]:
        """Return the same for the page, and what else is known of it in the run's folder."""

    def next_steps(self, run: Path) -> Facts:
        """Return the commands that are worth a thought after this answer."""
