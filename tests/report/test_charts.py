"""The charts of all kinds of runs, and the rows that they are drawn from."""

import re

import pytest

from builders import SimulatedRun
from comparison.searches import Variant, searched
from report import comparisons, questions, runs, sweeps
from validity.broken import readings_with
from webdyno.comparison import judge
from webdyno.core.base import Interval
from webdyno.core.experiment import Level
from webdyno.core.objectives import objective
from webdyno.core.records import SlotRecord
from webdyno.core.testbed import Ceiling
from webdyno.evidence.point_data import PointData
from webdyno.media.document import Figure
from webdyno.questions.capacity.charts import trial_rows
from webdyno.report.bar_charts import bar_figure, bar_rows
from webdyno.report.factor_charts import factor_axis, factor_figures, in_powers, value_rows
from webdyno.report.point_charts import latency_rows, point_figures, slot_rows
from webdyno.report.ratio_charts import arrowheads, ratio_axis, ratio_figure, ratio_row


def figures(run: SimulatedRun) -> dict[str, Figure]:
    view = runs.seen(run)
    ratios = ratio_figure(view.deciding[0]) if view.deciding else None
    made = [*([ratios] if ratios else []), *point_figures(view.points[0])]
    return {figure.name: figure for figure in made}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (comparisons.decided, {"ratios", "latency", "slots", "cpu"}),
        (comparisons.several_variants, {"ratios", "latency", "slots", "cpu"}),
        (comparisons.invalid, {"latency", "slots", "cpu"}),
        (comparisons.one_round, {"latency", "slots", "cpu"}),
        (comparisons.no_round, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_chart_is_made_when_there_is_something_to_show(make: runs.Make, names: set[str]) -> None:
    assert set(figures(make())) == names


def test_each_chart_has_words_for_those_who_cannot_see_it() -> None:
    for figure in figures(comparisons.decided()).values():
        assert all(len(panel.alt) > 20 for panel in figure.panels)
        assert figure.caption


def test_only_what_decides_is_on_the_axis_of_ratios() -> None:
    (panel,) = figures(comparisons.probed())["ratios"].panels
    reported = re.findall('data-told="([^"]*)"', panel.svg)
    assert [it for it in reported if ", round " not in it] == [panel.alt]
    assert len([it for it in reported if it.startswith("nginx ÷ apache-event, round ")]) == 8
    assert "switches" not in panel.svg
    assert "nginx ÷ apache-event: 1.9" in panel.alt


def test_the_band_is_the_one_the_judge_used_for_each_variant() -> None:
    run = comparisons.several_variants()  # nginx again is nginx's double, and noisy
    table = runs.seen(run).deciding[0]
    deltas = {found.a: found.delta for found in table.comparisons}
    assert len(set(deltas.values())) > 1
    for found in table.comparisons:
        assert ratio_row(found)["even_high"] == 1 + found.delta
    figure = ratio_figure(table)
    assert figure
    assert "±2% or ±" in figure.note


def test_the_bar_goes_on_to_the_interval_with_all_bounds() -> None:
    quiet, interfered = (
        figures(run)["ratios"] for run in (comparisons.decided(), comparisons.interference())
    )
    assert "The thin line is the worst-case CI" in interfered.note
    assert "The thin line" not in quiet.note
    assert "worst case 1." in interfered.panels[0].alt
    (found,) = runs.seen(comparisons.interference()).deciding[0].comparisons
    row = ratio_row(found)
    assert row["decisive_low"] < row["low"] < row["high"] == row["decisive_high"]


def test_a_very_wide_interval_does_not_stretch_the_axis() -> None:
    table = runs.seen(comparisons.decided()).deciding[0]
    (row,) = [row for row in table.rows if row.comparison]
    assert row.comparison
    wide = row.comparison.model_copy(update={"ratio": Interval(low=4e-4, estimate=1.9, high=5e3)})
    rows = [type(row)(row.variant, row.value, wide)]
    figure = ratio_figure(type(table)(table.metric, rows))
    assert figure
    assert not re.search(r">(0\.0\d*|\d{2,})×<", figure.panels[0].svg)
    assert "An arrowhead: it continues beyond the axis." in figure.caption
    reach = [1.0, 2.0]
    heads = arrowheads([ratio_row(wide)], reach)
    assert [head["end"] for head in heads] == reach
    assert not arrowheads([ratio_row(row.comparison)], reach)


def test_hostile_names_stay_text_in_drawings() -> None:
    for figure in figures(comparisons.hostile()).values():
        for panel in figure.panels:
            assert "<img" not in panel.svg
            assert "<script" not in panel.svg


def test_percentile_curves_rise_and_end_where_ten_answers_are_left() -> None:
    run = comparisons.decided()
    rows = latency_rows(run.data, list(run.head.experiment.variants))
    for variant in run.head.experiment.variants:
        curve = [row for row in rows if row["variant"] == variant]
        times = [row["ms"] for row in curve]
        responses = sum(
            slot.load.requests.completed
            for slot in run.records
            if slot.kind == "slot" and slot.variant == variant and slot.phase == "measure"
        )
        assert times == sorted(times)
        assert curve[-1]["beyond"] * responses >= 9.99
        named = [row["told"].split(":")[0] for row in curve if "told" in row]
        assert named == [
            f"{variant}, {share} of all slots" for share in ("p50", "p90", "p99", "p99.9", "p99.99")
        ]


@pytest.mark.parametrize(("times", "drawn"), [(1.2, True), (3.0, False)])
def test_the_ceiling_of_the_client_is_shown_where_it_is_near(times: float, drawn: bool) -> None:
    run = comparisons.decided()
    highest = max(row["throughput"] for row in slot_rows(run.data, judge(run.data)))
    ceiling = Ceiling(throughput_rps=highest * times, limited_by="client")
    with_ceiling = readings_with(ceiling=ceiling)
    records = [with_ceiling(r) if isinstance(r, SlotRecord) else r for r in run.records]
    found = figures(SimulatedRun(run.head, records))["slots"]
    assert "webdyno doctor --calibrate" in found.note
    assert any('stroke-dasharray="6,4"' in panel.svg for panel in found.panels) == drawn
    assert "webdyno doctor --calibrate" not in figures(run)["slots"].note


def test_slots_that_do_not_count_are_marked() -> None:
    run = comparisons.decided()
    unfinished = run.records[:-1]
    data = PointData.of(run.head, unfinished)
    rows = slot_rows(data, judge(data))
    last = max(row["round"] for row in rows)
    assert {row["trouble"] for row in rows if row["round"] == last} == {"round not finished"}
    assert {row["trouble"] for row in rows if row["round"] != last} == {""}


def test_slots_with_wrong_answers_are_marked_with_the_rule() -> None:
    run = comparisons.invalid()
    rows = slot_rows(run.data, judge(run.data))
    assert all("non-2xx" in row["trouble"] for row in rows if row["variant"] == "apache")
    assert all(row["trouble"] == "" for row in rows if row["variant"] == "nginx")


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
def test_levels_in_powers_are_reported_from_steps(levels: list[float], powers: bool) -> None:
    assert in_powers(levels) == powers


def test_a_factor_of_words_is_drawn_by_name() -> None:
    run = sweeps.names()
    axis = factor_axis(run.head.experiment)
    assert (axis.scale, axis.names) == ("names", ["always", "never"])
    rows = value_rows(runs.seen(run).points, axis, "throughput_rps")
    assert {row["facet"] for row in rows} == {"nginx sendfile = true", "nginx sendfile = false"}
    assert {row["level"] for row in rows} == {"always", "never"}


def test_a_panel_for_each_level_of_the_second_factor() -> None:
    drawn = {
        panel.name for it in factor_figures(runs.seen(sweeps.two_factors())) for panel in it.panels
    }
    assert {"ratios-0", "ratios-1", "throughput_rps-1", "memory_mib-0"} <= drawn
    assert "ratios-2" not in drawn


def test_an_interval_that_is_cut_has_an_arrowhead() -> None:
    levels: dict[str, list[Level]] = {"load.connections": [1, 64]}
    noisy, quiet = (
        factor_figures(runs.seen(sweeps.sweep(levels, probes=False, restart_sd=noise)))
        for noise in (0.6, 0.002)
    )
    assert any("An arrowhead" in figure.caption for figure in noisy)
    assert not any("An arrowhead" in figure.caption for figure in quiet)


def test_points_of_a_sweep_have_the_shapes_of_the_legend() -> None:
    view = runs.seen(sweeps.connections())
    (panel,) = next(it for it in factor_figures(view) if it.name == "throughput_rps").panels
    marks = re.findall(r'<path [^>]*data-told="([^",]*)[^>]* d="([^"]*)"', panel.svg)
    is_round = {variant: "C" in path for variant, path in marks}
    assert is_round == {"apache-event": True, "nginx": False}
    assert len({path for _, path in marks}) == 2


def test_a_search_has_a_panel_for_each_objective() -> None:
    (figure,) = [
        it
        for it in point_figures(runs.seen(questions.capacities()).points[0])
        if it.name == "capacity"
    ]
    assert [panel.heading for panel in figure.panels] == ["p99<50ms", "failures<0.1%"]
    times, failures = (panel.svg for panel in figure.panels)
    assert "p99 of latency, ms" in times
    assert "Requests that failed, %" in failures
    assert "keep p99<50ms and failures<0.1%" in figure.caption


def test_a_search_for_failures_alone_has_its_chart() -> None:
    run = searched(slo=["failures<0.1%"], apache=Variant(15_000), nginx=Variant(50_000))
    (figure,) = [it for it in point_figures(runs.seen(run).points[0]) if it.name == "capacity"]
    assert [panel.heading for panel in figure.panels] == [""]
    assert "apache, round 1: " in figure.panels[0].svg
    assert "failures 0%" in figure.panels[0].svg
    assert "failures 100%" in figure.panels[0].svg


def test_times_of_a_trial_that_was_followed_no_further_are_the_least() -> None:
    run = searched(nginx=Variant(1_000.0), apache=Variant(800.0))
    records = [
        it.model_copy(update={"load": it.load.model_copy(update={"ended_by": "late"})})
        if isinstance(it, SlotRecord) and it.trial and not it.trial.holds
        else it
        for it in run.records
    ]
    reported = [
        str(row["told"])
        for row in trial_rows(PointData.of(run.head, records), 0, objective("p99<50ms"))
    ]
    trials = [it.trial for it in records if isinstance(it, SlotRecord) and it.trial]
    assert ["p99 at least" in it for it in reported] == [not it.holds for it in trials]
    assert {"p99 at least" in it for it in reported} == {True, False}


def test_each_ratio_has_room_for_its_words_above_it() -> None:
    (panel,) = figures(comparisons.several_variants())["ratios"].panels
    height = re.search(r'<svg[^>]* height="(\d+)"', panel.svg)
    assert height
    assert int(height[1]) > 3 * 40


def test_bars_begin_at_zero_and_show_the_figures_of_the_table() -> None:
    point = runs.seen(comparisons.decided()).points[0]
    figure = bar_figure(point)
    assert figure
    throughput, cpu = figure.panels
    assert throughput.heading == "Throughput, req/s (more is better)"
    assert cpu.heading == "CPU per request (less is better)"
    assert point.deciding
    rows = bar_rows(point, point.deciding)
    assert [row["variant"] for row in rows] == ["nginx", "apache-event"]
    assert all(row["zero"] == 0 < row["low"] < row["value"] < row["high"] for row in rows)
    assert all(f">{row['shown']}<" in throughput.svg for row in rows)


def test_what_is_invalid_has_no_bar() -> None:
    assert bar_figure(runs.seen(comparisons.invalid()).points[0]) is None
    assert bar_figure(runs.seen(comparisons.no_round()).points[0]) is None


@pytest.mark.parametrize("ends", [(0.98, 4.0), (0.5, 1.9), (0.02, 1000.0)])
def test_an_axis_of_ratios_that_differ_much_has_a_label_at_one(ends: tuple[float, float]) -> None:
    ticks = ratio_axis(*ends).to_dict()["values"]
    assert 1.0 in ticks
    assert len(ticks) <= 8
    assert "values" not in ratio_axis(0.95, 1.1).to_dict()
