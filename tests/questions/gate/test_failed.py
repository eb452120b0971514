"""Profile rounds of a gate that failed: measured where they can be, and else it is said why not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builders import SimulatedRun, SimulatedVariant
from questions.gate.test_decide import gate_run, judged_whole
from questions.gate.test_growth import AFTER, BEFORE, profiled
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError
from webdyno.core.limits import GateJudgement
from webdyno.core.run import profile_run
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.measure import MeasuredRun
from webdyno.measure.folder import RunFolder
from webdyno.questions.gate.failed import measure_growth

CALLER = at_terminal(RunFlags())
SLOWER = SimulatedVariant(server_cpu_us=26.0)
Measures = Callable[..., MeasuredRun]


@pytest.fixture
def perf_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.probes.profile.sampling_fault", lambda: None)


def grown(folder: Path, head: SimulatedVariant = SLOWER, budget_s: float = 3600.0) -> GateJudgement:
    """Have a gate's folder, let it be profiled, and judge it as `webdyno report` does."""
    run = gate_run(head)
    experiment = run.head.experiment.with_measure(budget_s=budget_s)
    run = SimulatedRun(run.head.model_copy(update={"experiment": experiment}), run.records)
    run.stored(folder)
    measure_growth(RunFolder.open(folder), Catalogue.load(), CALLER)
    return judged_whole(RunFolder.open(folder).data())


def measuring(rounds_s: list[int], end: str = "finished") -> Measures:
    """Stand in for what measures: it leaves profile rounds behind."""

    def measure(
        _: str, __: object, ___: object, path: Path, ____: object, **asked: object
    ) -> MeasuredRun:
        rounds_s.append(asked["rounds"][0])  # type: ignore[index]
        profiled(BEFORE, AFTER).stored(path)
        return MeasuredRun(RunFolder.open(path), end)  # type: ignore[arg-type]

    return measure


@pytest.mark.usefixtures("perf_works")
def test_functions_of_a_gate_that_failed_are_found_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    monkeypatch.setattr("webdyno.questions.gate.failed.measure_again", measuring(asked))

    def more(path: Path, _: object, rounds: dict[int, int]) -> MeasuredRun:
        asked.append(rounds[0])
        return MeasuredRun(RunFolder.open(path), "finished")

    monkeypatch.setattr("webdyno.questions.gate.failed.measure_on", more)
    (grew,) = grown(tmp_path / "run").grew
    assert asked == [3, 6]
    assert grew.sampled
    assert any(part.what == "search (app.js)" for part in grew.sampled.parts)


def test_what_passes_is_not_profiled(tmp_path: Path) -> None:
    assert grown(tmp_path / "run", SimulatedVariant()).grew == []
    assert not (tmp_path / "run/explain").exists()


def test_why_nothing_can_be_sampled_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.probes.profile.sampling_fault", lambda: "perf isn't here")
    (grew,) = grown(tmp_path / "run").grew
    assert grew.lacking == "perf isn't here"
    assert grew.counted


@pytest.mark.usefixtures("perf_works")
def test_without_time_nothing_is_profiled(tmp_path: Path) -> None:
    (grew,) = grown(tmp_path / "run", budget_s=1.0).grew
    assert grew.lacking.startswith("there was no time left for profile rounds, which take ")


@pytest.mark.usefixtures("perf_works")
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OperationError("web died; the end of its log:\n    oh"),
            "profile rounds failed: web died",
        ),
        (KeyboardInterrupt(), "the profile rounds were interrupted"),
    ],
)
def test_whatever_becomes_of_profile_rounds_the_answer_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException, said: str
) -> None:
    def fails(*_: object, **__: object) -> MeasuredRun:
        raise error

    monkeypatch.setattr("webdyno.questions.gate.failed.measure_again", fails)
    found = grown(tmp_path / "run")
    assert found.answer == "fail"
    assert found.grew[0].lacking.startswith(said)


@pytest.mark.usefixtures("perf_works")
def test_an_interrupt_keeps_the_rounds_so_far(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webdyno.questions.gate.failed.measure_again", measuring([], "interrupted"))
    (grew,) = grown(tmp_path / "run").grew
    assert grew.sampled


def test_damaged_profiles_are_named(tmp_path: Path) -> None:
    gate_run(SLOWER).stored(tmp_path / "run")
    folder = profile_run(tmp_path / "run", 0)
    for name in ("profile-x", "profile-", "profile-1" + "0" * 40):
        (folder.parent / name).mkdir(parents=True)
    assert RunFolder.open(tmp_path / "run").data().profiles == {}
    folder.with_suffix(".txt").write_bytes(b"\xff\x00 no perf \x1b[31m")
    (grew,) = judged_whole(RunFolder.open(tmp_path / "run").data()).grew
    assert "no perf" in grew.lacking
