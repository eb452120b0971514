"""A session: a run is begun or resumed, and its points take turns until all have enough."""

import logging
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random

from webdyno.comparison import Stop, decide, question_of
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.format import duration
from webdyno.core.records import SessionRecord, StopRecord
from webdyno.core.run import ROUNDS_FOLDER, RunHead, folder_under_runs, round_path
from webdyno.core.sweep import PointPlan
from webdyno.core.testbed import Calibration
from webdyno.evidence.differences import surroundings
from webdyno.evidence.point_data import PointData, RunData
from webdyno.host.users import caller
from webdyno.load.interface import GeneratorError
from webdyno.measure.backend import Backend, HostLost, LinkCut
from webdyno.measure.budget import overrun_warning
from webdyno.measure.calibration import load_calibration
from webdyno.measure.first_look import is_before_look, look_first
from webdyno.measure.folder import RunFolder
from webdyno.measure.local_backend import LocalBackend
from webdyno.measure.long_look import (
    doubtful,
    lacking_looks,
    left_s,
    look_fits,
    look_parts_of,
    run_long_looks,
)
from webdyno.measure.pilot import run_pilots
from webdyno.measure.planned import plan_variants
from webdyno.measure.point import Progress, RunningPoint, Stopwatch
from webdyno.measure.redact import hide_in_files
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue
from webdyno.measure.round import run_round
from webdyno.validity import used_s

logger = logging.getLogger(__name__)

MOST_CUTS = 3
"""Most attempts in a row to repeat a round because the network between hosts was cut."""
LOCAL = LocalBackend()


def begin_run(
    name: str,
    experiment: Experiment,
    catalogue: Catalogue,
    out: Path | None,
    backend: Backend = LOCAL,
) -> RunFolder:
    """Make the folder of a new run, with everything in it that can change the result."""
    logger.debug("begins %s: looks at the machine and asks for versions", name)
    began = datetime.now().astimezone()
    resolved = with_seed(experiment)
    here = _look_around(resolved, catalogue, backend)
    head = RunHead(
        webdyno_version=here.webdyno_version,
        experiment_name=name,
        experiment=resolved,
        started_at=began,
        machine=here.machine,
        hosts=here.hosts,
        calibration=load_calibration(here.machine, resolved.testbed),
        versions=here.versions,
        load_generator=here.load_generator,
    )
    folder = RunFolder.create(out or folder_under_runs(name, began), head)
    keep_for_repeating(folder.path, resolved, catalogue)
    folder.append(here)
    return folder


def resume_run(folder: RunFolder, backend: Backend = LOCAL) -> RunFolder:
    """Begin another session of a run; raise UserError where it would measure something else.

    No verdict may rest on two machines, nor on two versions of servers, load generator or webdyno.
    """
    head, path = folder.head, folder.path
    logger.debug("resumes %s: looks at the machine and asks for versions", path)
    here = _look_around(head.experiment, kept_catalogue(path), backend)
    if changed := surroundings(head, here):
        lines = "\n".join(
            f"    {difference.what}: {difference.before} before, {difference.after} now"
            for difference in changed
        )
        raise UserError(
            f"{path} can't go on here, as one verdict would rest on unequal things:\n{lines}"
            f"\nTo measure the same experiment again: {head.repeat_command(path)}"
        )
    folder.append(here)
    return folder


