"""When a gate passes or fails: whether head is worse than the baseline by more than is tolerated.

The answer (`gate_answer`) is put together from claims (`claims.py`), one for each endpoint and
metric, with what a reader should know next to it (`notes.py`).
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from math import expm1, log
from statistics import fmean
from typing import ClassVar, Self

import numpy as np

from webdyno.comparison.question import Loading, Question
from webdyno.comparison.stop import Stop
from webdyno.core.base import Interval
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, percent
from webdyno.core.limits import (
    ClaimAnswer,
    ClaimBecause,
    CostGrowth,
    GateAnswer,
    GateClaim,
    GateJudgement,
)
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME
from webdyno.core.records import PreflightRecord
from webdyno.evidence.point_data import PointData, RunData
from webdyno.questions.gate.claims import (
    AnsweredClaim,
    MeasuredClaim,
    answer_claims,
    claims_of,
    made_to_wait,
    with_confirmation,
)
from webdyno.questions.gate.growth import growth_at
from webdyno.questions.gate.notes import (
    FEWEST_ROUNDS,
    EndpointWarning,
    differing,
    endpoint_of,
    fixes,
    invalidating,
    needed_rounds,
    noisy_words,
    notes_on,
    notes_on_starts,
    only_in,
    response_notes,
    statement_notes,
)
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.gate.words import gate_headline
from webdyno.statistics.interval import exceeded_by_largest
from webdyno.statistics.verdict import RISK
from webdyno.validity import used_s
from webdyno.validity.starts import FEWEST_STARTS, variants_whose_starts_differ
from webdyno.validity.whole_run import FEW_SAMPLES

TIMES_THE_ROUNDS = 2
"""So many times the rounds distinguish two states that lie 20% apart well enough for a tolerance of
5% (tests/simulations/starts.py)."""
DEFAULT_MOST_ROUNDS = Measure().max_rounds
WINDOW_S = 0.2
"""Of a slot, once starts are known to differ: longer ones say nothing more."""
ANSWERS = 2 * exceeded_by_largest(0.99)
"""Of a variant in a round, which its 99th percentile takes; twice as many, for luck."""
REPORTING_ROUNDS, REPORTING_S = 3, 25.0
"""After so many rounds at an endpoint, or two and so long a time, the noise is known well enough to
say what can't be known in the time given."""
FAILS_ELSEWHERE = "the gate fails at another endpoint, whatever comes of this one"


