"""Adjustments that are settings of a slot: what webdyno changes by itself, and why.

What would change the question (connections, arrival rate, keep-alive, a server's settings) is never
touched, nor is what the user set. Each rule looks at one variant; a difference only says whether
what it found is worth the rounds so far.
"""

from collections.abc import Iterator
from math import expm1, log
from statistics import fmean

from webdyno.comparison import question_of
from webdyno.comparison.comparison import compare_as_asked, shows_enough
from webdyno.core.format import count, duration, percent
from webdyno.core.judgement import Comparison
from webdyno.core.looks import SlotSettings
from webdyno.core.metrics import METRICS
from webdyno.core.records import AdjustmentRecord
from webdyno.evidence.point_data import PointData
from webdyno.planning.settings import slot_settings, slots_per_variant
from webdyno.statistics.interval import exceeded_by_largest
from webdyno.validity import SLOT_RULES, responses, servers, valid_for
from webdyno.validity.over_time import TREND_ALPHA, TRENDS, left_behind, pace

WORTH_AN_ADJUSTMENT = 0.1
"""Change of throughput for which the rounds so far are given up. Smaller ones are bounded,"""
WORTH_OF_RATIO = 1 / 6
"""… and so are those up to this share, in logarithms, of the ratio that is asked about: their
bound, 2.25 times as large at most, leaves the verdict, and more than half of the ratio."""
TRIES = 2
"""Most adjustments for a rule: after that its cause is another one."""
LONGER, LONGER_FOR_RESPONSES = 2.0, 4.0
LONGEST_WINDOW_S = 60.0
MOST_SLOTS = 16
REST_S = 3.0
"""Time for each server in a round to end what is left of its load; what it does after that is its
own doing."""


def due_adjustment(data: PointData, used_s: float) -> AdjustmentRecord | None:
    """Return the adjustment that what is on record of a point asks for, if there is one.

    `used_s`: how much of the budget is used up. Rounds are given up only where as many more fit
    into what patience makes of it, the fewest at least, or where none of them counts. A trend that
    it took as many rounds to see as a verdict takes is bounded, unless there is no verdict within
    that bound. Before, it is looked for after each round, and all looks together find one by chance
    as seldom as one look would: rounds are given up for it.
    """
    if not data.rounds or not question_of(data.experiment).loading.has_windows:
        return None
    tried = [record.rule for record in data.records if isinstance(record, AdjustmentRecord)]
    measure = data.measure
    left_s = measure.budget_s * measure.patience - used_s
    fewest = question_of(data.experiment).fewest_rounds
    room = left_s > data.round_s * max(len(data.rounds), fewest, measure.min_rounds)
    young = len(data.rounds) < measure.min_rounds
    alpha = TREND_ALPHA / max(measure.min_rounds - 2, 1) if young else TREND_ALPHA
    now = slot_settings(data)
    # A noisy neighbour's coming or going is no trend.
    trends = list(_trends(_without_interference(data), now, alpha)) if room else []
    if young and trends:
        ratios = [comparison.ratio for comparison in _comparisons(data) if comparison.ratio]
        least = min((abs(log(ratio.estimate)) for ratio in ratios), default=0.0)
        worth = max(WORTH_AN_ADJUSTMENT, expm1(WORTH_OF_RATIO * least))
        trends = [(change, trend) for change, trend in trends if change >= worth]
    elif trends and not _hangs_on_a_trend(data):
        trends = []
    candidates = [
        *_no_responses(data, now),
        *_few_samples(data, now, slots_per_variant(data)),
        *(trend for _, trend in trends),
        *_left_over(data, now, again=room),
    ]
    for adjustment in candidates:
        if tried.count(adjustment.rule) < TRIES and adjustment.settings != now:
            return adjustment.replace(round=data.rounds[-1].record.round)
    return None


def _without_interference(data: PointData) -> PointData:
    """Keep the slots that show only the variant."""
    rules = [rule for rule in SLOT_RULES.values() if rule.has_bias_bound]
    return data.without(
        (slot.round, slot.slot) for slot in data.slots if any(rule.broken(slot) for rule in rules)
    )


def _no_responses(data: PointData, now: SlotSettings) -> Iterator[AdjustmentRecord]:
    """Find variants that are only slow: no responses, but no failures either.

    Responses may come in the drain, whence CPU per request is known, but no throughput.
    """
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        silent = not any(slot.load.requests.completed for slot in slots)
        failed = any(slot.load.failures.total for slot in slots)
        if not slots or not silent or failed or data.measure.slot_s is not None:
            continue
        longer_s = min(now.window_s * LONGER_FOR_RESPONSES, LONGEST_WINDOW_S)
        yield _adjustment(
            responses.NO_RESPONSES.name,
            variant,
            f"variant {variant} gave no response in {count(len(slots), 'slot')} of "
            f"{duration(now.window_s)}: slots take {duration(longer_s)} from now on",
            now.replace(window_s=longer_s),
        )


