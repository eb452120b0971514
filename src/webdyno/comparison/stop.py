"""When a run ends, and how many slots of each variant a round gets until then.

It ends when ratios are known well enough, or out of rounds or time, and never because a difference
became significant; an experiment's question chooses among the rules. Slots follow from where noise
comes from, by one-way random-effects analysis of variance over rounds and slots: Kalibera & Jones,
"Rigorous benchmarking in reasonable time", ISMM 2013: repeat where the variance is, weighed against
what a repetition costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log1p, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np

from webdyno.comparison.comparison import ALPHA, compare_as_asked
from webdyno.comparison.ratio import (
    SEQUENTIAL_FACTOR,
    is_large_and_known,
    shown_estimate,
    too_noisy,
    wanted_half_width,
)
from webdyno.core.format import count, duration, lower_first, percent
from webdyno.core.judgement import Comparison, VarianceSplit
from webdyno.core.measure import FIRST_SLOTS, Measure
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.core.records import SlotRecord, StopReason
from webdyno.core.text import Prose
from webdyno.evidence.log_ratios import LogRatios, log_ratios
from webdyno.evidence.noise import judged_values
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.statistics.interval import Estimate, Logs, estimate, t_half_width
from webdyno.validity import used_s, valid_for

OWN_S = 1.3
"""Of the time within which a clear difference is to be reported, what isn't measuring. 1.2 s were
seen (nginx against Apache on two CPUs), and 0.1 s are for luck."""
VARIANTS = 2
"""Variants that share that time; each further one gets as much as one of these."""
SPARE_ROUNDS = 2
"""Rounds at most in place of invalidated ones when the budget is used up, lest there be no
verdict."""
OUTNUMBERED = 2
"""Times the fewest rounds: by then interference that passed has invalidated no more than half of
the slots, and those are excluded (`INTERFERENCE_TOLERATED`) instead of counted as bounds."""

FEWEST_REPORTED, MOST_REPORTED = 2, 32
PILOT_ROUNDS = 6
"""Rounds that the choice is made from: those that every run has."""
NEARLY = 1.1
MOST_SLOTS = 8
"""Rounds shouldn't become so long that few fit into a budget. Nor do they have fewer slots than the
first ones: the number of rounds is limited as well."""


@dataclass(frozen=True)
class Stop:
    """Why to stop, as a word and as a sentence."""

    reason: StopReason
    why: Prose


def seconds_for_a_variant(measure: Measure) -> float | None:
    """Return how long a variant's pilot and slots may take where a difference is clear, if limited.

    It moves when a run ends and how long short slots are: no interval and no verdict hangs on it.
    `docs/validation/coverage.md` has what it costs.
    """
    if not measure.answer_within_s:
        return None
    return (measure.answer_within_s - OWN_S) / VARIANTS


def used_up(data: PointData, measure: Measure, elapsed_s: float, times: float = 1.0) -> Stop | None:
    """Stop where the most rounds or the budget, or so many times of them, are used up."""
    finished, budget_s = len(data.rounds), measure.budget_s * times
    if finished >= measure.max_rounds * times:
        return Stop("max-rounds", f"{count(finished, 'round')} are the most that were asked for")
    if elapsed_s + data.round_s > budget_s:
        longest = f"{times:g} times the budget" if times > 1 else "the budget"
        lasts = f"{longest} of {measure.budget_s:g} s"
        if elapsed_s > budget_s:
            return Stop("budget", f"the rounds that there have to be took longer than {lasts}")
        return Stop("budget", f"no other round fits into {lasts}")
    return None


def worth_patience(pairs: Sequence[LogRatios]) -> bool:
    """Whether a ratio is so little known that a run takes longer than it should.

    Only the interval's width against the difference counts, as for `precision`: going on until a
    difference is significant would find too many that aren't.
    """
    confidence = 1 - ALPHA / len(pairs)
    return any(too_noisy(pair.d, confidence) for pair in pairs)


def known_well(valid: PointData, fewest: int) -> Stop | None:
    """Stop where the answer is there, or where more rounds can't bring it.

    A run that goes on for its bounds looks again at each `fewest` rounds only: looking after each
    round until a difference survives would find too many that aren't.
    """
    measure = valid.measure
    rounds = len(valid.rounds)
    unsettled = _unsettled_comparisons(valid, fewest)
    since_look = rounds % fewest
    if unsettled is None or (
        since_look and _unsettled_comparisons(valid.first(rounds - since_look), fewest)
    ):
        return None
    if not unsettled:
        widths = [estimate(pair.d, 1 - ALPHA).half_width for pair in deciding_pairs(valid)]
        if max(widths) <= log1p(measure.precision):
            return Stop("precision", f"as precise as requested, ±{percent(measure.precision)}")
        return Stop("precision", "precise enough for a difference this large")
    if any(_may_settle(comparison, rounds, fewest, measure) for comparison in unsettled):
        return None
    why = " ".join(comparison.why for comparison in unsettled)
    return Stop("bounds", f"more rounds would not help: {lower_first(why).rstrip('.')}")


def reported_promptly(valid: PointData, elapsed_s: float) -> Stop | None:
    """Stop where a difference is large and another round would end too late.

    Such a difference needn't be known as well as others. It is one look, at a moment that the
    ratios don't choose, and only at an interval's width. Runs with limits or resumed ones go on.
    """
    measure = valid.measure
    of_a_variant_s = seconds_for_a_variant(measure)
    if of_a_variant_s is None or measure.patience == 1:
        return None
    prompt_s = of_a_variant_s * len(valid.experiment.variants)
    if not 0 <= prompt_s - elapsed_s < valid.round_s:
        return None
    pairs = deciding_pairs(valid)
    confidence = 1 - ALPHA / len(pairs)
    if not all(is_large_and_known(pair.d, confidence) for pair in pairs):
        return None
    if any(each.verdict is not each.sampling_verdict for each in compare_as_asked(valid)):
        return None
    known = "stopped early: the difference is large and clear"
    longer = f"another round would take longer than {duration(round(prompt_s))}"
    return Stop("precision", f"{known}, and {longer}")


def _unsettled_comparisons(valid: PointData, fewest: int) -> list[Comparison] | None:
    """Return the verdicts that don't survive their bounds; None while ratios aren't known well."""
    pairs = deciding_pairs(valid)
    confidence = 1 - ALPHA / len(pairs)  # of Holm's first step
    if min(len(pair.d) for pair in pairs) < fewest:
        return None
    if not all(shown_estimate(pair.d, valid.measure, confidence)[1] for pair in pairs):
        return None
    compared = compare_as_asked(valid)
    return [each for each in compared if each.verdict is not each.sampling_verdict]


def _may_settle(comparison: Comparison, rounds: int, fewest: int, measure: Measure) -> bool:
    """Whether the sampling verdict may come to survive the worst case within the rounds requested.

    Rounds narrow the interval and outnumber passing interference. They don't show what a variant
    can do for which client or link are too slow.
    """
    needed = comparison.more_rounds
    if needed is not None and rounds + needed <= measure.max_rounds:
        return True
    return not comparison.limited_by and rounds < OUTNUMBERED * fewest


@compute_once
def deciding_pairs(valid: PointData) -> list[LogRatios]:
    """Return each variant's ratios to the baseline on the deciding metric, by round."""
    rule = METRICS[valid.measure.decide_on]
    return log_ratios(
        {variant: judged_values(valid, variant, rule) for variant in valid.experiment.variants}
    )


