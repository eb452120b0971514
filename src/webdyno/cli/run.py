"""`webdyno run`: an experiment from its file to a verdict and a report."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.experiment_flags import AS_WRITTEN, ExperimentFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, STUDY, ExplainToo, NewRunFlags, Output
from webdyno.model.errors import UserError
from webdyno.model.exit_codes import Exit


def run(
    experiment: Annotated[
        str, Parameter(help="EXPERIMENT: a TOML file, a name of the catalog, or study:NAME.")
    ] = "static-hello",
    *,
    flags: ExperimentFlags = AS_WRITTEN,
    full: Annotated[
        bool,
        Parameter(help="Measure all levels of its factors, however long it takes."),
    ] = False,
    explain: ExplainToo = False,
    replicates: Annotated[
        int | None,
        Parameter(help="COUNT: run all of it on so many hosts of a cluster, judged together."),
    ] = None,
    spread: Annotated[
        bool,
        Parameter(help="Measure each point on one host of a cluster, many at once."),
    ] = False,
    output: Output = None,
    new: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Run an experiment from its file or the catalog, or repeat a study.

    For example

        webdyno run static-hello --time 5m --precision 1%

        webdyno run mine.toml -c 16 --set nginx.workers=1

        webdyno run static-hello --vary load.connections=1,8,64 --time 10m

        webdyno run mine.toml --replicates 8 --cluster 10.0.0.1:6379

        webdyno run study:deathmatch --time 20m      # study:all for all of them
    """
    from webdyno.cli.explain import explain_afterwards
    from webdyno.cli.progress import at_terminal
    from webdyno.cli.result import measure_and_show, sweeps_afterwards
    from webdyno.definitions import Catalogue, Draft
    from webdyno.definitions.toml_file import TomlFile
    from webdyno.lab.measure import within_budget
    from webdyno.lab.systems import checked_with_own

    on_hosts = spread or replicates is not None
    if experiment.startswith(STUDY):
        from webdyno.cli.studies import run_studies

        if flags != ExperimentFlags(time=flags.time) or full or explain or on_hosts or new.fail_if:
            raise UserError(f"{experiment}: takes --time, --output and --yes, no other flags")
        return run_studies(experiment.removeprefix(STUDY), flags.time.seconds, output, new.how)
    catalogue = Catalogue.load(new.catalog)
    file = catalogue.experiment_file(experiment)
    draft = Draft.of(TomlFile(file), flags.overrides())
    caller = at_terminal(new.how)
    wanted, catalogue = checked_with_own(draft, catalogue, file.parent, caller)
    if not full and not flags.vary:
        wanted = within_budget(wanted, catalogue, caller)
    name = Path(experiment).stem
    if on_hosts:
        from webdyno.cli.machines import measure_and_show_all
        from webdyno.lab.dispatch import replicates_on_hosts, spread_over_hosts
        from webdyno.lab.systems import Arrangement

        _refuse_on_hosts(new, explain=explain, spread=spread, replicates=replicates)
        asked = Arrangement(name, wanted, catalogue)
        if replicates is None:
            return measure_and_show_all(spread_over_hosts(asked, output), new.how)
        return measure_and_show_all(replicates_on_hosts(asked, output, replicates), new.how)
    afterwards = explain_afterwards(wanted, new.how) if explain else sweeps_afterwards(new.how)
    return measure_and_show(
        name, wanted, catalogue, output, new.how, fail_if=new.fail_if, afterwards=afterwards
    )


def _refuse_on_hosts(
    new: NewRunFlags, *, explain: bool, spread: bool, replicates: int | None
) -> None:
    """Raise UserError for what asks a single run, where many hosts measure."""
    if explain:
        raise UserError("--explain asks a single run: `webdyno explain` takes that of any host")
    if spread and replicates is not None:
        raise UserError("--spread and --replicates: a point is measured on one host, or on several")
    if new.how.loads_other_machines:
        raise UserError(
            "--loads-other-machines is for a single run: many hosts at once would load those"
        )
    if new.how.target_is_mine:
        raise UserError("--target-is-mine is for a single run: many hosts at once would load that")
    if new.fail_if:
        flag = "--spread" if spread else "--replicates"
        raise UserError(f"--fail-if asks a single run: leave it out, or {flag}")
