"""Where a gate fails: what grew, and which commit did it.

What grew is found by itself: profile rounds of both revisions at that endpoint take what is left of
the gate's time. Nothing of them changes the answer; where they can't be had, the run's folder says
why. The commit is found where that is asked for, by gates at commits halfway between a good and a
bad one.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, log2
from typing import NamedTuple

from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.format import count, duration, percent
from webdyno.core.limits import BASELINE, HEAD, GateAnswer, GateJudgement
from webdyno.core.run import profile_run
from webdyno.evidence.point_data import PointData
from webdyno.launch.caller import Caller
from webdyno.launch.measure import measure_again, measure_on
from webdyno.measure.folder import HEAD_FILE, RunFolder
from webdyno.measure.planned import sampled_experiment
from webdyno.media import document as doc
from webdyno.planning.settings import slot_settings
from webdyno.questions.gate.show import HEADLINES
from webdyno.systems.repository import Commit, Repository
from webdyno.validity import spent_s

MOST_ENDPOINTS = 3
"""That are profiled, those that are surely worst first."""
ROUNDS = (3, 6)
"""So many in all are made; the further ones where there is time for them, by what the first took.
With few, intervals that hold for many functions together show only what is plain."""
MOST_S = 90.0
"""For an endpoint."""
VARIANTS_SHARE = 2 / 3
"""Of a gate's round, which has the baseline twice."""
LEAST_ROUND_S = 1.0
RISK = 0.05
"""Of a gate: how often its answer is wrong at most."""
FEWEST_SLOTS, LEAST_SAMPLED_S = 2, 0.5
"""Of a variant in a profile round: a thousand samples or so."""
ENOUGH_S = 3600.0
"""For the rounds that are asked for, as long as they take."""
FLAG = "--bisect"

AskGate = Callable[[str, str], GateJudgement]
"""Asks whether a revision is worse than another, both by their names; raises OperationError where
one can't be built or started, and KeyboardInterrupt."""


def measure_growth(run: RunFolder, catalogue: Catalogue, caller: Caller) -> None:
    """Measure profile rounds where a gate failed and has none yet; Ctrl-C ends them alone."""
    from webdyno.comparison import question_of
    from webdyno.probes.profile import sampling_fault
    from webdyno.questions.gate.decide import failing

    data = run.data()
    answer = question_of(run.head.experiment).judge_all_points(data)
    if answer is None or answer.answer is not GateAnswer.FAIL:
        return
    points = list(failing(data, answer.claims).values())
    if run.head.experiment.testbed.kind == "cluster":
        fault = "servers on other hosts aren't profiled"
    else:
        fault = sampling_fault() or ""
    ends_at = time.monotonic() + max(run.head.experiment.measure.budget_s - spent_s(data), 0.0)
    for number, point in enumerate(points):
        here = points[number:MOST_ENDPOINTS]
        given_s = min((ends_at - time.monotonic()) / len(here), MOST_S) if here else 0.0
        try:
            lacking = fault or _profile(run, point, given_s, catalogue, caller)
        except (OperationError, UserError) as error:  # the answer stands without
            lacking = f"profile rounds failed: {str(error).splitlines()[0]}"
        except KeyboardInterrupt:
            lacking = fault = "the profile rounds were interrupted"
        if lacking:
            run.keep_without_profile(point.point.number, lacking)


def _profile(
    run: RunFolder, point: PointData, given_s: float, catalogue: Catalogue, caller: Caller
) -> str:
    """Measure both revisions at a point while their CPUs are sampled; say why where it can't."""
    path = profile_run(run.path, point.point.number)
    if (path / HEAD_FILE).exists():
        return ""
    began, done = time.monotonic(), 0
    round_s = max(point.round_s * VARIANTS_SHARE, LEAST_ROUND_S)
    for rounds in ROUNDS:
        takes_s = round((rounds - done) * round_s)
        if time.monotonic() - began + takes_s > given_s:
            break
        if done:
            measured = measure_on(path, caller, rounds={0: rounds})
        else:
            title = f"what grew: {rounds} profile rounds or more, about {duration(takes_s)}"
            experiment = profile_experiment(point, catalogue, given_s)
            measured = measure_again(title, experiment, catalogue, path, caller, rounds={0: rounds})
        if measured.interrupted:
            raise KeyboardInterrupt
        done, round_s = rounds, (time.monotonic() - began) / rounds
    if not done:
        return f"there was no time left for profile rounds, which take {duration(takes_s)} more"
    return ""


class BisectionStep(NamedTuple):
    """A commit, and what its gate answered."""

    commit: Commit
    answer: GateAnswer
    why: str


