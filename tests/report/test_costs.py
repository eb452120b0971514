"""What a request costs, and what a slot's samples show."""

import pytest

from report import runs
from webdyno.report.costs import costs
from webdyno.report.host_chart import host_figure, host_rows


def test_counts_are_divided_by_answers() -> None:
    run = runs.probed()
    per_request = {cost.what: cost.by_arm for cost in costs(run.head, run.records)["Per request"]}
    switches = {arm: float(it) for arm, it in per_request["context switches to wait"].items()}
    assert switches == pytest.approx({"apache-event": 0.4, "nginx": 0.8}, rel=0.01)
    assert float(per_request["page faults from memory"]["nginx"]) == pytest.approx(0.02, rel=0.01)
    assert "bytes read from disk" not in per_request


def test_services_are_told_apart_where_there_are_several() -> None:
    run = runs.probed()
    per_request = {cost.what: cost.by_arm for cost in costs(run.head, run.records)["Per request"]}
    assert per_request["CPU time of apache, µs"]["nginx"] == "—"
    assert per_request["CPU time of php, µs"]["apache-event"] == "—"


def test_states_and_the_host_are_shown_as_they_are() -> None:
    run = runs.probed()
    found = costs(run.head, run.records)
    standing = {cost.what: cost.by_arm for cost in found["At the end of a slot, at most"]}
    assert standing["processes"] == {"apache-event": "3", "nginx": "6"}
    host = {cost.what: cost.by_arm for cost in found["This machine meanwhile"]}
    assert host["tasks waiting for a CPU, % of the time"]["nginx"] == "20.0"


def test_without_probes_there_is_nothing_to_tell() -> None:
    run = runs.decided()
    assert costs(run.head, run.records) == {}
    assert host_figure(run.head, run.records) is None


def test_samples_become_points_in_time() -> None:
    rows = host_rows(runs.probed().records)
    assert len(rows) == 8 * 8 * 4
    assert (rows[0]["s"], rows[0]["servers"], rows[0]["running"]) == (0.1, 90.0, 3)