def _few_samples(data: PointData, now: SlotSettings, slots: int) -> Iterator[AdjustmentRecord]:
    """Find variants with too few responses in a round for the percentile that is requested."""
    quantile = METRICS[data.measure.decide_on].quantile
    if quantile is None or data.measure.slots_per_variant is not None:
        return
    needed = exceeded_by_largest(quantile)
    for variant in data.experiment.variants:
        had = min(
            sum(slot.load.requests.completed for slot in this_round.of(variant))
            for this_round in data.rounds
        )
        if not 0 < had < needed:
            continue
        more = min(2 * -(-slots * needed // (2 * had)), MOST_SLOTS)
        yield _adjustment(
            "few-samples",
            variant,
            f"variant {variant} gave only {count(had, 'response')} in a round, and "
            f"p{quantile * 100:g} needs {needed}: rounds have {more} slots of each variant from "
            "now on",
            now.replace(slots_per_variant=max(more, slots)),
        )


def _left_over(data: PointData, now: SlotSettings, *, again: bool) -> Iterator[AdjustmentRecord]:
    """Find variants that suffered from what the load had left the others to do.

    Rounds are given up where that took so much of the CPUs that it can matter. Once they wait, they
    wait as long as a limit of time allows.
    """
    rule = servers.LEFT_OVER
    if any(isinstance(each, AdjustmentRecord) and each.rule == rule.name for each in data.records):
        return
    for variant in data.experiment.variants:
        slots = data.of_variant(variant)
        affected = [slot for slot in slots if rule.broken(slot)]
        if len(affected) > rule.tolerated * len(slots):
            share = fmean(map(servers.left_over_share, slots))
            yield _adjustment(
                rule.name,
                variant,
                f"variant {variant}: {rule.what(affected)}; from now on slots begin when they "
                f"rest, for which a round waits up to {duration(REST_S)} times its variants",
                now.replace(rest_s=REST_S),
            ).replace(again=again and share > WORTH_AN_ADJUSTMENT)


def _hangs_on_a_trend(data: PointData) -> bool:
    """Whether there is an answer by the sampling CI, and a trend's bias bound takes it away."""
    trends = {rule.name for rule in TRENDS}
    for comparison in _comparisons(data):
        if any(bias.cause in trends for bias in comparison.biases):
            if comparison.verdict is not comparison.sampling_verdict:
                return True
            if shows_enough(comparison, worst_case=False) and not shows_enough(comparison):
                return True
    return False


def _comparisons(data: PointData) -> list[Comparison]:
    """Compare as requested what is valid so far; nothing where that is too little."""
    valid = valid_for(data, data.measure.decide_on)
    if min((len(valid.of_variant(variant)) for variant in data.experiment.variants), default=0) < 2:
        return []
    return compare_as_asked(valid)


def _trends(
    data: PointData, now: SlotSettings, alpha: float
) -> Iterator[tuple[float, AdjustmentRecord]]:
    """Find variants that hadn't settled when their slots began, or the load in them.

    Each comes with the share by which throughput changed. `alpha`: of one by chance.
    """
    measure = data.measure
    for variant in data.experiment.variants:
        ramp_up_s = now.ramp_up_s.get(variant, 0.0)
        for rule in TRENDS:
            change = rule.sure_change(data, variant, alpha / len(data.experiment.variants))
            if change is None or (change.centre < 0 and left_behind(data, variant)):
                continue  # more load before what counts would write more
            size = abs(expm1(change.centre))
            direction = "rises" if change.centre > 0 else "falls"
            changes = f"{direction} by {percent(size)} over each {rule.over}"
            what = f"variant {variant}: {pace(data, variant)} {changes}"
            if rule.name == "trend" and data.experiment.warmup_s_of(variant) is None:
                slots_s = (ramp_up_s + now.window_s) * len(data.rounds[-1].of(variant))
                longer_s = max(now.warmup_s.get(variant, 0.0) * LONGER, slots_s)
                what += f"; it is warmed up for {duration(longer_s)} from now on"
                longer = now.replace(warmup_s=now.warmup_s | {variant: longer_s})
                yield size, _adjustment(rule.name, variant, what, longer)
            elif rule.name == "slot-trend" and measure.ramp_up_s is None:
                longer_s = max(ramp_up_s * LONGER, now.window_s)
                what += (
                    f"; {duration(longer_s)} at the beginning of its slots don't count from now on"
                )
                longer = now.replace(ramp_up_s=now.ramp_up_s | {variant: longer_s})
                yield size, _adjustment(rule.name, variant, what, longer)


def _adjustment(rule: str, variant: str, what: str, settings: SlotSettings) -> AdjustmentRecord:
    return AdjustmentRecord(
        round=0, rule=rule, variant=variant, what=what, settings=settings, again=True
    )
