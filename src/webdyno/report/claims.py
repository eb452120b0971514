"""What became of studies' claims: a block for each in the terminal, tables as Markdown and page."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import groupby
from typing import NamedTuple

from webdyno.core.base import Interval
from webdyno.core.experiment import OWN_GENERATOR
from webdyno.core.format import DASH, MISSING, count, quantity, quantity_bounds, ratio_bounds, times
from webdyno.core.judgement import Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.run import PAGE_FILE, RunHead
from webdyno.core.study import Claim, ClaimRow, GeneratorAnswer, Outcome, Publication
from webdyno.media import document as doc
from webdyno.media.markdown import table_lines
from webdyno.media.page import html
from webdyno.report.conditions import machine_facts, when

HEADINGS = ("study", "claim", "published", "done right", "as published", "outcome", "why")
TONES = {
    Outcome.HOLDS: Verdict.FASTER,
    Outcome.FAILS: Verdict.SLOWER,
    Outcome.INCONCLUSIVE: Verdict.INCONCLUSIVE,
    Outcome.NOT_JUDGED: Verdict.INCONCLUSIVE,
    Outcome.SHOWN: Verdict.EQUIVALENT,
}
WORD_JOINER = "\u2060"
HOW_TO_READ = (
    "A claim is a range in which the ratio of two variants lies. It holds where the interval of "
    "the ratio, in the worst case of interference, lies inside that range, and doesn't where it "
    "lies outside of it; else it is inconclusive. What counts is how webdyno's own load engine "
    "measures it, on fresh starts of both variants in turns; what the study's own instrument gives "
    "in the same run stands next to it. An absolute figure belongs to the study's machine: ours is "
    "shown, without a verdict."
)


def outcomes(rows: Sequence[ClaimRow]) -> dict[Outcome, int]:
    """Count the outcomes that there are, in their order."""
    counted = Counter(row.outcome for row in rows)
    return {outcome: counted[outcome] for outcome in Outcome if outcome in counted}


def claim_sentence(rows: Sequence[ClaimRow]) -> str:
    """Return how many claims hold; of figures that are only shown nothing."""
    counted = Counter(row.outcome for row in rows)
    claims = len(rows) - counted[Outcome.SHOWN]
    if not claims:
        return "Nothing here is a claim that could hold or not."
    holds, fails = counted[Outcome.HOLDS], counted[Outcome.FAILS]
    open_ = counted[Outcome.INCONCLUSIVE] + counted[Outcome.NOT_JUDGED]
    return (
        f"Of {count(claims, 'claim')} {holds or 'none'} hold{'s' * (holds == 1)} here, "
        f"{fails or 'none'} {'does' if fails == 1 else 'do'} not; "
        f"{open_ or 'none'} stay{'s' * (open_ == 1)} open."
    )


def claims_digest(rows: Sequence[ClaimRow]) -> doc.Document:
    """Return each claim with what was published and measured, under its study's name."""
    by_study = groupby(rows, key=lambda row: row.study)
    sections = [doc.Section(study, list(map(_claim, its))) for study, its in by_study]
    return doc.Document("", "", sections)


def _claim(row: ClaimRow) -> doc.FactList:
    words = _words(row)
    facts: doc.Facts = [(row.outcome, words.claim)]
    for heading, said in zip(HEADINGS, words, strict=True):
        if heading not in {"study", "claim", "outcome"} and said != MISSING:
            facts.append((heading, said))
    return doc.FactList(facts, TONES[row.outcome])


def claims_markdown(rows: Sequence[ClaimRow]) -> str:
    return "\n".join(table_lines(HEADINGS, map(_words, rows))) + "\n"


class ClaimWords(NamedTuple):
    """A row's texts; what wasn't measured or published is a dash."""

    study: str
    claim: str
    published: str
    right: str
    as_published: str
    outcome: Outcome
    why: str


