"""A session: a run is begun or resumed, and its points take turns until all have enough."""

import random
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from random import Random

from webdyno.bench import Bench, open_bench
from webdyno.bench.control_group import forget_groups
from webdyno.bench.cpu_limit import CpuLimit
from webdyno.calibrate import load_calibration
from webdyno.definitions import Catalogue
from webdyno.generator import GeneratorError, find_loadgen, program
from webdyno.judge import ELSEWHERE, Stop, decide, fails_gate
from webdyno.judge.differences import surroundings
from webdyno.model.bench import BenchSettings
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import PointPlan, plan_points
from webdyno.model.records import BlockRecord, PilotRecord, Record, SessionRecord, StopRecord
from webdyno.model.run import BLOCKS_FOLDER, RunHead
from webdyno.run.block import run_block
from webdyno.run.budget import surprise
from webdyno.run.folder import RunFolder
from webdyno.run.hidden import hide_in_files
from webdyno.run.pilot import run_pilots
from webdyno.run.point import (
    ArmBench,
    MeasuredPoint,
    PlannedArm,
    Progress,
    arms_of_all_points,
    plan_arms,
)
from webdyno.run.repeat import keep_for_repeating, kept_catalogue
from webdyno.stack import ask_versions

RUNS_FOLDER = Path("runs")


def begin_run(
    name: str, experiment: Experiment, catalogue: Catalogue, out: Path | None
) -> RunFolder:
    """Make the folder of a new run, with everything in it that can change the result."""
    began = datetime.now().astimezone()
    resolved = _with_seed(experiment)
    arms = arms_of_all_points(resolved, catalogue)
    here = _session(resolved, arms)
    head = RunHead(
        webdyno_version=here.webdyno_version,
        experiment_name=name,
        experiment=resolved,
        started_at=began,
        machine=here.machine,
        calibration=load_calibration(here.machine, resolved.bench),
        versions=here.versions,
        load_generator=here.load_generator,
    )
    folder = RunFolder.create(out or folder_under_runs(name, began), head)
    keep_for_repeating(folder.path, resolved, catalogue)
    folder.append(here)
    return folder


def folder_under_runs(name: str, began: datetime) -> Path:
    """Name the folder of what nobody gave one for."""
    return RUNS_FOLDER / f"{began:%Y-%m-%d-%H%M%S}-{name}"


def resume_run(path: Path) -> RunFolder:
    """Begin another session of a run; raise Mistake where it would measure something else.

    That is so on another machine, and with other versions of servers, load generator or webdyno:
    no verdict may rest on both.
    """
    folder = RunFolder.open(path)
    head = folder.head
    arms = arms_of_all_points(head.experiment, kept_catalogue(path))
    here = _session(head.experiment, arms)
    if changed := surroundings(head, here):
        lines = "\n".join(f"    {it.what}: {it.before} before, {it.after} now" for it in changed)
        raise Mistake(
            f"{path} can't go on here, as one verdict would rest on unequal things:\n{lines}"
            f"\nTo measure the same experiment anew: {head.repeat_command(path)}"
        )
    folder.append(here)
    return folder


def measure(
    folder: RunFolder,
    progress: Progress,
    more_s: float | None = None,
    blocks: Mapping[int, int] | None = None,
) -> None:
    """Measure until the stop rule holds at every point, from where the run stands.

    The time budget is what the run was given, less what its finished blocks took; or it is `more_s`
    from now on. With `blocks` points are measured until they have so many of them, by number of
    the point, however long that takes, and the other points not at all. The load generator may fail
    once in a row, at which its block is begun anew.
    """
    with ExitStack() as exits:
        points = _open_points(folder, progress, exits)
        folder.secrets = {it for at in points for arm in at.arms for it in arm.secrets}
        hide_in_logs = partial(hide_in_files, folder.path / BLOCKS_FOLDER, folder.secrets)
        hide_in_logs()  # of a session that was killed
        exits.callback(hide_in_logs)
        for at in points:
            if more_s is not None:
                at.allow(more_s / len(points))
            if blocks is not None:
                at.ask_for(blocks.get(at.point.number, 0))
        _take_turns(points, folder.head.experiment.measure.seed)


def is_finished(head: RunHead, records: Sequence[Record]) -> bool:
    """Tell whether a run would measure nothing more if it were resumed."""
    return all(
        _has_stopped(of_point := _of_point(records, plan))
        or decide(of_point, plan.experiment, _used_s(of_point))
        for plan in plan_points(head.experiment)
    )


def _open_points(folder: RunFolder, progress: Progress, exits: ExitStack) -> list[MeasuredPoint]:
    """Prepare every point, on benches that are open until `exits` closes."""
    catalogue, records = kept_catalogue(folder.path), folder.records()
    benches = _OpenBenches(folder.head, exits)
    points = []
    for plan in plan_points(folder.head.experiment):
        of_point = _of_point(records, plan)
        points.append(
            MeasuredPoint(
                point=plan.point,
                experiment=plan.experiment,
                arms=plan_arms(plan.experiment, catalogue),
                benches=benches.of_arms(plan.experiment),
                folder=folder,
                progress=progress,
                records=of_point,
                used_s=_used_s(of_point),
                has_stopped=_has_stopped(of_point),
            )
        )
    return points