class GateQuestion(Question):
    """Whether the third variant is worse than the first two, which are alike."""

    one_answer: ClassVar[bool] = True
    stops_by_width: ClassVar[bool] = False

    @classmethod
    def of_run(cls, run: RunData) -> Self:
        return cls(run.head.experiment, Loading())

    @property
    def _settings(self) -> GateSettings:
        return self.experiment.asks_as(GateSettings)

    @property
    def _claims_in_all(self) -> int:
        return self._settings.endpoints * len(self._settings.worse_than)

    @property
    def piloted_variants(self) -> list[str]:
        """The baseline once, and head."""
        baseline, _, head = self.experiment.variants
        return [baseline, head]

    def measured_alike(self, variant: str) -> list[str]:
        """Return all variants: whatever one of the revisions needs, the others get as well."""
        return [variant, *(other for other in self.experiment.variants if other != variant)]

    @cached_property
    def fewest_rounds(self) -> int:
        """As many as are requested: it asks for no exact test."""
        return self.experiment.measure.min_rounds

    def starts_decide(self, data: PointData) -> bool:
        """Whether the first rounds say that servers differ from start to start.

        What time there is then goes into more starts. It is seen from how starts scatter and not
        from how revisions differ, and before the first look at the answer: so its risk is spent
        over all rounds to come.
        """
        return any(variants_whose_starts_differ(data.first(FEWEST_STARTS)))

    def most_rounds(self, data: PointData) -> int:
        """Return the most rounds: more where starts decide, unless the user says."""
        given = data.measure.max_rounds
        more = given == DEFAULT_MOST_ROUNDS and self.starts_decide(data)
        return given * TIMES_THE_ROUNDS if more else given

    def window_s(self, window_s: float, data: PointData) -> float | None:
        """Shorten windows where starts decide, and have few of them."""
        return short_window_s(window_s, data) if self.starts_decide(data) else None

    @property
    def _usual_look_s(self) -> float:
        return 0.0

    def _claims(self, data: PointData, endpoint: str = "") -> list[MeasuredClaim]:
        return claims_of(data, endpoint, self._settings, self.most_rounds(data))

    def answer_at(self, data: PointData) -> GateAnswer:
        """Answer at one of the points, validity left aside; another one may still fail."""
        answers = answer_claims(self._claims(data), data.measure, self._claims_in_all)
        return gate_answer([answer.answer for answer in answers])

    def _stop_if_answered(self, data: PointData, valid: PointData, elapsed_s: float) -> Stop | None:
        answer = self.answer_at(data)
        if answer is GateAnswer.INCONCLUSIVE:
            return None
        return Stop("question", f"the gate's answer is known: {answer}")

    def fails_at(self, data: PointData) -> bool:
        """Return whether it has failed at this point, and so as a whole."""
        enough = len(data.rounds) >= self.fewest_rounds
        return enough and self.answer_at(data) is GateAnswer.FAIL

    def stops_elsewhere(self, ended: Iterable[PointData]) -> Stop | None:
        return Stop("question", FAILS_ELSEWHERE) if any(map(self.fails_at, ended)) else None

    def shows_when_interrupted(self, data: PointData) -> bool:
        """Not: its answer is one for all points."""
        return False

    def reported_by(self, data: PointData, preflight: PreflightRecord) -> list[str]:
        """Return what is other in head's responses, and what only one of the revisions has."""
        return response_notes([preflight], endpoint_of(data))

    def outlook(self, points: Sequence[PointData], elapsed_s: float) -> str | None:
        """Return, after the first rounds, which limits there is no time for on a noisy machine."""
        most = max(len(data.rounds) for data in points)
        if most < FEWEST_ROUNDS or (most < REPORTING_ROUNDS and elapsed_s < REPORTING_S):
            return None
        going = [data for data in points if data.stop is None]
        rounds_s = [data.round_s for data in going if data.rounds]
        if not rounds_s:
            return ""
        rounds = int(going[0].measure.budget_s / fmean(rounds_s))
        return self._lacking(going, min(rounds, self.most_rounds(going[0]))) or ""

    def _lacking(self, points: Sequence[PointData], given_rounds: int) -> str | None:
        """Return which limits take more rounds than there are; None where these suffice."""
        seen = [data for data in points if len(data.rounds) >= FEWEST_ROUNDS]
        if not seen:
            return None
        round_s = fmean(data.round_s for data in seen) * len(points)
        claims = [claim for data in seen for claim in self._claims(data)]
        measure = self.experiment.measure
        given = max(given_rounds, measure.min_rounds)  # however short the time
        return noisy_words(needed_rounds(claims, measure, given), round_s, given)

    def judge_all_points(self, run: RunData) -> GateJudgement | None:
        """Judge it, finished or not; where it fails, with the second measurement if one is due."""
        first = self.judge_once(run)
        if not self._settings.confirm or first.answer is not GateAnswer.FAIL:
            return first
        again = run.confirmation
        second = self.of_run(again).judge_once(again) if again else None
        return with_confirmation(first, second)

    def judge_once(self, run: RunData) -> GateJudgement:
        """Judge what was measured first."""
        at_point = self.of(run.points[0].experiment)
        among = at_point._claims_in_all
        claims: list[MeasuredClaim] = []
        warnings: list[EndpointWarning] = []
        waits: list[EndpointWarning] = []
        for data in run.points:
            if not data.rounds and only_in(data.preflights):
                continue
            endpoint = endpoint_of(data)
            claims += at_point._claims(data, endpoint)
            warnings += [EndpointWarning(endpoint, warning) for warning in self.warnings(data)]
            if waiting := made_to_wait(data, at_point._settings):
                waits.append(EndpointWarning(endpoint, waiting))
        answered = answer_claims(claims, run.head.experiment.measure, among)
        variants = list(run.head.experiment.variants)
        invalidated = [_invalidating(each, warnings, waits, variants) for each in answered]
        gate_claims = [
            _gate_claim(*each, among) for each in zip(answered, invalidated, strict=True)
        ]
        answer = gate_answer([claim.answer for claim in gate_claims])
        causes = [cause for cause in invalidated if cause and not _has_too_few(cause)]
        in_headline = causes[0] if answer is GateAnswer.INVALID else None
        unanswered = {each.claim.excluded_by for each in answered if each.one_sided is None}
        notes = [
            *differing(claims, among),
            *notes_on(causes, [*warnings, *waits], in_headline),
            *fixes(unanswered, [warning for warning in warnings if warning not in causes]),
            *notes_on_starts(warnings),
            *statement_notes(run),
        ]
        for data in run.points:
            notes += response_notes(data.preflights, endpoint_of(data))
        if _is_open(answer, gate_claims):
            measured = [data for data in run.points if data.rounds]
            rounds = max(len(data.rounds) for data in measured)
            if lacking := at_point._lacking(measured, rounds):
                notes.append(lacking)
        headline = "no endpoint is in both revisions"
        if gate_claims:
            headline = gate_headline(answer, gate_claims)
        return GateJudgement(
            answer=answer,
            headline=headline,
            baseline=self._settings.baseline,
            head=self._settings.head,
            claims=gate_claims,
            notes=notes,
            grew=list(_growths(run, gate_claims)) if answer is GateAnswer.FAIL else [],
            commits=self._settings.commits,
            repeat=_repeat(run.head.experiment, gate_claims),
            rate_rps=run.head.experiment.load.offered_rps,
            took_s=used_s(run),
            machine=run.head.machine,
        )


