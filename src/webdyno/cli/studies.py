"""`webdyno run study:NAME`: published studies, repeated, and what of their claims holds here."""

import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from math import ceil
from pathlib import Path

from webdyno.cli.flags import STUDY, RunFlags
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import show_measured, show_result
from webdyno.definitions import Catalogue
from webdyno.definitions.catalogue import check_study, read_studies
from webdyno.definitions.validation import nearest
from webdyno.lab.studies import Plan, Repetition, plans_of
from webdyno.model.command import command
from webdyno.model.errors import UserError
from webdyno.model.exit_codes import Exit
from webdyno.model.files import write_whole
from webdyno.model.format import count, duration
from webdyno.model.run import PAGE_FILE, RunHead, folder_under_runs
from webdyno.model.study import Publication
from webdyno.report.console import plain_console, tell
from webdyno.run.folder import RunFolder

CLAIMS_FILE = "claims.md"
CLAIMS_PAGE = "claims.html"

ALL = "all"
USUAL_TIME_S = 90 * 60.0


def run_studies(asked: str, time_s: float | None, out: Path | None, how: RunFlags) -> Exit:
    """Repeat studies, named as in `study:NAME,NAME` or `study:all`, and judge their claims.

    First each experiment gets the rounds that a verdict needs, at the levels that claims name; what
    is left of the time goes to claims that are inconclusive by then. What became of the claims is
    printed, and written beside the runs as a page and as Markdown.
    """
    known = read_studies()
    names = list(known) if asked == ALL else list(dict.fromkeys(asked.split(",")))
    if unknown := [name for name in names if name not in known]:
        raise UserError(f"there is no study named {unknown[0]!r}; {nearest(unknown[0], known)}")
    folder = out or folder_under_runs("studies", datetime.now().astimezone())
    return _repeat([known[name] for name in names], time_s or USUAL_TIME_S, folder, how)


def _repeat(wanted: Sequence[Publication], budget_s: float, folder: Path, how: RunFlags) -> Exit:
    from webdyno.report.claims import claims_digest, claims_markdown, claims_page, outcomes
    from webdyno.report.page import make_again
    from webdyno.report.terminal import print_document

    catalogue = Catalogue.load()
    for study in wanted:
        check_study(study, catalogue)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder}: can't be made: {error.strerror}") from error
    planned = [plan for study in wanted for plan in plans_of(study, catalogue, folder)]
    planned.sort(key=lambda plan: plan.need_s)  # the longest last: what it overruns costs no other
    _tell_time(planned, budget_s)
    repeated = Repetition(
        folder,
        catalogue,
        ends=time.monotonic() + budget_s,
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
        would_do = f"--time {ceil(need_s / 60)}m would do"
        tell(f"{takes}; in {duration(budget_s)} some claims are not judged. {would_do}")
    else:
        tell(f"{takes}; the rest of {duration(budget_s)} goes to claims that are inconclusive then")


def _reported(wanted: Sequence[Publication], folder: Path) -> dict[str, RunHead]:
    """Give the runs that have a report, by experiment."""
    names = [name for study in wanted for name in study.experiments]
    there = [name for name in names if (folder / name / PAGE_FILE).exists()]
    return {name: RunFolder.open(folder / name).head for name in there}
