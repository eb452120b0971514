"""What comes of hosts that answer, are lost, or say what they mustn't; with no host at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from builders import SimulatedArm, simulated_run
from webdyno.cluster.host import HostLost
from webdyno.cluster.replicates import Fleet
from webdyno.model.cluster import Ended, HostFacts, LinkFacts, Piece
from webdyno.run.folder import RunFolder

RUN = simulated_run({"nginx": SimulatedArm(rate_rps=40_000), "apache": SimulatedArm()}, blocks=6)


@dataclass
class ScriptedHost:
    """Says what it was told to say, and then is gone."""

    name: str
    says: list[Piece | Ended]
    parcels: list[bytes] = field(default_factory=list)
    interrupted: int = 0

    def look(self) -> HostFacts:
        """Nobody asks."""
        raise AssertionError

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Say it all."""
        assert not yes
        self.parcels.append(parcel)
        yield from self.says
        raise HostLost(f"{self.name} is gone: pulled out")

    def answer_link(self) -> Iterator[tuple[str, int]]:
        """Nobody asks."""
        raise AssertionError

    def measure_link(self, address: str, port: int) -> LinkFacts:
        """Nobody asks."""
        raise AssertionError(address, port)

    def interrupt(self) -> None:
        """Count that."""
        self.interrupted += 1


def pieces_of_a_run(folder: Path) -> list[Piece | Ended]:
    """Give a run in pieces that are cut anywhere."""
    RUN.stored(folder)
    pieces: list[Piece | Ended] = []
    for name in ("run.json", "slots.jsonl"):
        data = (folder / name).read_bytes()
        cuts = range(0, len(data), len(data) // 3 + 1)
        step = len(data) // 3 + 1
        pieces += [Piece(PurePosixPath(name), at, data[at : at + step]) for at in cuts]
    return pieces


def test_runs_come_whole_and_another_host_takes_the_place_of_a_lost_one(tmp_path: Path) -> None:
    pieces = pieces_of_a_run(tmp_path / "there")
    lost = ScriptedHost("lost", pieces[:-1])
    whole, spare = (ScriptedHost(name, [*pieces, Ended(0, "")]) for name in ("whole", "spare"))
    heard: list[str] = []
    fleet = Fleet(
        hosts=[lost, whole, spare],
        parcel=b"parcel",
        out=tmp_path / "out",
        yes=False,
        news=lambda host, _: heard.append(host),
    )
    fleet.measure(2)
    done = {it.host: it for it in fleet.done}
    assert done["lost"].lost == "lost is gone: pulled out"
    assert not done["lost"].is_whole
    assert done["whole"].is_whole
    assert done["spare"].is_whole
    assert set(heard) == {"lost", "whole", "spare"}
    assert {len(it.parcels) for it in (lost, whole, spare)} == {1}
    for name in ("whole", "spare"):
        assert RunFolder.open(tmp_path / "out" / name).records() == list(RUN.records)
    # What a lost host had measured is read up to where its last line was torn.
    kept = RunFolder.open(tmp_path / "out/lost").records()
    assert kept == list(RUN.records)[: len(kept)] != []


def test_hosts_that_have_nothing_to_do_are_left_alone(tmp_path: Path) -> None:
    said: list[Piece | Ended] = [Ended(3, "no nginx here")]
    one, other = ScriptedHost("one", said), ScriptedHost("other", said)
    fleet = Fleet([one, other], b"", tmp_path, yes=False, news=lambda *_: None)
    fleet.measure(1)
    (done,) = fleet.done
    assert (done.host, done.is_whole, done.lost) == ("one", False, None)
    assert other.parcels == []


def test_no_host_writes_outside_of_its_run(tmp_path: Path) -> None:
    for path in ("../elsewhere", "/elsewhere", "a/../../elsewhere"):
        host = ScriptedHost("host", [Piece(PurePosixPath(path), 0, b"x")])
        fleet = Fleet([host], b"", tmp_path / "out", yes=False, news=lambda *_: None)
        fleet.measure(1)
        assert "none of the run's" in str(fleet.done[0].lost)
        assert not list(tmp_path.rglob("elsewhere"))
