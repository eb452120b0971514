"""Works dealt to hosts that answer, are lost or can't; with no host at all."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

import pytest

from builders import START, SimulatedVariant, simulated_run
from evidence.stretches import Truth, stretch
from webdyno.cluster.dispatch import (
    Dispatcher,
    Work,
    finished_runs,
    missing_runs,
    work_at_points,
)
from webdyno.cluster.host import AgentExit, Piece
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.records import StopRecord
from webdyno.core.sweep import plan_points
from webdyno.measure.backend import HostLost
from webdyno.measure.folder import RunFolder

VARIANTS = {"nginx": SimulatedVariant(throughput_rps=40_000), "apache": SimulatedVariant()}
RUN = simulated_run(VARIANTS, rounds=6, measure=Measure(seed=1, max_rounds=6))
WRITTEN = RUN.head.experiment.model_dump(exclude_unset=True)
VARIED = Experiment.model_validate({**WRITTEN, "factors": {"load.connections": [1, 2, 4, 8]}})
POINTS = work_at_points(VARIED)
CANNOT = AgentExit(3, "no")
PIECES = 3
"""In so many pieces each file comes."""


@dataclass
class StandInHost:
    """Measures what a parcel names, unless it hears what happens then."""

    name: str
    run: Path
    """What it measures whatever the work."""
    happens: dict[str, AgentExit | None] = field(default_factory=dict)
    """By part: how it ends; None: the host is lost there."""
    parcels: list[str] = field(default_factory=list)

    def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:
        """Give a whole run in pieces that are cut anywhere, or as much as comes of it."""
        assert not yes
        self.parcels.append(parcel.decode())
        ends = self.happens.get(parcel.decode().partition(" ")[0], AgentExit(0, ""))
        whole = ends is not None and ends.code == 0
        for name in ("run.json", "slots.jsonl"):
            data = (self.run / name).read_bytes()
            step = len(data) // PIECES + 1
            cuts = range(0, len(data) if whole or name == "run.json" else step, step)
            yield from (Piece(PurePosixPath(name), at, data[at : at + step]) for at in cuts)
        if ends is None:
            raise HostLost(f"{self.name} is gone: pulled out")
        yield ends

    def interrupt(self) -> None:
        """Nothing goes on."""


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """A run."""
    return RUN.stored(tmp_path / "there")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where all of it comes."""
    return tmp_path / "out"


def lost_everywhere() -> dict[str, AgentExit | None]:
    return dict.fromkeys(["", *(work.part for work in POINTS)])


def parcel(work: Work, begun: Path | None) -> bytes:
    return f"{work.part} {'on' if begun else 'again'}".encode()


def dispatched(
    *hosts: StandInHost, works: list[Work], out: Path, heard: set[str] | None = None
) -> Dispatcher:
    """Measure what is missing of works."""
    labels = set[str]() if heard is None else heard
    dispatcher = Dispatcher(hosts, parcel, out)
    dispatcher.measure(missing_runs(works, out), lambda label, _: labels.add(label), yes=False)
    return dispatcher


def measured_by(out: Path) -> dict[str, list[str]]:
    found = {work.part: finished_runs(out, work.part) for work in POINTS}
    return {part: [it.path.parent.name for it in runs] for part, runs in found.items() if runs}


def test_replicates_come_whole_and_another_host_takes_the_place_of_a_lost_one(
    there: Path, out: Path
) -> None:
    lost = StandInHost("lost", there, lost_everywhere())
    whole, spare = StandInHost("whole", there), StandInHost("spare", there)
    heard: set[str] = set()
    dispatcher = dispatched(lost, whole, spare, works=[Work(hosts=2)], out=out, heard=heard)
    done = {it.host: it for it in dispatcher.done}
    assert done["lost"].lost == "lost is gone: pulled out"
    assert {name: it.ended for name, it in done.items()} == {
        "lost": None,
        "whole": AgentExit(0, ""),
        "spare": AgentExit(0, ""),
    }
    assert heard == {"lost", "whole", "spare"}
    assert [it.parcels for it in (lost, whole, spare)] == [[" again"]] * 3
    assert [run.path for run in finished_runs(out)] == [out / "spare", out / "whole"]
    for run in finished_runs(out):
        assert run.records() == list(RUN.records)
    # What a lost host had measured is read up to where its last line was torn.
    kept = RunFolder.open(out / "lost").records()
    assert kept == list(RUN.records)[: len(kept)] != []


def test_a_run_whose_variants_are_still_to_be_looked_at_did_not_come_to_its_end(out: Path) -> None:
    run = simulated_run(VARIANTS, rounds=6, measure=Measure(seed=1, budget_s=90.0))
    stop = StopRecord(round=6, stopped_at=START, reason="precision", why="known")
    looks = [stretch(Truth(looked_s=10.0), variant=variant) for variant in VARIANTS]
    replace(run, records=[*run.records, stop, looks[0]]).stored(out / "one")
    replace(run, records=[*run.records, stop, *looks]).stored(out / "other")
    assert [it.path for it in finished_runs(out)] == [out / "other"]


def test_hosts_that_have_nothing_to_do_are_left_alone(there: Path, out: Path) -> None:
    one, other = StandInHost("one", there), StandInHost("other", there)
    dispatcher = dispatched(one, other, works=[Work()], out=out)
    assert [it.host for it in dispatcher.done] == ["one"]
    assert other.parcels == []