def measure_run(
    folder: RunFolder,
    progress: Progress,
    more_s: float | None = None,
    rounds: Mapping[int, int] | None = None,
    backend: Backend = LOCAL,
) -> None:
    """Measure until the stop rule holds at every point, from where the run stands.

    The time budget is what the run was given, less what its finished rounds took; or it is `more_s`
    from now on. With `rounds` points are measured until they have so many of them, by number of
    the point, however long that takes, and the other points not at all. The load generator may fail
    once in a row, at which its round is begun again.
    """
    with ExitStack() as exits:
        whole = Stopwatch(used_s(folder.data()))
        whole.limit_s = folder.head.experiment.measure.limit_s
        points = _open_points(folder, progress, backend, exits, whole)
        hide_in_logs = partial(hide_in_files, folder.path / ROUNDS_FOLDER, folder.path)
        hide_in_logs()  # of a session that was killed
        exits.callback(hide_in_logs)
        if more_s is not None:
            whole.limit_s = whole.used_s + more_s
        for point in points:
            if more_s is not None:
                point.allow(more_s / len(points))
            if rounds is not None:
                point.ask_for(rounds.get(point.number, 0))
        _take_turns(points, folder.head.experiment.measure.seed, backend)
        if rounds is None:
            _look_longer(points)


def _look_longer(points: Sequence[RunningPoint]) -> None:
    """Look at each variant for longer, where the rounds came to an answer."""
    for point in points:
        lacking = lacking_looks(point.data)
        if not lacking:
            continue
        left = [left_s(look_parts_of(point.data, variant), point.experiment) for variant in lacking]
        if look_fits(point, lacking[0]):
            point.progress.answers(point.data, left)
        with point.watch:
            if run_long_looks(point, lacking) == "time" and (stop := point.data.stop):
                point.keep_stop(Stop("time", f"{stop.why}; no time was left for a soak"))


def _look_at_doubtful(point: RunningPoint) -> None:
    """Look at variants for longer before another round that may be in vain."""
    variants = [variant for variant in doubtful(point.data) if look_fits(point, variant)]
    look_s = question_of(point.experiment).long_look_s
    for variant in variants:
        point.progress.notice(
            f"variant {variant}: trials failed by stalls; {duration(look_s)} of load just below "
            "its capacity show whether it has one"
        )
    run_long_looks(point, variants)


def is_finished(run: RunData) -> bool:
    return rounds_are_over(run) and not any(map(lacking_looks, run.points))


def rounds_are_over(run: RunData) -> bool:
    return all(_has_stopped(data) or decide(data, used_s(data)) for data in run.points)


def _open_points(
    folder: RunFolder,
    progress: Progress,
    backend: Backend,
    exits: ExitStack,
    whole: Stopwatch,
) -> list[RunningPoint]:
    """Prepare every point, on hosts that are ready until `exits` closes."""
    catalogue, testbed_of = kept_catalogue(folder.path), backend.open(folder, exits)
    points, started = [], set[tuple[str, str, str]]()
    for data in folder.data().points:
        variants = plan_variants(data.experiment, catalogue)
        points.append(
            RunningPoint(
                data=data,
                variants=variants,
                testbed=testbed_of(
                    PointPlan(point=data.point, experiment=data.experiment), variants
                ),
                calibrations=_calibrations(folder.head, data.experiment),
                folder=folder,
                progress=progress,
                commands_user=caller(folder.path),
                watch=Stopwatch(used_s(data), whole),
                started=started,
                has_stopped=_has_stopped(data),
            )
        )
    return points


def _calibrations(head: RunHead, experiment: Experiment) -> dict[str, Calibration | None]:
    """Return what the client can do at most where each variant runs, where that was measured."""
    testbeds = {variant: experiment.testbed_of(variant) for variant in experiment.variants}
    known = {head.experiment.testbed: head.calibration}
    for testbed in testbeds.values():
        if testbed not in known:
            known[testbed] = load_calibration(head.machine, testbed)
    return {variant: known[testbed] for variant, testbed in testbeds.items()}


