"""Servers that died."""

from builders import SimulatedRun, simulated_run
from judge.validity.broken import ARMS, found_in, incident
from webdyno.model.records import IncidentRecord


def with_incidents(*incidents: IncidentRecord) -> SimulatedRun:
    """A run in which they happened."""
    run = simulated_run(ARMS, blocks=6)
    return SimulatedRun(run.head, [*run.records, *incidents])


def test_a_server_that_died_makes_its_arm_invalid() -> None:
    run = with_incidents(incident(log_tail=["starting", "worker exited on signal 9"]))
    (finding,) = found_in(run).values()
    assert (finding.rule, finding.severity, finding.arm) == ("incident", "invalid", "apache")
    assert "block 2: service apache ended with signal 9" in finding.what
    assert "worker exited on signal 9" in finding.remedy


def test_several_incidents_are_counted() -> None:
    run = with_incidents(incident(), incident(), incident())
    assert "2 more incidents" in found_in(run)["incident"].what
