"""What comes of hosts that answer, are lost, or say what they mustn't; with no host at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from builders import SimulatedArm, simulated_run
from webdyno.cluster.host import HostLost
from webdyno.cluster.replicates import Fleet
from webdyno.model.cluster import Ended, Piece
from webdyno.run.folder import RunFolder

RUN = simulated_run({"nginx": SimulatedArm(rate_rps=40_000), "apache": SimulatedArm()}, blocks=6)


@dataclass
class ScriptedHost:
    """Says what it was told to say, and then is gone."""

    name: str
    says: list[Piece | Ended]
    parcels: list[bytes] = field(default_factory=list)
    interrupted: int = 0

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Say it all."""
        assert not yes
        self.parcels.append(parcel)
        yield from self.says
        raise HostLost(f"{self.name} is gone: pulled out")

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


def fleet_of(*hosts: ScriptedHost, out: Path) -> Fleet:
    return Fleet(hosts, lambda host: f"parcel for {host}".encode(), out)


def test_runs_come_whole_and_another_host_takes_the_place_of_a_lost_one(tmp_path: Path) -> None:
    pieces = pieces_of_a_run(tmp_path / "there")
    lost = ScriptedHost("lost", pieces[:-1])
    whole, spare = (ScriptedHost(name, [*pieces, Ended(0, "")]) for name in ("whole", "spare"))
    heard: list[str] = []
    fleet = fleet_of(lost, whole, spare, out=tmp_path / "out")
    fleet.measure(2, lambda host, _: heard.append(host), yes=False)
    done = {it.host: it for it in fleet.done}
    assert done["lost"].lost == "lost is gone: pulled out"
    assert {name: it.ended for name, it in done.items()} == {
        "lost": None,
        "whole": Ended(0, ""),
        "spare": Ended(0, ""),
    }
    assert set(heard) == {"lost", "whole", "spare"}
    for host in (lost, whole, spare):
        assert host.parcels == [f"parcel for {host.name}".encode()]
    for name in ("whole", "spare"):
        assert RunFolder.open(tmp_path / "out" / name).records() == list(RUN.records)
    # What a lost host had measured is read up to where its last line was torn.
    kept = RunFolder.open(tmp_path / "out/lost").records()
    assert kept == list(RUN.records)[: len(kept)] != []


def test_hosts_that_have_nothing_to_do_are_left_alone(tmp_path: Path) -> None:
    one, other = (ScriptedHost(name, [Ended(1, "")]) for name in ("one", "other"))
    fleet = fleet_of(one, other, out=tmp_path)
    fleet.measure(1, lambda *_: None, yes=False)
    assert [it.host for it in fleet.done] == ["one"]
    assert other.parcels == []


def test_another_host_takes_the_place_of_one_that_cannot(tmp_path: Path) -> None:
    lacking = ScriptedHost("lacking", [Ended(3, "no nginx here")])
    other = ScriptedHost("other", [Ended(0, "")])
    fleet = fleet_of(lacking, other, out=tmp_path)
    fleet.measure(1, lambda *_: None, yes=False)
    assert [(it.host, it.ended and it.ended.code) for it in fleet.done] == [
        ("lacking", 3),
        ("other", 0),
    ]


def test_no_host_writes_outside_of_its_run(tmp_path: Path) -> None:
    for path in ("../elsewhere", "/elsewhere", "a/../../elsewhere"):
        fleet = fleet_of(
            ScriptedHost("host", [Piece(PurePosixPath(path), 0, b"x")]), out=tmp_path / "out"
        )
        fleet.measure(1, lambda *_: None, yes=False)
        assert "none of the run's" in str(fleet.done[0].lost)
        assert not list(tmp_path.rglob("elsewhere"))