def test_another_host_takes_the_place_of_one_that_cannot(there: Path, out: Path) -> None:
    lacking, other = StandInHost("lacking", there, {"": CANNOT}), StandInHost("other", there)
    dispatcher = dispatched(lacking, other, works=[Work()], out=out)
    ended = [(it.host, it.ended and it.ended.code) for it in dispatcher.done]
    assert ended == [("lacking", 3), ("other", 0)]


def test_a_machine_counts_once(there: Path, out: Path) -> None:
    """A host that has measured a replicate gets no second one, not even when it goes on later."""
    one, other = StandInHost("one", there), StandInHost("other", there)
    works = [Work(hosts=2)]
    dispatched(one, works=works, out=out)
    assert missing_runs(works, out) == Counter({works[0]: 1})
    assert Dispatcher([one, other], parcel, out).hosts_for(works[0]) == [other]
    dispatched(one, other, works=works, out=out)
    assert (one.parcels, other.parcels) == ([" again"], [" again"])
    assert not missing_runs(works, out)


def test_a_replicate_goes_on_where_it_was_begun(there: Path, out: Path) -> None:
    first = StandInHost("first", there, lost_everywhere())
    dispatched(first, works=[Work()], out=out)
    first.happens = {}
    new = StandInHost("new", there)
    dispatched(new, first, works=[Work()], out=out)
    assert (first.parcels, new.parcels) == ([" again", " on"], [])


def test_each_point_is_measured_once(there: Path, out: Path) -> None:
    hosts = [StandInHost("one", there), StandInHost("other", there)]
    heard: set[str] = set()
    dispatcher = dispatched(*hosts, works=POINTS, out=out, heard=heard)
    parcels = sorted(it for host in hosts for it in host.parcels)
    assert parcels == [f"point-00{n} again" for n in range(4)]
    assert {part: len(hosts) for part, hosts in measured_by(out).items()} == {
        work.part: 1 for work in POINTS
    }
    assert {label.partition(", ")[2] for label in heard} == {it.label for it in POINTS}
    for it in dispatcher.done:
        assert RunFolder.open(it.folder).records() == list(RUN.records)


def test_the_point_of_a_lost_host_is_begun_again_elsewhere(there: Path, out: Path) -> None:
    lost, other = StandInHost("lost", there, lost_everywhere()), StandInHost("other", there)
    dispatcher = dispatched(lost, other, works=POINTS, out=out)
    assert len(lost.parcels) == 1
    assert [it.lost for it in dispatcher.done if it.host == "lost"] == ["lost is gone: pulled out"]
    assert measured_by(out) == {work.part: ["other"] for work in POINTS}
    # What the lost host had measured is kept.
    assert RunFolder.open(POINTS[0].run_on("lost", out)).records()


def test_a_host_that_cannot_measure_a_point_measures_others(there: Path, out: Path) -> None:
    one = StandInHost("one", there, {"point-000": CANNOT, "point-003": CANNOT})
    other = StandInHost("other", there, {"point-003": CANNOT})
    dispatched(one, other, works=POINTS, out=out)
    found = measured_by(out)
    assert found.keys() == {"point-000", "point-001", "point-002"}
    assert found["point-000"] == ["other"]
    assert [it.split()[0] for it in one.parcels].count("point-003") == 1


def test_a_point_goes_on_where_it_was_begun(there: Path, out: Path) -> None:
    first = StandInHost("first", there, lost_everywhere())
    dispatched(first, works=[POINTS[2]], out=out)
    first.happens = {}
    first.parcels.clear()
    dispatched(StandInHost("new", there), first, works=POINTS, out=out)
    assert first.parcels[0] == "point-002 on"
    assert measured_by(out)["point-002"] == ["first"]


def test_without_hosts_that_are_left_points_are_missing(there: Path, out: Path) -> None:
    lost = StandInHost("lost", there, {"point-001": None})
    dispatched(lost, works=POINTS, out=out)
    assert measured_by(out) == {"point-000": ["lost"]}


@pytest.mark.parametrize("path", ["../elsewhere", "/elsewhere", "a/../../elsewhere"])
def test_no_host_writes_outside_of_its_run(path: str, there: Path, out: Path) -> None:
    class Intruder(StandInHost):
        def replicate(self, parcel: bytes, *, yes: bool) -> Iterator[Piece | AgentExit]:  # noqa: ARG002
            yield Piece(PurePosixPath(path), 0, b"x")

    dispatcher = dispatched(Intruder("host", there), works=[Work()], out=out)
    assert "none of the run's" in str(dispatcher.done[0].lost)
    assert not list(out.parent.rglob("elsewhere"))


def test_what_a_host_gets_is_about_one_point_and_has_its_share_of_time() -> None:
    factors = {"load.connections": [4, 8], "load.keepalive": ["always", "never"]}
    experiment = Experiment.model_validate({**WRITTEN, "factors": factors})
    for plan, work in zip(plan_points(experiment), work_at_points(experiment), strict=True):
        assert work.experiment
        [alone] = plan_points(work.experiment)
        assert alone.point.levels == plan.point.levels
        assert alone.experiment == plan.experiment
