"""Races, which arms leave while they go on: leagues, and halving.

A league holds every arm against every other, and gives the places that are sure.
An arm's place lies between one after all arms that are better with 95% confidence and one before
all that are worse with 95% confidence: a confidence set for its rank (Mogstad, Romano, Shaikh,
Wilhelm, "Inference for ranks with applications to mobility across neighbourhoods and academic
achievement across countries", Review of Economic Studies 2024). Since the differences of all pairs
hold together at 95% (Holm), so do all places.

Arms whose place more blocks can't change leave it, so that the time goes where places
are open (Maron & Moore, "Hoeffding races", NIPS 1993). Each look at the places is a chance to be
wrong. So there are few, each after twice as many blocks as the one before, and the i-th spends
1/2^i of the 5%: all of them together spend no more than that.

Halving is what tuning goes by: after each block the worse half of those that aren't the baseline
leaves (Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML 2013).
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, permutations
from math import log
from statistics import fmean
from typing import ClassVar

from webdyno.judge.comparison import ALPHA, DELTA, compare_family, fewest_blocks, inverted
from webdyno.judge.judgement import judge_comparisons
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.questions.compare import Question
from webdyno.judge.sentences import league_headline
from webdyno.judge.stop import Stop, used_up
from webdyno.judge.validity import valid_for
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import (
    Comparison,
    Judgement,
    League,
    LeaguePlace,
    ValidityWarning,
    Verdict,
)
from webdyno.model.metrics import MetricRule, metric_rule
from webdyno.model.race import HALVING, LEAGUE
from webdyno.model.records import BlockRecord

APART = {Verdict.FASTER, Verdict.SLOWER}
OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
NOTHING_COUNTS = "no slot of it counts"

Pair = tuple[str, str]


@dataclass(frozen=True)
class Standings:
    """What is known of each two of a league's arms."""

    arms: list[str]
    """Those that can have a place."""
    out: dict[str, str]
    """Those that can't, and why."""
    pairs: dict[Pair, Comparison]
    """Each two arms, as of the look that told them apart, or else of the last one."""
    looks: int

    @property
    def racing(self) -> list[str]:
        """The arms that more blocks can tell something of."""
        if not self.looks:
            return self.arms
        settled = APART | {Verdict.EQUIVALENT}
        still_open = {
            arm for pair, it in self.pairs.items() if it.verdict not in settled for arm in pair
        }
        return [arm for arm in self.arms if arm in still_open]

    def against(self, arm: str, other: str) -> Comparison:
        """Give the comparison of two arms as one of the first of them with the second."""
        found = self.pairs.get((arm, other))
        return found if found is not None else _turned(self.pairs[other, arm])

    def place(self, arm: str) -> LeaguePlace:
        """Give the places that an arm may have."""
        verdicts = [self.against(arm, other).verdict for other in self.arms if other != arm]
        return LeaguePlace(
            arm=arm,
            best=1 + verdicts.count(Verdict.SLOWER),
            worst=len(self.arms) - verdicts.count(Verdict.FASTER),
        )


