"""From an experiment to a run's folder: what is resolved and recorded before the first block."""

import random
import tempfile
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

from webdyno.bench import Bench
from webdyno.definitions import Catalogue
from webdyno.generator import Loadgen, loadgen_version
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
    bench = Bench()
    head = RunHead(
        webdyno_version=version("webdyno"),
        experiment_name=name,
        experiment=resolved,
        started_at=began,
        machine=bench.describe(),
        versions={arm.name: _versions(arm, bench) for arm in plan_arms(resolved, catalogue)},
        load_generator=loadgen_version(),
    )
    return RunFolder.create(out or RUNS_FOLDER / f"{began:%Y-%m-%d-%H%M%S}-{name}", head)


def carry_on(folder: RunFolder, catalogue: Catalogue, watcher: Watcher) -> None:
    """Measure until the stop rule holds at every point, from where the run stands."""
    experiment = folder.head.experiment
    assert experiment.measure.seed is not None  # noqa: S101 (drawn in begin_run)
    bench = Bench()
    records = folder.records()
    labs = [
        Lab(
            point=plan.point,
            experiment=plan.experiment,
            seed=experiment.measure.seed,
            arms=plan_arms(plan.experiment, catalogue),
            bench=bench,
            new_generator=lambda: Loadgen(bench.split.client),
            folder=folder,
            watcher=watcher,
            records=[record for record in records if record.point == plan.point.number],
        )
        for plan in plan_points(experiment)
    ]
    run_blocks(labs)


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
