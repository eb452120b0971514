"""`webdyno run`: an experiment from its file to a verdict; `webdyno resume` continues a run."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import Exit, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.experiment_flags import AS_WRITTEN, ExperimentFlags
from webdyno.interfaces.cli.flags import (
    LAST,
    PLAIN_NEW_RUN,
    PLAIN_RUN,
    STUDY,
    USUAL_TIME,
    ExplainToo,
    NewRunFlags,
    Output,
    RunFlags,
    TimeFlag,
    flag,
    run_folder,
)

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.core.run import RunHead
    from webdyno.core.study import Publication
    from webdyno.studies import Plan

CLAIMS_FILE = "claims.md"
CLAIMS_PAGE = "claims.html"
ALL_STUDIES = "all"
STUDIES_TIME_S = 90 * 60.0


def run(
    experiment: Annotated[
        str, flag("EXPERIMENT: a TOML file, a name of the catalog, or study:NAME.")
    ] = "static-hello",
    *,
    flags: ExperimentFlags = AS_WRITTEN,
    full: Annotated[
        bool, flag("Measure all levels of its factors, however long it takes.")
    ] = False,
    explain: ExplainToo = False,
    replicates: Annotated[
        int | None, flag("COUNT: run all of it on so many hosts of a cluster, judged together.")
    ] = None,
    spread: Annotated[
        bool, flag("Measure each point on one host of a cluster, many at once.")
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
    from webdyno.config import Catalogue, Draft
    from webdyno.core.registry import EXPLAIN_AFTERWARDS, import_part
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import measure_and_show, sweeps_afterwards
    from webdyno.launch.arrangement import checked_with_own
    from webdyno.launch.measure import within_budget

    on_hosts = spread or replicates is not None
    if experiment.startswith(STUDY):
        if flags != ExperimentFlags(time=flags.time) or full or explain or on_hosts or new.fail_if:
            raise UserError(f"{experiment}: takes --time, --output and --yes, no other flags")
        return _run_studies(experiment.removeprefix(STUDY), flags.time.seconds, output, new.how)
    catalogue = Catalogue.load(new.catalog)
    file = catalogue.experiment_file(experiment)
    draft = Draft.of(file, flags.overrides())
    caller = at_terminal(new.how)
    wanted, catalogue = checked_with_own(draft, catalogue, file.folder, caller)
    if not full and not flags.vary:
        wanted = within_budget(wanted, catalogue, caller)
    name = Path(experiment).stem
    if on_hosts:
        from webdyno.interfaces.cli.cluster import measure_and_show_all
        from webdyno.launch.arrangement import Arrangement
        from webdyno.launch.dispatch import replicates_on_hosts, spread_over_hosts

        _refuse_on_hosts(new, explain=explain, spread=spread, replicates=replicates)
        asked = Arrangement(name, wanted, catalogue)
        if replicates is None:
            return measure_and_show_all(spread_over_hosts(asked, output), new.how)
        return measure_and_show_all(replicates_on_hosts(asked, output, replicates), new.how)
    afterwards = (
        import_part(EXPLAIN_AFTERWARDS)(wanted, new.how) if explain else sweeps_afterwards(new.how)
    )
    return measure_and_show(
        name, wanted, catalogue, output, new.how, fail_if=new.fail_if, afterwards=afterwards
    )


def _refuse_on_hosts(
    new: NewRunFlags, *, explain: bool, spread: bool, replicates: int | None
) -> None:
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


def _run_studies(asked: str, time_s: float | None, out: Path | None, how: RunFlags) -> Exit:
    """Repeat studies, named as in `study:NAME,NAME` or `study:all`, and judge their claims.

    First each experiment gets the rounds that a verdict needs, at the levels that claims name; what
    is left of the time goes to claims that are inconclusive by then. What became of the claims is
    printed, and written next to the runs as a page and as Markdown.
    """
    from webdyno.config.catalogue import read_studies
    from webdyno.config.reading import nearest
    from webdyno.core.run import folder_under_runs

    known = read_studies()
    names = list(known) if asked == ALL_STUDIES else list(dict.fromkeys(asked.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no study named {unknown[0]!r}; {nearest(unknown[0], known)}")
    folder = out or folder_under_runs("studies", datetime.now().astimezone())
    return _repeat([known[name] for name in names], time_s or STUDIES_TIME_S, folder, how)


def _repeat(wanted: Sequence["Publication"], budget_s: float, folder: Path, how: RunFlags) -> Exit:
    from webdyno.config import Catalogue
    from webdyno.config.catalogue import check_study
    from webdyno.core.files import make_folder, write_whole
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import show_measured, show_result
    from webdyno.media.console import notify, plain_console
    from webdyno.media.page import make_again
    from webdyno.media.terminal import print_document
    from webdyno.report.claims import claims_digest, claims_markdown, claims_page, outcomes
    from webdyno.studies import Repetition, plans_of

    catalogue = Catalogue.load()
    for study in wanted:
        check_study(study, catalogue)
    try:
        make_folder(folder)
    except OSError as error:
        raise UserError(f"-o {folder}: can't be made: {error.strerror}") from error
    planned = [plan for study in wanted for plan in plans_of(study, catalogue, folder)]
    planned.sort(key=lambda plan: plan.need_s)  # the longest last: what it overruns costs no other
    _announce_time(planned, budget_s)
    repeated = Repetition(
        folder,
        catalogue,
        ends=monotonic() + budget_s,
        caller=at_terminal(how),
        show=partial(show_measured, show=show_result),
    )
    interrupted = not (repeated.measure_all(planned) and repeated.decide_more(wanted))
    rows = [row for study in wanted for row in repeated.rows_of(study)]
    console = plain_console()
    print_document(console, claims_digest(rows))
    console.print()
    names = ",".join(study.name for study in wanted)
    again = command("run", f"{STUDY}{names}", "--time", f"{budget_s:g}s", "-o", folder)
    then = make_again(again)
    write_whole(folder / CLAIMS_FILE, claims_markdown(rows), then)
    page = folder / CLAIMS_PAGE
    write_whole(page, claims_page(wanted, rows, _heads_with_report(wanted, folder), again), then)
    totals = ", ".join(f"{number} × {outcome}" for outcome, number in outcomes(rows).items())
    console.print(f"{totals}\nReport: {page}", soft_wrap=True)
    if not repeated.failures and not interrupted:
        return Exit.OK
    end = f"failed: {', '.join(repeated.failures)}" if repeated.failures else "interrupted"
    notify(f"{end}; to measure what is missing: {again}")
    return Exit.INTERRUPTED if interrupted else Exit.FAILED


def _announce_time(planned: Sequence["Plan"], budget_s: float) -> None:
    """Report before the start what the levels that claims name take, and which budget would do."""
    from webdyno.core.format import count, duration, typed_duration
    from webdyno.media.console import notify

    need_s = sum(plan.need_s for plan in planned)
    if not planned:
        return
    takes = f"{count(len(planned), 'experiment')}: at the levels that claims name they take "
    takes += f"about {duration(need_s)}"
    budget = duration(budget_s)
    if need_s > budget_s:
        would_do = f"--time {typed_duration(need_s)} would do"
        notify(f"{takes}; in {budget} some claims are not judged. {would_do}")
    else:
        notify(f"{takes}; the rest of {budget} goes to claims that are inconclusive then")


def _heads_with_report(wanted: Sequence["Publication"], folder: Path) -> dict[str, "RunHead"]:
    from webdyno.core.run import PAGE_FILE
    from webdyno.measure.folder import RunFolder

    names = [name for study in wanted for name in study.experiments]
    there = [name for name in names if (folder / name / PAGE_FILE).exists()]
    return {name: RunFolder.open(folder / name).head for name in there}


def resume(
    run: Annotated[Path, flag("RUN: folder of a run.")] = LAST,
    *,
    time: TimeFlag = USUAL_TIME,
    how: RunFlags = PLAIN_RUN,
) -> Exit:
    """Continue a run after Ctrl-C, a crash or a full disk.

    Finished rounds aren't repeated. Everything comes from the run's folder, its part of the catalog
    included. On another machine, or with other versions of servers and tools, the run is refused.
    --time counts from now on, and measures even if the run had ended.

    For example

        webdyno resume runs/2026-11-21-093000-static-hello

        webdyno resume runs/2026-11-21-093000-static-hello --time 5m
    """
    from webdyno.interfaces.cli.cluster import is_fleet, is_spread, measure_and_show_all
    from webdyno.interfaces.cli.progress import at_terminal
    from webdyno.interfaces.cli.result import go_on_and_show, sweeps_afterwards

    run = run_folder(run)
    if is_fleet([run]) or is_spread(run):
        from webdyno.launch.dispatch import begun_in

        if time.given is not None:
            raise UserError("--time is for a single run: give the folder of a host's")
        return measure_and_show_all(begun_in(run, at_terminal(how)), how)
    return go_on_and_show(run, how, time.seconds, afterwards=sweeps_afterwards(how))
