"""What a gate says, in sentences."""

from collections.abc import Sequence
from itertools import groupby

from webdyno.judge.gate_findings import first_line
from webdyno.model.format import percent, significant
from webdyno.model.gate import GateAnswer, GateClaim
from webdyno.model.metrics import metric_rule

MOST_NAMED = 2
"""Open claims in a headline."""
FACTORS_ABOVE = 10.0
"""More than so many times worse is told as a factor: nobody reads 1 200 %."""
KNOWN_WITHIN = 1000.0
"""Bounds further off than so many times say nothing."""


def gate_headline(answer: GateAnswer, claims: Sequence[GateClaim]) -> str:
    """Say the answer in one sentence, with the claim that matters most."""
    if answer is GateAnswer.INVALID:
        spoilt = next(it for it in claims if it.answer == "invalid")
        return f"{spoilt.endpoint}: {first_line(spoilt.why)}"
    if answer is GateAnswer.FAIL:
        worse = [it for it in claims if it.answer == "worse"]
        by_tolerance = groupby(worse, key=lambda it: it.tolerance)
        return "; ".join(_slower(tolerance, list(those)) for tolerance, those in by_tolerance)
    known = [it for it in claims if it.worse and it.answer != "not asked"]
    if not known:
        return "nothing was measured that could tell"
    if answer is GateAnswer.CANT_TELL:
        asked = [it for it in claims if it.answer != "not asked"]
        open_ = [it for it in asked if it.answer == "can't tell"]
        said = "; ".join(map(_open, open_[:MOST_NAMED]))
        return f"{len(open_)} of {len(asked)} are open: {said}{'; …' * (len(open_) > MOST_NAMED)}"
    tightest = min(it.tolerance for it in known)
    nearest = max(
        (it for it in known if it.tolerance == tightest),
        key=lambda it: it.worse.high if it.worse else 0.0,
    )
    return f"not more than {percent(nearest.tolerance)} slower: {_said(nearest)}"


def _slower(tolerance: float, claims: Sequence[GateClaim]) -> str:
    return f"more than {percent(tolerance)} slower: {', '.join(map(_said, claims))}"


def _open(claim: GateClaim) -> str:
    if claim.worse is None:
        return f"{claim.endpoint} {metric_rule(claim.metric).metric.label}, {claim.why}"
    return f"{_said(claim)}, {claim.why}"


def _said(claim: GateClaim) -> str:
    label = metric_rule(claim.metric).metric.label
    noise = f" (noise floor ±{percent(claim.noise)})" if claim.noise is not None else ""
    return f"{claim.endpoint} {label} {worse_range(claim)}{noise}"


def worse_range(claim: GateClaim) -> str:
    """Give by how much head is worse: `−1.8 to +2.1 %`, below zero better; or `6.5 to 14×`."""
    if claim.answer == "invalid":
        return "no answer"
    if claim.worse is None:
        return "too few valid blocks"
    if claim.worse.low < 1 / KNOWN_WITHIN or claim.worse.high > KNOWN_WITHIN:
        at_least = f"{significant(claim.worse.low, 2)}× or more"
        return at_least if claim.worse.low > 1 else "not known"
    if claim.worse.high > FACTORS_ABOVE:
        return f"{significant(claim.worse.low, 2)} to {significant(claim.worse.high, 2)}×"
    low, high = (_signed(end - 1) for end in (claim.worse.low, claim.worse.high))
    return f"{low} to {high} %"


def _signed(share: float) -> str:
    """Write a share of one in per cent with its sign, without the unit."""
    digits = 1 if abs(share) < 0.1 else 0
    return f"{share * 100:+.{digits}f}".replace("-", "−")
