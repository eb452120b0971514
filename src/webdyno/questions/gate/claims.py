"""What a gate claims: on each metric head isn't worse than the baseline by more than tolerated.

The baseline is measured as two variants. Head is held against the mean of both, in ln, round by
round; how far the two come out from each other is the noise floor. Every claim "head isn't worse by
more than its tolerance" is asked in one direction after each round (`statistics/verdict.py`).

A gate fails where one claim is wrong, and passes where all are right (`gate_answer` in
`decide.py`), either with 95% confidence. Bad luck with any one of many claims fails a gate: for
that answer Holm's step-down shares the risk of 5% among them. A wrong pass takes bad luck with each
claim that is wrong: for that answer each has the whole risk (Berger, "Multiparameter hypothesis
testing and acceptance sampling", Technometrics 1982). So either answer is wrong in at most 5% of
gates at the very margin, whatever the number of claims. Each end of an open claim's interval is the
one that decides: the lower one, which "worse" rests on, is of the shared risk.

Where a gate confirms what fails, a second measurement is asked the same (`with_confirmation`). A
pass on CPU time that is saved while requests wait is none (`made_to_wait`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import expm1, log

import numpy as np

from webdyno.comparison.bias import evidence_of, limited_by
from webdyno.comparison.comparison import floor_share
from webdyno.core.base import Interval
from webdyno.core.format import count, latency, listed, percent
from webdyno.core.judgement import OneSidedAnswer, ValidityWarning
from webdyno.core.limits import ClaimAnswer, ClaimBecause, GateAnswer, GateClaim, GateJudgement
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME, METRICS, THROUGHPUT, MetricRule
from webdyno.evidence.log_ratios import log_ratios
from webdyno.evidence.noise import judged_values
from webdyno.evidence.point_data import PointData
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.gate.words import change_range
from webdyno.statistics.bounds import UNBIASED, Bound
from webdyno.statistics.interval import Estimate, Logs, estimate
from webdyno.statistics.verdict import RISK, OneSided, ask_within
from webdyno.validity import excluded_slots, rule_of_most, valid_for
from webdyno.validity.rule import uncomparable
from webdyno.validity.servers import LONGER, LONGER_US, WAITING, Wait, longer_waits
from webdyno.validity.whole_run import FEW_SAMPLES

DUE = "it isn't measured again yet"
LIMITED_KINDS = {"throughput", "latency"}
"""Metrics that say of the client or the link where those are the limit of all variants."""
LONGER_RULE = "waits-longer"


@dataclass(frozen=True)
class MeasuredClaim:
    """That head isn't worse than the baseline by more than is tolerated, and what it rests on."""

    endpoint: str
    rule: MetricRule
    tolerance: float
    """As a share of the baseline's value."""
    d: Logs
    """ln(head / baseline) of each round, baseline being the geometric mean of both its variants."""
    again: Logs
    """ln of the baseline's second variant / its first one."""
    bound: Bound = UNBIASED
    """By which interference can have moved d at most."""
    limited: bool = False
    """Whether load generator or link limited all three variants."""
    baseline: float | None = None
    head: float | None = None
    """Geometric means over rounds."""
    most_rounds: int | None = None
    """That are planned there; None for those that were requested."""
    excluded_by: str = ""
    """The rule that left most of its slots out; empty where none was."""

    @property
    def worse_share(self) -> float:
        """How many times worse head may be, less one: of 5% less throughput that is 1/0.95 - 1."""
        falls = self.rule.metric.better == "higher"
        return self.tolerance / (1 - self.tolerance) if falls else self.tolerance

    def same_again(self, risk: float) -> Estimate | None:
        """Return the interval of the two baselines' log ratio; None with fewer than two rounds."""
        return estimate(self.again, 1 - risk) if len(self.again) > 1 else None

    def baseline_differs(self, risk: float) -> float:
        """How far the baseline differs from itself at most, in ln; 0 unless it surely does."""
        noise = self.same_again(risk)
        return noise.noise if noise and noise.excludes_zero() else 0.0

    def ask(self, measure: Measure, risk: float, claims: int) -> OneSidedAnswer | None:
        """Ask with 95% confidence whether it is so; None while there are too few rounds.

        What a baseline differs from itself, head may differ from it without being another program:
        it counts against the answer like any interference.
        """
        differs = self.baseline_differs(RISK / claims)
        bound = replace(self.bound, up=self.bound.up + differs, down=self.bound.down + differs)
        better = self.rule.metric.better
        most, fewest = self.most_rounds or measure.max_rounds, measure.min_rounds
        return ask_within(self.d, bound, OneSided(self.worse_share, better, most, fewest, risk))


@dataclass(frozen=True)
class AnsweredClaim:
    """A claim with its answer, and the bounds on which that rests."""

    claim: MeasuredClaim
    answer: ClaimAnswer
    one_sided: OneSidedAnswer | None