def gate_answer(answers: Sequence[ClaimAnswer]) -> GateAnswer:
    """Put the answers together: one worse fails; all not worse pass (95% confidence)."""
    answered = [answer for answer in answers if answer != "not asked"]
    if "worse" in answered:
        return GateAnswer.FAIL
    if "invalid" in answered:
        return GateAnswer.INVALID
    passes = answered and all(answer == "not worse" for answer in answered)
    return GateAnswer.PASS if passes else GateAnswer.INCONCLUSIVE


def _invalidating(
    answered: AnsweredClaim,
    warnings: Sequence[EndpointWarning],
    waits: Sequence[EndpointWarning],
    variants: Sequence[str],
) -> EndpointWarning | None:
    """Return what takes a claim's answer away; that requests wait only takes a pass away."""
    claim = answered.claim
    if claim.limited:
        return None
    counting = warnings if answered.answer == "worse" else [*warnings, *waits]
    here = [warning for warning in counting if warning.endpoint == claim.endpoint]
    return invalidating(here, claim.rule.name, variants)


def _is_open(answer: GateAnswer, claims: Sequence[GateClaim]) -> bool:
    """Whether noise left an answer open, and not want of valid rounds."""
    is_worse = bool(claims) and all(claim.worse for claim in claims)
    return answer is GateAnswer.INCONCLUSIVE and is_worse


def short_window_s(window_s: float, data: PointData) -> float:
    """Return the length of slots that are short, but have answers enough for all metrics."""
    answers = min(
        sum(slot.load.requests.completed for slot in this_round.of(variant))
        for this_round in data.first(FEWEST_STARTS).rounds
        for variant in {slot.variant for slot in this_round.slots}
    )
    enough_s = window_s * ANSWERS / answers if answers else window_s
    return min(window_s, max(WINDOW_S, enough_s))


def failing(run: RunData, claims: Iterable[GateClaim]) -> dict[str, PointData]:
    """Return the points where a gate fails, by endpoint: CPU time first, then by how surely."""
    points = {endpoint_of(data): data for data in run.points}
    worse = [
        (claim, claim.worse.low) for claim in claims if claim.answer == "worse" and claim.worse
    ]
    worse.sort(key=lambda each: (each[0].metric != CPU_TIME, -each[1]))
    return {claim.endpoint: points[claim.endpoint] for claim, _ in worse}


def _growths(run: RunData, claims: Iterable[GateClaim]) -> Iterator[CostGrowth]:
    for endpoint, data in failing(run, claims).items():
        profile = run.profiles.get(data.point.number, "")
        if isinstance(profile, str):
            yield growth_at(data, endpoint, None, profile)
        else:
            yield growth_at(data, endpoint, profile.points[0])


def _repeat(experiment: Experiment, claims: Sequence[GateClaim]) -> str:
    """Return the command that asks again, at the endpoints where it fails or else at all."""
    again = experiment.asks_as(GateSettings).repeat
    if not again:
        return ""
    failing = dict.fromkeys(claim.endpoint for claim in claims if claim.answer == "worse")
    named = failing or dict.fromkeys(claim.endpoint for claim in claims)
    flag = "--endpoint" if experiment.requests else "--path"
    several = not experiment.requests or bool(experiment.factors)
    flags = [shlex.quote(f"{flag}={name}") for name in named if several]
    return " ".join([again, *flags])


def _gate_claim(
    answered: AnsweredClaim, invalidated: EndpointWarning | None, among: int
) -> GateClaim:
    claim, one_sided = answered.claim, answered.one_sided
    same = claim.same_again(RISK)
    answer: ClaimAnswer = answered.answer
    because, why = _because(answered, among)
    if invalidated and _has_too_few(invalidated):
        answer, because = "not asked", "few-samples"
        why = f"not evaluated: {invalidated.warning.what}. {invalidated.warning.fix}"
    elif invalidated:
        answer, because, why = "invalid", "invalidated", invalidated.warning.what
    worse = None
    if one_sided:
        mean = float(claim.d.mean())
        centre = float(np.exp(mean if claim.rule.metric.better == "lower" else -mean))
        worse = Interval(low=1 / one_sided.at_most, estimate=centre, high=1 / one_sided.at_least)
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


def _has_too_few(cause: EndpointWarning) -> bool:
    """Whether a percentile lacks responses: that one isn't evaluated, and the rest decides."""
    return cause.warning.rule == FEW_SAMPLES.name


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
