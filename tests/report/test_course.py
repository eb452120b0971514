"""Long looks in the course of time: charts, words and table."""

from functools import cache

from builders import SimulatedRun
from evidence.stretches import Truth, stretch
from report import comparisons, runs
from webdyno.core.load_result import Failures
from webdyno.core.looks import LookEnd
from webdyno.core.records import LongLookRecord
from webdyno.report.around_rounds import how_it_changes
from webdyno.report.exports import summary_csv
from webdyno.report.long_charts import course_figure, course_rows, failure_rows

PARTS = 8


@cache
def soaked() -> SimulatedRun:
    """Two variants that were under load for longer, one of them with stalls and an interruption."""
    run = comparisons.decided()
    nginx = [_part("nginx", number, 0) for number in range(PARTS)]
    apache = [_part("apache-event", number, number // 6, every_s=2.0) for number in range(PARTS)]
    return SimulatedRun(run.head, [*run.records, *nginx, *apache])


def _part(
    variant: str, number: int, stretch_number: int, every_s: float | None = None
) -> LongLookRecord:
    truth = Truth(looked_s=4.0, every_s=every_s, stall_s=0.3)
    ended_by: LookEnd | None = "time" if number == PARTS - 1 else None
    update = {"part": number, "stretch": stretch_number, "ended_by": ended_by}
    return stretch(truth, variant=variant, seed=number).model_copy(update=update)


QUANTITIES = ["Throughput, req/s", "Latency p99, ms", "CPU per request, µs", "Memory, MiB"]
FAILED = "Failed requests a second"


def test_the_chart_has_all_quantities_above_each_other_and_marks_stalls() -> None:
    point = runs.seen(soaked()).points[0]
    figure = course_figure(point)
    assert figure is not None
    assert "in an hour: throughput" in figure.note
    assert "A cross: a part with stalls" in figure.caption
    assert "No request failed" in figure.caption
    (only,) = figure.panels
    assert [it for it in (*QUANTITIES, FAILED) if f">{it}</text>" in only.svg] == QUANTITIES
    assert only.svg.count("Seconds under load") == 1
    assert "Throughput, req/s: nginx " in only.alt
    rows = course_rows(point.judgement.looks, lambda part: part.throughput_rps)
    assert {row["variant"] for row in rows if row["stalled"]} == {"apache-event"}
    assert {row["line"] for row in rows} == {"nginx 0", "apache-event 0", "apache-event 1"}


def test_requests_that_failed_are_drawn_between_latency_and_cpu() -> None:
    run = soaked()
    failures = Failures(timeout=3)
    last = run.records[-1]
    assert isinstance(last, LongLookRecord)
    failed = last.replace(load=last.load.replace(failures=failures))
    point = runs.seen(SimulatedRun(run.head, [*run.records[:-1], failed])).points[0]
    rates = [row["value"] for row in failure_rows(point.data.records)]
    assert [rate for rate in rates if rate] == [0.75]  # three in four seconds
    figure = course_figure(point)
    assert figure is not None
    assert f">{FAILED}</text>" in figure.panels[0].svg
    assert "No request failed" not in figure.caption


def test_without_parts_there_is_no_chart() -> None:
    assert course_figure(runs.seen(comparisons.decided()).points[0]) is None


def test_slopes_are_reported_for_each_variant() -> None:
    reported = how_it_changes(runs.seen(soaked()).points[0].judgement.looks)
    assert [line.partition(",")[0] for line in reported] == ["nginx", "apache-event"]
    assert all("CPU per request" in line and "memory" in line for line in reported)


def test_the_table_has_a_line_for_each_part_and_quantity() -> None:
    lines = [it for it in summary_csv(runs.seen(soaked())).splitlines() if ",long-look," in it]
    assert len(lines) == 2 * PARTS * 5
