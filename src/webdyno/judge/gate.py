"""The gate: whether head is worse than base by more than is tolerated, on any metric, anywhere.

The base is measured as two arms. Head is held against the mean of both, in ln, block by block; how
far the two come out from each other is the noise floor. Every claim "head isn't worse by more than
its tolerance" is asked in one direction after each block (`judge/question.py`).

**Fail** takes one claim that is surely wrong: the chance of one that is only bad luck grows with
their number, so Holm's step-down shares the risk of 5 % among them all. **Pass** takes all claims
to be surely right, which is never easier than the hardest of them: each has the whole risk (Berger,
"Multiparameter hypothesis testing and acceptance sampling", Technometrics 1982). So either
answer is wrong in at most 5 % of gates at the very margin, whatever the number of claims.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import expm1, log

import numpy as np

from webdyno.judge.bias import evidence_of, limited_by
from webdyno.judge.bounds import UNBIASED, Bound
from webdyno.judge.comparison import floor_share
from webdyno.judge.gate_findings import FoundAt, notes_on, remedies, spoiling
from webdyno.judge.gate_sentences import gate_headline
from webdyno.judge.interval import Estimate, Logs, estimate
from webdyno.judge.log_ratios import log_ratios
from webdyno.judge.more_starts import most_blocks
from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.question import RISK, OneSided, ask_within
from webdyno.judge.validity import findings_of, left_out_slots, rule_of_most, used_s, valid_for
from webdyno.judge.validity.run import START_RULES
from webdyno.model.base import Interval
from webdyno.model.experiment import Experiment
from webdyno.model.format import level, percent
from webdyno.model.gate import ClaimAnswer, GateAnswer, GateClaim, GateJudgement
from webdyno.model.judgement import OneSidedAnswer
from webdyno.model.measure import Measure
from webdyno.model.metrics import RATE, MetricRule, metric_rule

LIMITED_KINDS = {"rate", "response time"}
"""Metrics that tell of the client or the link where those are the limit of all arms."""


@dataclass(frozen=True)
class MeasuredClaim:
    """That head isn't worse than base by more than is tolerated, with what was measured of it."""

    endpoint: str
    rule: MetricRule
    tolerance: float
    d: Logs
    """ln(head / base) of each block, base being the geometric mean of both its arms."""
    again: Logs
    """ln of the base's second arm / its first one."""
    bound: Bound = UNBIASED
    """By which disturbances can have moved d at most."""
    limited: bool = False
    """Whether load generator or link were the limit of all three arms."""
    base: float | None = None
    head: float | None = None
    """Geometric means over blocks."""
    most_blocks: int | None = None
    """That are planned there; None for those that were asked for."""
    left_out_by: str = ""
    """The rule that left most of its slots out; empty where none was."""

    def same_again(self, risk: float) -> Estimate | None:
        """Give the interval of the two bases' log ratio; None with fewer than two blocks."""
        return estimate(self.again, 1 - risk) if len(self.again) > 1 else None

    def base_differs(self, risk: float) -> float:
        """How far the base differs from itself at most, in ln; 0 unless it surely does."""
        found = self.same_again(risk)
        return found.noise if found and found.excludes_zero() else 0.0

    def ask(self, measure: Measure, risk: float, claims: int) -> OneSidedAnswer | None:
        """Ask whether it is surely so, or surely not; None while there are too few blocks.

        What a base differs from itself, head may differ from it without being another program: it
        counts against the answer like any other disturbance.
        """
        differs = self.base_differs(RISK / claims)
        bound = replace(self.bound, up=self.bound.up + differs, down=self.bound.down + differs)
        better = self.rule.metric.better
        most, fewest = self.most_blocks or measure.max_blocks, measure.min_blocks
        return ask_within(self.d, bound, OneSided(self.tolerance, better, most, fewest, risk))


@dataclass(frozen=True)
class Answered:
    """A claim with its answer, and the bounds on which that rests."""

    claim: MeasuredClaim
    answer: ClaimAnswer
    found: OneSidedAnswer | None


def answer_claims(claims: Sequence[MeasuredClaim], measure: Measure, among: int) -> list[Answered]:
    """Answer claims, some or all of the `among` that share the risk of a wrong "worse"."""
    worse: dict[int, OneSidedAnswer] = {}
    left = among
    while found := _next_worse(claims, measure, RISK / left, among, worse):
        worse |= found
        left = max(left - len(found), 1)
    return [
        Answered(claim, "worse", worse[at]) if at in worse else _unless_worse(claim, measure, among)
        for at, claim in enumerate(claims)
    ]