def blocks_to_a_look(experiment: Experiment) -> int:
    """Give how many blocks it takes until the exact test can tell each two arms apart."""
    arms = len(experiment.arms)
    return fewest_blocks(experiment.measure, arms * (arms - 1) // 2, ALPHA / 2)


def is_look(blocks: int, experiment: Experiment) -> bool:
    """Whether the places are looked at after so many blocks; between looks nobody leaves."""
    return blocks in _looks(blocks, blocks_to_a_look(experiment), to_the_end=False)


def standings(
    data: PointData, invalidated: Mapping[str, str] | None = None, *, to_the_end: bool = False
) -> Standings:
    """Compare each two arms at each look up to now; `to_the_end` with a last one at what there is.

    Arms whose servers failed are out, as are those `invalidated`, with the reason.
    """
    rule = metric_rule(data.measure.decide_on)
    out = {it.arm: it.what for it in data.incidents if it.arm is not None} | dict(invalidated or {})
    looks = _looks(len(data.blocks), blocks_to_a_look(data.experiment), to_the_end=to_the_end)
    if looks:
        last = _valid(data, looks[-1], rule)
        silent = [arm for arm in data.experiment.arms if not last.values(arm, rule)]
        out = dict.fromkeys(silent, NOTHING_COUNTS) | out
    arms = [arm for arm in data.experiment.arms if arm not in out]
    left = list(combinations(arms, 2))
    known: dict[Pair, Comparison] = {}
    for number, blocks in enumerate(looks, start=1):
        valid = _valid(data, blocks, rule)
        asked = [(arm, other, rule) for arm, other in left]
        compared = compare_family(valid, asked, data.measure, alpha=ALPHA / 2**number)
        for pair, found in zip(left, compared, strict=True):
            # Those found to be equal may have left since, but are asked about as often as others.
            was_even = pair in known and known[pair].verdict is Verdict.EQUIVALENT
            if not was_even or found.verdict in APART:
                known[pair] = found
        left = [pair for pair in left if known[pair].verdict not in APART]
    return Standings(arms, out, known, len(looks))


def _looks(blocks: int, fewest: int, *, to_the_end: bool) -> list[int]:
    """Give after how many blocks the places were looked at."""
    looks, due = [], fewest
    while due <= blocks:
        looks.append(due)
        due *= 2
    if to_the_end and (not looks or blocks > looks[-1]):
        looks.append(blocks)
    return looks


def _valid(data: PointData, blocks: int, rule: MetricRule) -> PointData:
    there = data.first(blocks)
    return valid_for(there, rule.name)


def judge_league(
    data: PointData, warnings: Sequence[ValidityWarning]
) -> tuple[League, list[Comparison]]:
    """Give the places, and the comparison of each arm with the one that is shown first."""
    metric = data.measure.decide_on
    invalidated = {
        arm: warning.what
        for arm in data.experiment.arms
        for warning in reversed(warnings)
        if warning.invalidates(metric, [arm])
    }
    found = standings(data, invalidated, to_the_end=True)
    typical = _typical_gains(data)
    places = sorted(
        (found.place(arm) for arm in found.arms),
        key=lambda it: (it.best + it.worst, -typical.get(it.arm, 0.0)),
    )
    pairs = [found.against(arm, other) for arm, other in permutations(found.arms, 2)]
    league = League(places=places, out=found.out, pairs=pairs, looks=found.looks)
    if not places:
        first, *others = data.experiment.arms
        return league, [_without_place(metric, arm, first, found.out[arm]) for arm in others]
    first, *others = (it.arm for it in places)
    compared = [found.against(arm, first) for arm in others]
    without = [_without_place(metric, arm, first, why) for arm, why in found.out.items()]
    return league, compared + without


def verdict_on(league: League, compared: Sequence[Comparison]) -> Verdict:
    """Say whether there is one that comes first; equal ones may do so together."""
    if len(league.places) < 2:
        return Verdict.INVALID
    first = [it.arm for it in league.places if it.best == 1]
    if len(first) == 1:
        return Verdict.FASTER
    beside = [it for it in compared if it.a in first]
    alike = all(it.verdict is Verdict.EQUIVALENT for it in beside)
    return Verdict.EQUIVALENT if alike else Verdict.INCONCLUSIVE


def _typical_gains(data: PointData) -> dict[str, float]:
    """Give ln of each arm's value, the mean of its blocks, so that more is better."""
    rule = metric_rule(data.measure.decide_on)
    valid = _valid(data, len(data.blocks), rule)
    sign = 1 if rule.metric.better == "higher" else -1
    return {
        arm: sign * fmean(map(log, values))
        for arm in data.experiment.arms
        if (values := [it for it in valid.values(arm, rule).values() if it > 0])
    }


def _without_place(metric: str, arm: str, first: str, why: str) -> Comparison:
    return Comparison(
        metric=metric,
        a=arm,
        b=first,
        ratio=None,
        by_block=[],
        sign_flip_p=None,
        delta=DELTA,
        verdict=Verdict.INVALID,
        why=f"{arm} has no place: {why}.",
    )


def _turned(found: Comparison) -> Comparison:
    """Give a comparison as seen from its other arm."""
    as_measured = found.as_measured
    return inverted(found).replace(
        a=found.b,
        b=found.a,
        verdict=OPPOSITE.get(found.verdict, found.verdict),
        as_measured=as_measured and OPPOSITE.get(as_measured, as_measured),
    )


@derived
def _still_open(data: PointData) -> list[str]:
    """Name the arms whose place more blocks can tell something of."""
    return standings(data).racing


class RaceQuestion(Question, ABC):
    """What all races have in common: arms leave, and whoever is left decides when it is over."""

    spares_arms: ClassVar[bool] = True
    stops_by_width: ClassVar[bool] = False
    looks_long: ClassVar[bool] = False
    tells_shorter_windows: ClassVar[bool] = False

    def ratios_so_far(self, data: PointData) -> list[Comparison]:
        """None: they don't decide."""
        return []

    def so_far(self, data: PointData) -> str:
        """Say how many arms were in the last block, and when it is first seen who leaves."""
        blocks = [it for it in data.records if isinstance(it, BlockRecord)]
        if len(blocks) < self.fewest_blocks:
            return f"who leaves the race is seen after block {self.fewest_blocks}"
        return f"{len(set(blocks[-1].order))} of {len(self.experiment.arms)} were in the race"

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        """Stop where nobody is left to race, or, not before the first look, time is used up."""
        if over := self._over(data):
            return Stop("precision", over)
        if len(data.blocks) < self.fewest_blocks:
            return None
        return used_up(data, data.measure, elapsed_s)

    @abstractmethod
    def _over(self, data: PointData) -> str:
        """Say why nobody is left to race; nothing while somebody is."""


class LeagueQuestion(RaceQuestion):
    """Who comes first of all, and who after that."""

    has_baseline: ClassVar[bool] = False

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        """Whether the answer is a table of places."""
        return experiment.race == LEAGUE

    def next_arms(self, data: PointData) -> list[str]:
        """Name the arms whose place is open."""
        return _still_open(data)

    def goes_on_without(self, failed: Collection[str]) -> bool:
        """Whether somebody failed: no arm is needed more than others."""
        return bool(failed)

    @cached_property
    def fewest_blocks(self) -> int:
        """How many blocks it takes to the first look."""
        return blocks_to_a_look(self.experiment)

    @property
    def stops_at(self) -> tuple[str, int]:
        """Say what is enough, and before how many blocks it never stops."""
        return "every place settled", self.fewest_blocks

    def _over(self, data: PointData) -> str:
        # Comparing each two arms takes a while: only where it can have changed.
        settled = is_look(len(data.blocks), self.experiment) and len(self.next_arms(data)) < 2
        return "every place is settled" if settled else ""

    def judge(self, data: PointData) -> Judgement:
        """Judge places; beside them, each arm is compared with the first one of these."""
        warnings = self.warnings(data)
        league, compared = judge_league(data, warnings)
        first = compared[0].b
        others = (arm for arm in self.experiment.arms if arm != first)
        judged = judge_comparisons(data.among([first, *others]), warnings)
        decide_on = data.measure.decide_on
        beside = [it for it in judged.comparisons if it.metric != decide_on]
        return judged.replace(
            verdict=verdict_on(league, compared),
            headline=league_headline(league, decide_on),
            comparisons=[*compared, *beside],
            league=league,
        )


class HalvingQuestion(RaceQuestion):
    """Which settings of one stack are better than its default, as tuning asks."""

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        """Whether the worse half leaves after each block."""
        return experiment.race == HALVING

    def next_arms(self, data: PointData) -> list[str]:
        """Name the baseline, and of the others the half that is better after each block so far."""
        return _better_halves(data)

    @property
    def piloted_arms(self) -> list[str]:
        """Name the baseline, which speaks for other settings of its stack."""
        return list(self.experiment.arms)[:1]

    def measured_alike(self, arm: str) -> list[str]:
        """Name all arms: they are settings of one stack."""
        return [arm, *(it for it in self.experiment.arms if it != arm)]

    @cached_property
    def fewest_blocks(self) -> int:
        """How many blocks it takes to the first look."""
        return 1

    def _over(self, data: PointData) -> str:
        over = data.blocks and len(self.next_arms(data)) <= 2
        return "no more than one arm is left beside the baseline" if over else ""


@derived
def _better_halves(data: PointData) -> list[str]:
    """Name the baseline, and of the others the half that is better after each block so far.

    All that was measured of an arm counts, against the baseline of the same blocks.
    """
    baseline, *others = data.experiment.arms
    failed = {it.arm for it in data.incidents}
    racing = [arm for arm in others if arm not in failed]
    for blocks in range(1, len(data.blocks) + 1):
        gains = gains_on_baseline(data.first(blocks))
        known = [arm for arm in racing if arm in gains]
        better = sorted(known, key=lambda arm: -fmean(gains[arm]))
        racing = better[: -(-len(racing) // 2)]
    return [arm for arm in data.experiment.arms if arm == baseline or arm in racing]


def gains_on_baseline(data: PointData) -> dict[str, list[float]]:
    """Give by how much each arm was better than the baseline, in ln, in each block of both.

    Arms without such a block are excluded.
    """
    rule = metric_rule(data.measure.decide_on)
    valid = valid_for(data, rule.name)
    sign = 1 if rule.metric.better == "higher" else -1
    baseline, *others = data.experiment.arms
    known = valid.values(baseline, rule)
    found = {
        arm: [
            sign * log(value / known[block])
            for block, value in valid.values(arm, rule).items()
            if block in known and value > 0 and known[block] > 0
        ]
        for arm in others
    }
    return {arm: gains for arm, gains in found.items() if gains}
