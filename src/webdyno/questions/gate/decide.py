"""When a gate passes or fails: whether head is worse than the baseline by more than is tolerated.

The answer (`gate_answer`) is put together from claims (`claims.py`), one for each endpoint and
metric, with what a reader should know next to it (`notes.py`).
"""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import ClassVar, Self

from webdyno.comparison.question import Loading, Question
from webdyno.comparison.stop import Stop
from webdyno.core.experiment import Experiment
from webdyno.core.limits import (
    ClaimAnswer,
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
    EndpointWarning,
    JudgedClaim,
    MeasuredClaim,
    answer_claims,
    claims_of,
    made_to_wait,
    with_confirmation,
)
from webdyno.questions.gate.forecast import (
    FEWEST_ROUNDS,
    Forecast,
    NeededRounds,
    forecast,
    needed_rounds,
    noisy_words,
    slowest_to_decide,
)
from webdyno.questions.gate.growth import growth_at
from webdyno.questions.gate.notes import (
    OTHER_RULES,
    cpu_notes,
    differing,
    endpoint_of,
    fixes,
    invalidating,
    notes_on,
    notes_on_starts,
    only_in,
    response_notes,
    statement_notes,
)
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.gate.words import gate_headline
from webdyno.statistics.interval import exceeded_by_largest
from webdyno.validity import used_s
from webdyno.validity.starts import FEWEST_STARTS, variants_whose_starts_differ

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
        # However short the time, the fewest rounds are measured.
        given = max(min(rounds, self.most_rounds(going[0])), self.experiment.measure.min_rounds)
        needed, round_s = self._needed(going, given)
        return noisy_words(needed, round_s, given) or ""

    def _needed(
        self, points: Sequence[PointData], given: int
    ) -> tuple[Sequence[NeededRounds], float]:
        """Return the rounds that limits take, and how long one at all points is."""
        seen = [data for data in points if len(data.rounds) >= FEWEST_ROUNDS]
        if not seen:
            return [], 0.0
        round_s = fmean(data.round_s for data in seen) * len(points)
        claims = [claim for data in seen for claim in self._claims(data)]
        return needed_rounds(claims, self.experiment.measure, given), round_s

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
        seen = at_point._seen(run)
        answered = answer_claims(seen.claims, run.head.experiment.measure, among)
        judged = [JudgedClaim(each, _invalidating(each, seen)) for each in answered]
        claims = [each.reported(among) for each in judged]
        answer = gate_answer([claim.answer for claim in claims])
        notes = [
            *([OTHER_RULES] if self._settings.rules_differ else []),
            *differing(seen.claims, among),
            *_notes_on_validity(seen, judged, answer),
            *statement_notes(run),
            *(cpu_notes(run) if answer is not GateAnswer.PASS else []),
            *(
                note
                for data in run.points
                for note in response_notes(data.preflights, endpoint_of(data))
            ),
        ]
        outlook = at_point._outlook_of(run, seen, claims) if _is_open(answer, claims) else None
        if outlook:
            notes.append(outlook.words)
        nothing = "no endpoint is in both revisions"
        return GateJudgement(
            answer=answer,
            headline=gate_headline(answer, claims) if claims else nothing,
            baseline=self._settings.baseline,
            head=self._settings.head,
            claims=claims,
            notes=notes,
            grew=list(_growths(run, claims)) if answer is GateAnswer.FAIL else [],
            commits=self._settings.commits,
            repeat=_repeat(run.head.experiment, claims),
            rate_rps=run.head.experiment.load.offered_rps,
            took_s=used_s(run),
            needs_s=outlook.needs_s if outlook else None,
            machine=run.head.machine,
        )

    def _outlook_of(
        self, run: RunData, seen: "_Seen", claims: Sequence[GateClaim]
    ) -> Forecast | None:
        """Foresee what more time would bring to what was measured."""
        measured = [data for data in run.points if data.rounds]
        rounds = max(len(data.rounds) for data in measured)
        needed, round_s = self._needed(measured, rounds)
        both = zip(seen.claims, claims, strict=True)
        slowest = slowest_to_decide(both, self.experiment.measure)
        return forecast(needed, slowest, round_s, rounds)

    def _seen(self, run: RunData) -> "_Seen":
        """Collect what was measured at all endpoints that both revisions have."""
        seen = _Seen(list(run.head.experiment.variants))
        for data in run.points:
            if not data.rounds and only_in(data.preflights):
                continue
            endpoint = endpoint_of(data)
            seen.claims += self._claims(data, endpoint)
            seen.warnings += [EndpointWarning(endpoint, each) for each in self.warnings(data)]
            if waiting := made_to_wait(data, self._settings):
                seen.waits.append(EndpointWarning(endpoint, waiting))
        return seen


@dataclass
class _Seen:
    """What was measured, and what is to be said against it."""

    variants: list[str]
    claims: list[MeasuredClaim] = field(default_factory=list)
    warnings: list[EndpointWarning] = field(default_factory=list)
    waits: list[EndpointWarning] = field(default_factory=list)
    """That requests wait, which invalidates a pass alone."""


def gate_answer(answers: Sequence[ClaimAnswer]) -> GateAnswer:
    """Put the answers together: one worse fails; all not worse pass (95% confidence)."""
    answered = [answer for answer in answers if answer != "not asked"]
    if "worse" in answered:
        return GateAnswer.FAIL
    if "invalid" in answered:
        return GateAnswer.INVALID
    passes = answered and all(answer == "not worse" for answer in answered)
    return GateAnswer.PASS if passes else GateAnswer.INCONCLUSIVE


def _invalidating(answered: AnsweredClaim, seen: _Seen) -> EndpointWarning | None:
    """Return what takes a claim's answer away; that requests wait only takes a pass away."""
    claim = answered.claim
    if claim.limited:
        return None
    counting = seen.warnings if answered.answer == "worse" else [*seen.warnings, *seen.waits]
    here = [warning for warning in counting if warning.endpoint == claim.endpoint]
    return invalidating(here, claim.rule.name, seen.variants)


def _notes_on_validity(
    seen: _Seen, judged: Sequence[JudgedClaim], answer: GateAnswer
) -> Iterator[str]:
    """Yield what invalidated claims, what left some without an answer, and starts that differ."""
    causes = [
        each.invalidated_by for each in judged if each.invalidated_by and not each.has_too_few
    ]
    in_headline = causes[0] if answer is GateAnswer.INVALID else None
    yield from notes_on(causes, [*seen.warnings, *seen.waits], in_headline)
    asked = (each.answered for each in judged)
    excluded_by = {each.claim.excluded_by for each in asked if each.one_sided is None}
    yield from fixes(excluded_by, [each for each in seen.warnings if each not in causes])
    yield from notes_on_starts(seen.warnings)


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
