"""`webdyno fleet`: runs of one experiment on several machines, judged together."""

from collections.abc import Mapping, Sequence
from os.path import relpath
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.compare import EXITS
from webdyno.cli.console import plain_console
from webdyno.cli.exits import Exit
from webdyno.cli.flags import Json
from webdyno.model.cluster import FLEET_FILE
from webdyno.model.command import command
from webdyno.model.files import write_whole
from webdyno.model.mistake import Mistake
from webdyno.model.run import PAGE_FILE

FLEET_PAGE = "fleet.html"


def fleet(
    *runs: Annotated[
        Path,
        Parameter(
            help="The folders of the runs, one of each machine; or that of `run --replicates`."
        ),
    ],
    page: Annotated[
        Path | None, Parameter(help="Write a page with all machines, such as fleet.html.")
    ] = None,
    json: Json = False,
) -> Exit:
    """Say how far a verdict carries: runs of several machines, judged together.

    Nothing is measured, and each machine counts once. Beside the ratio on average stands the range
    in which one more machine of this kind would lie, on how many machines the verdict is the same,
    and what isn't equal on all of them. Run the same file everywhere, bring the folders together,
    and name them. The exit code is that of `webdyno compare`.

    For example

        webdyno run mine.toml --out a    # and b, c on the other machines

        webdyno fleet a b c --page fleet.html
    """
    from webdyno.cluster.dispatch import finished_runs

    machines = [
        machine
        for path in runs
        for machine in (
            [run.path for run in finished_runs(path)] if (path / FLEET_FILE).exists() else [path]
        )
    ]
    again = command("fleet", *runs, "--page", page or FLEET_PAGE)
    return show_fleet(_named(machines), page, again, json=json)


def show_fleet(
    runs: Mapping[str, Path], page: Path | None, again: str, *, json: bool = False
) -> Exit:
    """Judge runs' folders by the machine's name; print what they say, and write the page.

    `again` is the command that writes it another time.
    """
    from webdyno.cluster.dispatch import judged_machines
    from webdyno.judge.fleet import judge_fleet
    from webdyno.report.fleet import fleet_document, fleet_page
    from webdyno.report.page import make_again
    from webdyno.report.terminal import print_document

    machines = judged_machines(runs)
    found = judge_fleet(machines)
    console, head = plain_console(), machines[found.machines[0]].head
    if json:
        console.out(found.model_dump_json(indent=2), highlight=False)
    else:
        print_document(console, fleet_document(head, found))
    if page is not None:
        reports = {
            name: relpath(run / PAGE_FILE, page.parent)
            for name, run in runs.items()
            if (run / PAGE_FILE).exists()
        }
        write_whole(page, fleet_page(head, found, reports, again), make_again(again))
        console.print(f"Page: {page}", highlight=False)
    return EXITS[found.verdict]


def _named(runs: Sequence[Path]) -> dict[str, Path]:
    """Name each machine by its run's folder; by its whole path where two are called alike."""
    names = [path.resolve().name for path in runs]
    if len(set(runs)) < len(runs):
        raise Mistake("a run is named twice, and a machine counts once: name each folder once")
    alike = len(set(names)) < len(names)
    return {str(path) if alike else name: path for name, path in zip(names, runs, strict=True)}
