"""The sections of a run's page that say how its figures were made, and what makes them again."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from webdyno.comparison import question_of
from webdyno.comparison.ratio import SEQUENTIAL_FACTOR
from webdyno.core import format as text
from webdyno.core.errors import UserError
from webdyno.core.files import everything_below, read_given
from webdyno.core.judgement import Comparison, Verdict
from webdyno.core.run import RunHead, round_path, variant_folder
from webdyno.core.text import line_diff
from webdyno.media import document as doc
from webdyno.report.around_rounds import Preflight
from webdyno.report.brief import deciding_table, other_metrics
from webdyno.report.conditions import machine_facts, stop_rule
from webdyno.report.point_facts import slots_excluded
from webdyno.report.show import PointView, RunView, first
from webdyno.report.tables import by_variant_table, reasons
from webdyno.report.words import verdict_cell
from webdyno.statistics.interval import intervals_of

FEWEST_FOR_PREDICTION = 3
METHODS = {"t": "Student's t on log ratios", "hodges-lehmann": "Hodges–Lehmann on log ratios"}

LARGEST_FILE_BYTES = 256 * 1024
MOST_LINES = 400
AROUND = 2
"""Lines before and after one that differs."""
_OF_THE_START = (
    (re.compile(r"(?:(?<![\w./+@~-])/[\w./+@~-]*)?/live/\w{8}\b"), "RUN"),
    (re.compile(r"(?i)(?<=:)\d{4,5}\b|(?<=listen )\d{4,5}\b|(?<=port = )\d{4,5}\b"), "PORT"),
)
"""What is another at each start: the folder that servers run in, and their ports."""
VARIABLES = ".env"
_NO_CONFIGURATION = {"version.txt"}


def preflight_section(preflight: Preflight) -> doc.Section:
    """Return what the variants answered before the load: of what differs what each of them did."""
    groups: dict[str, list[tuple[doc.Cell | str, dict[str, str]]]] = {}
    for line in preflight.shown:
        mark = verdict_cell(Verdict.INVALID, f"{line.what}: wrong")
        what = mark if line.wrong else line.what
        groups.setdefault(line.about, []).append((what, line.by_variant))
    alike = "" if groups else " Nothing that matters differs."
    blocks: list[doc.Block] = [
        doc.Paragraph(f"Before any load, the same requests went to every variant.{alike}")
    ]
    if groups:
        wrong = any(line.wrong for line in preflight.shown)
        table = by_variant_table(preflight.variants, groups, "preflight")
        differences = text.count(len(preflight.shown), "difference")
        blocks.append(doc.Folded(differences, [table], is_open=wrong))
    if preflight.alike:
        same = f"The same on every variant: {', '.join(preflight.alike)}."
        blocks.append(doc.Paragraph(same, look="soft"))
    return doc.Section("Pre-flight check", blocks)


def configuration_section(folder: Path, view: RunView) -> Iterator[doc.Section]:
    """Yield the lines in which configurations differ, folded where there are several files."""
    if differences := configuration_differences(folder, view):
        only = len(differences) == 1
        blocks = [
            doc.Folded(f"{variant} against {other}: {file}", [doc.Code(diff)], is_open=only)
            for variant, other, file, diff in differences
        ]
        yield doc.Section("How the configurations differ", blocks)


def environment_section(head: RunHead) -> doc.Section:
    """Return machine and versions, and the kernel's settings folded."""
    sysctls = [(name, str(value)) for name, value in head.machine.sysctls.items()]
    settings = [doc.Folded("Settings of the kernel", [doc.FactList(sysctls)])] if sysctls else []
    versions = [
        (variant, ", ".join(f"{service} {version}" for service, version in services.items()))
        for variant, services in head.versions.items()
    ]
    return doc.Section(
        "Environment",
        [
            doc.FactList(machine_facts(head.machine)),
            doc.Heading("Versions"),
            doc.FactList([*versions, ("webdyno", head.webdyno_version)]),
            *settings,
        ],
    )


def repeat_section(folder: Path, head: RunHead) -> doc.Section:
    """Return the command that measures it again, and the whole experiment folded."""
    how: list[doc.Block] = [
        doc.Paragraph(
            "The run's folder holds all that it takes: the experiment, and the services, stacks "
            f"and sites as they were. With webdyno {head.webdyno_version}:"
        ),
        doc.Code(head.repeat_command(folder)),
    ]
    if elsewhere := head.command_elsewhere:
        how += [doc.Paragraph("Without that folder, on any machine:"), doc.Code(elsewhere)]
    whole = "The experiment as it was run, every default and the seed written out"
    folded = doc.Folded(whole, [doc.Code(head.experiment.toml())])
    return doc.Section("How to repeat it", [*how, folded], anchor="Reproduce")


def for_statisticians(point: PointView) -> Iterator[doc.Folded]:
    """Yield n, method, stopping rule, adjustment and exclusions, folded; of what was measured."""
    if point.deciding is None:
        return
    compared = point.deciding.comparisons
    blocks: list[doc.Block] = [deciding_table([point])]
    if compared:
        rounds = [
            (_ratio(each), ", ".join(text.significant(ratio, 3) for ratio in each.by_round))
            for each in compared
        ]
        blocks += [_tests(compared), doc.Heading("Ratios by round"), doc.FactList(rounds)]
    if said := [*reasons(point.deciding)]:
        blocks += [doc.Heading("What the verdict rests on"), doc.FactList(said)]
    blocks += [doc.Heading("Design"), doc.FactList([*_design(point, compared)])]
    for section in other_metrics(point):
        note = doc.Paragraph(section.note, look="soft")
        blocks += [doc.Heading(section.heading), note, *section.blocks]
    yield doc.Folded("n, df, both CIs, p, ratios by round, stopping rule, adjustment", blocks)


