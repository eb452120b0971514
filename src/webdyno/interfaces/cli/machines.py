"""Runs of one experiment on several machines: measured there, judged together, shown."""

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import TYPE_CHECKING

from webdyno.cluster.orders import FLEET_FILE, SPREAD_FILE
from webdyno.core.command import command
from webdyno.core.errors import OperationError, UserError
from webdyno.core.exit_codes import Exit
from webdyno.core.files import write_whole
from webdyno.core.format import count
from webdyno.core.judgement import Verdict
from webdyno.core.point import plan_points
from webdyno.core.run import PAGE_FILE
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.interfaces.cli.result import draw, exit_of_difference
from webdyno.media.console import plain_console

if TYPE_CHECKING:  # Ray is an extra, and takes a second to import
    from webdyno.launch.dispatch import Dispatch

FLEET_PAGE = "fleet.html"
FORMATS = ("html", "json")
"""What several machines together are written as."""


class FleetSource:
    """Runs of one experiment on several machines."""

    def has(self, paths: Sequence[Path]) -> bool:
        """Whether there are several runs, or a folder that has one for each host."""
        return len(paths) > 1 or (paths[0] / FLEET_FILE).exists()

    def report(self, paths: Sequence[Path], formats: Sequence[str], output: Path | None) -> Exit:
        """Judge them together; write the page, and print JSON instead where that is wanted."""
        if unable := [name for name in formats if name not in FORMATS]:
            can = " and ".join(FORMATS)
            raise UserError(f"--format {unable[0]}: several machines together are written as {can}")
        if len(formats) > 1 and output is not None:
            raise UserError(f"-o {output}: is one file; give one --format with it")
        file = output or (paths[0] / FLEET_PAGE if len(paths) == 1 else Path(FLEET_PAGE))
        again = command("report", *paths, "--format", "html", "-o", file)
        page, json = (file if "html" in formats else None), "json" in formats
        json_file = output if json else None
        return show_fleet(machines_in(paths), page, again, json=json, json_file=json_file)


class SpreadSource:
    """A folder that has a run for each point of an experiment."""

    def has(self, paths: Sequence[Path]) -> bool:
        """Whether it is one."""
        return (paths[0] / SPREAD_FILE).exists()

    def report(self, paths: Sequence[Path], formats: Sequence[str], _: Path | None) -> Exit:
        """Print each point with its machine."""
        if formats:
            raise UserError(f"{paths[0]} has a run for each point: give the folder of one of them")
        return show_spread(paths[0])


def machines_in(runs: Sequence[Path]) -> dict[str, Path]:
    """Give runs by machine: those that were named, and those in a folder of several hosts."""
    from webdyno.cluster.dispatch import finished_runs

    return _named(
        [
            machine
            for path in runs
            for machine in (
                [run.path for run in finished_runs(path)]
                if (path / FLEET_FILE).exists()
                else [path]
            )
        ]
    )


def show_fleet(
    runs: Mapping[str, Path],
    page: Path | None,
    again: str,
    *,
    json: bool = False,
    json_file: Path | None = None,
) -> Exit:
    """Judge runs' folders by the machine's name; print what they say, and write the page.

    `again` is the command that writes it another time. `json`: instead of that, in a file if named.
    """
    from webdyno.cluster.dispatch import judged_machines
    from webdyno.fleet.decide import judge_fleet
    from webdyno.fleet.show import fleet_document, fleet_page
    from webdyno.media.page import make_again
    from webdyno.media.terminal import print_document

    machines = judged_machines(runs)
    fleet = judge_fleet(machines)
    console, head = plain_console(), machines[fleet.machines[0]].head
    if json_file is not None:
        write_whole(json_file, fleet.model_dump_json(indent=2) + "\n")
    elif json:
        console.out(fleet.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, fleet_document(head, fleet))
    if page is not None:
        reports = {
            name: relpath(run / PAGE_FILE, page.parent)
            for name, run in runs.items()
            if (run / PAGE_FILE).exists()
        }
        write_whole(page, fleet_page(head, fleet, reports, again), make_again(again))
        console.print(f"Page: {page}", highlight=False)
    return exit_of_difference(fleet.verdict)


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    """Name each machine by its run's folder; by its whole path where two are called alike."""
    names = [path.resolve().name for path in runs]
    if len(set(runs)) < len(runs):
        raise UserError("a run is named twice, and a machine counts once: name each folder once")
    alike = len(set(names)) < len(names)
    return {str(path) if alike else name: path for name, path in zip(names, runs, strict=True)}


def measure_and_show_all(dispatched: "Dispatch", how: RunFlags) -> Exit:
    """Have hosts measure what is missing of an experiment; judge all together, and show that."""
    from webdyno.cluster.dispatch import finished_runs
    from webdyno.launch.dispatch import REPORTED_APART, measure_on_hosts

    folder, works = dispatched.folder, dispatched.works
    if not measure_on_hosts(dispatched, at_terminal(how)):
        return Exit.INTERRUPTED
    if how.report and max(work.hosts for work in works) <= REPORTED_APART:
        for run in (run for work in works for run in finished_runs(folder, work.part)):
            if not (run.path / PAGE_FILE).exists():
                draw(run)
    if (folder / FLEET_FILE).exists():
        return _show_replicates(folder, page=how.report)
    return show_spread(folder)


def _show_replicates(folder: Path, *, page: bool) -> Exit:
    """Judge the runs that came to their end together, and write the page of all of them."""
    from webdyno.cluster.dispatch import finished_runs

    runs = {run.path.name: run.path for run in finished_runs(folder)}
    if len(runs) < 2:
        raise OperationError(
            f"{count(len(runs), 'host')} came to an end, which says nothing of others"
        )
    file = folder / FLEET_PAGE
    again = command("report", folder, "--format", "html", "-o", file)
    return show_fleet(runs, file if page else None, again)


def show_spread(folder: Path) -> Exit:
    """Judge each point that came to its end, and print it with its machine."""
    from webdyno.cluster.dispatch import finished_runs, work_at_points
    from webdyno.comparison.sweep import judge_sweep
    from webdyno.launch.dispatch import spread_in
    from webdyno.media.terminal import print_document
    from webdyno.report.run_comparison import MachinePoint, spread_document

    experiment = spread_in(folder)
    works, judged = work_at_points(experiment), []
    for work, plan in zip(works, plan_points(experiment), strict=True):
        for run in finished_runs(folder, work.part)[:1]:
            [alone] = judge_sweep(run.data()).points
            point = alone.replace(point=plan.point)
            judged.append(MachinePoint(run.path.parent.name, run.path.relative_to(folder), point))
    if not judged:
        raise OperationError(f"{folder}: no point was measured to its end")
    print_document(plain_console(), spread_document(experiment, judged, len(works)))
    if len(judged) < len(works):
        return Exit.FAILED
    verdicts = {replicate.judged.judgement.verdict for replicate in judged}
    return Exit.INVALID if Verdict.INVALID in verdicts else Exit.OK
