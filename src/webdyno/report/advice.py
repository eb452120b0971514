"""What other settings are worth, in sentences."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from webdyno.model import format as text
from webdyno.model.advice import Advice, Gain
from webdyno.model.interval import Interval
from webdyno.model.knob import Mended

MENDED: dict[Mended, str] = {
    "listen-overflow": "that connections find the listen queue full and wait for a second or more"
}
BOUNDLESS = 1e6
"""Nothing is worth so much: where an interval reaches further, its upper end isn't known."""


def sentences(found: Sequence[Gain]) -> Iterator[str]:
    """Say for each arm which settings surely make it better, the best first, then which don't."""
    for arm, of_arm in groupby(found, key=lambda it: it.arm):
        ordered = sorted(of_arm, key=lambda it: (-it.mended_blocks, -it.ratio.estimate))
        for it in ordered:
            if it.is_sure:
                yield f"{arm}: {gain(it)}."
        promising = [it for it in ordered if not it.is_sure and it.ratio.low > 1]
        if promising:
            yield f"{arm}: more time (--budget) would tell of {_listed(promising)}."
        others = [it for it in ordered if not it.is_sure and it.ratio.low <= 1]
        if others:
            yield f"{arm}: no gain is sure of {_listed(others)}."


def worth_trying(arm: str, advice: Sequence[Advice]) -> Iterator[str]:
    """Say what may be mended of an arm, before that was tried."""
    if not advice:
        yield f"{arm}: no known cause of slow servers fits its settings and what the run shows."
    for it in advice:
        yield f"{arm}: worth trying is {setting(it)}: {because(it)}."


def gain(it: Gain) -> str:
    """Say what one setting is worth, and why."""
    if it.advice.mends and it.mended_blocks:
        often = f"in {text.count(it.mended_blocks, 'block')} without it, in none with it"
        return (
            f"{setting(it.advice)} mends {MENDED[it.advice.mends]} ({often}): {because(it.advice)}"
        )
    estimate = text.significant(it.ratio.estimate, 3)
    worth = f"{setting(it.advice)} is worth {estimate}× ({_between(it.ratio)})"
    return f"{worth}: {because(it.advice)}"


def because(advice: Advice) -> str:
    """Say what the servers do as it is, and where that is documented."""
    return f"with {text.level(advice.now)} it {advice.says} ({advice.vendor})"


def setting(advice: Advice) -> str:
    """Write the setting as it is given."""
    return f"{advice.knob} = {text.level(advice.tried)}"


def _listed(gains: Sequence[Gain]) -> str:
    return ", ".join(f"{setting(it.advice)} ({_between(it.ratio)})" for it in gains)


def _between(ratio: Interval) -> str:
    if ratio.high > BOUNDLESS:
        return f"at least {text.significant(ratio.low, 3)}"
    return f"{text.significant(ratio.low, 3)} to {text.significant(ratio.high, 3)}"
