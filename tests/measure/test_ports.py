"""A port that somebody takes between its choice and the server's start."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from builders import point_data
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.experiment import Experiment
from webdyno.core.records import AdjustmentRecord, IncidentRecord
from webdyno.host.netns import open_testbed
from webdyno.launch.caller import LineProgress
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import program
from webdyno.measure.backend import PointTestbed
from webdyno.measure.local_backend import Agent, VariantTestbed
from webdyno.measure.planned import plan_variants
from webdyno.measure.point import RunningPoint
from webdyno.measure.session import begin_run
from webdyno.measure.variant import RunningRound
from webdyno.servers import layout
from webdyno.servers.service_graph import free_port


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def duel(catalogue: Catalogue) -> Experiment:
    variants = {"one": {"stack": "nginx"}, "two": {"stack": "nginx"}}
    reported = {"title": "t", "question": "q?", "site": "static", "variants": variants}
    return read_experiment(CommandLine(reported, {}), [], catalogue)


def test_a_variant_whose_port_is_taken_starts_on_another(
    tmp_path: Path, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue.load()
    experiment = duel(catalogue)
    drawn = iter([taken])
    monkeypatch.setattr(layout, "free_port", lambda *a: next(drawn, None) or free_port(*a))
    with (
        begin_run("ports", experiment, catalogue, tmp_path / "run") as folder,
        open_testbed(experiment.testbed, find_loadgen()) as testbed,
    ):
        here = VariantTestbed(testbed, lambda: program("loadgen").new([0]))
        variants = plan_variants(experiment, catalogue)
        agent = Agent(variants, dict.fromkeys(experiment.variants, here))
        point = RunningPoint(
            data=point_data([], experiment),
            variants=variants,
            testbed=PointTestbed(agent, agent),
            calibrations={},
            folder=folder,
            progress=LineProgress(folder.head, print),
            commands_user=None,
        )
        drawn = iter([taken])
        with RunningRound(point, 1) as running:
            assert not running.start(point.variants[0]).url.endswith(f":{taken}")
    (adjustment,) = (it for it in point.data.records if isinstance(it, AdjustmentRecord))
    assert (adjustment.rule, adjustment.variant) == ("port-taken", "one")
    assert not any(isinstance(it, IncidentRecord) for it in point.data.records)
