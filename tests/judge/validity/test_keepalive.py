"""Rules about kept connections."""

import pytest

from builders import SimulatedRun
from judge.validity.broken import found_in, load_with, run_with
from webdyno.model.load_result import IdleConnections
from webdyno.model.records import SlotRecord


@pytest.mark.parametrize(
    ("asked", "closed", "fires"),
    [
        ("always", 0, False),
        ("always", 20, False),
        ("always", 2_000, True),
        (100, 2_000, True),
        ("never", 20_000, False),
    ],
)
def test_closing_what_should_be_kept_is_told(asked: str | int, closed: int, fires: bool) -> None:
    change = load_with(
        keepalive={"asked": asked, "server_closed": closed}, connections={"reused_requests": 0}
    )
    found = found_in(run_with(change))
    assert ("keep-alive" in found) == fires
    if fires:
        assert "one in 10 answers" in found["keep-alive"].what


def test_servers_that_keep_no_connection_are_alike_only_if_all_are() -> None:
    change = load_with(keepalive={"asked": "always", "server_closed": 20_000})
    one = run_with(change)
    assert found_in(one)["keep-alive"].severity == "invalid"
    records = [change(it) if isinstance(it, SlotRecord) else it for it in one.records]
    told = found_in(SimulatedRun(one.head, records))["keep-alive"]
    assert (told.severity, told.arm) == ("note", None)
    assert "no arm keeps connections" in told.what


def test_keeping_what_should_be_closed_is_told() -> None:
    change = load_with(keepalive={"asked": "never"}, connections={"reused_requests": 10})
    assert "240 requests" in found_in(run_with(change))["unwanted-keep-alive"].what


@pytest.mark.parametrize(("held", "fires"), [(10_000, False), (9_990, False), (256, True)])
def test_idle_connections_that_were_not_kept_are_told(held: int, fires: bool) -> None:
    idle = IdleConnections(asked=10_000, held=held)
    found = found_in(run_with(load_with(idle_connections=idle)))
    assert ("idle-connections" in found) == fires
    if fires:
        assert "256 of 10,000" in found["idle-connections"].what