class Foresight(NamedTuple):
    """How far a run is from stopping by itself, by the least known ratio."""

    variant: str
    """Against the baseline."""
    estimate: Estimate
    """ln of the ratio, by the sampling CI."""
    wanted: float
    """Half-width (ln) at which the run stops."""
    rounds: int
    """About how many valid rounds it will have taken."""
    left_s: float = 0.0
    """About how long the missing ones take."""

    def can_be_kept(self, data: PointData) -> bool:
        """Whether it may come so: not where the run should be over, or a limit ends it before."""
        return 0 < self.left_s <= data.measure.limit_s - used_s(data)


def foresight(data: PointData, valid: PointData, fewest: int) -> Foresight | None:
    """Foresee when the intervals are narrow enough; None before there are any."""
    measure, pairs = data.measure, deciding_pairs(valid)
    if not pairs or any(len(pair.d) < 2 for pair in pairs):
        return None
    confidence = 1 - ALPHA / len(pairs)
    seen = [_foresight_of(pair, measure, confidence, fewest) for pair in pairs]
    worst = max(seen, key=lambda precision: precision.estimate.half_width / precision.wanted)
    more = max(worst.rounds - len(data.rounds), 0)
    return worst._replace(left_s=more * data.round_s)


def _foresight_of(pair: LogRatios, measure: Measure, confidence: float, fewest: int) -> Foresight:
    ratio, seen = estimate(pair.d, confidence), len(pair.d)
    half_width = wanted_half_width(ratio.centre, measure)
    spread = ratio.half_width / t_half_width(seen, 1.0, confidence)
    rounds = max(seen, fewest)
    while rounds < measure.max_rounds:
        wider = SEQUENTIAL_FACTOR if rounds > measure.min_rounds else 1.0
        if wider * t_half_width(rounds, spread, confidence) <= half_width:
            break
        rounds += 1
    return Foresight(pair.variant, ratio, half_width, rounds)


