"""What became of studies' claims: in the terminal a block for each, tables as Markdown and page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import version
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from webdyno.model.base import Interval
from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.format import MISSING, count, quantity, quantity_bounds, ratio_bounds, times
from webdyno.model.metrics import metric_rule
from webdyno.model.run import PAGE_FILE, RunHead
from webdyno.model.study import Claim, ClaimRow, Outcome, Publication, Told
from webdyno.report.conditions import machine_facts
from webdyno.report.page import templates

HEADINGS = ("study", "claim", "published", "done right", "as published", "outcome", "why")
STYLES = {
    Outcome.HOLDS: "bold green",
    Outcome.FAILS: "bold red",
    Outcome.UNDECIDED: "bold yellow",
    Outcome.UNTOLD: "bold yellow",
    Outcome.SHOWN: "bold",
}
TONES = {
    Outcome.HOLDS: "faster",
    Outcome.FAILS: "slower",
    Outcome.UNDECIDED: "undecided",
    Outcome.UNTOLD: "undecided",
    Outcome.SHOWN: "equivalent",
}
"""The verdict that has the same colour."""


def outcomes(rows: Sequence[ClaimRow]) -> dict[Outcome, int]:
    """Count the outcomes that there are, in their order."""
    counted = Counter(row.outcome for row in rows)
    return {outcome: counted[outcome] for outcome in Outcome if outcome in counted}


def claim_sentence(rows: Sequence[ClaimRow]) -> str:
    """Say how many claims hold; of figures that are only shown nothing."""
    counted = Counter(row.outcome for row in rows)
    claims = len(rows) - counted[Outcome.SHOWN]
    if not claims:
        return "Nothing here is a claim that could hold or not."
    holds, fails = counted[Outcome.HOLDS], counted[Outcome.FAILS]
    open_ = counted[Outcome.UNDECIDED] + counted[Outcome.UNTOLD]
    return (
        f"Of {count(claims, 'claim')} {holds or 'none'} hold{'s' * (holds == 1)} here, "
        f"{fails or 'none'} {'does' if fails == 1 else 'do'} not; "
        f"{open_ or 'none'} stay{'s' * (open_ == 1)} open."
    )


def claim_blocks(rows: Sequence[ClaimRow]) -> RenderableType:
    """Give a block of lines per claim, under its study's name."""
    parts: list[RenderableType] = []
    for study, claims in groupby(rows, key=lambda row: row.study):
        parts += [Text(study, style="bold underline"), Text()]
        for row in claims:
            parts += [_claim(row), Text()]
    return Group(*parts)


def _claim(row: ClaimRow) -> RenderableType:
    said = [
        (heading, Text(text))
        for heading, text in zip(HEADINGS, _cells(row), strict=True)
        if heading in {"published", "done right", "as published", "why"} and text != MISSING
    ]
    outcome = Text.assemble((str(row.outcome), STYLES[row.outcome]), "  ", row.claim.says)
    table = Table.grid(padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    for heading, text in said:
        table.add_row(heading, text)
    return Group(outcome, Padding(table, (0, 0, 0, 2)))


def markdown(rows: Sequence[ClaimRow]) -> str:
    """Write the table as Markdown."""
    lines = [HEADINGS, ("---",) * len(HEADINGS), *map(_cells, rows)]
    return "".join(f"| {' | '.join(map(_escaped, line))} |\n" for line in lines)


class Cells(NamedTuple):
    """A row's texts; what wasn't measured or published is a dash."""

    study: str
    claim: str
    published: str
    right: str
    as_published: str
    outcome: Outcome
    why: str


def _cells(row: ClaimRow) -> Cells:
    right = next((told for told in row.told if told.generator == OWN_GENERATOR), None)
    published = next((told for told in row.told if told.generator != OWN_GENERATOR), None)
    return Cells(
        study=row.study,
        claim=row.claim.says,
        published=row.claim.published or MISSING,
        right=" ".join(_measured(row.claim, right)),
        as_published=" ".join(_measured(row.claim, published)),
        outcome=row.outcome,
        why=row.reason or MISSING,
    )


def _measured(claim: Claim, told: Told | None) -> Iterator[str]:
    if told is None:
        yield MISSING
        return
    if told.generator != OWN_GENERATOR:
        yield f"{told.generator}:"
    if not told.found:
        yield str(told.outcome)
        return
    written = partial(_figure, claim) if claim.is_figure else _ratio
    lowest = min(told.found, key=lambda it: it.estimate)
    highest = max(told.found, key=lambda it: it.estimate)
    yield written(lowest)
    if len(told.found) > 1:
        yield f"to {written(highest)}"


def _ratio(ratio: Interval) -> str:
    return f"{times(ratio)} ({ratio_bounds(ratio)})"


def _figure(claim: Claim, value: Interval) -> str:
    """Write a value of a metric with its unit; times as published, in milliseconds."""
    unit = metric_rule(claim.metric).metric.unit
    if unit == "µs":
        unit = "ms"
        value = value.replace(
            low=value.low / 1e3, estimate=value.estimate / 1e3, high=value.high / 1e3
        )
    return f"{quantity(value)} {unit} ({quantity_bounds(value)})"


def claims_page(
    studies: Sequence[Publication],
    rows: Sequence[ClaimRow],
    measured: Mapping[str, RunHead],
    again: str,
) -> str:
    """Give the page of studies, which lies beside the folders of their runs.

    `measured` are the runs that have a report, by experiment; `again` is the command that measures
    what is missing.
    """
    heads = list(measured.values())
    return (
        templates()
        .get_template("claims.html")
        .render(
            title=studies[0].title if len(studies) == 1 else "Published comparisons, repeated",
            version=version("webdyno"),
            marks=[],
            measured_at=min((head.started_at for head in heads), default=None),
            counts=outcomes(rows),
            tones=TONES,
            sentence=claim_sentence(rows),
            studies=[_study(study, rows, measured) for study in studies],
            report_file=PAGE_FILE,
            machine=machine_facts(heads[0].machine) if heads else [],
            repeat=again,
        )
    )


def _study(
    study: Publication, rows: Sequence[ClaimRow], measured: Mapping[str, RunHead]
) -> dict[str, Any]:
    return {
        "title": study.title,
        "setting": study.setting,
        "reports": [name for name in study.experiments if name in measured],
        "rows": [_cells(row) for row in rows if row.study == study.name],
    }


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
