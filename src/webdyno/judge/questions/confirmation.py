"""A second measurement of what failed, from fresh builds and in another order, before it counts.

What fails by bad luck, of noise or of how a build happens to lie in memory, hardly does so twice: a
wrong failure takes two of them at the same endpoint. What is found less often is the price, where a
change is near the limit.
"""

from webdyno.judge.questions.claims import change_range
from webdyno.model.gate import ClaimAnswer, GateAnswer, GateClaim, GateJudgement
from webdyno.model.metrics import METRICS

DUE = "it isn't measured again yet"


def confirmed(first: GateJudgement, second: GateJudgement | None) -> GateJudgement:
    """Give the answer of both measurements: a failure that the second one has as well, or none."""
    again = {(claim.endpoint, claim.metric): claim for claim in (second.claims if second else [])}
    twice = {claim.endpoint for claim in second.of("worse")} if second else set()
    claims = [
        claim
        if claim.endpoint in twice
        else _open(claim, again.get((claim.endpoint, claim.metric)))
        for claim in first.claims
    ]
    both = [claim for claim in claims if claim.answer == "worse"]
    took_s = first.took_s + (second.took_s if second else 0.0)
    if both:
        answers = "; ".join(map(_said, second.of("worse") if second else []))
        note = f"measured again from fresh builds: {answers}"
        return first.replace(claims=claims, notes=[note, *first.notes], took_s=took_s)
    outcome = f"measured again from fresh builds: {second.headline}" if second else DUE
    return first.replace(
        answer=GateAnswer.INCONCLUSIVE,
        headline=f"not confirmed: {first.headline}",
        claims=claims,
        notes=[outcome, *first.notes, *(second.notes if second else [])],
        grew=[],
        took_s=took_s,
    )


def _open(claim: GateClaim, again: GateClaim | None) -> GateClaim:
    """Give a claim of an endpoint that failed once: it is open."""
    if claim.answer != "worse":
        return claim
    outcome = f"{change_range(again)} when measured again" if again else DUE
    still_open: ClaimAnswer = "inconclusive"
    return claim.replace(answer=still_open, why=f"worse at first, {outcome}")


def _said(claim: GateClaim) -> str:
    return f"{claim.endpoint} {METRICS[claim.metric].short} {change_range(claim)}"
