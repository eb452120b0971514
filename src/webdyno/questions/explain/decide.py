"""What would change if a variant were changed: it and other forms of it, as of `webdyno explain`.

What limits it: it is given less of one thing at a time. What would help: one setting is another at
a time. What settings do: variants of a design have some of them changed.

The elasticity of throughput with respect to a resource is d ln throughput / d ln resource; here it
is the ratio of finite differences, ln of the ratio of throughputs over ln of the share that was
left, with the interval of the ratio. Where one thing alone limits a closed loop it is 1 for that
and 0 for all others; where requests wait for two in turns, their elasticities are the shares of the
time that each takes, and add up to 1 (as the operational laws have it: Denning and Buzen, ACM
Computing Surveys 1978).

Settings are distinguished by variants of a two-level design that met in rounds. In each round a
setting's effect is the mean of ln(value) over the variants that have it changed, less that over the
others; two settings interact by as much as the one's effect is other where the other is changed,
halved. Their means over rounds have Student's intervals, narrow enough to hold together
(Bonferroni).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log
from typing import ClassVar

import numpy as np

from webdyno.comparison.comparison import ALPHA
from webdyno.comparison.question import Question
from webdyno.core.base import Interval
from webdyno.core.findings import Advice, Effect, Elasticity, Gain
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.metrics import METRICS, THROUGHPUT, response_bytes
from webdyno.core.setting import Sign
from webdyno.evidence.point_data import PointData
from webdyno.questions.explain.settings import AdviceSettings, DesignSettings, LimitsSettings
from webdyno.statistics.interval import Logs, estimate
from webdyno.validity import SLOT_RULES, valid_for

FEWEST_ROUNDS = 3
"""That say what settings do."""
LARGE_BYTES = 16_384
"""A response that takes several packets and system calls: more than a TLS record holds."""
SURELY_FIXED = 6
"""Rounds that broke a rule, against none: by a sign test chance does that in 2 × 2⁻⁶ = 3% of
cases."""
BUSY = 0.9
"""Share of their CPUs from which on servers have no headroom."""


def elasticities(data: PointData, comparisons: Sequence[Comparison]) -> Iterator[Elasticity]:
    """Yield what each intervention showed, where there is a ratio of throughputs."""
    interventions = data.experiment.asks_as(LimitsSettings).interventions
    for comparison in comparisons:
        intervention = interventions.get(comparison.a)
        if intervention is None or comparison.metric != THROUGHPUT or comparison.ratio is None:
            continue
        yield Elasticity(
            variant=comparison.b,
            resource=intervention.resource,
            setting=intervention.setting,
            share=intervention.share,
            found=_elasticity(comparison.ratio, intervention.share),
        )


def _elasticity(ratio: Interval, share: float) -> Interval:
    return ratio.map(lambda times: log(times, share))


def effects(data: PointData) -> list[Effect]:
    """Return what settings do, the largest effect first, then pairs; none with too few rounds."""
    design, decide_on = data.experiment.asks_as(DesignSettings), data.measure.decide_on
    valid, rule = valid_for(data, decide_on), METRICS[decide_on]
    values = [valid.values(variant, rule) for variant in design.levels]
    rounds = sorted(set.intersection(*(set(value) for value in values)))
    if len(rounds) < FEWEST_ROUNDS:
        return []
    logs = np.log([[value[round_number] for value in values] for round_number in rounds])
    contrasts = list(_contrasts(design))
    confidence = 1 - ALPHA / len(contrasts)
    measured = []
    for names, weights in contrasts:
        interval = estimate(logs @ weights, confidence)
        ratio, is_sure = interval.ratio(confidence), interval.excludes_zero()
        measured.append(Effect(settings=names, ratio=ratio, is_sure=is_sure))
    return sorted(
        measured, key=lambda effect: (len(effect.settings), -abs(np.log(effect.ratio.estimate)))
    )


def _contrasts(design: DesignSettings) -> Iterator[tuple[list[str], Logs]]:
    """Yield the weights of the variants' logarithms for each effect that the design can say."""
    levels = np.array([*design.levels.values()], dtype=float)
    signs = 2 * levels - 1
    for place, name in enumerate(design.settings):
        yield [name], signs[:, place] * 2 / len(signs)
    if design.is_full:
        for one, two in combinations(range(len(design.settings)), 2):
            names = [design.settings[one], design.settings[two]]
            yield names, signs[:, one] * signs[:, two] * 2 / len(signs)


