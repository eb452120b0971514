"""The gate: whether head is worse than the baseline by more than is tolerated, anywhere.

Its answer is put together from claims (`claims.py`), with what a reader should know beside it.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import expm1, log
from typing import ClassVar

import numpy as np

from webdyno.judge.databases import other_statements
from webdyno.judge.one_sided import RISK
from webdyno.judge.order_statistics import exceeded_by_largest
from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.questions.claims import (
    Answered,
    MeasuredClaim,
    answer_claims,
    claims_of,
    first_line,
    gate_answer,
    gate_headline,
)
from webdyno.judge.questions.compare import Question
from webdyno.judge.stop import Stop
from webdyno.judge.validity import used_s
from webdyno.judge.validity.run import FEWEST_STARTS, START_RULES, variants_whose_starts_differ
from webdyno.model.base import Interval
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, level, percent
from webdyno.model.gate import (
    ClaimAnswer,
    GateAnswer,
    GateClaim,
    GateJudgement,
    GateSettings,
)
from webdyno.model.judgement import OneSidedAnswer, ValidityWarning
from webdyno.model.measure import Measure

TIMES_THE_ROUNDS = 2
"""So many times the rounds tell two states that lie 20% apart well enough for a tolerance of 5%
(tests/judge/starts_simulation.py)."""
DEFAULT_MOST_ROUNDS = Measure().max_rounds
WINDOW_S = 0.2
"""Of a slot, once starts are known to differ: longer ones tell nothing more."""
ANSWERS = 2 * exceeded_by_largest(0.99)
"""Of a variant in a round, which its 99th percentile takes; twice as many, for luck."""
ELSEWHERE = "the gate fails at another endpoint, whatever comes of this one"


@dataclass(frozen=True)
class FoundAt:
    """A validity rule that fired at an endpoint."""

    endpoint: str
    warning: ValidityWarning


class GateQuestion(Question):
    """Whether the third variant is worse than the first two, which are alike."""

    one_answer: ClassVar[bool] = True
    stops_by_width: ClassVar[bool] = False

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        """Whether it is a gate."""
        return experiment.gate is not None

    @property
    def _settings(self) -> GateSettings:
        assert self.experiment.gate  # noqa: S101
        return self.experiment.gate

    @property
    def _claims_in_all(self) -> int:
        """How many claims there are at all points."""
        return self._settings.endpoints * len(self._settings.worse_than)

    @property
    def piloted_variants(self) -> list[str]:
        """Name the baseline once, and head."""
        baseline, _, head = self.experiment.variants
        return [baseline, head]

    def measured_alike(self, variant: str) -> list[str]:
        """Name all variants: whatever one of the revisions needs, the others get as well."""
        return [variant, *(it for it in self.experiment.variants if it != variant)]

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
        """Give the most rounds: more where starts decide, unless the user says."""
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

    def _answered(self, data: PointData, valid: PointData, elapsed_s: float) -> Stop | None:
        answer = self.answer_at(data)
        if answer is GateAnswer.INCONCLUSIVE:
            return None
        return Stop("question", f"the gate's answer is known: {answer}")

    def fails_at(self, data: PointData) -> bool:
        """Tell whether it has failed at this point, and so as a whole."""
        enough = len(data.rounds) >= self.fewest_rounds
        return enough and self.answer_at(data) is GateAnswer.FAIL

    def stops_elsewhere(self, ended: Iterable[PointData]) -> Stop | None:
        """Stop other points once one has failed."""
        return Stop("question", ELSEWHERE) if any(map(self.fails_at, ended)) else None

    def shows_when_interrupted(self, data: PointData) -> bool:
        """Not: its answer is one for all points."""
        return False

    def judge_all_points(self, run: RunData) -> GateJudgement | None:
        """Judge it, finished or not."""
        at_point = self.of(run.points[0].experiment)
        among = at_point._claims_in_all
        claims: list[MeasuredClaim] = []
        warnings: list[FoundAt] = []
        invalidated: list[FoundAt | None] = []
        for data in run.points:
            endpoint = _endpoint(data)
            found = [FoundAt(endpoint, warning) for warning in self.warnings(data)]
            mine = at_point._claims(data, endpoint)
            warnings += found
            claims += mine
            invalidated += [
                None
                if claim.limited
                else invalidating(found, claim.rule.name, list(data.experiment.variants))
                for claim in mine
            ]
        answered = answer_claims(claims, run.head.experiment.measure, among)
        told = [_told(*each, among) for each in zip(answered, invalidated, strict=True)]
        answer = gate_answer([claim.answer for claim in told])
        causes = list(filter(None, invalidated))
        in_headline = causes[0] if answer is GateAnswer.INVALID else None
        return GateJudgement(
            answer=answer,
            headline=gate_headline(answer, told),
            baseline=self._settings.baseline,
            head=self._settings.head,
            claims=told,
            notes=[
                *_differing(claims, among),
                *notes_on(causes, warnings, in_headline),
                *fixes(
                    {it.claim.excluded_by for it in answered if it.found is None},
                    [warning for warning in warnings if warning not in causes],
                ),
                *_starts_that_differ(warnings),
                *_other_statements(run),
            ],
            took_s=used_s(run),
            machine=run.head.machine,
        )


def short_window_s(window_s: float, data: PointData) -> float:
    """Give the length of slots that are short, but have answers enough for all metrics."""
    answers = min(
        sum(slot.load.requests.completed for slot in this_round.of(variant))
        for this_round in data.first(FEWEST_STARTS).rounds
        for variant in {slot.variant for slot in this_round.slots}
    )
    enough_s = window_s * ANSWERS / answers if answers else window_s
    return min(window_s, max(WINDOW_S, enough_s))


def _endpoint(data: PointData) -> str:
    """Name what was asked there: the point's levels, or else all that the load asks for."""
    named = [level(value) for value in data.point.levels.values()]
    asked = [request.label for request in data.experiment.asked]
    return ", ".join(named or asked or data.experiment.load.paths)


