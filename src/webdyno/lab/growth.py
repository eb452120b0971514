"""What grew where a gate fails, found by itself: profile rounds of both revisions at that endpoint.

They take what is left of the gate's time. Nothing of them changes the answer; where they can't be
had, the run's folder says why.
"""

import time

from webdyno.definitions import Catalogue
from webdyno.judge.point_data import PointData
from webdyno.lab.caller import Caller
from webdyno.lab.measure import measure_anew, measure_on
from webdyno.model.errors import OperationError, UserError
from webdyno.model.format import duration
from webdyno.model.gate import GateAnswer, GateJudgement
from webdyno.model.run import profile_run
from webdyno.run.folder import HEAD_FILE, RunFolder

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


def measure_growth(run: RunFolder, catalogue: Catalogue, caller: Caller) -> None:
    """Measure profile rounds in the folder of a gate, where it failed and has none yet.

    Ctrl-C ends them, and nothing else.
    """
    from webdyno.judge import question_of
    from webdyno.judge.questions.gate import failing

    data = run.data()
    answer = question_of(run.head.experiment).judge_all_points(data)
    if answer is None or answer.answer is not GateAnswer.FAIL:
        return
    points = list(failing(data, answer.claims).values())
    fault = _fault(run)
    ends_at = time.monotonic() + _left_s(run, answer)
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


def _fault(run: RunFolder) -> str:
    """Say why nothing can be profiled; empty where it can."""
    from webdyno.probe.profile import sampling_fault

    if run.head.experiment.testbed.kind == "cluster":
        return "servers on other hosts aren't profiled"
    return sampling_fault() or ""


def _left_s(run: RunFolder, answer: GateJudgement) -> float:
    return max(run.head.experiment.measure.budget_s - answer.took_s, 0.0)


def _profile(
    run: RunFolder, point: PointData, given_s: float, catalogue: Catalogue, caller: Caller
) -> str:
    """Measure both revisions at a point while their CPUs are sampled; say why where it can't."""
    from webdyno.run.explain import profile_experiment

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
            told = f"what grew: {rounds} profile rounds or more, about {duration(takes_s)}"
            experiment = profile_experiment(point, catalogue)
            measured = measure_anew(told, experiment, catalogue, path, caller, rounds={0: rounds})
        if measured.interrupted:
            raise KeyboardInterrupt
        done, round_s = rounds, (time.monotonic() - began) / rounds
    if not done:
        return f"there was no time left for profile rounds, which take {duration(takes_s)} more"
    return ""
