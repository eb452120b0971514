"""A run of a league as its judge sees it, and which runs have the newest results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from webdyno.comparison import judge
from webdyno.comparison.comparison import ALPHA
from webdyno.core.judgement import Judgement, LimitedBy, Ranking, VariantValue
from webdyno.evidence.point_data import PointData
from webdyno.league.warmth import why_cold
from webdyno.validity import valid_for

MUCH_LONGER = 2


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """A run of a task, judged."""

    data: PointData

    @cached_property
    def judgement(self) -> Judgement:
        return judge(self.data)

    @property
    def decide_on(self) -> str:
        """The metric that its ranks are by."""
        return self.data.measure.decide_on

    @cached_property
    def deciding(self) -> PointData:
        """What counts of it for what decides."""
        return valid_for(self.data, self.decide_on)

    @property
    def ranking(self) -> Ranking:
        """Its ranks; none where nothing was ranked."""
        return self.judgement.ranking or Ranking(ranks=[], looks=0)

    @cached_property
    def cold(self) -> dict[str, str]:
        """By stack that hadn't warmed up, and so would be faster: why it has no rank."""
        whys = {stack: why_cold(self.deciding, stack) for stack in self.stacks}
        return {stack: why for stack, why in whys.items() if why}

    @property
    def stacks(self) -> list[str]:
        return list(self.data.experiment.variants)

    @property
    def ranked(self) -> list[str]:
        return [rank.variant for rank in self.ranking.ranks]

    @cached_property
    def joining(self) -> list[str]:
        """Those by which it is joined with other runs: one that was cold is another in each."""
        return [stack for stack in self.ranked if stack not in self.cold]

    @property
    def risk(self) -> float:
        """Chance that one of its statements of a kind is false."""
        return ALPHA / float(getattr(self.data.experiment.asks, "together", 1))

    def has_same(self, stack: str, other: "JudgedRun") -> bool:
        """Whether another run had the same program of a stack, by its version and settings."""
        mine, theirs = (
            (
                head.webdyno_version,
                head.versions.get(stack),
                head.experiment.variants[stack].without_warmup,
            )
            for head in (self.data.head, other.data.head)
        )
        return mine == theirs

    def load_before_s(self, stack: str) -> float:
        """Return how long a stack was loaded in warm-ups, in the last round."""
        warmups = self.data.rounds[-1].warmups_of(stack) if self.data.rounds else []
        return sum(each.load.measured_s for each in warmups)

    def limit_of(self, stack: str) -> LimitedBy | None:
        """Return what kept a stack from being faster, other than itself."""
        limits = (pair.limited_by.get(stack) for pair in self.ranking.pairs)
        return next(filter(None, limits), None)

    def cpus_by_service(self, stack: str) -> dict[str, float]:
        """Return how many CPUs each service of a stack kept busy under load, by role."""
        readings = [slot.readings for slot in self.deciding.of_variant(stack) if slot.readings]
        used_s = Counter[str]()
        for reading in readings:
            used_s.update({role: use.cpu_s for role, use in reading.services.items()})
        took_s = sum(reading.host.took_s for reading in readings)
        return {role: cpu_s / took_s for role, cpu_s in used_s.items()} if took_s else {}

    def client_busy(self, stack: str) -> float | None:
        """Return for which share of the time the client's busiest thread worked for a stack."""
        shares = [slot.load.client.busy for slot in self.deciding.of_variant(stack)]
        return median(shares) if shares else None

    def value(self, stack: str, metric: str) -> VariantValue | None:
        """Return what it measured of a stack."""
        return next(
            (
                value
                for value in self.judgement.variants
                if value.variant == stack and value.metric == metric
            ),
            None,
        )


def current_runs(newest_first: Sequence[JudgedRun]) -> list[JudgedRun]:
    """Return the runs that hold the newest result of a stack."""
    return list(dict.fromkeys(newest_of(newest_first).values()))


def newest_of(newest_first: Sequence[JudgedRun]) -> dict[str, JudgedRun]:
    """Return by stack the run that has its newest result.

    One that hadn't warmed up gives way to an earlier one of the same program that had.
    """
    by_stack: dict[str, JudgedRun] = {}
    for run in newest_first:
        cold = cold_among(run, newest_first)
        for stack in run.stacks:
            newest = by_stack.setdefault(stack, run)
            is_warmer = stack in newest.cold and stack not in cold
            if is_warmer and run.has_same(stack, newest):
                by_stack[stack] = run
    return by_stack


def cold_among(run: JudgedRun, others: Iterable[JudgedRun]) -> frozenset[str]:
    """Return the stacks of a run that hadn't warmed up, by what other runs say as well.

    What was cold in one of them after a much longer warm-up was cold, seen or not.
    """
    return frozenset(run.cold) | {
        stack
        for other in others
        for stack in other.cold
        if stack in run.stacks
        and other.has_same(stack, run)
        and other.load_before_s(stack) > MUCH_LONGER * run.load_before_s(stack)
    }