def answer_claims(
    claims: Sequence[MeasuredClaim], measure: Measure, among: int
) -> list[AnsweredClaim]:
    """Answer claims, some or all of the `among` that share the risk of a wrong "worse"."""
    worse: dict[int, OneSidedAnswer] = {}
    left = among
    while answers := _next_worse(claims, measure, RISK / left, among, worse):
        worse |= answers
        left = max(left - len(answers), 1)
    answered = []
    for index, claim in enumerate(claims):
        if index in worse:
            answered.append(AnsweredClaim(claim, "worse", worse[index]))
            continue
        one_sided = claim.ask(measure, RISK, among)
        answer: ClaimAnswer = "inconclusive"
        if claim.limited:
            answer = "not asked"
        elif one_sided and one_sided.answer == "yes":
            answer = "not worse"
        elif one_sided and (shared := claim.ask(measure, RISK / left, among)):
            one_sided = one_sided.replace(at_most=shared.at_most)
        answered.append(AnsweredClaim(claim, answer, one_sided))
    return answered


def _next_worse(
    claims: Sequence[MeasuredClaim],
    measure: Measure,
    risk: float,
    among: int,
    known: dict[int, OneSidedAnswer],
) -> dict[int, OneSidedAnswer]:
    """Return those not yet known that are surely wrong at this step of Holm's."""
    answers = (
        (index, claim.ask(measure, risk, among))
        for index, claim in enumerate(claims)
        if index not in known and not claim.limited
    )
    return {index: answer for index, answer in answers if answer and answer.answer == "no"}


@dataclass(frozen=True)
class EndpointWarning:
    """A validity rule that fired at an endpoint."""

    endpoint: str
    warning: ValidityWarning


@dataclass(frozen=True)
class JudgedClaim:
    """A claim with its answer, and with the warning that invalidates it, if one does."""

    answered: AnsweredClaim
    invalidated_by: EndpointWarning | None

    @property
    def has_too_few(self) -> bool:
        """Whether a percentile lacks responses: that one isn't evaluated, and the rest decides."""
        cause = self.invalidated_by
        return cause is not None and cause.warning.rule == FEW_SAMPLES.name

    def reported(self, among: int) -> GateClaim:
        """Return it as it is reported."""
        answered, invalidated = self.answered, self.invalidated_by
        claim, one_sided = answered.claim, answered.one_sided
        same = claim.same_again(RISK)
        answer: ClaimAnswer = answered.answer
        because, why = _because(answered, among)
        if invalidated and self.has_too_few:
            answer, because = "not asked", "few-samples"
            why = f"not evaluated: {invalidated.warning.what}. {invalidated.warning.fix}"
        elif invalidated:
            answer, because, why = "invalid", "invalidated", invalidated.warning.what
        worse = None
        if one_sided:
            mean = float(claim.d.mean())
            centre = float(np.exp(mean if claim.rule.metric.better == "lower" else -mean))
            low, high = 1 / one_sided.at_most, 1 / one_sided.at_least
            worse = Interval(low=low, estimate=centre, high=high)
        return GateClaim(
            endpoint=claim.endpoint,
            metric=claim.rule.name,
            tolerance=claim.tolerance,
            answer=answer,
            because=because,
            rule=invalidated.warning.rule if invalidated else "",
            why=why,
            worse=worse,
            noise=expm1(same.noise) if same else None,
            baseline=claim.baseline,
            head=claim.head,
            rounds=len(claim.d),
        )


def _because(answered: AnsweredClaim, among: int) -> tuple[ClaimBecause, str]:
    """Return what an answer rests on where no rule is broken, as a code and in words."""
    claim, answer = answered.claim, answered.one_sided
    if answer is None:
        cause = f"; most slots broke the rule {claim.excluded_by}" if claim.excluded_by else ""
        return "few-rounds", f"{count(len(claim.d), 'valid round')}, too few{cause}"
    limit = percent(claim.tolerance)
    match answered.answer:
        case "not asked":
            why = "not evaluated: load generator or link was saturated for both revisions"
            return "saturated", why
        case "not worse":
            return "within-limit", f"not worse by more than {limit} (95% confidence)"
        case "worse":
            return "beyond-limit", f"worse by more than {limit} (95% confidence)"
    differs = claim.baseline_differs(RISK / among)
    if differs > log(1 + claim.worse_share) / 2:
        most = percent(expm1(differs))
        return "baseline-differs", f"two copies of baseline differ by up to {most}"
    return "wide-interval", f"inconclusive after {count(len(claim.d), 'round')}"


