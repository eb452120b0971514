"""What is measured next to a capacity: once it is known, and what is missing of it."""

from pathlib import Path

import pytest

from builders import START, SimulatedRun, SimulatedVariant, simulated_run
from comparison.searches import Variant, searched
from webdyno.config import Catalogue
from webdyno.core.errors import Exit
from webdyno.core.experiment import Experiment
from webdyno.core.records import StopRecord
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.result import sweeps_afterwards
from webdyno.launch import measure as lab
from webdyno.launch.caller import Caller
from webdyno.launch.measure import MeasuredRun
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating

Asked = dict[str, Experiment]


def stored(path: Path, *, sweep_s: float | None) -> Path:
    """A run that found capacities."""
    run = searched(apache=Variant(15_000), nginx=Variant(50_000))
    asked = run.head.experiment.capacity
    assert asked
    swept = {"capacity": asked.model_copy(update={"sweep_s": sweep_s})}
    experiment = run.head.experiment.model_copy(update=swept)
    head = run.head.model_copy(update={"experiment": experiment})
    SimulatedRun(head, run.records).stored(path)
    keep_for_repeating(path, experiment, Catalogue.load())
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What was to be measured again, by its folder; it is done at once."""
    found: Asked = {}

    def measure(
        _: str, experiment: Experiment, __: Catalogue, out: Path, ___: Caller
    ) -> MeasuredRun:
        found[out.name] = experiment
        return finished(out)

    monkeypatch.setattr(lab, "measure_again", measure)
    return found


def finished(path: Path) -> MeasuredRun:
    """Put a run with its report there, too short for long looks."""
    run = simulated_run({"apache": SimulatedVariant(), "nginx": SimulatedVariant()})
    short = run.head.experiment.with_measure(budget_s=30.0)
    ended = StopRecord(round=8, stopped_at=START, reason="budget", why="for a test")
    head = run.head.replace(experiment=short)
    SimulatedRun(head, [*run.records, ended]).stored(path)
    (path / "report.html").touch()
    return MeasuredRun(RunFolder.open(path), "finished")


def test_both_sweeps_are_measured_in_the_run_s_folder_and_linked(
    tmp_path: Path, asked: Asked
) -> None:
    run = stored(tmp_path / "run", sweep_s=600.0)
    assert sweeps_afterwards(RunFlags())(run) is Exit.OK
    assert list(asked) == ["rates", "connections"]
    assert asked["rates"].load.loop == "open"
    page = (run / "report.html").read_text()
    assert '<a href="rates/report.html">Latency against arrival rate</a>' in page
    assert '<a href="connections/report.html">Throughput against connections</a>' in page


def test_what_is_there_already_is_not_measured_again(tmp_path: Path, asked: Asked) -> None:
    run = stored(tmp_path / "run", sweep_s=600.0)
    finished(run / "rates")
    sweeps_afterwards(RunFlags(report=False))(run)
    assert list(asked) == ["connections"]


def test_an_interrupted_sweep_ends_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = stored(tmp_path / "run", sweep_s=600.0)
    ended = finished(tmp_path / "sweep")._replace(end="interrupted")
    monkeypatch.setattr(lab, "measure_again", lambda *_: ended)
    assert sweeps_afterwards(RunFlags())(run) is Exit.INTERRUPTED
    assert not (run / "report.html").exists()


def test_nothing_is_measured_unless_asked_for(tmp_path: Path, asked: Asked) -> None:
    run = stored(tmp_path / "run", sweep_s=None)
    assert sweeps_afterwards(RunFlags())(run) is Exit.OK
    assert asked == {}
