"""From an experiment to a run's folder: what is resolved and recorded before the first block."""

import random
import tempfile
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from webdyno.bench import Bench, open_bench
from webdyno.calibrate import load_calibration
from webdyno.definitions import Catalogue
from webdyno.generator import find_loadgen, program
from webdyno.model.bench import BenchSettings
from webdyno.model.experiment import Experiment
from webdyno.model.point import plan_points
from webdyno.model.run import RunHead
from webdyno.run.folder import RunFolder
from webdyno.run.lab import Lab
from webdyno.run.plan import ArmPlan, plan_arms
from webdyno.run.runner import run_blocks
from webdyno.run.watcher import Watcher
from webdyno.stack import RunningStack

RUNS_FOLDER = Path("runs")


def begin_run(
    name: str, experiment: Experiment, catalogue: Catalogue, out: Path | None
) -> RunFolder:
    """Make the folder of a new run, with everything in its head that can change the result."""
    began = datetime.now().astimezone()
    resolved = _with_seed(experiment)
    with open_bench(resolved.bench, find_loadgen()) as bench:
        machine = bench.describe()
        head = RunHead(
            webdyno_version=version("webdyno"),
            experiment_name=name,
            experiment=resolved,
            started_at=began,
            machine=machine,
            calibration=load_calibration(machine, resolved.bench),
            versions={arm.name: _versions(arm, bench) for arm in plan_arms(resolved, catalogue)},
            load_generator=_generator_versions(resolved),
        )
    return RunFolder.create(out or RUNS_FOLDER / f"{began:%Y-%m-%d-%H%M%S}-{name}", head)


def carry_on(folder: RunFolder, catalogue: Catalogue, watcher: Watcher) -> None:
    """Measure until the stop rule holds at every point, from where the run stands."""
    experiment = folder.head.experiment
    assert experiment.measure.seed is not None  # noqa: S101 (drawn in begin_run)
    records = folder.records()
    with ExitStack() as exits:
        benches: dict[BenchSettings, Bench] = {}
        calibrations = {experiment.bench: folder.head.calibration}
        labs = []
        for plan in plan_points(experiment):
            settings = plan.experiment.bench
            if settings not in benches:
                bench = exits.enter_context(open_bench(settings, find_loadgen()))
                benches[settings] = bench
                if settings not in calibrations:
                    calibrations[settings] = load_calibration(bench.describe(), settings)
            lab = Lab(
                point=plan.point,
                experiment=plan.experiment,
                seed=experiment.measure.seed,
                arms=plan_arms(plan.experiment, catalogue),
                bench=benches[settings],
                new_generator=partial(
                    program(plan.experiment.generator).new,
                    benches[settings].split.client,
                    benches[settings].client_entry(),
                ),
                folder=folder,
                watcher=watcher,
                calibration=calibrations[settings],
                records=[record for record in records if record.point == plan.point.number],
            )
            labs.append(lab)
        run_blocks(labs)


def _generator_versions(experiment: Experiment) -> str:
    """Name the load generators of all points, with their versions."""
    names = dict.fromkeys(plan.experiment.generator for plan in plan_points(experiment))
    return "; ".join(program(name).version() for name in names)


def _versions(arm: ArmPlan, bench: Bench) -> dict[str, str]:
    """Ask an arm's services for their versions; nothing is started."""
    with tempfile.TemporaryDirectory(prefix="webdyno-versions-") as scratch:
        stack = RunningStack(arm.stack, arm.knobs, arm.site, folder=Path(scratch), bench=bench)
        with stack:
            return stack.versions()


def _with_seed(experiment: Experiment) -> Experiment:
    if experiment.measure.seed is not None:
        return experiment
    seeded = experiment.measure.model_copy(update={"seed": random.SystemRandom().getrandbits(32)})
    return experiment.model_copy(update={"measure": seeded})
