"""What limits an arm, in sentences."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from webdyno.model.intervention import Elasticity

LIMITS, SLACK = 0.6, 0.25
"""An elasticity that is surely above the one is told as the limit, surely below the other as none;
two things that requests wait for in turns have 0.5 each at best."""

WAITS = ": its answers wait for something else than what is tried here"


def sentences(found: Sequence[Elasticity]) -> Iterator[str]:
    """Say for each baseline what limits it, the strongest first."""
    for arm, of_arm in groupby(found, key=lambda it: it.arm):
        ordered = sorted(of_arm, key=lambda it: -it.found.estimate)
        yield f"{arm}: {'; '.join(map(_clause, ordered))}."


def _clause(it: Elasticity) -> str:
    low, high = it.found.low, it.found.high
    if low > LIMITS:
        verb = "limits it"
    elif high < SLACK:
        verb = "doesn't limit it"
    elif low > 0:
        verb = "limits it in part"
    else:
        verb = "may or may not limit it"
    figures = f"{_number(it.found.estimate)}, {_number(low)} to {_number(high)}"
    waits = it.resource == "connections" and low > LIMITS
    return f"{_named(it)} {verb} ({figures}){WAITS if waits else ''}"


def _named(it: Elasticity) -> str:
    if it.resource == "workers":
        return f"the number of its {it.knob or it.resource}"
    if it.resource == "connections":
        return "the number of connections"
    return f"the {it.resource}"


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
