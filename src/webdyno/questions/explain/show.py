"""What limits a variant, what settings do, and what other ones are worth: by changing one thing."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.findings import Advice, Effect, Elasticity, Gain
from webdyno.core.setting import FixableRule
from webdyno.media import document as doc
from webdyno.report.show import PointView, Show

LIMITS, SLACK = 0.6, 0.25
"""An elasticity that is surely above the one is reported as the limit, surely below the other as
none; two things that requests wait for in turns have 0.5 each at best."""
WAITS = ": its responses wait for something else than what is tried here"

FIXED: dict[FixableRule, str] = {
    "listen-overflow": "that connections find the listen queue full and wait for a second or more"
}
BOUNDLESS = 1e6
"""Nothing is worth so much: where an interval reaches further, its upper end isn't known."""


class ExplainShow(Show):
    """What was found by measuring variants with something changed."""

    def found(self, point: PointView) -> Iterator[doc.Section]:
        """Yield what each setting does, what limits, what settings are worth."""
        judged = point.judgement
        yield from doc.said_section(
            "What each setting does",
            what_settings_do(judged.effects),
            note="Averaged over the other settings, from variants that had them in all "
            "combinations or in a balanced part of these. All CIs hold together with 95%.",
        )
        yield from doc.said_section(
            "What limits it",
            what_limits(judged.elasticities),
            note="By how many per cent the throughput falls when there is one per cent less: "
            "near 1 is the limit, near 0 there is more of it than is needed. Each was tried: "
            "variants had less of one thing.",
            brief="by how many % the throughput falls with 1% less of it",
        )
        yield from doc.said_section(
            "What other settings are worth",
            what_settings_are_worth(judged.gains),
            note="Known causes of slow servers that this one may have; each was tried, alone, in a "
            "variant of its own.",
        )


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
    if effect.resource == "workers":
        return f"the number of its {effect.setting or effect.resource} {verb} ({figures})"
    if effect.resource == "connections":
        waits = WAITS if low > LIMITS else ""
        return f"the number of connections {verb} ({figures}){waits}"
    return f"the {effect.resource} {verb} ({figures})"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")


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


def what_settings_are_worth(gains: Sequence[Gain]) -> Iterator[str]:
    """Yield of each variant which settings surely make it better, the best first, then others."""
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
        worth = f"is worth {text.times(gain.ratio)} ({_between(gain.ratio)})"
    return f"{_setting(gain.advice)} {worth}: {_because(gain.advice)}"


def _because(advice: Advice) -> str:
    now = "without it," if advice.now is False else f"with {text.level(advice.now)}"
    return f"{now} it {advice.says} ({advice.vendor})"


def _setting(advice: Advice) -> str:
    return f"{advice.setting} = {text.level(advice.tried)}"


def _list_gains(gains: Sequence[Gain]) -> str:
    return ", ".join(f"{_setting(gain.advice)} ({_between(gain.ratio)})" for gain in gains)


def _between(ratio: Interval) -> str:
    if ratio.high > BOUNDLESS:
        return f"at least {text.significant(ratio.low, 3)}×"
    return text.between(ratio)