@dataclass
class _Recovery:
    """Failures after which a round is begun again, some of them only so often in a row."""

    backend: Backend
    generator_failed: bool = False
    cuts: int = 0

    def forget(self) -> None:
        self.generator_failed, self.cuts = False, 0

    @contextmanager
    def covering(self, point: RunningPoint, number: int) -> Iterator[None]:
        """Report a failure inside that the run survives; raise any other."""
        known_to_fail, again = point.failed_variants, f"round {number} is begun again"
        try:
            yield
        except GeneratorError as failure:
            if self.generator_failed:
                raise
            self.generator_failed = True
            point.progress.notice(f"{failure}; {again}")
        except HostLost as lost:
            point.keep_incident(number, None, lost)
            adjusted = self.backend.recovers(lost)
            if adjusted is None:
                raise
            point.progress.notice(f"{lost}; {adjusted}; {again}")
        except LinkCut as cut:
            self.cuts += 1
            point.keep_incident(number, None, cut)
            if self.cuts > MOST_CUTS:
                raise
            point.progress.notice(f"{cut}; {again}")
        except OperationError as error:
            failed = point.failed_variants - known_to_fail
            if not question_of(point.experiment).goes_on_without(failed):
                raise
            point.progress.notice(f"{error}\nthe run continues without it")


def _take_turns(points: Sequence[RunningPoint], seed: int | None, backend: Backend = LOCAL) -> None:
    """Let the points take turns, a round each, until none needs another one.

    The order is random in each turn, so that a drift of the machine weighs on all alike.
    """
    turn = -1 if any(map(is_before_look, points)) else 0  # the first one only looks
    any_round = any(point.finished_rounds for point in points)
    recovery, looked_at, outlook = _Recovery(backend), set[int](), None
    while going := [point for point in points if not point.stops()]:
        if _settled_elsewhere(points, going):
            return
        turn += 1
        for point in Random(f"{seed}/round {turn}").sample(going, len(going)):
            number, began_s = point.finished_rounds + 1, point.used_s
            with point.watch, recovery.covering(point, number):
                if is_before_look(point) and point.number not in looked_at:
                    looked_at.add(point.number)
                    look_first(point)
                    continue  # what can't be compared is known of all of them before any round
                if not point.has_stopped:
                    run_pilots(point)
                if point.has_stopped or point.left_s <= 0:
                    continue
                began_s = point.used_s
                run_round(point, number)
                run = point.folder.path
                hide_in_files(round_path(run, point.number, number), run)
                point.adjust()
                _look_at_doubtful(point)
                recovery.forget()
            took_s = point.used_s - began_s
            if outlook is None:
                outlook = _report_outlook(points)
            if not any_round and point.finished_rounds == number:
                any_round = True
                all_of_them = [each.experiment for each in points]
                if warning := overrun_warning(all_of_them, took_s, began_s):
                    point.progress.notice(warning)


def _report_outlook(points: Sequence[RunningPoint]) -> str | None:
    """Report what there is no time for here; None while it is too early."""
    elapsed_s = sum(point.used_s for point in points)
    question = question_of(points[0].experiment)
    outlook = question.outlook([point.data for point in points], elapsed_s)
    if outlook:
        points[0].progress.notice(outlook)
    return outlook


def _settled_elsewhere(points: Sequence[RunningPoint], going: Sequence[RunningPoint]) -> bool:
    """End the other points, when all had the fewest rounds, where a gate has failed at one."""
    ended = [point.data for point in points if point not in going]
    early = any(point.finished_rounds < point.experiment.measure.min_rounds for point in going)
    stop = None if early else question_of(going[0].experiment).stops_elsewhere(ended)
    if stop is None:
        return False
    for point in going:
        point.keep_stop(stop)
    return True


def _has_stopped(data: PointData) -> bool:
    return any(isinstance(record, StopRecord) for record in data.records)


def _look_around(experiment: Experiment, catalogue: Catalogue, backend: Backend) -> SessionRecord:
    """Look at everything that can change a result and isn't part of the experiment."""
    looked_at = backend.look(experiment, catalogue)
    return SessionRecord(
        started_at=datetime.now(UTC), webdyno_version=version("webdyno"), **looked_at._asdict()
    )


def with_seed(experiment: Experiment) -> Experiment:
    """Return the experiment a random seed, unless it has one."""
    if experiment.measure.seed is not None:
        return experiment
    return experiment.with_measure(seed=random.SystemRandom().getrandbits(32))
