"""What is measured beside a capacity once it is known, where that was asked for."""

from functools import partial
from pathlib import Path

from webdyno.cli.console import tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import RunFlags
from webdyno.cli.measure import Afterwards, measure, measure_on
from webdyno.model.experiment import Experiment
from webdyno.model.format import duration
from webdyno.model.metrics import CAPACITY
from webdyno.run.folder import HEAD_FILE, RunFolder


def sweeps_afterwards(how: RunFlags) -> Afterwards:
    """Give what measures the sweeps beside a search, in its folder, or goes on with them."""
    return partial(_sweep, how=how)


def _sweep(run: Path, how: RunFlags) -> Exit:
    found = RunFolder.open(run)
    asked = found.head.experiment.capacity
    if asked is None or asked.sweep_s is None:
        return Exit.OK
    from webdyno.report.view import see
    from webdyno.run.capacity import capacity_sweeps

    seen = see(found.data())
    (judgement,) = (point.judgement for point in seen.view.points)
    capacities_rps = [
        it.interval.estimate for it in judgement.arms if it.metric == CAPACITY and it.interval
    ]
    tell(f"\nbeside the capacities, for {duration(asked.sweep_s)}:")
    for name, sweep in capacity_sweeps(found.head.experiment, capacities_rps):
        if _measured(run / name, sweep, run, how) is Exit.INTERRUPTED:
            return Exit.INTERRUPTED
    if how.report:
        from webdyno.report.page import write_report

        write_report(run, seen.view)  # again: now with links to what stands beside it
    return Exit.OK


def _measured(path: Path, sweep: Experiment, run: Path, how: RunFlags) -> Exit:
    """Measure a sweep at as many levels as fit into its time, or what is missing of it."""
    from webdyno.run.budget import reduce_levels
    from webdyno.run.repeat import kept_catalogue
    from webdyno.run.session import is_finished

    if (path / HEAD_FILE).exists():
        begun = RunFolder.open(path)
        if is_finished(begun.data()):
            return Exit.OK
        return measure_on(path, how)
    catalogue = kept_catalogue(run)
    kept = reduce_levels(sweep, catalogue, sweep.measure.budget_s)
    return measure(path.name, kept, catalogue, path, how)
