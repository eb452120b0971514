"""The simulation of fleets, at sizes that take no time."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from evidence.stretches import Truth, stretch
from fleet_size import DrawnHost, Template, cost_of
from rig.process import BenchError
from webdyno.cluster.dispatch import Dispatcher, Work, finished_runs, judged_machines
from webdyno.core.judgement import Verdict
from webdyno.core.records import StopRecord
from webdyno.fleet import judge_fleet


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that came to its end."""
    variants = {"apache": SimulatedVariant(), "nginx": SimulatedVariant(throughput_rps=80_000)}
    run = simulated_run(variants, rounds=6)
    stop = StopRecord(round=6, stopped_at=datetime.now(UTC), reason="precision", why="it is known")
    looks = [stretch(Truth(), variant).replace(ended_by="time") for variant in variants]
    return SimulatedRun(run.head, [*run.records, stop, *looks]).stored(tmp_path / "run")


def test_drawn_hosts_are_a_fleet_of_machines_with_verdicts(run: Path, tmp_path: Path) -> None:
    template = Template.of(run)
    hosts = [DrawnHost(f"host{n}", template, rounds=7) for n in range(3)]
    dispatcher = Dispatcher(hosts, lambda *_: b"", tmp_path / "out")
    dispatcher.measure(Counter({Work(): 3}), lambda *_: None, yes=False)
    finished = [run.path for run in finished_runs(tmp_path / "out")]
    assert [path.name for path in finished] == ["host0", "host1", "host2"]
    found = judge_fleet(judged_machines({path.name: path for path in finished}))
    assert found.verdict is Verdict.FASTER
    (pair,) = found.points[0].comparisons
    assert [(it.verdict, it.rounds) for it in pair.replicates] == [(Verdict.FASTER, 7)] * 3
    assert found.varieties == []


@pytest.mark.long
def test_what_many_hosts_leave_behind_grows_with_them_and_the_page_hardly(run: Path) -> None:
    few, many = (cost_of(run, hosts, rounds=6) for hosts in (25, 100))
    assert 3.9 < many.disk_bytes / few.disk_bytes < 4.1
    assert many.page_bytes < few.page_bytes + 75 * 250  # a folded line for each machine


def test_a_run_without_an_end_is_no_template(tmp_path: Path) -> None:
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=2)
    with pytest.raises(BenchError, match="didn't come to its end"):
        Template.of(run.stored(tmp_path / "run"))
