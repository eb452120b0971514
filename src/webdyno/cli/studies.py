"""`webdyno studies`: published studies, repeated, and what of their claims holds here."""

import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console, print_table, tell
from webdyno.cli.flags import USUAL_TIME, BudgetFlag, RunFlags, Yes
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import show_measured, show_result
from webdyno.definitions import Catalogue
from webdyno.definitions.catalogue import check_study, read_studies
from webdyno.lab.ending import Exit
from webdyno.lab.studies import Plan, Repetition, plans_of
from webdyno.model.command import command
from webdyno.model.errors import UserError
from webdyno.model.files import write_whole
from webdyno.model.format import count, duration
from webdyno.model.run import PAGE_FILE, RunHead
from webdyno.model.study import Publication
from webdyno.run.folder import RunFolder

CLAIMS_FILE = "claims.md"
CLAIMS_PAGE = "claims.html"

USUAL_BUDGET_S = 90 * 60.0


def studies(
    *names: Annotated[str, Parameter(help="Studies to repeat; listed when none is named.")],
    all_: Annotated[bool, Parameter(name="--all", help="Repeat all of them.")] = False,
    budget: BudgetFlag = USUAL_TIME,
    out: Annotated[
        Path | None,
        Parameter(help="Folder of the runs; finished ones in it are judged, others gone on with."),
    ] = None,
    yes: Yes = False,
) -> Exit:
    """List the studies, or repeat some and judge their claims.

    First each experiment gets the rounds that a verdict needs, at the levels that claims name; what
    is left of the time goes to claims that are inconclusive by then. What became of the claims is
    printed, and written beside the runs as a page and as Markdown. The exit code is 3 when an
    experiment failed, whatever became of the others. --budget is for all of it (90m).

    For example

        webdyno studies

        webdyno studies deathmatch --budget 20m

        webdyno studies --all --budget 90m --yes
    """
    known = read_studies()
    if not names and not all_:
        _overview(known.values())
        return Exit.OK
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no study named {unknown[0]!r}; there are {', '.join(known)}")
    wanted = list(known.values()) if all_ else [known[name] for name in dict.fromkeys(names)]
    budget_s = budget.seconds or USUAL_BUDGET_S
    folder = out or Path("runs") / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-studies"
    return _repeat(wanted, budget_s, folder, yes=yes)


def _overview(known: Iterable[Publication]) -> None:
    rows = [(it.name, it.title, str(len(it.claims)), ", ".join(it.experiments)) for it in known]
    print_table(("study", "what it is", "claims", "experiments"), rows)


def _repeat(wanted: Sequence[Publication], budget_s: float, folder: Path, *, yes: bool) -> Exit:
    from webdyno.report.claims import claims_digest, claims_markdown, claims_page, outcomes
    from webdyno.report.page import make_again
    from webdyno.report.terminal import print_document

    catalogue = Catalogue.load()
    for study in wanted:
        check_study(study, catalogue)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--out {folder}: can't be made: {error.strerror}") from error
    planned = [plan for study in wanted for plan in plans_of(study, catalogue, folder)]
    planned.sort(key=lambda plan: plan.need_s)  # the longest last: what it overruns costs no other
    _tell_time(planned, budget_s)
    repeated = Repetition(
        folder,
        catalogue,
        ends=time.monotonic() + budget_s,
        caller=at_terminal(RunFlags(yes=yes)),
        show=partial(show_measured, show=show_result),
    )
    interrupted = not (repeated.measure_all(planned) and repeated.decide_more(wanted))
    rows = [row for study in wanted for row in repeated.rows_of(study)]
    console = plain_console()
    print_document(console, claims_digest(rows))
    console.print()
    names = [study.name for study in wanted]
    again = command("studies", *names, "--budget", f"{budget_s:g}s", "--out", folder)
    then = make_again(again)
    write_whole(folder / CLAIMS_FILE, claims_markdown(rows), then)
    page = folder / CLAIMS_PAGE
    write_whole(page, claims_page(wanted, rows, _reported(wanted, folder), again), then)
    found = ", ".join(f"{number} × {outcome}" for outcome, number in outcomes(rows).items())
    console.print(f"{found}\nReport: {page}", soft_wrap=True)
    if not repeated.failures and not interrupted:
        return Exit.OK
    tell(f"{_what_is_missing(repeated.failures)}; to measure what is missing: {again}")
    return Exit.INTERRUPTED if interrupted else Exit.FAILED


def _what_is_missing(failures: Mapping[str, str]) -> str:
    return f"failed: {', '.join(failures)}" if failures else "interrupted"


def _tell_time(planned: Sequence[Plan], budget_s: float) -> None:
    """Say before the start what the levels that claims name take, and which budget would do."""
    need_s = sum(plan.need_s for plan in planned)
    if not planned:
        return
    takes = (
        f"{count(len(planned), 'experiment')}: at the levels that claims name they take about "
        f"{duration(need_s)}"
    )
    if need_s > budget_s:
        would_do = f"--budget {ceil(need_s / 60)}m would do"
        tell(f"{takes}; in {duration(budget_s)} some claims are not judged. {would_do}")
    else:
        tell(f"{takes}; the rest of {duration(budget_s)} goes to claims that are inconclusive then")


def _reported(wanted: Sequence[Publication], folder: Path) -> dict[str, RunHead]:
    """Give the runs that have a report, by experiment."""
    names = [name for study in wanted for name in study.experiments]
    there = [name for name in names if (folder / name / PAGE_FILE).exists()]
    return {name: RunFolder.open(folder / name).head for name in there}
