"""The agent on this machine: what it measures comes in pieces, and it leaves nothing behind."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.commands import environment, left_behind
from webdyno.cluster import agent
from webdyno.cluster.host import Piece
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.evidence.point_data import RunData
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating
from webdyno.measure.session import is_finished

QUICK = {"slot_s": 0.1, "warmup_s": 0.0, "slots_per_variant": 2, "budget_s": 1.0}
REPORTED = {
    "title": "t",
    "question": "q?",
    "site": "static",
    "variants": {"a": {"stack": "nginx"}, "b": {"stack": "nginx"}},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder by which all processes are known that a test starts."""
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    assert left_behind(tmp_path) == []


def parcel(place: Path, **measure: float) -> bytes:
    catalogue = Catalogue.load()
    wanted = read_experiment(CommandLine({**REPORTED, "measure": measure}, {}), [], catalogue)
    keep_for_repeating(place / "fleet", wanted, catalogue)
    return agent.parcel_of(place / "fleet", None)


def write(folder: Path, piece: Piece) -> None:
    path = folder / piece.file
    path.parent.mkdir(parents=True, exist_ok=True)
    if piece.start_bytes == 0:  # the first of its pieces, or all of a round that is begun again
        path.write_bytes(b"")
    assert piece.start_bytes == path.stat().st_size
    with path.open("ab") as file:
        file.write(piece.data)


@pytest.mark.long
def test_a_run_comes_in_pieces_and_goes_on_from_where_nobody_heard_it(place: Path) -> None:
    here = place / "here"
    reporting = agent.replicate(parcel(place, **QUICK), yes=False)
    for reported in reporting:
        assert isinstance(reported, Piece), reported.said
        write(here, reported)
        if b'"round"' in reported.data and (here / "slots.jsonl").exists():
            break
    reporting.close()  # type: ignore[attr-defined]
    assert left_behind(place) == []
    with (here / "slots.jsonl").open("ab") as file:
        file.write(b'{"kind":"slot","torn')
    before = RunFolder.open(here).records()
    for reported in agent.replicate(agent.parcel_of(place / "fleet", here), yes=False):
        if isinstance(reported, Piece):
            write(here, reported)
        else:
            assert reported.code in {0, 1}, reported.said
    run = RunFolder.open(here)
    records = run.records()
    assert records[: len(before)] == before
    assert sum(record.kind == "session" for record in records) == 2
    assert is_finished(RunData(run.head, records))
    assert run.head.experiment.measure.seed is not None  # each host draws its own
    assert (here / "experiment.toml").exists()
    assert list((here / "rounds").rglob("nginx.conf"))
