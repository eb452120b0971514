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
from itertools import combinations, groupby
from math import log
from typing import ClassVar

import numpy as np

from webdyno.comparison.comparison import ALPHA
from webdyno.comparison.question import Question
from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.explain import Advice, Effect, Elasticity, Gain
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.metrics import METRICS, THROUGHPUT, response_bytes
from webdyno.core.setting import FixableRule, Sign
from webdyno.evidence.point_data import PointData
from webdyno.questions.explain.settings import AdviceSettings, DesignSettings, LimitsSettings
from webdyno.statistics.interval import Logs, estimate
from webdyno.validity import SLOT_RULES, valid_for

LIMITS, SLACK = 0.6, 0.25
"""An elasticity that is surely above the one is reported as the limit, surely below the other as
none; two things that requests wait for in turns have 0.5 each at best."""
WAITS = ": its responses wait for something else than what is tried here"

FEWEST_ROUNDS = 3
"""That say what settings do."""

LARGE_BYTES = 16_384
"""A response that takes several packets and system calls: more than a TLS record holds."""
SURELY_FIXED = 6
"""Rounds that broke a rule, against none: by a sign test chance does that in 2 × 2⁻⁶ = 3% of
cases."""
BUSY = 0.9
"""Share of their CPUs from which on servers have no headroom."""
FIXED: dict[FixableRule, str] = {
    "listen-overflow": "that connections find the listen queue full and wait for a second or more"
}
BOUNDLESS = 1e6
"""Nothing is worth so much: where an interval reaches further, its upper end isn't known."""


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
    return ratio.mapped(lambda times_the_throughput: log(times_the_throughput) / log(share))


def what_limits(by_variant: Sequence[Elasticity]) -> Iterator[str]:
    """Yield for each baseline what limits it, the strongest first."""
    for variant, of_variant in groupby(by_variant, key=lambda elasticity: elasticity.variant):
        ordered = sorted(of_variant, key=lambda effect: -effect.found.estimate)
        yield f"{variant}: {'; '.join(map(_clause, ordered))}."


def _clause(effect: Elasticity) -> str:
    low, high = effect.found.low, effect.found.high
    if low > LIMITS:
        verb = "limits it"
    elif high < SLACK:
        verb = "doesn't limit it"
    elif low > 0:
        verb = "limits it in part"
    else:
        verb = "may limit it: inconclusive"
    figures = f"{_number(effect.found.estimate)}, {_number(low)} to {_number(high)}"
    waits = effect.resource == "connections" and low > LIMITS
    return f"{_resource_name(effect)} {verb} ({figures}){WAITS if waits else ''}"


def _resource_name(effect: Elasticity) -> str:
    if effect.resource == "workers":
        return f"the number of its {effect.setting or effect.resource}"
    if effect.resource == "connections":
        return "the number of connections"
    return f"the {effect.resource}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


def effects(data: PointData) -> list[Effect]:
    """Return the settings' effects on the deciding metric, the largest first, then what interacts.

    None where fewer than three rounds have values of all variants.
    """
    design, decide_on = data.experiment.asks_as(DesignSettings), data.measure.decide_on
    valid, rule = valid_for(data, decide_on), METRICS[decide_on]
    values = [valid.values(variant, rule) for variant in design.levels]
    rounds = sorted(set.intersection(*(set(value) for value in values)))
    if len(rounds) < FEWEST_ROUNDS:
        return []
    logs = np.log([[value[round_number] for value in values] for round_number in rounds])
    contrasts = list(_contrasts(design))
    confidence = 1 - ALPHA / len(contrasts)
    measured = [_effect(names, logs @ signs, confidence) for names, signs in contrasts]
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


def _effect(settings: Sequence[str], by_round: Logs, confidence: float) -> Effect:
    interval = estimate(by_round, confidence)
    return Effect(
        settings=list(settings),
        ratio=interval.ratio(confidence),
        is_sure=interval.excludes_zero(),
    )


def what_settings_do(measured: Sequence[Effect]) -> Iterator[str]:
    """Yield what each setting does that surely does something, then which of them do nothing."""
    for effect in measured:
        if effect.is_sure:
            words = " together with ".join(effect.settings)
            beyond = ", beyond what each does alone" if len(effect.settings) > 1 else ""
            yield f"{words}: {text.times(effect.ratio)} ({text.ratio_range(effect.ratio)}){beyond}"
    unsure = [effect for effect in measured if not effect.is_sure and len(effect.settings) == 1]
    for effect in unsure:
        yield f"{effect.settings[0]}: no difference is sure ({text.ratio_range(effect.ratio)})"


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
    for comparison in comparisons:
        advice = tried.get(comparison.a)
        if (
            advice is not None
            and comparison.metric == decide_on
            and comparison.decisive is not None
        ):
            fixed = _fixed_rounds(advice, comparison, data)
            yield Gain(
                variant=comparison.b,
                advice=advice,
                is_sure=comparison.verdict is Verdict.FASTER or fixed >= SURELY_FIXED,
                fixed_rounds=fixed,
                ratio=_of_goodness(comparison.decisive, decide_on),
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


def _of_goodness(ratio: Interval, metric: str) -> Interval:
    """Turn a ratio so that more of it is better."""
    if METRICS[metric].metric.better == "higher":
        return ratio
    return ratio.inverse()


def what_settings_are_worth(gains: Sequence[Gain]) -> Iterator[str]:
    """Yield of each variant which settings surely make it better, the best first.

    Then which don't.
    """
    for variant, of_variant in groupby(gains, key=lambda gain: gain.variant):
        ordered = sorted(
            of_variant, key=lambda effect: (-effect.fixed_rounds, -effect.ratio.estimate)
        )
        for effect in ordered:
            if effect.is_sure:
                yield f"{variant}: {_worth(effect)}."
        promising = [effect for effect in ordered if not effect.is_sure and effect.ratio.low > 1]
        if promising:
            yield f"{variant}: more time (--time) would decide {_list_gains(promising)}."
        others = [effect for effect in ordered if not effect.is_sure and effect.ratio.low <= 1]
        if others:
            yield f"{variant}: no gain is sure of {_list_gains(others)}."


def worth_trying(variant: str, advice: Sequence[Advice]) -> Iterator[str]:
    """Yield what may be fixed of a variant, before that was tried."""
    if not advice:
        yield f"{variant}: no known cause of slow servers fits its settings and what the run shows."
    for piece in advice:
        yield f"{variant}: worth trying is {_setting(piece)}: {_because(piece)}."


def _worth(gain: Gain) -> str:
    if gain.advice.fixes and gain.fixed_rounds:
        often = f"in {text.count(gain.fixed_rounds, 'round')} without it, in none with it"
        worth = f"fixes {FIXED[gain.advice.fixes]} ({often})"
    else:
        times_better = text.significant(gain.ratio.estimate, 3)
        worth = f"is worth {times_better}× ({_between(gain.ratio)})"
    return f"{_setting(gain.advice)} {worth}: {_because(gain.advice)}"


def _because(advice: Advice) -> str:
    return f"with {text.level(advice.now)} it {advice.says} ({advice.vendor})"


def _setting(advice: Advice) -> str:
    return f"{advice.setting} = {text.level(advice.tried)}"


def _list_gains(gains: Sequence[Gain]) -> str:
    return ", ".join(f"{_setting(gain.advice)} ({_between(gain.ratio)})" for gain in gains)


def _between(ratio: Interval) -> str:
    if ratio.high > BOUNDLESS:
        return f"at least {text.significant(ratio.low, 3)}"
    return f"{text.significant(ratio.low, 3)} to {text.significant(ratio.high, 3)}"


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
