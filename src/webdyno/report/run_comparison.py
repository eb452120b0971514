"""What changed between two runs, and points of one experiment that several machines measured."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from webdyno.comparison import points_together
from webdyno.comparison.runs import TAKEN_BY_OTHERS
from webdyno.comparison.sentences import rank_words
from webdyno.core import format as text
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.metrics import METRICS
from webdyno.core.run import RunHead
from webdyno.core.sweep import (
    Change,
    Difference,
    PointComparison,
    PointJudgement,
    RankChanges,
    SweepComparison,
)
from webdyno.media import document as doc
from webdyno.report.words import (
    SIGNS,
    as_headline,
    change_headline,
    metric_title,
    ratio_cells,
    side_word,
    verdict_cell,
    verdict_counts,
)

NOT_COMPARED = (
    "Each point was measured whole on one machine, and variants are compared at each point by "
    "itself. Points of different machines aren't compared: what differs between them may be the "
    "machines. Whether a ratio holds on other machines is what --replicates shows."
)

NAMES = {TAKEN_BY_OTHERS: "CPU time of the servers that others took"}
"""What differences are called that aren't in a file or on the command line."""


def comparison_document(head: RunHead, compared: SweepComparison) -> doc.Document:
    """Return what changed; `head` is that of the later run."""
    about = "What changed from the first run to the second"
    return doc.Document(head.experiment.title, about, list(_change_blocks(head, compared)))


def _change_blocks(head: RunHead, compared: SweepComparison) -> Iterator[doc.Block]:
    several = len(compared.points) > 1
    for point in compared.points:
        yield from _point(point, head.experiment.measure.decide_on, only_deciding=several)
    if not compared.points:
        said = "The runs have no point in common: there is nothing to compare."
        yield doc.Headlines([as_headline(Verdict.INVALID, said)])
    if compared.excluded:
        count = text.count(len(compared.excluded), "point")
        yield doc.Paragraph(f"{count} excluded, which only one of the runs has.", look="soft")
    if compared.points:
        yield _differences(compared.points[0].comparison.differences)


def _point(point: PointComparison, decide_on: str, *, only_deciding: bool) -> Iterator[doc.Block]:
    comparison = point.comparison
    deciding = [
        each for each in comparison.changes if each.metric == decide_on and each.of == "variant"
    ]
    headlines = [change_headline(change) for change in deciding]
    if comparison.mismatches or not headlines:
        headlines = [as_headline(comparison.verdict, comparison.headline)]
    if comparison.rank_changes:
        headlines = [_ranks_headline(comparison.rank_changes)]
    yield doc.Headlines(headlines, text.levels_text(point.levels))
    if comparison.rank_changes:
        rows = [
            [change.variant, rank_words(change.before), rank_words(change.after)]
            for change in comparison.rank_changes.ranks
        ]
        yield doc.simple_table(
            {"variant": "name", "rank before": "words", "rank after": "words"}, rows
        )
    shown = [
        change
        for change in comparison.changes
        if change.change and (change.metric == decide_on or not only_deciding)
    ]
    if shown and not comparison.mismatches:
        yield _changes(shown, decide_on)


def _ranks_headline(changes: RankChanges) -> doc.Headline:
    pairs = changes.same + changes.open + len(changes.swaps)
    others = f"{changes.same} in the same order in both runs, {changes.open} open in one or both"
    if changes.open == pairs:
        words = f"{SIGNS[Verdict.INCONCLUSIVE]} NO PAIR SETTLED IN BOTH RUNS"
        sentence = f"{changes.open} of {text.count(pairs, 'pair')} open in one or both"
        return doc.Headline(Verdict.INCONCLUSIVE, words, sentence)
    if not changes.swaps:
        words = f"{SIGNS[Verdict.EQUIVALENT]} NO PAIR SWAPPED"
        sentence = f"of {text.count(pairs, 'pair')} {others}"
        return doc.Headline(Verdict.EQUIVALENT, words, sentence)
    swapped = [
        f"{swap.ahead} ÷ {swap.behind} {text.times(swap.before)} before, "
        f"{text.times(swap.after)} after"
        for swap in changes.swaps
        if swap.before and swap.after
    ]
    words = f"{SIGNS[Verdict.SLOWER]} {text.count(len(changes.swaps), 'pair')} swapped".upper()
    return doc.Headline(Verdict.SLOWER, words, f"{text.listed(swapped)}; {others}")


