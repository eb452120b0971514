"""The agent on this machine: what it measures comes in pieces, and it leaves nothing behind."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.commands import environment, left_behind
from webdyno.cluster import agent
from webdyno.definitions import Catalogue, CommandLine, read_experiment
from webdyno.model.cluster import Ended, Piece
from webdyno.run.folder import RunFolder

QUICK = {"slot_s": 0.1, "warmup_s": 0.0, "slots_per_arm": 2, "budget_s": 1.0}
TOLD = {
    "title": "t",
    "question": "q?",
    "site": "static",
    "arms": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder by which all processes are known that a test starts."""
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    assert left_behind(tmp_path) == []


def parcel(**measure: float) -> bytes:
    catalogue = Catalogue.load()
    wanted = read_experiment(CommandLine({**TOLD, "measure": measure}, {}), [], catalogue)
    return agent.parcel_of(wanted, catalogue)


@pytest.mark.usefixtures("place")
def test_a_run_comes_in_pieces_that_make_it_whole(tmp_path: Path) -> None:
    ended = None
    for told in agent.replicate(parcel(**QUICK), yes=False):
        if isinstance(told, Ended):
            ended = told
            continue
        path = tmp_path / "here" / told.file
        path.parent.mkdir(parents=True, exist_ok=True)
        assert told.start_bytes == (path.stat().st_size if path.exists() else 0)
        with path.open("ab") as file:
            file.write(told.data)
    assert ended is not None
    assert ended.code in {0, 1}, ended.said
    run = RunFolder.open(tmp_path / "here")
    assert sum(record.kind == "block" for record in run.records()) >= 6
    assert run.head.experiment.measure.seed is not None  # each host draws its own
    assert (tmp_path / "here/experiment.toml").exists()
    assert list((tmp_path / "here/blocks").rglob("nginx.conf"))


@pytest.mark.usefixtures("place")
def test_who_hears_no_more_ends_the_run() -> None:
    telling = agent.replicate(parcel(slot_s=0.1, budget_s=600.0), yes=False)
    heard: list[Piece | Ended] = []
    while not any(isinstance(it, Piece) and b'"slot"' in it.data for it in heard):
        heard.append(next(telling))
    telling.close()  # type: ignore[attr-defined]
