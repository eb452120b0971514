import pytest

from builders import SimulatedRun
from judge.validity.broken import readings_with
from report import runs
from webdyno.judge import judge
from webdyno.model.calibration import Ceiling
from webdyno.model.records import SlotRecord
from webdyno.report import chart_data as data
from webdyno.report.charts import cpu_figure, latency_figure, ratio_figure, slots_figure
from webdyno.report.evidence import evidence
from webdyno.report.figure import Figure


def figures(run: SimulatedRun) -> dict[str, Figure]:
    judgement = judge(run.head, run.records)
    made = (
        ratio_figure(evidence(run.head, judgement)),
        latency_figure(run.head, run.records),
        slots_figure(run.head, run.records, judgement),
        cpu_figure(run.head, judgement),
    )
    return {figure.name: figure for figure in made if figure}


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (runs.decided, {"ratios", "latency", "slots", "cpu"}),
        (runs.several_arms, {"ratios", "latency", "slots", "cpu"}),
        (runs.invalid, {"latency", "slots", "cpu"}),
        (runs.one_block, {"latency", "slots", "cpu"}),
        (runs.no_block, set()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_chart_is_made_when_there_is_something_to_show(make: runs.Make, names: set[str]) -> None:
    assert set(figures(make())) == names


def test_each_chart_has_words_for_those_who_cannot_see_it() -> None:
    for figure in figures(runs.decided()).values():
        assert all(len(panel.alt) > 20 for panel in figure.panels)
        assert figure.caption


def test_ratios_are_those_of_the_judgement() -> None:
    run = runs.decided()
    judgement = judge(run.head, run.records)
    rows = data.ratios(evidence(run.head, judgement))
    assert [row["ratio"] for row in rows] == [
        found.ratio.estimate for found in judgement.comparisons if found.ratio
    ]
    assert rows[0]["verdict"] == "faster"


def test_percentile_curves_rise_and_end_where_ten_answers_are_left() -> None:
    run = runs.decided()
    rows = data.latency(run.records, list(run.head.experiment.arms))
    for arm in run.head.experiment.arms:
        curve = [row for row in rows if row["arm"] == arm]
        times = [row["ms"] for row in curve]
        answers = sum(
            slot.load.requests.completed
            for slot in run.records
            if slot.kind == "slot" and slot.arm == arm and slot.phase == "measure"
        )
        assert times == sorted(times)
        assert curve[-1]["beyond"] * answers >= 9.99
        assert {"p50", "p90", "p99", "p99.9"} <= {row["percentile"] for row in curve}


@pytest.mark.parametrize(("times", "drawn"), [(1.2, True), (3.0, False)])
def test_the_ceiling_of_the_client_is_shown_where_it_is_near(times: float, drawn: bool) -> None:
    run = runs.decided()
    highest = max(row["rate"] for row in data.slot_rates(run.records, judge(run.head, run.records)))
    ceiling = Ceiling(rate_rps=highest * times, limited_by="client")
    with_ceiling = readings_with(ceiling=ceiling)
    records = [with_ceiling(r) if isinstance(r, SlotRecord) else r for r in run.records]
    found = figures(SimulatedRun(run.head, records))["slots"]
    assert "webdyno calibrate" in found.caption
    assert any("strokeDash" in str(panel.spec) for panel in found.panels) == drawn
    assert "webdyno calibrate" not in figures(run)["slots"].caption


def test_slots_that_do_not_count_are_marked() -> None:
    run = runs.decided()
    unfinished = run.records[:-1]
    rows = data.slot_rates(unfinished, judge(run.head, unfinished))
    last = max(row["block"] for row in rows)
    assert {row["trouble"] for row in rows if row["block"] == last} == {"block not finished"}
    assert {row["trouble"] for row in rows if row["block"] != last} == {""}


def test_slots_with_wrong_answers_are_marked_with_the_rule() -> None:
    run = runs.invalid()
    rows = data.slot_rates(run.records, judge(run.head, run.records))
    assert all("non-2xx" in row["trouble"] for row in rows if row["arm"] == "apache")
    assert all(row["trouble"] == "" for row in rows if row["arm"] == "nginx")