def _changes(changes: Sequence[Change], decide_on: str) -> doc.Table:
    rows: dict[str, list[list[doc.Cell | str]]] = {}
    for change in changes:
        decides = change.metric == decide_on and change.of == "variant"
        verdict = verdict_cell(change.verdict, "" if decides else side_word(change))
        rows.setdefault(change.metric, []).append(
            [change.subject, *ratio_cells(change.change), verdict]
        )
    levels = [change.change.confidence for change in changes if change.change]
    return doc.Table(
        columns=[
            doc.Column("variant", "name", obvious=True),
            doc.Column("after ÷ before", "ratio"),
            doc.Column(text.ci_level(max(levels, default=0.95)), "range"),
            doc.Column("verdict", "verdict"),
        ],
        groups=[
            doc.RowGroup(rows[name], heading=metric_title(METRICS[name].metric))
            for name in sorted(rows, key=lambda name: name != decide_on)
        ],
        style="brief",
    )


def _differences(differences: Sequence[Difference]) -> doc.Block:
    if not differences:
        said = "Machine, versions and settings of measuring are the same."
        return doc.Paragraph(said, look="soft")
    rows = [(NAMES.get(each.what, each.what), each.before, each.after) for each in differences]
    table = doc.simple_table({"": "words", "before": "words", "after": "words"}, rows)
    return doc.Section("What else differs, and may be the cause", [table])


class MachinePoint(NamedTuple):
    """What the machine says on which a point was measured."""

    machine: str
    run: Path
    """Its folder, in that of all of them."""
    judged: PointJudgement


def spread_document(
    experiment: Experiment, judged: Sequence[MachinePoint], points: int
) -> doc.Document:
    """Return each point with its machine; of so many `points` some may be missing."""
    measured = [point.judged for point in judged]
    machines = text.count(len({point.machine for point in judged}), "machine")
    verdicts = Counter(point.judgement.verdict for point in measured)
    title = metric_title(METRICS[experiment.measure.decide_on].metric)
    sentences, decide_on = points_together(experiment, measured), experiment.measure.decide_on
    there = f"{len(judged)} of {text.count(points, 'point')}, on {machines}"
    blocks: list[doc.Block] = [
        verdict_counts(verdicts, sentences, decide_on),
        doc.Section(title, [_points(experiment, judged)]),
        doc.Paragraph(there, look="strong"),
        doc.Paragraph(NOT_COMPARED, look="soft"),
    ]
    return doc.Document(experiment.title, experiment.question, blocks)


def _points(experiment: Experiment, judged: Sequence[MachinePoint]) -> doc.Table:
    decide_on = experiment.measure.decide_on
    groups = []
    for point in judged:
        rows: list[list[doc.Cell | str]] = []
        for comparison in point.judged.judgement.comparisons:
            if comparison.metric == decide_on:
                rows.append(
                    [
                        f"{comparison.a} ÷ {comparison.b}",
                        *ratio_cells(comparison.decisive),
                        verdict_cell(comparison.verdict),
                        "" if rows else str(point.run),
                    ]
                )
        levels = [text.level(level) for level in point.judged.point.levels.values()]
        groups.append(doc.RowGroup(rows, shared=levels))
    return doc.Table(
        columns=[
            *map(doc.Column, text.factor_names(experiment.factors).values()),
            doc.Column("variants", "name", obvious=True),
            doc.Column("ratio", "ratio"),
            doc.Column("CI", "range"),
            doc.Column("verdict", "verdict"),
            doc.Column("machine and run"),
        ],
        groups=groups,
    )
