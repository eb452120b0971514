"""A run of a league as its judge sees it, what was cold in it, and who has the newest results."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from statistics import median

import numpy as np

from webdyno.comparison import judge
from webdyno.comparison.comparison import ALPHA
from webdyno.core.format import percent
from webdyno.core.judgement import Judgement, LimitedBy, Ranking, VariantValue
from webdyno.evidence.point_data import PointData, Round
from webdyno.statistics.interval import estimate, fitted_line
from webdyno.validity import valid_for
from webdyno.validity.over_time import OVER_THE_ROUND, pace, share_of, work_rate

WARM = 0.1
"""A stack counts as warm up to this rise: within a round, or by a warm-up of twice the length."""
FEWEST_BURSTS, FEWEST_LAST = 6, 3
"""Of a warm-up that shows a rise, and of its last quarter: fewer are as uneven as bursts are."""
FEWEST_ROUNDS = 2
RISE_CONFIDENCE = 0.9
"""Of a rise in warm-ups: one warm stack in twenty is measured again for nothing, which costs less
than a wrong rank."""
MUCH_LONGER = 2
"""Times as long a warm-up, after which what was cold had been cold before as well."""


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

    def is_comparable(self, stack: str, other: "JudgedRun") -> bool:
        """Whether two runs measured the same of a stack: the same program, warm in both."""
        return not (
            stack in self.cold
            or stack in other.cold
            or self.was_colder(stack, other)
            or other.was_colder(stack, self)
        ) and self.has_same(stack, other)

    def was_colder(self, stack: str, other: "JudgedRun") -> bool:
        """Whether another run of the same program shows that it was cold in this one, seen or not.

        There it had a much longer warm-up, and was cold after that, or had been given it alone:
        only what needs one is.
        """
        is_slow_to_warm = (
            stack in other.cold or other.data.experiment.variants[stack].warmup_s is not None
        )
        return (
            is_slow_to_warm
            and other.load_before_s(stack) > MUCH_LONGER * self.load_before_s(stack)
            and self.has_same(stack, other)
        )

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
    cold = {run: cold_among(run, newest_first) for run in newest_first}
    for run in newest_first:
        for stack in run.stacks:
            newest = by_stack.setdefault(stack, run)
            is_warmer = stack in cold[newest] and stack not in cold[run]
            if is_warmer and run.has_same(stack, newest):
                by_stack[stack] = run
    return by_stack


def cold_among(run: JudgedRun, others: Iterable[JudgedRun]) -> frozenset[str]:
    """Return the stacks of a run that hadn't warmed up, by what other runs say as well."""
    return frozenset(run.cold) | {
        stack
        for other in others
        for stack in other.stacks
        if stack in run.stacks and run.was_colder(stack, other)
    }


def why_cold(data: PointData, stack: str) -> str | None:
    """Say why a stack would be faster, had there been more load before; None where it was warm.

    A run of many stacks cuts warm-ups, of which a virtual machine's compilers need seconds.
    Slots that are a second apart show only a steep rise. A slow one shows in a long warm-up: in
    one of 11 s, the throughput of Spring Boot with a database rose by 7% in the last 2.5 s, of
    which slots of 0.25 s showed nothing.
    """
    change = OVER_THE_ROUND.sure_change(data, stack)
    if change and (rise := share_of(change)) > WARM:
        return f"it hadn't warmed up: {pace(data, stack)} rose by {percent(rise)} within a round"
    gain = _gain_of_twice_the_warmup(data, stack)
    if gain is not None and gain > WARM:
        return (
            "it hadn't warmed up: its throughput still rose in its warm-up, and twice as long a "
            f"one might make it {percent(gain)} faster"
        )
    return None


def _gain_of_twice_the_warmup(data: PointData, stack: str) -> float | None:
    """Return the share by which a warm-up of twice the length would raise throughput, if surely.

    None where it isn't sure, and for a warm-up that the pilot chose: that ends as soon as
    throughput rises no more, right after the steepest part.
    """
    if data.experiment.warmup_s_of(stack) is None:
        return None
    gains = [gain for each in data.rounds if (gain := _gain_in(each, stack)) is not None]
    if len(gains) < FEWEST_ROUNDS:
        return None
    mean = estimate(np.array(gains), RISE_CONFIDENCE)
    return share_of(mean) if mean.low > 0 else None


def _gain_in(this_round: Round, stack: str) -> float | None:
    """Return what twice as many bursts would add to ln(throughput); None where too few say it.

    By a line through the last quarter of them, over the logarithm of their number: compilers begin
    with what runs most often, so equal gains take ever longer.
    """
    bursts = this_round.warmups_of(stack)
    first = len(bursts) - max(len(bursts) // 4, FEWEST_LAST)
    rates = {
        number: rate
        for number, burst in enumerate(bursts, 1)
        if number > first and burst.load.loop == "closed" and (rate := work_rate(burst))
    }
    if len(bursts) < FEWEST_BURSTS or len(rates) < FEWEST_LAST:
        return None
    return fitted_line(np.log(list(rates)), np.log(list(rates.values()))).slope * log(2)
