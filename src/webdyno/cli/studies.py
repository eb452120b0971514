"""`webdyno studies`: published studies, repeated, and what of their claims holds here."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from webdyno.cli.console import plain_console, print_table, tell
from webdyno.cli.exits import Exit
from webdyno.cli.flags import USUAL_TIME, BudgetFlag, RunFlags, Yes
from webdyno.cli.measure import measure, measure_on
from webdyno.definitions import Catalogue
from webdyno.definitions.catalogue import check_study, levels_first, read_studies
from webdyno.model.command import command
from webdyno.model.experiment import Level
from webdyno.model.files import write_whole
from webdyno.model.format import count, duration
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.point import plan_points
from webdyno.model.run import PAGE_FILE, RunHead
from webdyno.model.study import ClaimRow, Outcome, Publication
from webdyno.run.folder import HEAD_FILE, RunFolder

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.studies.further import Further

CLAIMS_FILE = "claims.md"
CLAIMS_PAGE = "claims.html"

USUAL_BUDGET_S = 90 * 60.0
BUDGET_FOR_NEED = 3.0
"""Pilots plan for blocks that take a quarter of a budget, and remedies need room besides."""
FIGURE_BLOCKS = 4
"""Of an experiment whose claims are figures: they have no verdict, but an interval."""


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

    First each experiment gets the blocks that a verdict needs, at the levels that claims name; what
    is left of the time goes to claims that are undecided by then. What became of the claims is
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
        raise Mistake(f"there is no study named {unknown[0]!r}; there are {', '.join(known)}")
    wanted = list(known.values()) if all_ else [known[name] for name in dict.fromkeys(names)]
    budget_s = budget.seconds or USUAL_BUDGET_S
    folder = out or Path("runs") / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-studies"
    return _repeat(wanted, budget_s, folder, yes=yes)


def _overview(known: Iterable[Publication]) -> None:
    rows = [(it.name, it.title, str(len(it.claims)), ", ".join(it.experiments)) for it in known]
    print_table(("study", "what it is", "claims", "experiments"), rows)


class _Plan(NamedTuple):
    """An experiment of a study that is to be measured."""

    name: str
    run: Path
    """The folder of its run."""
    begun: bool
    """Whether there are blocks of it already."""
    first: dict[str, list[Level]]
    """Levels that claims need."""
    blocks: int
    """How many each point gets before the claims are looked at."""
    need_s: float
    """How long these blocks take there, about."""


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
        raise Mistake(f"--out {folder}: can't be made: {error.strerror}") from error
    planned = [plan for study in wanted for plan in _plans(study, catalogue, folder)]
    planned.sort(key=lambda plan: plan.need_s)  # the longest last: what it overruns costs no other
    _tell_time(planned, budget_s)
    ends = time.monotonic() + budget_s
    failures: dict[str, str] = {}
    interrupted = not (
        _measure_all(planned, ends, catalogue, failures, yes=yes)
        and _decide_more(wanted, folder, ends, failures, yes=yes)
    )
    rows = [row for study in wanted for row in _rows(study, folder, failures)]
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
    if not failures and not interrupted:
        return Exit.OK
    tell(f"{_what_is_missing(failures)}; to measure what is missing: {again}")
    return Exit.INTERRUPTED if interrupted else Exit.FAILED


def _measure_all(
    planned: Sequence[_Plan],
    ends: float,
    catalogue: Catalogue,
    failures: dict[str, str],
    *,
    yes: bool,
) -> bool:
    """Measure one experiment after the other, until one is interrupted: False then.

    Those that fail are added to `failures`, with the reason.
    """
    for number, plan in enumerate(planned):
        share = plan.need_s / sum(each.need_s for each in planned[number:])
        share_s = min(plan.need_s, share * (ends - time.monotonic()))
        if not _went_on(plan.name, partial(_measure, plan, share_s, catalogue, yes=yes), failures):
            return False
    return True


def _went_on(name: str, measuring: Callable[[], Exit], failures: dict[str, str]) -> bool:
    """Measure, and put on record what fails; False when somebody interrupted it."""
    try:
        return measuring() is not Exit.INTERRUPTED
    except KeyboardInterrupt:  # before the first block
        return False
    except (Mistake, Trouble) as trouble:
        failures[name] = str(trouble).splitlines()[0]
        tell(f"{name}: {trouble}")
    return True


def _decide_more(
    wanted: Sequence[Publication], folder: Path, ends: float, failures: dict[str, str], *, yes: bool
) -> bool:
    """Spend what is left of the time on undecided claims, until one is interrupted: False then."""
    from webdyno.studies.further import Round, further_blocks, next_round

    def foreseen(name: str) -> "list[Further]":
        run = RunFolder.open(folder / name).data()
        about = [it for study in wanted for it in study.claims if it.experiment == name]
        return [it for claim in about for it in further_blocks(claim, run)]

    names = [name for study in wanted for name in study.experiments if name not in failures]
    further = {name: foreseen(name) for name in names if (folder / name / HEAD_FILE).exists()}
    done: list[Round] = []
    while due := next_round(chain(*further.values()), left_s := ends - time.monotonic(), done):
        done.append(due)
        tell(
            f"{due.experiment}: {count(due.more, 'more block')} for {due.claim.says!r}, which is "
            f"undecided; {duration(left_s)} are left"
        )
        blocks = {due.point: due.blocks}
        measuring = partial(measure_on, folder / due.experiment, RunFlags(yes=yes), None, blocks)
        if not _went_on(due.experiment, measuring, failures):
            return False
        further[due.experiment] = [] if due.experiment in failures else foreseen(due.experiment)
    return True


def _what_is_missing(failures: Mapping[str, str]) -> str:
    return f"failed: {', '.join(failures)}" if failures else "interrupted"


def _tell_time(planned: Sequence[_Plan], budget_s: float) -> None:
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
        tell(f"{takes}; in {duration(budget_s)} some claims can't be told. {would_do}")
    else:
        tell(f"{takes}; the rest of {duration(budget_s)} goes to claims that are undecided then")


def _plans(study: Publication, catalogue: Catalogue, folder: Path) -> Iterator[_Plan]:
    """Give the study's experiments that aren't measured to their end yet."""
    from webdyno.judge import question_of
    from webdyno.run.budget import need_s
    from webdyno.run.session import rounds_are_over

    for name in study.experiments:
        run = folder / name
        begun = (run / HEAD_FILE).exists()
        if begun and rounds_are_over(RunFolder.open(run).data()):
            continue
        experiment = catalogue.experiment(name)
        first = levels_first(study, name, experiment)
        has_verdict = any(it.experiment == name and not it.is_figure for it in study.claims)
        blocks = question_of(experiment).fewest_blocks if has_verdict else FIGURE_BLOCKS
        need = need_s(experiment, catalogue, first, blocks)
        yield _Plan(name, run, begun, first, blocks, need)


def _measure(plan: _Plan, share_s: float, catalogue: Catalogue, *, yes: bool) -> Exit:
    """Run an experiment at as many points as fit into its share of the time, or go on with it.

    Each gets the blocks of its plan, all others wait until it is known which claims want more. So
    pilots and remedies have a budget of their own, as in an ordinary run.
    """
    from webdyno.run.budget import reduce_levels

    if plan.begun:
        experiment = RunFolder.open(plan.run).head.experiment
    else:
        whole = catalogue.experiment(plan.name)
        experiment = reduce_levels(whole, catalogue, share_s, plan.first, plan.blocks)
        budget_s = plan.need_s * BUDGET_FOR_NEED
        experiment = experiment.with_measure(budget_s=budget_s, patience=1.0)
    points = [each.point.number for each in plan_points(experiment)]
    blocks = dict.fromkeys(points, plan.blocks)
    if plan.begun:
        return measure_on(plan.run, RunFlags(yes=yes), None, blocks)
    return measure(plan.name, experiment, catalogue, plan.run, RunFlags(yes=yes), blocks)


def _rows(study: Publication, folder: Path, failures: dict[str, str]) -> list[ClaimRow]:
    from webdyno.studies.claims import judge_claim

    rows = []
    for claim in study.claims:
        run = folder / claim.experiment
        if (run / HEAD_FILE).exists():
            row = judge_claim(study.name, claim, RunFolder.open(run).data())
        else:
            row = judge_claim(study.name, claim, None)
        if row.outcome is Outcome.UNTOLD and claim.experiment in failures:
            row = row.replace(told=[], why=failures[claim.experiment])
        rows.append(row)
    return rows


def _reported(wanted: Sequence[Publication], folder: Path) -> dict[str, RunHead]:
    """Give the runs that have a report, by experiment."""
    names = [name for study in wanted for name in study.experiments]
    there = [name for name in names if (folder / name / PAGE_FILE).exists()]
    return {name: RunFolder.open(folder / name).head for name in there}
