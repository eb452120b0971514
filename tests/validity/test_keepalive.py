"""Rules about kept connections."""

import pytest

from builders import SimulatedRun
from validity.broken import found_in, load_with, run_with
from webdyno.core.load_result import IdleConnections
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity import warnings_of


@pytest.mark.parametrize(
    ("asked", "closed", "fires"),
    [
        ("always", 0, False),
        ("always", 20, False),
        # Apache's default, one in 100, and some more.
        ("always", 180, False),
        ("always", 2_000, True),
        (100, 2_000, True),
        ("never", 20_000, False),
    ],
)
def test_closing_what_should_be_kept_is_reported(
    asked: str | int, closed: int, fires: bool
) -> None:
    change = load_with(
        keepalive={"requested": asked, "server_closed": closed}, connections={"reused_requests": 0}
    )
    found = found_in(run_with(change))
    reported = found.get("keep-alive")
    assert (reported is not None and reported.severity == "invalid") == fires
    if fires:
        assert reported is not None
        assert "one in 10 responses" in reported.what
        # What is measured is how the servers are set up.
        assert "--set load.keepalive" in reported.fix
        assert "raise" not in reported.fix


def test_a_server_with_a_usual_limit_is_measured_and_reported() -> None:
    closed = load_with(keepalive={"requested": "always", "server_closed": 180})
    reported = found_in(run_with(closed))["keep-alive"]
    assert (reported.severity, reported.variant) == ("note", "apache")
    assert "one in 1" in reported.what


def test_connections_that_reach_a_limit_together_are_no_early_closing() -> None:
    bunched = run_with(load_with(keepalive={"requested": "always", "server_closed": 600}))
    usual = run_with(load_with(keepalive={"requested": "always", "server_closed": 60})).records
    odd = [
        theirs if isinstance(theirs, SlotRecord) and number % 2 else ours
        for number, (ours, theirs) in enumerate(zip(bunched.records, usual, strict=True))
    ]
    (reported,) = [
        it for it in warnings_of(PointData.of(bunched.head, odd)) if it.rule == "keep-alive"
    ]
    assert (reported.severity, reported.variant) == ("note", "apache")


@pytest.mark.parametrize(("other", "alike"), [(2_000, True), (1_700, True), (1_000, False)])
def test_variants_that_close_equally_often_are_alike(other: int, alike: bool) -> None:
    records = run_with(load_with(keepalive={"requested": "always", "server_closed": 2_000})).records
    change = load_with(keepalive={"requested": "always", "server_closed": other})
    run = run_with(change, variant="nginx")
    changed = [
        theirs if isinstance(theirs, SlotRecord) and theirs.variant == "apache" else ours
        for ours, theirs in zip(run.records, records, strict=True)
    ]
    reported = [
        it for it in warnings_of(PointData.of(run.head, changed)) if it.rule == "keep-alive"
    ]
    assert [it.severity for it in reported] == (["note"] if alike else ["invalid", "invalid"])
    if alike:
        assert reported[0].variant is None
        assert "close kept connections alike" in reported[0].what


@pytest.mark.parametrize(("varies", "alike"), [(True, True), (False, False)])
def test_variants_whose_shares_vary_are_alike_unless_they_surely_differ(
    varies: bool, alike: bool
) -> None:
    """As Apache's event MPM, which closes idle connections whenever its threads are busy."""
    few, many = (3_000, 100) if varies else (1_550, 1_550)
    most = run_with(load_with(keepalive={"requested": "always", "server_closed": 2_000})).records
    theirs = [
        run_with(
            load_with(keepalive={"requested": "always", "server_closed": closed}), variant="nginx"
        )
        for closed in (few, many)
    ]
    records = [
        theirs[number % 2].records[number]
        if isinstance(it, SlotRecord) and it.variant == "nginx"
        else it
        for number, it in enumerate(most)
    ]
    reported = [
        it for it in warnings_of(PointData.of(theirs[0].head, records)) if it.rule == "keep-alive"
    ]
    assert {it.severity for it in reported} == ({"note"} if alike else {"invalid"})


def test_requests_that_were_sent_once_more_are_reported_and_measured() -> None:
    reported = found_in(run_with(load_with(requests={"retried": 3})))["retried"]
    assert (reported.severity, reported.variant) == ("note", "apache")
    assert "36 requests" not in reported.what
    assert "kept connection that the server had just closed" in reported.what


def test_servers_that_keep_no_connection_are_alike_only_if_all_are() -> None:
    change = load_with(keepalive={"requested": "always", "server_closed": 20_000})
    one = run_with(change)
    assert found_in(one)["keep-alive"].severity == "invalid"
    records = [change(it) if isinstance(it, SlotRecord) else it for it in one.records]
    reported = found_in(SimulatedRun(one.head, records))["keep-alive"]
    assert (reported.severity, reported.variant) == ("note", None)
    assert "no variant keeps connections" in reported.what


def test_keeping_what_should_be_closed_is_reported() -> None:
    change = load_with(keepalive={"requested": "never"}, connections={"reused_requests": 10})
    assert "240 requests" in found_in(run_with(change))["unwanted-keep-alive"].what


@pytest.mark.parametrize(("held", "fires"), [(10_000, False), (9_990, False), (256, True)])
def test_idle_connections_that_were_not_kept_are_reported(held: int, fires: bool) -> None:
    idle = IdleConnections(requested=10_000, held=held)
    found = found_in(run_with(load_with(idle_connections=idle)))
    assert ("idle-connections" in found) == fires
    if fires:
        assert "256 of 10,000" in found["idle-connections"].what