def claims_of(
    data: PointData, endpoint: str, gate: GateSettings, most_rounds: int
) -> list[MeasuredClaim]:
    """Make the claims of one endpoint from all that was measured there."""
    excluded, variants = excluded_slots(data), list(data.experiment.variants)
    all_limited = all(limited_by(data, variant, METRICS[THROUGHPUT]) for variant in variants)
    claims = []
    for name, tolerance in gate.worse_than.items():
        claim = _claim(valid_for(data, name), variants, endpoint, METRICS[name], tolerance)
        claims.append(
            replace(
                claim,
                limited=all_limited and METRICS[name].kind in LIMITED_KINDS,
                most_rounds=most_rounds,
                excluded_by=rule_of_most(excluded, name),
            )
        )
    return claims


def _claim(
    data: PointData, variants: Sequence[str], endpoint: str, rule: MetricRule, tolerance: float
) -> MeasuredClaim:
    values = [judged_values(data, variant, rule) for variant in variants]
    # Of rounds that all three have: a baseline of one variant scatters otherwise.
    whole = sorted(set.intersection(*(set(by_round) for by_round in values)))
    baseline, again, head = ({n: by_round[n] for n in whole} for by_round in values)
    (against_baseline,) = log_ratios({"baseline": baseline, "head": head})
    (against_again,) = log_ratios({"again": again, "head": head})
    (same,) = log_ratios({"baseline": baseline, "again": again})
    bounds = [evidence_of(data, variants[2], variant, rule).together for variant in variants[:2]]
    both = {n: (baseline[n] * again[n]) ** 0.5 for n in whole}
    return MeasuredClaim(
        endpoint=endpoint,
        rule=rule,
        tolerance=max(tolerance, floor_share(rule.metric, head, both)),
        d=(against_baseline.d + against_again.d) / 2,
        again=same.d,
        bound=Bound(
            "all",
            down=sum(bound.down for bound in bounds) / 2,
            up=sum(bound.up for bound in bounds) / 2,
        ),
        baseline=_mean(both),
        head=_mean(head),
    )


def _mean(values: dict[int, float]) -> float | None:
    return float(np.exp(np.mean(np.log(list(values.values()))))) if values else None


def with_confirmation(first: GateJudgement, second: GateJudgement | None) -> GateJudgement:
    """Return the answer of both measurements: a failure that the second one has as well, or none.

    The second one has fresh builds and another order. What fails by bad luck, of noise or of how a
    build happens to lie in memory, hardly does so twice: a wrong failure takes two of them at the
    same endpoint. What is found less often is the price, where a change is near the limit.
    """
    again = {(claim.endpoint, claim.metric): claim for claim in (second.claims if second else [])}
    twice = {claim.endpoint for claim in second.of("worse")} if second else set()
    claims = []
    for claim in first.claims:
        is_open = claim.answer == "worse" and claim.endpoint not in twice
        again_there = again.get((claim.endpoint, claim.metric))
        claims.append(_leave_open(claim, again_there) if is_open else claim)
    took_s = first.took_s + (second.took_s if second else 0.0)
    if any(claim.answer == "worse" for claim in claims):
        answers = "; ".join(
            f"{claim.endpoint} {METRICS[claim.metric].short} {change_range(claim)}"
            for claim in (second.of("worse") if second else [])
        )
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


def _leave_open(claim: GateClaim, again: GateClaim | None) -> GateClaim:
    outcome = f"{change_range(again)} when measured again" if again else DUE
    answer: ClaimAnswer = "inconclusive"
    return claim.replace(answer=answer, because="not-confirmed", why=f"worse at first, {outcome}")


def made_to_wait(data: PointData, gate: GateSettings) -> ValidityWarning | None:
    """Return a warning about a head that keeps requests waiting; it invalidates a pass on CPU time.

    CPU time that is saved while requests wait is no saving. Head keeps them waiting, at an arrival
    rate, where they wait longer than those of both copies of the baseline. All endpoints and
    percentiles share the risk that this is only bad luck.
    """
    if data.experiment.load.offered_rps is None or CPU_TIME not in gate.worse_than:
        return None
    waits = list(_waits(data, gate))
    if not waits:
        return None
    baseline, _, head = data.experiment.variants
    percentile = waits[0].percentile
    warning = uncomparable(
        LONGER_RULE,
        head,
        f"requests of {head} wait longer than those of {baseline}: "
        f"{listed(wait.words for wait in waits)} (more than {LONGER:g} times as long, and "
        f"{latency(LONGER_US)})",
        f"If that may be, give latency a limit of its own: --fail-if '{percentile} > +100%'.",
    )
    return warning.replace(metrics=[CPU_TIME])


def _waits(data: PointData, gate: GateSettings) -> Iterator[Wait]:
    """Yield those that are longer than with both copies, but for what has a limit of its own."""
    baseline, again, head = data.experiment.variants
    confidence = 1 - RISK / (gate.endpoints * len(WAITING))
    valid = valid_for(data, WAITING["p50"])
    than_again = [wait.percentile for wait in longer_waits(valid, head, again, confidence)]
    for wait in longer_waits(valid, head, baseline, confidence):
        if wait.percentile in than_again and WAITING[wait.percentile] not in gate.worse_than:
            yield wait
