"""Long looks in the course of time: charts, words and table."""

from functools import cache

from builders import SimulatedRun
from evidence.stretches import Truth, stretch
from report import comparisons, runs
from webdyno.core.looks import LookEnd
from webdyno.core.records import LongLookRecord
from webdyno.report.around_rounds import how_it_changes
from webdyno.report.exports import summary_csv
from webdyno.report.long_charts import course_figure, course_rows

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


def test_the_chart_has_a_panel_for_each_quantity_and_marks_stalls() -> None:
    point = runs.seen(soaked()).points[0]
    figure = course_figure(point)
    assert figure is not None
    names = [panel.name for panel in figure.panels]
    assert names == [f"course-{it}" for it in ("throughput", "p50", "p99", "cpu", "memory")]
    assert "in an hour: throughput" in figure.note
    assert all("nginx: " in panel.alt for panel in figure.panels)
    rows = course_rows(point.judgement.looks, lambda part: part.throughput_rps)
    assert {row["variant"] for row in rows if row["stalled"]} == {"apache-event"}
    assert {row["line"] for row in rows} == {"nginx 0", "apache-event 0", "apache-event 1"}


def test_without_parts_there_is_no_chart() -> None:
    assert course_figure(runs.seen(comparisons.decided()).points[0]) is None


def test_slopes_are_reported_for_each_variant() -> None:
    reported = how_it_changes(runs.seen(soaked()).points[0].judgement.looks)
    assert [line.partition(",")[0] for line in reported] == ["nginx", "apache-event"]
    assert all("CPU per request" in line and "memory" in line for line in reported)


def test_the_table_has_a_line_for_each_part_and_quantity() -> None:
    lines = [it for it in summary_csv(runs.seen(soaked())).splitlines() if ",long-look," in it]
    assert len(lines) == 2 * PARTS * 5
