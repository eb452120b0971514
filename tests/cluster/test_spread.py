"""Points dealt to hosts that answer, are lost or can't; with no host at all."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import pytest

from builders import SimulatedArm, simulated_run
from webdyno.cluster.host import HostLost
from webdyno.cluster.spread import Spread, finished_points, run_at
from webdyno.model.cluster import Ended, Piece
from webdyno.model.experiment import Experiment
from webdyno.model.measure import Measure
from webdyno.model.point import Point, only_at, plan_points
from webdyno.run.folder import RunFolder

ARMS = {"nginx": SimulatedArm(rate_rps=40_000), "apache": SimulatedArm()}
RUN = simulated_run(ARMS, blocks=6, measure=Measure(seed=1, max_blocks=6))
POINTS = [Point(number=n, levels={"load.connections": n + 1}) for n in range(4)]
CANNOT = Ended(3, "no")


@dataclass
class StandInHost:
    """Measures the point that a parcel names, unless it is told what happens there."""

    name: str
    run: Path
    """What it measures at every point."""
    happens: dict[int, Ended | None] = field(default_factory=dict)
    """By point: how it ends; None: the host is lost there."""
    parcels: list[str] = field(default_factory=list)

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | Ended]:
        """Give a whole run, or as much as comes of it."""
        assert not yes
        self.parcels.append(parcel.decode())
        number = int(parcel.split()[0])
        yield Piece(PurePosixPath("run.json"), 0, (self.run / "run.json").read_bytes())
        records = (self.run / "slots.jsonl").read_bytes()
        ends = self.happens.get(number, Ended(0, ""))
        whole = ends is not None and ends.code == 0
        yield Piece(PurePosixPath("slots.jsonl"), 0, records[: None if whole else 3000])
        if ends is None:
            raise HostLost(f"{self.name} is gone: pulled out")
        yield ends

    def interrupt(self) -> None:
        """Nothing goes on."""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A run."""
    return RUN.stored(tmp_path / "there")


def parcel(point: Point, begun: Path | None) -> bytes:
    return f"{point.number} {'on' if begun else 'anew'}".encode()


def spread_over(*hosts: StandInHost, out: Path) -> Spread:
    return Spread(hosts, parcel, out)


def measured_by(out: Path) -> dict[int, str]:
    return {n: run.path.parent.name for n, run in finished_points(out, POINTS).items()}


def test_each_point_is_measured_once(tmp_path: Path, there: Path) -> None:
    hosts = [StandInHost("one", there), StandInHost("other", there)]
    heard: set[str] = set()
    spread = spread_over(*hosts, out=tmp_path / "out")
    spread.measure(POINTS, lambda label, _: heard.add(label), yes=False)
    assert sorted(it for host in hosts for it in host.parcels) == [f"{n} anew" for n in range(4)]
    assert measured_by(tmp_path / "out").keys() == {0, 1, 2, 3}
    assert {label.partition(", ")[2] for label in heard} == {it.label for it in POINTS}
    for it in spread.done:
        assert RunFolder.open(it.folder).records() == list(RUN.records)


def test_the_point_of_a_lost_host_is_begun_anew_elsewhere(tmp_path: Path, there: Path) -> None:
    lost, other = StandInHost("lost", there, dict.fromkeys(range(4))), StandInHost("other", there)
    spread = spread_over(lost, other, out=tmp_path / "out")
    spread.measure(POINTS, lambda *_: None, yes=False)
    assert len(lost.parcels) == 1
    assert [it.lost for it in spread.done if it.host == "lost"] == ["lost is gone: pulled out"]
    assert measured_by(tmp_path / "out") == dict.fromkeys(range(4), "other")
    # What the lost host had measured is kept.
    assert RunFolder.open(run_at(tmp_path / "out", "lost", POINTS[0])).records()


def test_a_host_that_cannot_measure_a_point_measures_others(tmp_path: Path, there: Path) -> None:
    one, other = (
        StandInHost("one", there, {0: CANNOT, 3: CANNOT}),
        StandInHost("other", there, {3: CANNOT}),
    )
    spread = spread_over(one, other, out=tmp_path / "out")
    spread.measure(POINTS, lambda *_: None, yes=False)
    found = measured_by(tmp_path / "out")
    assert found.keys() == {0, 1, 2}
    assert found[0] == "other"
    assert [it.split()[0] for it in one.parcels].count("3") == 1


def test_it_goes_on_where_it_was_begun(tmp_path: Path, there: Path) -> None:
    out = tmp_path / "out"
    first = StandInHost("first", there, dict.fromkeys(range(4)))
    spread_over(first, out=out).measure([POINTS[2]], lambda *_: None, yes=False)
    first.happens = {}
    first.parcels.clear()
    hosts = StandInHost("new", there), first
    spread_over(*hosts, out=out).measure(POINTS, lambda *_: None, yes=False)
    assert first.parcels[0] == "2 on"
    assert measured_by(out)[2] == "first"


def test_without_hosts_that_are_left_points_are_missing(tmp_path: Path, there: Path) -> None:
    lost = StandInHost("lost", there, {1: None})
    spread = spread_over(lost, out=tmp_path / "out")
    spread.measure(POINTS, lambda *_: None, yes=False)
    assert measured_by(tmp_path / "out") == {0: "lost"}


def test_a_run_on_a_host_is_about_one_point_and_has_its_share_of_time() -> None:
    factors = {"load.connections": [4, 8], "load.keepalive": ["always", "never"]}
    written = RUN.head.experiment.model_dump(exclude_unset=True)
    experiment = Experiment.model_validate({**written, "factors": factors})
    for plan in plan_points(experiment):
        [alone] = plan_points(only_at(experiment, plan.point))
        assert alone.point.levels == plan.point.levels
        assert alone.experiment == plan.experiment
