"""What a gate says of its claims: the headline, how large a change is, and its limit."""

from collections.abc import Sequence

from webdyno.core.format import DASH, count, percent, signed_percent, significant
from webdyno.core.limits import GateAnswer, GateClaim
from webdyno.core.metrics import METRICS

FACTORS_ABOVE = 2.0
"""A change beyond this, or its inverse, is written as a factor: nobody reads 1,200%."""
KNOWN_WITHIN = 1000.0
"""Bounds further off than so many times say nothing."""


def first_line(what: str) -> str:
    """Return what is wrong in one line, without the diff that may follow."""
    return what.partition("\n")[0].rstrip(":")


def gate_headline(answer: GateAnswer, claims: Sequence[GateClaim]) -> str:
    """Say the answer in one sentence, with the claim that matters most."""
    if answer is GateAnswer.INVALID:
        invalidated = next(claim for claim in claims if claim.answer == "invalid")
        return f"{invalidated.endpoint}: {first_line(invalidated.why)}"
    counted = [claim for claim in claims if claim.answer != "not asked"]
    if answer is GateAnswer.FAIL:
        worse = [claim for claim in counted if claim.answer == "worse"]
        worst = max(worse, key=lambda claim: claim.worse.low if claim.worse else 0.0)
        return worst_words(worst) + _also_worse([claim for claim in worse if claim is not worst])
    known = [claim for claim in counted if claim.worse]
    if not known:
        return "not enough valid data for an answer"
    if answer is GateAnswer.INCONCLUSIVE:
        open_ = [claim for claim in counted if claim.answer == "inconclusive"]
        return _list_open(open_, len(counted))
    tightest = min(claim.tolerance for claim in known)
    nearest = max(
        (claim for claim in known if claim.tolerance == tightest),
        key=lambda claim: claim.worse.high if claim.worse else 0.0,
    )
    return f"{count(len(known), 'check')} within limits; closest: {_said(nearest)}"


def worst_words(claim: GateClaim) -> str:
    """Return what is worse by how much: `/a needs 7.5× the CPU per request (95% CI 4.7–12×; …)`."""
    how_sure = f"95% CI {change_range(claim)}; limit {limit_words(claim)}"
    return f"{claim.endpoint} {change_words(claim)} ({how_sure})"


def change_words(claim: GateClaim) -> str:
    """Return a change in words: `needs 7.5× the CPU per request`, `has 12% less throughput`."""
    rule, factor = METRICS[claim.metric], _factor(claim)
    verb = "needs" if rule.metric.better == "lower" and rule.kind != "latency" else "has"
    if factor is None:
        return f"{verb} another {rule.short}"
    if _is_large(claim):
        return f"{verb} {change_estimate(claim)} the {rule.short}"
    more = "more" if factor > 1 else "less"
    return f"{verb} {percent(abs(factor - 1))} {more} {rule.short}"


def _also_worse(others: Sequence[GateClaim]) -> str:
    if not others:
        return ""
    if len(others) == 1:
        (only,) = others
        return f"; {METRICS[only.metric].short} of {only.endpoint} is beyond its limit, too"
    return f"; {count(len(others), 'more check')} are beyond their limits"


def _list_open(open_: Sequence[GateClaim], checks: int) -> str:
    """Name the first of what is open, and how much else is."""
    first, more = open_[0], len(open_) - 1
    also = f"{more} more of {count(checks, 'check')} {'is' if more == 1 else 'are'} inconclusive"
    return f"{_said(first)}; {also}" if more else _said(first)


def _said(claim: GateClaim) -> str:
    named = f"{claim.endpoint} {METRICS[claim.metric].short}"
    if claim.worse is None:
        return f"{named}: {claim.why}"
    differs = claim.because == "baseline-differs"
    because = f", as {claim.why}" if differs and claim.answer == "inconclusive" else ""
    range_ = _may_be(claim) if claim.answer == "inconclusive" else change_range(claim)
    return f"{named} {range_} (limit {limit_words(claim)}){because}"


def _may_be(claim: GateClaim) -> str:
    if not _is_known(claim):
        return "may have changed by anything"
    return f"may {'be' if _is_large(claim) else 'differ by'} {change_range(claim)}"


def limit_words(claim: GateClaim) -> str:
    """Return the limit in the unit of the change: `+5%` or `1.05×`, of a throughput `−5%`."""
    falls = METRICS[claim.metric].metric.better == "higher"
    if _is_large(claim):
        return f"{1 - claim.tolerance if falls else 1 + claim.tolerance:.4g}×"
    return f"{'−' if falls else '+'}{percent(claim.tolerance)}"


def change_estimate(claim: GateClaim) -> str:
    """Return by how much head's value differs from baseline's: `+1.2%`, `7.5×`; or nothing."""
    factor = _factor(claim)
    return "" if factor is None or not _is_known(claim) else as_change(factor, claim)


def as_change(factor: float, claim: GateClaim) -> str:
    """Return a factor in the unit of a claim's change."""
    return f"{significant(factor, 2)}×" if _is_large(claim) else signed_percent(factor - 1)


def change_range(claim: GateClaim) -> str:
    """Return between which ends that lies: `−1.8 to +2.1%`, or `6.5–14×`."""
    if claim.answer == "invalid":
        return "invalid"
    if claim.worse is None:
        return "too few rounds"
    rises = METRICS[claim.metric].metric.better == "lower"
    low, high = claim.worse.low, claim.worse.high
    if not _is_known(claim):
        if low <= 1:
            return "unknown"
        return f"{significant(low, 2)}× or more" if rises else f"{significant(1 / low, 2)}× or less"
    low, high = (low, high) if rises else (1 / high, 1 / low)
    if _is_large(claim):
        return f"{significant(low, 2)}{DASH}{significant(high, 2)}×"
    return f"{signed_percent(low - 1).rstrip('%')} to {signed_percent(high - 1)}"


def _factor(claim: GateClaim) -> float | None:
    """Return head's value as a multiple of the baseline's."""
    if claim.worse is None or claim.answer == "invalid" or not claim.worse.estimate:
        return None
    rises = METRICS[claim.metric].metric.better == "lower"
    return claim.worse.estimate if rises else 1 / claim.worse.estimate


def _is_known(claim: GateClaim) -> bool:
    wide = claim.worse
    return bool(wide and wide.low >= 1 / KNOWN_WITHIN and wide.high <= KNOWN_WITHIN)


def _is_large(claim: GateClaim) -> bool:
    """Whether a change is written as a factor, as one without a known end is."""
    wide = claim.worse
    if wide is None or claim.answer == "invalid":
        return False
    return wide.high > FACTORS_ABOVE or wide.low < 1 / FACTORS_ABOVE
