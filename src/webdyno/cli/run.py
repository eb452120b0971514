"""`webdyno run`: an experiment from its file to a verdict and a report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import AS_WRITTEN, ExperimentFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out, Why
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import measure_and_show, sweeps_afterwards
from webdyno.cli.why import why_afterwards
from webdyno.definitions import Catalogue, Draft
from webdyno.definitions.toml_file import TomlFile
from webdyno.lab.ending import Exit
from webdyno.lab.measure import within_budget
from webdyno.lab.systems import Arranged, checked_with_own
from webdyno.model.errors import UserError


def run(
    experiment: Annotated[
        str, Parameter(help="Name of an experiment in the catalogue, or a TOML file.")
    ] = "static-hello",
    *,
    flags: ExperimentFlags = AS_WRITTEN,
    full: Annotated[
        bool,
        Parameter(
            help="Measure at all levels of the experiment's factors, however long it takes; "
            "else at as many as the budget allows."
        ),
    ] = False,
    why: Why = False,
    replicates: Annotated[
        int | None,
        Parameter(help="Run all of it on so many hosts of a cluster, and judge them together."),
    ] = None,
    spread: Annotated[
        bool,
        Parameter(
            help="Measure each point of the experiment on one host of a cluster, many at once."
        ),
    ] = False,
    out: Out = None,
    new: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Run an experiment: start its stacks, load them in turns, judge, and write a report.

    Without a name it is static-hello: nginx against Apache with a small file.

    For example

        webdyno run

        webdyno run static-hello --budget 5m --precision 0.01

        webdyno run static-hello --generator ab --set measure.slot_s=1

        webdyno run static-hello --testbed netns --link 100mbit --delay 20ms

        webdyno run mine.toml --set load.connections=16 --set variants.nginx.settings.workers=1

        webdyno run static-hello --vary load.connections=1,8,64 --budget 10m

        webdyno run mine.toml --replicates 8 --cluster 10.0.0.1:6379

        webdyno run sweep.toml --full --spread --cluster 10.0.0.1:6379
    """
    catalogue = Catalogue.load(new.catalog)
    file = catalogue.experiment_file(experiment)
    draft = Draft.of(TomlFile(file), flags.overrides())
    caller = at_terminal(new.how)
    wanted, catalogue = checked_with_own(draft, catalogue, file.parent, caller)
    if not full and not flags.vary:
        wanted = within_budget(wanted, catalogue, caller)
    name = Path(experiment).stem
    if why and (spread or replicates is not None):
        raise UserError("--why asks a single run: `webdyno why` takes that of any host")
    if spread and replicates is not None:
        raise UserError("--spread and --replicates: a point is measured on one host, or on several")
    if new.how.loads_other_machines and (spread or replicates is not None):
        raise UserError(
            "--loads-other-machines is for a single run: many hosts at once would load those"
        )
    if spread or replicates is not None:
        from webdyno.cli.fleet import measure_and_show_all
        from webdyno.lab.dispatch import replicates_on_hosts, spread_over_hosts

        flag = "--spread" if spread else "--replicates"
        if new.fail_on:
            raise UserError(f"--fail-on asks a single run: leave it out, or {flag}")
        asked = Arranged(name, wanted, catalogue)
        if replicates is None:
            return measure_and_show_all(spread_over_hosts(asked, out), new.how)
        return measure_and_show_all(replicates_on_hosts(asked, out, replicates), new.how)
    afterwards = why_afterwards(wanted, new.how) if why else sweeps_afterwards(new.how)
    return measure_and_show(
        name, wanted, catalogue, out, new.how, fail_on=new.fail_on, afterwards=afterwards
    )