def chosen_slots_per_variant(data: PointData) -> int:
    """Return the number of slots of each variant in the round after the finished ones.

    By the first rounds alone, so that a resumed run chooses alike; and by the ratios' variances
    alone, not by the ratios, so that intervals stay right.
    """
    measure = data.measure
    if measure.slots_per_variant is not None or len(data.rounds) < PILOT_ROUNDS:
        return measure.first_slots_per_variant
    pilot = data.first(PILOT_ROUNDS)
    valid = valid_for(pilot, pilot.measure.decide_on)
    rule = METRICS[pilot.measure.decide_on]
    baseline, *others = pilot.experiment.variants
    splits = [
        random_effects(groups)
        for variant in others
        if _shows(groups := _log_ratios(valid, variant, baseline, rule))
    ]
    if not splits:
        return FIRST_SLOTS
    restart, slot = np.array(splits).mean(axis=0)
    first = len(pilot.rounds[0].record.order) // len(pilot.experiment.variants)
    return choice(restart, slot, *round_costs_s(pilot, len(pilot.experiment.variants)), first)


def choice(restart: float, slot: float, start_s: float, slot_s: float, first: int) -> int:
    """Return the number of slots for the rounds after those with `first`, from variances and costs.

    The smallest with which time times variance is within `NEARLY` of the least: all rounds count
    alike, so that longer ones help less than they could.
    """

    def product(slots: int) -> float:
        return (start_s + slots * slot_s) * (restart + slot / slots)

    allowed = range(first, max(first, MOST_SLOTS) + 1, 2)
    least = min(map(product, allowed))
    return next(slots for slots in allowed if product(slots) <= NEARLY * least)


def _log_ratios(data: PointData, variant: str, baseline: str, rule: MetricRule) -> list[Logs]:
    """Pair the variants' slots of a round in their order: what weighs on both alike is no noise."""
    mine, theirs = (data.slot_logs(name, rule) for name in (variant, baseline))
    both = [(mine[number], theirs[number]) for number in mine if number in theirs]
    return [a[: len(b)] - b[: len(a)] for a, b in both]


def variance_splits(
    data: PointData, variants: Sequence[str], rule: MetricRule
) -> list[VarianceSplit]:
    """Split the variance of each variant's values per slot, where there are enough of them."""
    splits = []
    start_s, slot_s = round_costs_s(data, len(variants))
    for variant in variants:
        groups = list(data.slot_logs(variant, rule).values())
        if not _shows(groups):
            continue
        restart, slot = random_effects(groups)
        splits.append(
            VarianceSplit(
                variant=variant,
                metric=rule.name,
                restart_sd=sqrt(restart),
                slot_sd=sqrt(slot),
                slots_per_variant=best_slots(restart, slot, start_s, slot_s),
            )
        )
    return splits


def random_effects(groups: Sequence[Logs]) -> tuple[float, float]:
    """Return the variance between groups (0 if negative) and within, by the ANOVA estimator."""
    sizes = np.array([len(group) for group in groups])
    total, means = sizes.sum(), np.array([group.mean() for group in groups])
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups)
    mean_within = within / (total - len(groups))
    grand = float(sizes @ means) / total
    mean_between = float(sizes @ (means - grand) ** 2) / (len(groups) - 1)
    usual_size = (total - float((sizes**2).sum()) / total) / (len(groups) - 1)
    return max(0.0, (mean_between - mean_within) / usual_size), mean_within


def best_slots(restart: float, slot: float, start_s: float, slot_s: float) -> int:
    """Return the even number of slots per round that makes the interval narrowest in a given time.

    With n slots a round costs start_s + n · slot_s and has the variance restart + slot / n; their
    product is least at n = √(start_s / slot_s · slot / restart).
    """
    worth = restart * slot_s
    best = sqrt(start_s * slot / worth) if worth > 0 else inf
    return int(min(max(2 * round(min(best, MOST_REPORTED) / 2), FEWEST_REPORTED), MOST_REPORTED))


def _shows(groups: Sequence[Logs]) -> bool:
    """Whether variance within and between rounds can be separated."""
    return len(groups) > 1 and any(len(group) > 1 for group in groups)


def round_costs_s(data: PointData, variants: int) -> tuple[float, float]:
    """Return what a fresh start and one more slot of a variant take, with ramp-up and probes."""
    costs_s = [slot_s for this_round in data.rounds if (slot_s := _slot_s(this_round.slots))]
    if not costs_s:
        return 0.0, 0.0
    slot_s, records = fmean(costs_s), [this_round.record for this_round in data.rounds]
    start_s = fmean(record.took_s - len(record.order) * slot_s for record in records)
    return max(start_s, 0.0) / variants, slot_s


def _slot_s(slots: Sequence[SlotRecord]) -> float | None:
    if len(slots) < 2:
        return None
    first, last = slots[0], slots[-1]
    return (last.started_at - first.started_at).total_seconds() / (last.slot - first.slot)
