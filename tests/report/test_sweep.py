"""The report of experiments with factors."""

import csv
import re
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from builders import SimulatedRun
from report import runs
from webdyno.judge.sweep import judge_sweep
from webdyno.model.judgement import Verdict
from webdyno.report import print_sweep
from webdyno.report.summary import summary_csv
from webdyno.report.sweep.chart_data import in_powers, sweep_axis, value_rows
from webdyno.report.sweep.evidence import grouped_findings, sweep_evidence, verdict_counts
from webdyno.report.sweep.html import sweep_report

FOLDER = Path("/runs/2026-03-14-sweep")


def printed(run: SimulatedRun, width: int = 100) -> str:
    output = StringIO()
    sweep = judge_sweep(run.head, run.records)
    print_sweep(Console(file=output, width=width), FOLDER, run.head, run.records, sweep)
    return output.getvalue()


@pytest.mark.parametrize("make", runs.SWEEPS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("width", [60, 80, 100, 200])
def test_lines_are_never_longer_than_the_terminal_or_100_columns(
    make: runs.Make, width: int
) -> None:
    lines = printed(make(), width).splitlines()
    assert max(cell_len(line) for line in lines) <= min(width, 100)


def test_every_point_is_in_one_table() -> None:
    told = printed(runs.two_factors())
    assert re.search(r"connections +keepalive +value", told)
    rows = re.findall(r"^  (\d+) +(always|never) +nginx .*×.* faster", told, re.MULTILINE)
    assert {("8", "always"), ("64", "never")} <= set(rows)
    assert "Varied" in told


def test_findings_of_several_points_are_told_once() -> None:
    run = runs.broken_point()
    sweep = judge_sweep(run.head, run.records)
    groups = {group.first.rule: group for group in grouped_findings(sweep)}
    assert groups["non-2xx"].severity == "invalid"
    assert groups["non-2xx"].where == [
        "nginx at 1 of 6 points (connections = 1, keepalive = always)"
    ]
    told = printed(run)
    assert told.count("non-2xx") == 1
    assert "✕ 1 invalid" in told
    assert verdict_counts(run.head, sweep)[Verdict.INVALID] == 1


def test_the_page_has_a_panel_for_each_level_of_the_second_factor() -> None:
    run = runs.two_factors()
    html = sweep_report(FOLDER, run.head, run.records, judge_sweep(run.head, run.records))
    drawn = set(re.findall(r'data-chart="([^"]+)"', html))
    assert {"sweep-ratios-0", "sweep-ratios-1", "sweep-rate_rps-1", "sweep-memory_mib-0"} <= drawn
    assert {"point-0-latency", "point-5-slots", "point-5-host-servers"} <= drawn
    assert "sweep-ratios-2" not in drawn
    assert html.count('<details class="point">') == 6


def test_a_sweep_in_which_nothing_was_measured_has_a_page() -> None:
    run = runs.two_factors()
    html = sweep_report(FOLDER, run.head, [], judge_sweep(run.head, []))
    assert "Nothing was measured" in html
    assert sweep_evidence(run.head, judge_sweep(run.head, [])) is None


def test_each_factor_is_a_column_of_the_summary() -> None:
    run = runs.two_factors()
    points = judge_sweep(run.head, run.records).points
    lines = list(csv.DictReader(StringIO(summary_csv(run.head, points))))
    ratios = [it for it in lines if it["kind"] == "ratio" and it["metric"] == "rate_rps"]
    levels = [(it["load.connections"], it["load.keepalive"]) for it in ratios]
    assert levels == [(n, kept) for n in ("1", "8", "64") for kept in ("always", "never")]


@pytest.mark.parametrize(
    ("levels", "powers"),
    [
        ([1, 8, 64], True),
        ([1, 2, 4], True),
        ([100, 200, 300, 400], False),
        ([10, 20, 30, 40, 50], False),
        ([0, 1, 10], False),
        ([5], False),
        ([1, 1000], True),
    ],
)
def test_levels_in_powers_are_told_from_steps(levels: list[float], powers: bool) -> None:
    assert in_powers(levels) == powers


def test_a_factor_of_words_is_drawn_by_name() -> None:
    run = runs.names()
    axis = sweep_axis(run.head)
    assert (axis.scale, axis.names) == ("names", ["always", "never"])
    rows = value_rows(judge_sweep(run.head, run.records), axis, "rate_rps")
    assert {row["facet"] for row in rows} == {"nginx sendfile = true", "nginx sendfile = false"}
    assert {row["level"] for row in rows} == {"always", "never"}
