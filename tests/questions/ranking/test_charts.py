"""The charts of a ranking: everything in the order of ranks."""

from math import isclose

from report.questions import ranking
from report.runs import seen
from webdyno.core.metrics import CPU_TIME
from webdyno.questions.ranking.charts import cpu_parts, cpu_parts_figure, ranking_figure


def test_bars_have_ranks_values_and_cpu_in_the_order_of_ranks() -> None:
    point = seen(ranking()).points[0]
    figure = ranking_figure(point)
    assert figure is not None
    (only,) = figure.panels
    assert point.variants[:3] == ["nginx", "lighttpd", "caddy"]
    places = [only.svg.index(f">{name}</text>") for name in point.variants[:3]]
    assert places == sorted(places)
    assert "node" not in only.alt  # it has no rank
    for words in ("1–2", "3", "76,300", "20.2 µs", "CPU/request"):
        assert f">{words}</text>" in only.svg
    assert "1–2: nginx: 76,300" in only.alt
    assert "Shaded: their order is open" in figure.caption


def test_parts_of_cpu_time_add_up_to_what_the_table_says() -> None:
    point = seen(ranking()).points[0]
    ends = {row["variant"]: row["to"] for row in cpu_parts(point)}
    assert "node" not in ends  # it has no rank
    for value in point.judgement.variants:
        if value.metric == CPU_TIME and value.interval and value.variant in ends:
            assert isclose(ends[value.variant], value.interval.estimate, rel_tol=1e-3)
    assert cpu_parts_figure(point) is not None