@dataclass
class Bisection:
    """What was found so far."""

    good: str
    bad: Commit
    tried: list[BisectionStep] = field(default_factory=list)
    suspects: Sequence[Commit] = ()
    """The commits among which the first bad one is, the newest first; one where it was found."""

    @property
    def answer(self) -> GateAnswer:
        """`fail` where the commit was found, `pass` where nothing is worse."""
        first = self.tried[0].answer
        if first is not GateAnswer.FAIL:
            return first
        return GateAnswer.FAIL if len(self.suspects) == 1 else GateAnswer.INCONCLUSIVE

    @property
    def headline(self) -> str:
        """What was found."""
        if self.tried[0].answer is not GateAnswer.FAIL:
            return f"{self.bad.name} compared with {self.good}: {self.tried[0].why}"
        if len(self.suspects) == 1:
            return f"the first commit that is worse than {self.good} is {self.suspects[0].name}"
        return (
            f"the first commit that is worse than {self.good} is one of {len(self.suspects)}: "
            "those between couldn't be measured"
        )

    @property
    def small_print(self) -> str:
        """How sure that is: the risks of all gates add up at most."""
        risk = min(RISK * len(self.tried), 1.0)
        return (
            f"{count(len(self.tried), 'gate')}, each wrong in at most {percent(RISK)}; so this "
            f"answer is wrong in at most {percent(risk)}. Small steps add up: it is the first "
            "commit that is worse by more than the limit, compared with the good one."
        )


def bisection_document(bisection: Bisection) -> doc.Document:
    """Return the answer, and each commit that was measured."""
    head = doc.Headline(*HEADLINES[bisection.answer], bisection.headline)
    several = len(bisection.suspects) > 1
    suspects = [doc.Paragraph(commit.name) for commit in bisection.suspects if several]
    rows = [[step.commit.name, str(step.answer)] for step in bisection.tried]
    columns = [doc.Column("commit", "name"), doc.Column("answer", "verdict")]
    table = doc.Table(columns, [doc.RowGroup(rows)], style="listed")
    small = doc.Paragraph(bisection.small_print, look="soft")
    return doc.Document("", "", [doc.Headlines([head]), *suspects, table, small])


def bisect(between: str, repository: Repository, ask: AskGate, caller: Caller) -> Bisection:
    """Find the first commit of `GOOD..BAD` that is worse than GOOD.

    Commits are chosen as `git bisect` does (https://git-scm.com/docs/git-bisect-lk2009): one that
    isn't worse than the good one clears all before it, one that is clears all after it, and one
    without an answer is left out.
    """
    good, dots, bad = between.partition("..")
    if not (good and dots and bad) or bad.startswith("."):
        raise UserError(f"{FLAG} {between}: should look like GOOD..BAD, such as v1.2..HEAD")
    first_good = repository.revision(good, FLAG).commit
    newest = repository.commit(repository.revision(bad, FLAG).commit)
    cleared, left_out = [first_good], set[str]()
    between_them = repository.halfway(newest.hash, cleared)
    if not between_them:
        raise UserError(f"{FLAG} {between}: there are no commits between them")
    gates = ceil(log2(len(between_them))) + 1
    caller.notify(f"{count(len(between_them), 'commit')}: about {count(gates, 'gate')}")
    bisection = Bisection(good, newest)

    def answer_at(commit: Commit) -> GateAnswer:
        caller.notify(f"gate {len(bisection.tried) + 1}: {commit.name}")
        try:
            judged = ask(first_good, commit.hash)
            step = BisectionStep(commit, judged.answer, judged.headline)
        except OperationError as error:  # no build or start: that says nothing of the others
            step = BisectionStep(commit, GateAnswer.INVALID, str(error))
        bisection.tried.append(step)
        caller.notify(f"{commit.name}: {step.answer}: {step.why}")
        return step.answer

    if answer_at(newest) is not GateAnswer.FAIL:
        return bisection
    worst = newest.hash
    while True:
        inside = [commit for commit in repository.halfway(worst, cleared) if commit != worst]
        possible = [commit for commit in inside if commit not in left_out]
        if not possible:
            bisection.suspects = [repository.commit(commit) for commit in (worst, *inside)]
            return bisection
        match answer_at(repository.commit(possible[0])):
            case GateAnswer.PASS:
                cleared.append(possible[0])
            case GateAnswer.FAIL:
                worst = possible[0]
            case _:
                left_out.add(possible[0])


def profile_experiment(point: PointData, catalogue: Catalogue, given_s: float) -> Experiment:
    """Return what samples baseline and head at a point, by the times that were found there."""
    experiment, times = point.experiment, slot_settings(point)
    measure = experiment.measure.replace(
        warmup_s=max(times.warmup_s.values()),
        ramp_up_s=max(times.ramp_up_s.values()),
        slot_s=max(times.window_s, LEAST_SAMPLED_S),
        slots_per_variant=FEWEST_SLOTS,
        budget_s=given_s if experiment.measure.budget_is_limit else ENOUGH_S,
        warmup_bursts="on" if times.in_bursts else "off",
    )
    revisions = {name: experiment.variants[name].without_warmup for name in (BASELINE, HEAD)}
    title = f"What grew: {experiment.title}"
    derived = experiment.derive(title, "In which functions?", revisions, measure)
    return sampled_experiment(derived, catalogue)
