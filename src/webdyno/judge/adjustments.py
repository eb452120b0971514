"""Adjustments that are settings of a slot: what the lab changes by itself, and why.

What would change the question (connections, rate, keep-alive, a server's settings) is never
touched, nor is what the user set. Each rule looks at one arm; a difference only tells whether what
it found is worth the blocks so far.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import expm1, log
from statistics import fmean

from webdyno.judge.comparison import compare_as_asked, tells_enough
from webdyno.judge.order_statistics import exceeded_by_largest
from webdyno.judge.point_data import PointData
from webdyno.judge.questions import question_of
from webdyno.judge.settings import slot_settings, slots_per_arm
from webdyno.judge.validity import (
    SLOT_RULES,
    answers,
    servers,
    valid_for,
)
from webdyno.judge.validity.over_time import TREND_ALPHA, TRENDS, pace
from webdyno.model.format import count, duration, percent
from webdyno.model.judgement import Comparison
from webdyno.model.metrics import metric_rule
from webdyno.model.pilot import SlotSettings
from webdyno.model.records import AdjustmentRecord

WORTH_AN_ADJUSTMENT = 0.1
"""Change of a rate for which the blocks so far are given up. Smaller ones are bounded,"""
WORTH_OF_RATIO = 1 / 6
"""… and so are those up to this share, in logarithms, of the ratio that is asked about: their
bound, 2.25 times as large at most, leaves the verdict, and more than half of the ratio."""
TRIES = 2
"""So often a rule is adjusted; then its cause is another one."""
LONGER, LONGER_FOR_ANSWERS = 2.0, 4.0
LONGEST_WINDOW_S = 60.0
MOST_SLOTS = 16
REST_S = 3.0
"""So long servers may take to end what is left of their load; what goes on is their own doing."""


@dataclass(frozen=True)
class _Adjustment:
    rule: str
    arm: str
    what: str
    settings: SlotSettings
    anew: bool = True
    change: float = 0.0
    """Of a rate that hadn't settled: by what share it changed."""


def due_adjustment(data: PointData, used_s: float) -> AdjustmentRecord | None:
    """Give the adjustment that what is on record of a point asks for, if there is one.

    `used_s`: how much of the budget is used up. Blocks are given up only where as many more fit
    into what patience makes of it, the fewest at least, or where none of them counts. A trend that
    it took as many blocks to see as a verdict takes is bounded, unless there is no verdict within
    that bound. Before, it is looked for after each block, and all looks together find one by chance
    as seldom as one look would: blocks are given up for it.
    """
    if not data.blocks or not question_of(data.experiment).loading.has_windows:
        return None
    tried = [record.rule for record in data.records if isinstance(record, AdjustmentRecord)]
    measure = data.measure
    left_s = measure.budget_s * measure.patience - used_s
    room = left_s > data.block_s * max(len(data.blocks), measure.min_blocks)
    young = len(data.blocks) < measure.min_blocks
    alpha = TREND_ALPHA / max(measure.min_blocks - 2, 1) if young else TREND_ALPHA
    now = slot_settings(data)
    trends = list(_trends(_undisturbed(data), now, alpha)) if room else []
    if young and trends:
        worth = _worth_giving_up(data)
        trends = [it for it in trends if it.change >= worth]
    found = [
        *_no_answers(data, now),
        *_few_samples(data, now, slots_per_arm(data)),
        *(trends if young or (trends and _hangs_on_a_trend(data)) else []),
        *_left_over(data, now, anew=room),
    ]
    for it in found:
        if tried.count(it.rule) < TRIES and it.settings != now:
            return AdjustmentRecord(
                block=data.blocks[-1].record.block,
                rule=it.rule,
                arm=it.arm,
                what=it.what,
                settings=it.settings,
                anew=it.anew,
            )
    return None


def _undisturbed(data: PointData) -> PointData:
    """Keep the slots that show only the arm: a noisy neighbour's coming or going is no trend."""
    rules = [rule for rule in SLOT_RULES.values() if rule.bounded]
    return data.without(
        (slot.block, slot.slot) for slot in data.slots if any(rule.broken(slot) for rule in rules)
    )


def _no_answers(data: PointData, now: SlotSettings) -> Iterator[_Adjustment]:
    """Find arms that are only slow: no answers, but no failures either.

    Answers may come in the drain, whence server CPU time per request is known, but no rate.
    """
    for arm in data.experiment.arms:
        slots = data.of_arm(arm)
        silent = not any(slot.load.requests.completed for slot in slots)
        failed = any(slot.load.failures.total for slot in slots)
        if not slots or not silent or failed or data.measure.slot_s is not None:
            continue
        longer_s = min(now.window_s * LONGER_FOR_ANSWERS, LONGEST_WINDOW_S)
        yield _Adjustment(
            answers.NO_ANSWERS.name,
            arm,
            f"arm {arm} gave no answer in {count(len(slots), 'slot')} of "
            f"{duration(now.window_s)}: slots take {duration(longer_s)} from now on",
            now.replace(window_s=longer_s),
        )


