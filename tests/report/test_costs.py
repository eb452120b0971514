"""What a request costs, and what a slot's samples show."""

import pytest

from builders import SimulatedRun
from report import comparisons, runs
from validity.broken import readings_with, run_with
from webdyno.comparison import judge
from webdyno.core.readings import ServerStatus
from webdyno.core.records import SlotRecord
from webdyno.report.costs import Cost, costs
from webdyno.report.point_charts import host_figure, host_rows


def counted(run: SimulatedRun) -> dict[str, list[Cost]]:
    return costs(run.data, judge(run.data).facts)


def test_counts_are_divided_by_answers() -> None:
    run = comparisons.probed()
    per_request = {cost.what: cost.by_variant for cost in counted(run)["Per request"]}
    switches = {
        variant: float(it) for variant, it in per_request["context switches to wait"].items()
    }
    assert switches == pytest.approx({"apache-event": 0.4, "nginx": 0.8}, rel=0.01)
    assert float(per_request["page faults from memory"]["nginx"]) == pytest.approx(0.02, rel=0.01)
    assert "bytes read from disk" not in per_request


def test_services_are_reported_apart_where_there_are_several() -> None:
    run = comparisons.probed()
    per_request = {cost.what: cost.by_variant for cost in counted(run)["Per request"]}
    assert per_request["CPU time of apache, µs"]["nginx"] == "—"
    assert per_request["CPU time of php, µs"]["apache-event"] == "—"


def test_states_and_the_host_are_shown_as_they_are() -> None:
    run = comparisons.probed()
    found = counted(run)
    standing = {cost.what: cost.by_variant for cost in found["At the end of a slot, at most"]}
    assert standing["processes"] == {"apache-event": "3", "nginx": "6"}
    host = {cost.what: cost.by_variant for cost in found["This machine meanwhile"]}
    assert host["tasks waiting for a CPU, % of the time"]["nginx"] == "20.0"


def test_what_servers_found_in_their_caches_is_reported() -> None:
    status = {"memcached": ServerStatus(hits=300, misses=100)}
    run = run_with(readings_with(status=status), variant="nginx")
    other = run_with(readings_with(), variant="apache")
    records = [
        mine if isinstance(mine, SlotRecord) and mine.variant == "nginx" else theirs
        for mine, theirs in zip(run.records, other.records, strict=True)
    ]
    (hits,) = counted(SimulatedRun(run.head, records))["Caches"]
    assert hits.what == "keys asked for that memcached had, %"
    assert hits.by_variant == {"nginx": "75", "apache": "—"}


def test_without_probes_only_starts_are_reported() -> None:
    run = comparisons.decided()
    (start,) = counted(run)["At the start"]
    assert start.by_variant == {"apache-event": "50", "nginx": "50"}
    assert set(counted(run)) == {"At the start"}
    assert host_figure(runs.seen(run).points[0]) is None


def test_samples_become_a_mark_for_each_slot() -> None:
    rows = host_rows(comparisons.probed().data)
    assert len(rows) == 8 * 8
    assert (rows[0]["servers"], rows[0]["servers_low"]) == (pytest.approx(90), pytest.approx(90))
    assert rows[0]["servers_told"].endswith("90% busy")
