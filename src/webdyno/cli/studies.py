"""`webdyno studies`: published studies, repeated, and what of their claims holds here."""

import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, NamedTuple

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from webdyno.cli.exits import Exit
from webdyno.cli.flags import Yes
from webdyno.cli.measure import measure
from webdyno.cli.quantities import parse_duration_s
from webdyno.definitions import Catalogue, Override
from webdyno.definitions.study import check_study, levels_first, read_studies
from webdyno.model.experiment import Level
from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.study import ClaimRow, Outcome, Study
from webdyno.run.folder import HEAD_FILE, RunFolder

CLAIMS_FILE = "claims.md"


def studies(
    *names: Annotated[str, Parameter(help="Studies to repeat; listed when none is named.")],
    all_: Annotated[
        bool, Parameter(name="--all", help="Repeat all of them.", negative=(), show_default=False)
    ] = False,
    budget: Annotated[str, Parameter(help="Time for all of it, such as 60m.")] = "60m",
    out: Annotated[
        Path | None, Parameter(help="Folder of the runs; runs in it are judged, not repeated.")
    ] = None,
    yes: Yes = False,
) -> Exit:
    """List the studies, or repeat some and judge their claims.

    Of an experiment's levels as many are measured as fit into its share of the time, those that
    claims name before the others. The table of claims is printed, and written as Markdown beside
    the runs.

    For example

        webdyno studies

        webdyno studies deathmatch --budget 20m

        webdyno studies --all --budget 60m --yes
    """
    known = read_studies()
    if not names and not all_:
        Console().print(_overview(known.values()))
        return Exit.OK
    if unknown := [name for name in names if name not in known]:
        raise Mistake(f"there is no study named {unknown[0]!r}; there are {', '.join(known)}")
    wanted = list(known.values()) if all_ else [known[name] for name in dict.fromkeys(names)]
    budget_s = parse_duration_s(budget, "--budget")
    folder = out or Path("runs") / f"{datetime.now().astimezone():%Y-%m-%d-%H%M%S}-studies"
    return _repeat(wanted, budget_s, folder, yes=yes)


def _overview(known: Iterable[Study]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("study", "what it is", "claims", "experiments"):
        table.add_column(heading, overflow="fold")
    for study in known:
        experiments = ", ".join(study.experiments)
        table.add_row(study.name, study.title, str(len(study.claims)), experiments)
    return table


def _repeat(wanted: Sequence[Study], budget_s: float, folder: Path, *, yes: bool) -> Exit:
    from webdyno.studies import claim_blocks, markdown

    catalogue = Catalogue.load()
    for study in wanted:
        check_study(study, catalogue)
    planned = [
        plan
        for study in wanted
        for plan in _plans(study, catalogue)
        if not (folder / plan.name / HEAD_FILE).exists()
    ]
    planned.sort(key=lambda plan: plan.need_s)  # the longest last: what it overruns costs no other
    ends = time.monotonic() + budget_s
    failures: dict[str, str] = {}
    end = Exit.OK
    for number, plan in enumerate(planned):
        share = plan.need_s / sum(each.need_s for each in planned[number:])
        share_s = max(1.0, share * (ends - time.monotonic()))
        try:
            code = _measure(plan, share_s, catalogue, folder / plan.name, yes=yes)
        except Trouble as trouble:
            failures[plan.name] = str(trouble).splitlines()[0]
            Console(stderr=True).print(f"{plan.name}: {trouble}", markup=False)
            continue
        if code is Exit.INTERRUPTED:
            end = code
            break
    rows = [row for study in wanted for row in _rows(study, folder, failures)]
    console = Console()
    console.print(claim_blocks(rows))
    file = folder / CLAIMS_FILE
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(markdown(rows), encoding="utf-8")
    console.print(f"{_counts(rows)}; table in {file}", markup=False, soft_wrap=True)
    if end is Exit.INTERRUPTED:
        hint = f"interrupted; the same command with --out {folder} measures what is missing"
        Console(stderr=True).print(hint, markup=False, soft_wrap=True)
    return end


class _Plan(NamedTuple):
    """An experiment of a study that is to be run."""

    name: str
    first: dict[str, list[Level]]
    """Levels that claims need."""
    need_s: float
    """How long they take; an experiment's share of the time that is left goes by it."""


def _plans(study: Study, catalogue: Catalogue) -> Iterator[_Plan]:
    from webdyno.run.thin import need_s

    for name in study.experiments:
        experiment = catalogue.experiment(name)
        first = levels_first(study, name, experiment)
        yield _Plan(name, first, need_s(experiment, first))


def _measure(plan: _Plan, share_s: float, catalogue: Catalogue, out: Path, *, yes: bool) -> Exit:
    """Run an experiment at as many points as fit into its share of the time."""
    from webdyno.run.thin import thinned

    share = Override(("measure", "budget_s"), share_s, "--budget")
    experiment = thinned(catalogue.experiment(plan.name, [share]), share_s, plan.first)
    return measure(plan.name, experiment, catalogue, out, yes=yes)


def _rows(study: Study, folder: Path, failures: dict[str, str]) -> list[ClaimRow]:
    from webdyno.studies import judge_claim

    rows = []
    for claim in study.claims:
        run = folder / (claim.experiment or "")
        if claim.experiment in failures:
            why = failures[claim.experiment]
            rows.append(ClaimRow(study=study.name, claim=claim, told=[], why=why))
        elif claim.experiment and (run / HEAD_FILE).exists():
            opened = RunFolder.open(run)
            rows.append(judge_claim(study.name, claim, opened.head, opened.records()))
        else:
            rows.append(judge_claim(study.name, claim, None, []))
    return rows


def _counts(rows: Sequence[ClaimRow]) -> str:
    outcomes = [row.outcome for row in rows]
    return ", ".join(f"{outcomes.count(each)} × {each}" for each in Outcome)