def _next_worse(
    claims: Sequence[MeasuredClaim],
    measure: Measure,
    risk: float,
    among: int,
    known: dict[int, OneSidedAnswer],
) -> dict[int, OneSidedAnswer]:
    """Give those not yet known that are surely wrong at this step of Holm's."""
    asked = (
        (at, claim.ask(measure, risk, among))
        for at, claim in enumerate(claims)
        if at not in known and not claim.limited
    )
    return {at: found for at, found in asked if found and found.answer == "no"}


def _unless_worse(claim: MeasuredClaim, measure: Measure, among: int) -> Answered:
    found = claim.ask(measure, RISK, among)
    if claim.limited:
        return Answered(claim, "not asked", found)
    return Answered(claim, "not worse" if found and found.answer == "yes" else "can't tell", found)


def gate_answer(answers: Sequence[ClaimAnswer]) -> GateAnswer:
    """Put the answers together: one surely worse fails; all surely not worse pass."""
    asked = [answer for answer in answers if answer != "not asked"]
    if "worse" in asked:
        return GateAnswer.FAIL
    if "invalid" in asked:
        return GateAnswer.INVALID
    passes = asked and all(answer == "not worse" for answer in asked)
    return GateAnswer.PASS if passes else GateAnswer.CANT_TELL


def answer_at(data: PointData) -> GateAnswer:
    """Answer a gate at one of its points, validity left aside; another one may still fail it."""
    claims = claims_of(data, "")
    answers = answer_claims(claims, data.measure, claims_in_all(data.experiment))
    return gate_answer([it.answer for it in answers])


def claims_in_all(experiment: Experiment) -> int:
    """Count the claims at all points of a gate."""
    assert experiment.gate  # noqa: S101
    return experiment.gate.endpoints * len(experiment.gate.worse_than)


def claims_of(data: PointData, endpoint: str) -> list[MeasuredClaim]:
    """Make the claims of one endpoint from all that was measured there."""
    assert data.experiment.gate  # noqa: S101
    left_out = left_out_slots(data)
    arms = list(data.experiment.arms)
    limits = [limited_by(data, arm, metric_rule(RATE)) for arm in arms]
    claims = [
        _claim(
            valid_for(data, name),
            arms,
            endpoint,
            metric_rule(name),
            tolerance,
            limited=all(limits) and metric_rule(name).kind in LIMITED_KINDS,
        )
        for name, tolerance in data.experiment.gate.worse_than.items()
    ]
    most = most_blocks(data)
    return [
        replace(claim, most_blocks=most, left_out_by=rule_of_most(left_out, claim.rule.name))
        for claim in claims
    ]


def _claim(
    data: PointData,
    arms: Sequence[str],
    endpoint: str,
    rule: MetricRule,
    tolerance: float,
    *,
    limited: bool,
) -> MeasuredClaim:
    base, again, head = ({**data.values(arm, rule)} for arm in arms)
    whole = base.keys() & again.keys() & head.keys()  # a base of one arm scatters otherwise
    base, again, head = ({n: it[n] for n in sorted(whole)} for it in (base, again, head))
    (against_base,) = log_ratios({"base": base, "head": head})
    (against_again,) = log_ratios({"again": again, "head": head})
    (same,) = log_ratios({"base": base, "again": again})
    bounds = [evidence_of(data, arms[2], arm, rule).together for arm in arms[:2]]
    both = {n: (base[n] * again[n]) ** 0.5 for n in whole}
    return MeasuredClaim(
        endpoint=endpoint,
        rule=rule,
        tolerance=max(tolerance, floor_share(rule.metric, head, both)),
        d=(against_base.d + against_again.d) / 2,
        again=same.d,
        bound=Bound(
            "all",
            down=sum(it.down for it in bounds) / 2,
            up=sum(it.up for it in bounds) / 2,
        ),
        limited=limited,
        base=_mean(both),
        head=_mean(head),
    )


def _mean(values: dict[int, float]) -> float | None:
    return float(np.exp(np.mean(np.log(list(values.values()))))) if values else None