def _told(answered: Answered, invalidated: FoundAt | None, among: int) -> GateClaim:
    claim, found = answered.claim, answered.found
    same = claim.same_again(RISK)
    answer: ClaimAnswer = "invalid" if invalidated else answered.answer
    return GateClaim(
        endpoint=claim.endpoint,
        metric=claim.rule.name,
        tolerance=claim.tolerance,
        answer=answer,
        why=_why(answered, among) if invalidated is None else invalidated.warning.what,
        worse=_worse(claim, found) if found else None,
        noise=expm1(same.noise) if same else None,
        baseline=claim.baseline,
        head=claim.head,
        rounds=len(claim.d),
    )


def _worse(claim: MeasuredClaim, found: OneSidedAnswer) -> Interval:
    mean = float(claim.d.mean())
    centre = float(np.exp(mean if claim.rule.metric.better == "lower" else -mean))
    return Interval(low=1 / found.at_most, estimate=centre, high=1 / found.at_least)


def _why(answered: Answered, among: int) -> str:
    claim, found = answered.claim, answered.found
    if found is None:
        cause = f"; most slots broke the rule {claim.excluded_by}" if claim.excluded_by else ""
        return f"{count(len(claim.d), 'valid round')}, too few{cause}"
    if answered.answer == "not asked":
        return "not evaluated: load generator or link was saturated for both revisions"
    if answered.answer == "not worse":
        return f"not worse by more than {percent(claim.tolerance)} (95% confidence)"
    if answered.answer == "worse":
        return f"worse by more than {percent(claim.tolerance)} (95% confidence)"
    differs = claim.baseline_differs(RISK / among)
    if differs > log(1 + claim.worse_share) / 2:
        return f"two copies of baseline differ by up to {percent(expm1(differs))}"
    return f"inconclusive after {count(len(claim.d), 'round')}"


def _starts_that_differ(warnings: Sequence[FoundAt]) -> list[str]:
    """Tell of variants whose starts differ, wherever it was seen first.

    It's why more of them help.
    """
    rule = START_RULES[0].name
    seen = {
        warning.warning.variant: warning
        for warning in reversed(warnings)
        if warning.warning.rule == rule
    }
    return [f"{it.endpoint}: {it.warning.what}. {it.warning.fix}" for it in seen.values()]


def _other_statements(run: RunData) -> list[str]:
    """Tell where a request of head takes other statements: what made it worse, perhaps."""
    return [
        f"{_endpoint(point)}: {said}" for point in run.points for said in other_statements(point)
    ]


def _differing(claims: Sequence[MeasuredClaim], among: int) -> list[str]:
    """Tell baselines that differ from themselves."""
    return [
        f"{claim.endpoint}: two copies of baseline differ by up to {percent(expm1(differs))} in "
        f"{claim.rule.short}; the limit is widened by as much"
        for claim in claims
        if (differs := claim.baseline_differs(RISK / among))
    ]


def invalidating(found: Sequence[FoundAt], metric: str, variants: Sequence[str]) -> FoundAt | None:
    """Give the first that invalidates a metric of some variants."""
    return next(
        (warning for warning in found if warning.warning.invalidates(metric, variants)), None
    )


def notes_on(
    invalidated: Sequence[FoundAt], found: Sequence[FoundAt], headline: FoundAt | None
) -> list[str]:
    """Give a note for each rule that invalidated a claim, with all places where it fired.

    The headline's cause isn't told again, nor is what merely follows from a cause.
    """
    rules = dict.fromkeys(warning.warning.rule for warning in invalidated)
    broken = [warning for warning in found if warning.warning.severity == "invalid"]
    return [
        _note([warning for warning in broken if warning.warning.rule == rule], headline)
        for rule in rules
    ]


def fixes(rules: Collection[str], found: Sequence[FoundAt]) -> list[str]:
    """Give a note for each rule that left too few rounds: what it found, and what to do."""
    by_rule = {
        warning.warning.rule: warning.warning
        for warning in reversed(found)
        if warning.warning.rule in rules
    }
    return [f"{_sentence(first_line(it.what))} {it.fix}" for it in by_rule.values()]


def _note(those: Sequence[FoundAt], headline: FoundAt | None) -> str:
    told = headline if headline in those else None
    first = told or those[0]
    what = first.warning.what
    said = what if told is None or what != first_line(what) else ""
    parts = [_sentence(said), _elsewhere(first, those), first.warning.fix]
    return ("\n" if "\n" in said else " ").join(filter(None, parts))


def _sentence(text: str) -> str:
    return f"{text}." if text and "\n" not in text else text


def _elsewhere(first: FoundAt, those: Sequence[FoundAt]) -> str:
    """Name the other variants and endpoints of which the same is found."""
    variants = {
        warning.warning.variant: None
        for warning in those
        if warning.warning.variant != first.warning.variant
    }
    endpoints = {warning.endpoint: None for warning in those if warning.endpoint != first.endpoint}
    of_variants = f" for {' and '.join(map(str, filter(None, variants)))}" if variants else ""
    at_endpoints = f" at {', '.join(endpoints)}" if endpoints else ""
    also = ", and" if of_variants and at_endpoints else ""
    return f"The same holds{of_variants}{also}{at_endpoints}." if variants or endpoints else ""