def _words(row: ClaimRow) -> ClaimWords:
    right = next((answer for answer in row.reported if answer.generator == OWN_GENERATOR), None)
    published = next((answer for answer in row.reported if answer.generator != OWN_GENERATOR), None)
    return ClaimWords(
        study=row.study,
        claim=row.claim.says,
        published=row.claim.published or MISSING,
        right=" ".join(_measured_words(row.claim, right)),
        as_published=" ".join(_measured_words(row.claim, published)),
        outcome=row.outcome,
        why=row.reason or MISSING,
    )


def _measured_words(claim: Claim, answer: GeneratorAnswer | None) -> Iterator[str]:
    if answer is None:
        yield MISSING
        return
    if answer.generator != OWN_GENERATOR:
        yield f"{answer.generator}:"
    if not answer.found:
        yield str(answer.outcome)
        return
    lowest_first = sorted(answer.found, key=lambda interval: interval.estimate)
    yield _figure(claim, lowest_first[0])
    if len(lowest_first) > 1:
        yield f"to {_figure(claim, lowest_first[-1])}"


def _figure(claim: Claim, value: Interval) -> str:
    """Return a ratio, or a value of a metric with its unit: times as published, in ms."""
    if not claim.is_figure:
        return f"{times(value)} ({ratio_bounds(value)})"
    unit = METRICS[claim.metric].metric.unit
    if unit == "µs":
        unit, value = "ms", value.map(lambda us: us / 1e3)
    return f"{quantity(value)} {unit} ({quantity_bounds(value)})"


def claims_page(
    studies: Sequence[Publication],
    rows: Sequence[ClaimRow],
    measured: Mapping[str, RunHead],
    again: str,
) -> str:
    """Return the page of studies, which lies next to the folders of their runs.

    `measured` are the runs that have a report, by experiment; `again` is the command that measures
    what is missing.
    """
    heads = list(measured.values())
    then = f" · {when(min(head.started_at for head in heads))}" if heads else ""
    counts = [(TONES[outcome], f"{n} × {outcome}") for outcome, n in outcomes(rows).items()]
    machines = (doc.FactList(machine_facts(head.machine)) for head in heads[:1])
    document = doc.Document(
        studies[0].title if len(studies) == 1 else "Published comparisons, repeated",
        f"What was published, and what came out when it was measured again{then}",
        [
            doc.Counts(counts, [claim_sentence(rows)]),
            *(_study(study, rows, measured) for study in studies),
            doc.Section("How to read it", [doc.Paragraph(HOW_TO_READ)]),
            *(doc.Section("Machine", [facts]) for facts in machines),
            doc.Section("How to repeat it", [doc.Code(again)]),
        ],
    )
    return html(document, brand="webdyno list studies", version=version("webdyno"))


def _study(
    study: Publication, rows: Sequence[ClaimRow], measured: Mapping[str, RunHead]
) -> doc.Section:
    reports = [(each, f"{each}/{PAGE_FILE}") for each in study.experiments if each in measured]
    links = doc.Links(reports, "Reports") if reports else doc.Paragraph("Not measured yet")
    columns: dict[str, doc.Kind] = {"claim": "name", "published": "words", "done right": "words"}
    columns |= {"its own instrument": "words", "outcome": "verdict"}
    shown = [_cells(row) for row in rows if row.study == study.name]
    table = doc.simple_table(columns, shown, "listed")
    return doc.Section(study.title, [links, table], note=f"Then: {study.setting}")


def _cells(row: ClaimRow) -> list[doc.Cell | str]:
    words = _words(row)
    return [
        doc.Cell(words.claim, below="" if words.why == MISSING else words.why),
        words.published,
        _unbroken(words.right),
        doc.Cell(_unbroken(words.as_published), soft=True),
        doc.Cell(row.outcome, TONES[row.outcome]),
    ]


def _unbroken(figures: str) -> str:
    """Keep both ends of an interval on one line."""
    return figures.replace(DASH, f"{WORD_JOINER}{DASH}{WORD_JOINER}")