class _OpenBenches:
    """Benches that are open until `exits` closes, each once."""

    def __init__(self, head: RunHead, exits: ExitStack) -> None:
        self._exits = exits
        self._open: dict[tuple[BenchSettings, str], ArmBench] = {}
        self._benches: dict[BenchSettings, Bench] = {}
        self._calibrations = {head.experiment.bench: head.calibration}

    def of_arms(self, experiment: Experiment) -> dict[str, ArmBench]:
        """Give where each arm runs, with what the experiment's load generator is there."""
        return {
            arm: self._arm_bench(experiment.bench_of(arm), experiment.generator)
            for arm in experiment.arms
        }

    def _arm_bench(self, settings: BenchSettings, generator: str) -> ArmBench:
        key = (settings, generator)
        if key not in self._open:
            bench = self._bench(settings)
            entry = [*self._with_cpu_time(settings, bench), *bench.client_entry()]
            new_generator = partial(program(generator).new, bench.split.client, entry)
            calibration = self._calibrations[settings]
            self._open[key] = ArmBench(bench, new_generator, calibration)
        return self._open[key]

    def _with_cpu_time(self, settings: BenchSettings, bench: Bench) -> list[str]:
        """Give the words before a command that let it have the client's share of CPU time."""
        if settings.client_cpus is None:
            return []
        workspace = self._exits.enter_context(bench.workspace())
        self._exits.callback(forget_groups, workspace.name)
        group = bench.control_group(workspace)
        limit = CpuLimit.impose(workspace.name, group, settings.client_cpus)
        return ["sh", "-c", 'echo 0 >"$0" && exec "$@"', str(limit.folder / "cgroup.procs")]

    def _bench(self, settings: BenchSettings) -> Bench:
        if settings not in self._benches:
            bench = self._exits.enter_context(open_bench(settings, find_loadgen()))
            self._benches[settings] = bench
            if settings not in self._calibrations:
                self._calibrations[settings] = load_calibration(bench.describe(), settings)
        return self._benches[settings]


def _take_turns(points: Sequence[MeasuredPoint], seed: int | None) -> None:
    """Let the points take turns, a block each, until none needs another one.

    The order is random in each round, so that a drift of the machine weighs on all alike.
    """
    turn = 0
    any_block = any(at.finished_blocks for at in points)
    generator_failed = False
    while going := [at for at in points if not at.stops()]:
        if _gate_fails(points, going):
            return
        turn += 1
        for at in Random(f"{seed}/round {turn}").sample(going, len(going)):
            began, number = time.monotonic(), at.finished_blocks + 1
            known_to_fail = at.failed
            try:
                run_pilots(at)
                if at.has_stopped:
                    continue
                began = time.monotonic()  # what pilots took they have counted themselves
                run_block(at, number)
                at.remedy()
                generator_failed = False
            except GeneratorError as failure:
                if generator_failed:
                    raise
                generator_failed = True
                at.progress.notice(f"{failure}; block {number} is begun anew")
            except Trouble as trouble:
                if not at.goes_on_without(at.failed - known_to_fail):
                    raise
                at.progress.notice(f"{trouble}\nthe run goes on without it")
            took_s = time.monotonic() - began
            at.used_s += took_s
            if not any_block and at.finished_blocks == number:
                any_block = True
                if warning := surprise([each.experiment for each in points], took_s):
                    at.progress.notice(warning)


def _gate_fails(points: Sequence[MeasuredPoint], going: Sequence[MeasuredPoint]) -> bool:
    """End the points that are left once a gate has failed, when all had the fewest blocks."""
    ended = [at for at in points if at not in going]
    early = any(at.finished_blocks < at.experiment.measure.min_blocks for at in going)
    if early or not any(fails_gate(at.records, at.experiment) for at in ended):
        return False
    for at in going:
        at.keep_stop(Stop("question", ELSEWHERE))
    return True


def _of_point(records: Sequence[Record], plan: PointPlan) -> list[Record]:
    return [record for record in records if record.point == plan.point.number]


def _used_s(records: Sequence[Record]) -> float:
    """Give how much of a point's time is used up: what pilots and finished blocks took."""
    return sum(record.took_s for record in records if isinstance(record, BlockRecord | PilotRecord))


def _has_stopped(records: Sequence[Record]) -> bool:
    return any(isinstance(record, StopRecord) for record in records)


def _session(experiment: Experiment, arms: Sequence[PlannedArm]) -> SessionRecord:
    """Look at everything that can change a result and isn't part of the experiment."""
    with open_bench(experiment.bench, find_loadgen()) as bench:
        versions: dict[str, dict[str, str]] = {}
        for arm in arms:
            versions.setdefault(arm.name, {}).update(
                ask_versions(arm.stack, arm.knobs, arm.site, bench)
            )
        generators = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
        return SessionRecord(
            started_at=datetime.now(UTC),
            webdyno_version=version("webdyno"),
            machine=bench.describe(),
            versions=versions,
            load_generator="; ".join(program(name).version() for name in generators),
        )


def _with_seed(experiment: Experiment) -> Experiment:
    if experiment.measure.seed is not None:
        return experiment
    seeded = experiment.measure.model_copy(update={"seed": random.SystemRandom().getrandbits(32)})
    return experiment.model_copy(update={"measure": seeded})