def judge_gate(run: RunData) -> GateJudgement:
    """Judge a gate, finished or not."""
    gate = run.head.experiment.gate
    assert gate  # noqa: S101
    among = claims_in_all(run.points[0].experiment)
    claims: list[MeasuredClaim] = []
    findings: list[FoundAt] = []
    spoilt: list[FoundAt | None] = []
    for data in run.points:
        endpoint = _endpoint(data)
        found = [FoundAt(endpoint, it) for it in findings_of(data)]
        mine = claims_of(data, endpoint)
        findings += found
        claims += mine
        spoilt += [
            None if claim.limited else spoiling(found, claim.rule.name, list(data.experiment.arms))
            for claim in mine
        ]
    answered = answer_claims(claims, run.head.experiment.measure, among)
    told = [_told(*each, among) for each in zip(answered, spoilt, strict=True)]
    answer = gate_answer([claim.answer for claim in told])
    causes = list(filter(None, spoilt))
    in_headline = causes[0] if answer is GateAnswer.INVALID else None
    return GateJudgement(
        answer=answer,
        headline=gate_headline(answer, told),
        base=gate.base,
        head=gate.head,
        claims=told,
        notes=[
            *_differing(claims, among),
            *notes_on(causes, findings, in_headline),
            *remedies(
                {it.claim.left_out_by for it in answered if it.found is None},
                [it for it in findings if it not in causes],
            ),
            *_starts_that_differ(findings),
        ],
        took_s=used_s(run),
        machine=run.head.machine,
    )


def _endpoint(data: PointData) -> str:
    """Name what was asked there: the point's levels, or else all that the load asks for."""
    named = [level(value) for value in data.point.levels.values()]
    asked = [request.label for request in data.experiment.asked]
    return ", ".join(named or asked or data.experiment.load.paths)


def _told(answered: Answered, spoilt: FoundAt | None, among: int) -> GateClaim:
    claim, found = answered.claim, answered.found
    same = claim.same_again(RISK)
    answer: ClaimAnswer = "invalid" if spoilt else answered.answer
    return GateClaim(
        endpoint=claim.endpoint,
        metric=claim.rule.name,
        tolerance=claim.tolerance,
        answer=answer,
        why=_why(answered, among) if spoilt is None else spoilt.finding.what,
        worse=_worse(claim, found) if found else None,
        noise=expm1(same.noise) if same else None,
        base=claim.base,
        head=claim.head,
        blocks=len(claim.d),
    )


def _worse(claim: MeasuredClaim, found: OneSidedAnswer) -> Interval:
    mean = float(claim.d.mean())
    centre = float(np.exp(mean if claim.rule.metric.better == "lower" else -mean))
    return Interval(low=1 / found.at_most, estimate=centre, high=1 / found.at_least)


def _why(answered: Answered, among: int) -> str:
    claim, found = answered.claim, answered.found
    if found is None:
        cause = f"; most slots broke the rule {claim.left_out_by}" if claim.left_out_by else ""
        return f"too few valid blocks to look at: {len(claim.d)}{cause}"
    if answered.answer == "not asked":
        return "load generator or link were the limit of both revisions, so that it tells nothing"
    if answered.answer == "not worse":
        return f"surely not worse by more than {percent(claim.tolerance)}"
    if answered.answer == "worse":
        return f"surely worse by more than {percent(claim.tolerance)}"
    differs = claim.base_differs(RISK / among)
    if differs > log(1 + claim.tolerance) / 2:
        return f"the base differs from itself by up to {percent(expm1(differs))}"
    return f"not known well enough after {len(claim.d)} blocks"


def _starts_that_differ(findings: Sequence[FoundAt]) -> list[str]:
    """Tell of arms whose starts differ, wherever it was seen first: it's why more of them help."""
    rule = START_RULES[0].name
    seen = {it.finding.arm: it for it in reversed(findings) if it.finding.rule == rule}
    return [f"{it.endpoint}: {it.finding.what}. {it.finding.remedy}" for it in seen.values()]


def _differing(claims: Sequence[MeasuredClaim], among: int) -> list[str]:
    """Tell bases that differ from themselves."""
    return [
        f"{claim.endpoint}: the base differs from itself on {claim.rule.metric.label}, by up to "
        f"{percent(expm1(differs))}; that much is counted against any answer"
        for claim in claims
        if (differs := claim.base_differs(RISK / among))
    ]
