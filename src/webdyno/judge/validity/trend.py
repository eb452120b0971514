"""Whether the servers had settled: a trend over a block means that warming up wasn't over."""

from collections.abc import Sequence
from math import exp, expm1

import numpy as np

from webdyno.judge.evidence import Block, Evidence
from webdyno.judge.interval import estimate
from webdyno.judge.metrics import rate_rps
from webdyno.judge.words import percent
from webdyno.model.judgement import Finding

CONFIDENCE = 0.99
"""Of "there is a trend": four times as strict as a verdict, since each arm is asked."""

NOTED_DRIFT, SPOILING_DRIFT = 0.02, 0.1
"""Changes of the rate over a block. ABBA order cancels what all arms have in common of it."""


def findings(evidence: Evidence, arms: Sequence[str]) -> list[Finding]:
    """Look for arms whose rate rises or falls in block after block.

    Each block gives one slope of ln(rate) over the arm's slots; their t interval tells whether
    they have a direction in common.
    """
    found = []
    for arm in arms:
        drifts = [drift for block in evidence.blocks if (drift := _drift(block, arm)) is not None]
        if len(drifts) < 2:
            continue
        mean = estimate(np.array(drifts), CONFIDENCE)
        change = abs(expm1(mean.centre))
        if mean.excludes_zero() and change > NOTED_DRIFT:
            found.append(_finding(arm, exp(mean.centre) - 1, spoiled=change > SPOILING_DRIFT))
    return found


def _drift(block: Block, arm: str) -> float | None:
    """Change of ln(rate) from the arm's first slot in a block to its last, on the fitted line."""
    rates = {slot.slot: rate_rps([slot]) for slot in block.of(arm)}
    points = [(position, rate) for position, rate in rates.items() if rate is not None]
    if len(points) < 3:
        return None
    position, logs = np.array([p for p, _ in points]), np.log([rate for _, rate in points])
    centred = position - position.mean()
    slope = float(centred @ logs) / float(centred @ centred)
    return slope * float(np.ptp(position))


def _finding(arm: str, change: float, *, spoiled: bool) -> Finding:
    direction = "rises" if change > 0 else "falls"
    return Finding(
        rule="trend",
        severity="invalid" if spoiled else "note",
        arm=arm,
        what=f"arm {arm}: its rate {direction} by {percent(abs(change))} from the first to the "
        "last slot of a block",
        remedy="Warm up longer (--set measure.warmup_s=5); a rate that falls on and on points to "
        "a leak, a growing queue or throttled CPUs.",
    )
