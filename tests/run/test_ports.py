"""A port that somebody takes between its choice and the server's start."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import point_data
from webdyno.definitions import Catalogue, CommandLine, read_experiment
from webdyno.generator.interface import program
from webdyno.generator.loadgen import find_loadgen
from webdyno.host.netns import open_bench
from webdyno.lab.lines import LineProgress
from webdyno.model.experiment import Experiment
from webdyno.model.records import AdjustmentRecord, IncidentRecord
from webdyno.run.arm import RunningBlock
from webdyno.run.backend import PointTestbed
from webdyno.run.local_backend import Agent, ArmBench
from webdyno.run.planned import plan_arms
from webdyno.run.point import RunningPoint
from webdyno.run.session import begin_run
from webdyno.stack import layout
from webdyno.stack.sockets import free_port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def duel(catalogue: Catalogue) -> Experiment:
    arms = {"one": {"stack": "nginx"}, "two": {"stack": "nginx"}}
    told = {"title": "t", "question": "q?", "site": "static", "arms": arms}
    return read_experiment(CommandLine(told, {}), [], catalogue)


def test_an_arm_whose_port_is_taken_starts_on_another(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue.load()
    experiment = duel(catalogue)
    drawn = iter([taken])
    monkeypatch.setattr(layout, "free_port", lambda *a: next(drawn, None) or free_port(*a))
    with (
        begin_run("ports", experiment, catalogue, tmp_path / "run") as folder,
        open_bench(experiment.bench, find_loadgen()) as bench,
    ):
        here = ArmBench(bench, lambda: program("loadgen").new([0]))
        arms = plan_arms(experiment, catalogue)
        agent = Agent(arms, dict.fromkeys(experiment.arms, here))
        point = RunningPoint(
            data=point_data([], experiment),
            arms=arms,
            testbed=PointTestbed(agent, agent),
            calibrations={},
            folder=folder,
            progress=LineProgress(folder.head, print),
        )
        drawn = iter([taken])
        with RunningBlock(point, 1) as running:
            assert not running.start(point.arms[0]).url.endswith(f":{taken}")
    (adjustment,) = (it for it in point.data.records if isinstance(it, AdjustmentRecord))
    assert (adjustment.rule, adjustment.arm) == ("port-taken", "one")
    assert not any(isinstance(it, IncidentRecord) for it in point.data.records)