def _tests(compared: Sequence[Comparison]) -> doc.Table:
    rows = [
        [
            _ratio(comparison),
            str(len(comparison.by_round)),
            str(len(comparison.by_round) - 1) if comparison.method == "t" else text.MISSING,
            METHODS[comparison.method],
            _another_round(comparison),
            _p(comparison.sign_flip_p),
            _p(2.0 ** (1 - len(comparison.by_round))),
        ]
        for comparison in compared
    ]
    heads: dict[str, doc.Kind] = {
        "ratio": "name",
        "n (paired rounds)": "value",
        "df": "value",
        "CI by": "words",
        "95% prediction interval (one more round)": "range",
        "p (exact sign-flip test)": "value",
        "smallest p for n": "value",
    }
    return doc.simple_table(heads, rows, style="brief")


def _ratio(comparison: Comparison) -> str:
    return f"{comparison.a} ÷ {comparison.b}"


def _another_round(comparison: Comparison) -> str:
    """Return where the ratio of one more round would lie; for three or more it says something."""
    if len(comparison.by_round) < FEWEST_FOR_PREDICTION:
        return text.MISSING
    _, another = intervals_of(np.log(comparison.by_round), (0.0, 0.0), 0.95)
    return text.ratio_bounds(another.ratio(0.95))


def _p(p: float | None) -> str:
    return text.MISSING if p is None else text.probability(p).removeprefix("p ").lstrip("= ")


def _design(point: PointView, compared: Sequence[Comparison]) -> Iterator[tuple[str, str]]:
    data, judged = point.data, point.judgement
    yield "Stopping rule", stop_rule(data.experiment)
    if judged.stopped_because:
        yield "Stopped", judged.stopped_because
    if question_of(data.experiment).stops_by_width:
        wider = text.percent(SEQUENTIAL_FACTOR - 1)
        looks = "Stopping looks at the CI's width, never at significance."
        after = f"After round {data.measure.min_rounds} CIs are {wider} wider to allow for it."
        yield "Looks", f"{looks} {after}"
    if compared and not any(comparison.worst_case for comparison in compared):
        yield "Worst case", "Nothing interfered: the worst-case CI is the sampling CI."
    adjustment = first(show.adjustment(judged) for show in point.shows)
    if adjustment is None and len(compared) < 2:
        adjustment = "Nothing: the verdict rests on a single comparison."
    holm = f"{len(compared)} comparisons with the baseline on the deciding metric (Holm)."
    yield "Adjusted", holm if adjustment is None else adjustment
    yield "Unadjusted", "Other metrics: each CI holds at 95% by itself."
    yield "Excluded", slots_excluded(point)


class FileDifference(NamedTuple):
    """What of one file is other in a variant than in another one."""

    variant: str
    other: str
    file: str
    diff: str
    """Unified, from the other variant's to the variant's."""


def configuration_differences(folder: Path, view: RunView) -> list[FileDifference]:
    """Compare the files that both of two compared variants have, at the first point."""
    point = view.points[0]
    files = {
        variant: files_of(folder, point, variant) for variant in point.data.experiment.variants
    }
    return [
        difference
        for variant, other in _pairs(point)
        for difference in file_differences(variant, files[variant], other, files[other])
    ]


def _pairs(point: PointView) -> Sequence[tuple[str, str]]:
    experiment = point.data.experiment
    own = first(show.pairs(experiment) for show in point.shows)
    if own is not None or not question_of(experiment).has_baseline:
        return own or []
    baseline, *others = experiment.variants
    return [(variant, baseline) for variant in others]


def files_of(folder: Path, point: PointView, variant: str) -> dict[str, str]:
    """Return a variant's files by `role/file`, as of the last round that it was started in."""
    for round_number in sorted(
        {record.round for record in point.data.records if record.round}, reverse=True
    ):
        root = round_path(folder, point.number, round_number) / variant_folder(variant)
        if root.is_dir():
            return dict(_readable(root, folder))
    return {}


def _readable(root: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the files of a variant that can be compared, by `role/file`; nothing large.

    Nor what links in the run's folder lead to: who reads may see more than who made them, and the
    report lies in that folder.
    """
    for path in sorted(everything_below(root)):
        is_secret = path.suffix == VARIABLES  # such as passwords, of Compose's `env_file`
        if path.name in _NO_CONFIGURATION or path.parent == root or is_secret:
            continue
        with suppress(UserError, OSError):
            content = read_given(path, LARGEST_FILE_BYTES, below=folder).decode(errors="replace")
            yield str(path.relative_to(root)), content


def file_differences(
    variant: str, files: Mapping[str, str], other: str, of_other: Mapping[str, str]
) -> Iterator[FileDifference]:
    """Yield what differs in files that both have."""
    for name in sorted(files.keys() & of_other.keys()):
        lines = line_diff(
            _comparable_lines(of_other[name]),
            _comparable_lines(files[name]),
            (f"{other}: {name}", f"{variant}: {name}"),
            AROUND,
        )
        if lines:
            more = ["…"] if len(lines) > MOST_LINES else []
            yield FileDifference(variant, other, name, "\n".join(lines[:MOST_LINES] + more))


def _comparable_lines(content: str) -> list[str]:
    for volatile, name in _OF_THE_START:
        content = volatile.sub(name, content)
    return content.splitlines()