@dataclass(frozen=True)
class AdviceEvidence:
    """What a run shows of a variant."""

    response_bytes: float | None
    keeps_connections: bool
    busy: float | None
    """Share of the servers' CPUs that was used while they were loaded; None: not counted."""
    broken: frozenset[str] = frozenset()
    """Rules that too many of its slots break for its figures to count."""


SIGNS: dict[Sign, Callable[[AdviceEvidence], bool]] = {
    "large responses": lambda evidence: (
        evidence.response_bytes is not None and evidence.response_bytes >= LARGE_BYTES
    ),
    "new connections": lambda evidence: not evidence.keeps_connections,
    "idle CPUs": lambda evidence: evidence.busy is not None and evidence.busy < BUSY,
}


def advice_evidence(data: PointData, variant: str) -> AdviceEvidence:
    """Gather it from a variant's slots."""
    slots = data.of_variant(variant)
    loaded_s = sum(slot.load.all_of_it.length_s for slot in slots)
    used_s = sum(slot.servers.cpu_s + slot.servers.interrupts_s for slot in slots)
    cpus = data.head.cpus_of(variant)
    return AdviceEvidence(
        response_bytes=response_bytes(slots),
        keeps_connections=data.experiment.load_of(variant).keepalive == "always",
        busy=used_s / (loaded_s * cpus) if loaded_s and used_s else None,
        broken=frozenset(rule.name for rule in SLOT_RULES.values() if rule.too_many(slots)),
    )


def gains_of(data: PointData, comparisons: Sequence[Comparison]) -> Iterator[Gain]:
    """Yield what each piece of advice was worth, where there is a ratio to the baseline."""
    decide_on, tried = data.measure.decide_on, data.experiment.asks_as(AdviceSettings).tried
    more_is_better = METRICS[decide_on].metric.better == "higher"
    for comparison in comparisons:
        advice, ratio = tried.get(comparison.a), comparison.decisive
        if advice is None or comparison.metric != decide_on or ratio is None:
            continue
        fixed = _fixed_rounds(advice, comparison, data)
        yield Gain(
            variant=comparison.b,
            advice=advice,
            is_sure=comparison.verdict is Verdict.FASTER or fixed >= SURELY_FIXED,
            fixed_rounds=fixed,
            ratio=ratio if more_is_better else ratio.inverse(),
        )


def _fixed_rounds(advice: Advice, comparison: Comparison, data: PointData) -> int:
    """Count the rounds in which the variant broke a rule, if with the advice none did."""
    rule = SLOT_RULES.get(advice.fixes or "")
    if rule is None:
        return 0
    broken, still_broken = (
        {slot.round for slot in data.of_variant(variant) if rule.broken(slot)}
        for variant in (comparison.b, comparison.a)
    )
    return 0 if still_broken else len(broken)


class FormsQuestion(Question):
    """How other forms of the baseline compare with it: those that don't work are no loss."""

    spares_variants: ClassVar[bool] = True
    looks_long: ClassVar[bool] = False

    def next_variants(self, data: PointData) -> list[str]:
        """Return the baseline, and of its other forms those that work: the rest mustn't end it."""
        baseline, *others = self.experiment.variants
        out = {incident.variant for incident in data.incidents}.union(self.hopeless(data))
        return [baseline, *(variant for variant in others if variant not in out)]


class LimitsQuestion(FormsQuestion):
    """What limits a variant: how much slower it is with less of each thing."""

    asks_what_blocks: ClassVar[bool] = True

    def judge(self, data: PointData) -> Judgement:
        """Return elasticities as well."""
        judged = super().judge(data)
        limits = elasticities(data, judged.comparisons)
        return judged.replace(elasticities=list(limits))


class AdviceQuestion(FormsQuestion):
    """What other settings are worth to a variant."""

    def judge(self, data: PointData) -> Judgement:
        """Return what each piece of advice is worth as well."""
        judged = super().judge(data)
        gains = gains_of(data, judged.comparisons)
        return judged.replace(gains=list(gains))


class SettingsQuestion(Question):
    """What each of several settings does to a variant, and any two of them together."""

    looks_long: ClassVar[bool] = False

    def judge(self, data: PointData) -> Judgement:
        return super().judge(data).replace(effects=effects(data))