def _few_samples(data: PointData, now: SlotSettings, slots: int) -> Iterator[_Adjustment]:
    """Find arms with too few answers in a block for the percentile that is asked for."""
    quantile = metric_rule(data.measure.decide_on).quantile
    if quantile is None or data.measure.slots_per_arm is not None:
        return
    needed = exceeded_by_largest(quantile)
    for arm in data.experiment.arms:
        had = min(
            sum(slot.load.requests.completed for slot in block.of(arm)) for block in data.blocks
        )
        if not 0 < had < needed:
            continue
        more = min(2 * -(-slots * needed // (2 * had)), MOST_SLOTS)
        yield _Adjustment(
            "few-samples",
            arm,
            f"arm {arm} gave only {count(had, 'answer')} in a block, and p{quantile * 100:g} needs "
            f"{needed}: blocks have {more} slots of each arm from now on",
            now.replace(slots_per_arm=max(more, slots)),
        )


def _left_over(data: PointData, now: SlotSettings, *, anew: bool) -> Iterator[_Adjustment]:
    """Find arms that were disturbed by what the load had left the others to do.

    Blocks are given up where that took so much of the CPUs that it can matter.
    """
    rule = servers.LEFT_OVER
    for arm in data.experiment.arms:
        slots = data.of_arm(arm)
        disturbed = [slot for slot in slots if rule.broken(slot)]
        if len(disturbed) > rule.tolerated * len(slots):
            share = fmean(map(servers.left_over_share, slots))
            yield _Adjustment(
                rule.name,
                arm,
                f"arm {arm}: {rule.what(disturbed)}; before each slot it is waited for up to "
                f"{duration(REST_S)}, from now on, until they rest",
                now.replace(rest_s=REST_S),
                anew=anew and share > WORTH_AN_ADJUSTMENT,
            )


def _worth_giving_up(data: PointData) -> float:
    """Give the change of a rate for which the blocks so far are given up."""
    ratios = [abs(log(it.ratio.estimate)) for it in _asked(data) if it.ratio]
    return max(WORTH_AN_ADJUSTMENT, expm1(WORTH_OF_RATIO * min(ratios, default=0.0)))


def _hangs_on_a_trend(data: PointData) -> bool:
    """Whether there is an answer as measured, and the bound of a trend takes it away."""
    trends = {rule.name for rule in TRENDS}
    return any(
        any(bias.cause in trends for bias in it.biases) and _takes_away(it) for it in _asked(data)
    )


def _asked(data: PointData) -> list[Comparison]:
    """Make the comparisons that are asked for, of what is valid so far; none of too little."""
    valid = valid_for(data, data.measure.decide_on)
    if min((len(valid.of_arm(arm)) for arm in data.experiment.arms), default=0) < 2:
        return []
    return compare_as_asked(valid)


def _takes_away(comparison: Comparison) -> bool:
    """Whether its bounds leave less of an answer than there was as measured."""
    if comparison.verdict is not comparison.as_measured:
        return True
    return tells_enough(comparison, bounded=False) and not tells_enough(comparison)


def _trends(data: PointData, now: SlotSettings, alpha: float) -> Iterator[_Adjustment]:
    """Find arms that hadn't settled when their slots began, or the load in them.

    `alpha`: of one by chance.
    """
    measure = data.measure
    for arm in data.experiment.arms:
        lead_in_s = now.lead_in_s.get(arm, 0.0)
        for rule in TRENDS:
            change = rule.sure_change(data, arm, alpha / len(data.experiment.arms))
            if change is None:
                continue
            size = abs(expm1(change.centre))
            direction = "rises" if change.centre > 0 else "falls"
            changes = f"{direction} by {percent(size)} over each {rule.over}"
            what = f"arm {arm}: {pace(data, arm)} {changes}"
            if rule.name == "trend" and measure.warmup_s is None:
                slots_s = (lead_in_s + now.window_s) * len(data.blocks[-1].of(arm))
                longer_s = max(now.warmup_s.get(arm, 0.0) * LONGER, slots_s)
                warmups = now.warmup_s | {arm: longer_s}
                what += f"; it is warmed up for {duration(longer_s)} from now on"
                changed = now.replace(warmup_s=warmups)
                yield _Adjustment(rule.name, arm, what, changed, change=size)
            elif rule.name == "slot-trend" and measure.lead_in_s is None:
                longer_s = max(lead_in_s * LONGER, now.window_s)
                lead_ins = now.lead_in_s | {arm: longer_s}
                what += (
                    f"; {duration(longer_s)} at the beginning of its slots don't count from now on"
                )
                changed = now.replace(lead_in_s=lead_ins)
                yield _Adjustment(rule.name, arm, what, changed, change=size)
