"""Time that is a limit is kept, on machines of any noise: simulated ones, on a clock of their own.

Real commands are held to it in tests/e2e/test_time_limit.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import cast

import pytest

from builders import SimulatedVariant, load_result, response, run_head, server_use
from evidence.stretches import Truth, stretch
from webdyno.comparison import judge, question_of
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.load_result import LoadResult, Window
from webdyno.core.measure import CapacitySettings
from webdyno.core.readings import Readings
from webdyno.core.records import Response
from webdyno.core.sweep import plan_points
from webdyno.core.variant import Variant
from webdyno.evidence.point_data import PointData
from webdyno.launch.caller import LineProgress
from webdyno.load.interface import LoadOrder
from webdyno.measure import session
from webdyno.measure.backend import PointTestbed, Slot, SlotUsage, StartedVariant
from webdyno.measure.folder import RunFolder
from webdyno.measure.planned import PlannedVariant, plan_variants
from webdyno.measure.point import RunningPoint, Stopwatch
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.ranking.settings import RankingSettings

CATALOGUE = Catalogue.load()
CAPACITY_RPS = 5_000.0


@dataclass
class Noise:
    """What a machine adds to what is asked of it, in seconds; `times` scatters that."""

    start_s: float = 0.1
    slot_s: float = 0.07
    end_s: float = 0.1
    login_s: float = 0.0
    first_start_s: float = 0.0
    """Beyond that, of the very first start of each variant."""


QUIET, BUSY, HOPELESS = Noise(), Noise(0.6, 0.35, 0.5), Noise(4.0, 1.5, 2.0)
LOGINS, BUILDS = Noise(login_s=4.0), Noise(first_start_s=60.0)


@dataclass
class Machine:
    """Serves and loads variants in no time but that of its own clock."""

    noise: Noise
    now_s: float = 0.0
    up_s: float | None = None
    """When the first variant was up."""
    started: set[str] = field(default_factory=set)
    logged_in: set[str] = field(default_factory=set)
    random: Random = field(default_factory=lambda: Random(1))

    def takes(self, seconds: float) -> None:
        self.now_s += seconds

    def owes(self, seconds: float) -> None:
        """Take a time that scatters."""
        self.takes(seconds * self.random.lognormvariate(0.0, 0.3))

    # What serves.

    def start(self, variant: str, _folder: Path) -> StartedVariant:
        self.owes(self.noise.start_s)
        if variant not in self.started:
            self.takes(self.noise.first_start_s)
        self.started.add(variant)
        self.logged_in.discard(variant)
        self.up_s = self.now_s if self.up_s is None else self.up_s
        return StartedVariant("http://127.0.0.1:1", 0.05, 0.01, is_counted=False, facts={})

    def waits_for_rest(self, most_s: float) -> bool:
        self.takes(min(0.01, most_s))
        return True

    def check_alive(self, _: str) -> None:
        """Nothing dies here."""

    def broken_rule(self, _: str) -> None:
        """None is broken."""

    def end(self) -> None:
        self.owes(self.noise.end_s)

    # What loads.

    def ask(self, *_: object) -> list[Response]:
        self.owes(0.02)
        return [response(SimulatedVariant())]

    def get_ready(self, variant: str, _: object = None) -> float:
        self.owes(0.02)
        if variant in self.logged_in:
            return 0.0
        self.logged_in.add(variant)
        self.takes(self.noise.login_s)
        return self.noise.login_s

    def load(self, _: str, order: LoadOrder) -> LoadResult:
        self.owes(self.noise.slot_s)
        self.takes(order.load_s)
        rate_rps = order.load.rate_per_s or 10_000.0
        overloaded = order.load.rate_per_s is not None and rate_rps > CAPACITY_RPS
        simulated = SimulatedVariant(
            throughput_rps=rate_rps, latency_p50_us=400_000.0 if overloaded else 1_500.0
        )
        slowness = self.random.lognormvariate(0.0, 0.05)
        result = load_result(simulated, duration_s=order.duration_s, slowness=slowness)
        if order.window_s is None:
            return result.replace(ramp_up_s=order.ramp_up_s)
        parts = round(order.load_s / order.window_s)
        each = rate_rps * order.window_s
        windows = [
            Window(
                at_s=number * order.window_s,
                length_s=order.window_s,
                completed=round(each * self.random.lognormvariate(0.0, 0.02)),
                failed=0,
            )
            for number in range(parts)
        ]
        return result.replace(ramp_up_s=order.ramp_up_s, windows=windows)

    def slot(self, variant: str, order: LoadOrder, _: object) -> Slot:
        login_s = self.get_ready(variant)
        loaded = self.load(variant, order)
        readings = SimpleNamespace(replace=lambda **_: None, silent_s=None)
        used = SlotUsage(server_use(0.5 * order.load_s), cast("Readings", readings), None, None)
        return Slot(loaded, used, login_s)

    def looks_at(self, point: RunningPoint, variant: PlannedVariant) -> None:
        """Look at a variant for long, in one part."""
        self.start(variant.name, Path())
        look_s = question_of(point.experiment).long_look_s
        self.takes(look_s)
        part = stretch(Truth(looked_s=look_s), variant=variant.name)
        point.keep(part.replace(took_s=look_s, ended_by="time"))
        self.end()

    @property
    def servers(self) -> "Machine":
        return self

    @property
    def clients(self) -> "Machine":
        return self


@dataclass(frozen=True)
class Measured:
    """What came of a run."""

    points: list[PointData]
    took_s: float
    """From when the first variant was up."""

    @property
    def data(self) -> PointData:
        return self.points[0]


@contextmanager
def clock_of(machine: Machine, patch: pytest.MonkeyPatch) -> Iterator[None]:
    with patch.context() as here:
        here.setattr("time.monotonic", lambda: machine.now_s)
        here.setattr("time.sleep", machine.takes)
        yield


def measured(
    experiment: Experiment, noise: Noise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Measured:
    """Measure an experiment on a simulated machine."""
    machine = Machine(noise)
    head = run_head().replace(experiment=experiment)
    started: set[tuple[str, str, str]] = set()
    whole = Stopwatch()
    whole.limit_s = experiment.measure.limit_s
    with RunFolder.create(tmp_path / "run", head) as folder:
        points = [
            RunningPoint(
                data=PointData.of(head.replace(experiment=plan.experiment), [], plan.point),
                variants=plan_variants(plan.experiment, CATALOGUE),
                testbed=cast("PointTestbed", machine),
                calibrations=dict.fromkeys(plan.experiment.variants),
                folder=folder,
                progress=LineProgress(head, print),
                commands_user=None,
                watch=Stopwatch(whole=whole),
                started=started,
            )
            for plan in plan_points(experiment)
        ]
        with clock_of(machine, monkeypatch):
            monkeypatch.setattr("webdyno.measure.long_look._look_at", machine.looks_at)
            session._take_turns(points, seed=1)
            session._look_longer(points)
    assert machine.up_s is not None
    return Measured([point.data for point in points], machine.now_s - machine.up_s)


def experiment(budget_s: float, **more: object) -> Experiment:
    measure = {"seed": 1, "budget_s": budget_s, "budget_is_limit": True}
    given = run_head().experiment.model_dump(exclude_unset=True)
    return Experiment.model_validate({**given, "measure": measure, **more})


def gate(budget_s: float) -> Experiment:
    variants = {name: Variant(stack="nginx") for name in ("baseline", "baseline again", "head")}
    return experiment(
        budget_s,
        variants=variants,
        asks=GateSettings(worse_than={"throughput_rps": 0.05}, baseline="a", head="b"),
    )


def capacity(budget_s: float) -> Experiment:
    variants = {"nginx": Variant(stack="nginx")}
    return experiment(budget_s, variants=variants, capacity=CapacitySettings(slo=["p99<50ms"]))


ASKED = {
    "compare 10 s": experiment(10),
    "compare 20 s": experiment(20),
    "compare 60 s": experiment(60),
    "compare 5 min": experiment(300),
    "gate 60 s": gate(60),
    "capacity 30 s": capacity(30),
    "capacity 60 s": capacity(60),
    "endpoints 60 s": experiment(60, factors={"load.connections": [4, 8, 16]}),
    "ranking 60 s": experiment(
        60,
        asks=RankingSettings(),
        variants={name: Variant(stack="nginx") for name in ("a", "b", "c", "d")},
    ),
}


MACHINES = {"quiet": QUIET, "busy": BUSY, "hopeless": HOPELESS, "logins": LOGINS, "builds": BUILDS}


@pytest.mark.parametrize("noise", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_a_limit_is_kept_whatever_the_machine_does(
    asked: Experiment, noise: Noise, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = measured(asked, noise, tmp_path, monkeypatch)
    variants = len(asked.variants)
    # What can't be taken back: the servers' start, the slot that has begun, and their end; the
    # first looks at all points and their pilots.
    # `took_s` begins with the first of all starts; the others' first ones don't count.
    firsts_s = (variants - 1) * noise.first_start_s
    one_s = variants * noise.start_s + noise.slot_s + noise.end_s + noise.login_s
    pilots_s = len(run.points) * variants * (3 * noise.slot_s + noise.start_s + noise.end_s + 1.0)
    limit_s = asked.measure.budget_s
    assert run.took_s - firsts_s <= max(limit_s, pilots_s) + 2 * one_s
    if noise is not HOPELESS:
        assert run.took_s - firsts_s <= 1.15 * limit_s
    assert all(data.stop is not None for data in run.points)


@pytest.mark.parametrize("name", ["compare 20 s", "gate 60 s", "capacity 60 s", "compare 5 min"])
def test_the_fewest_rounds_fit_into_a_limit_on_an_ordinary_machine(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ASKED[name]
    run = measured(asked, QUIET, tmp_path, monkeypatch)
    assert len(run.data.rounds) >= question_of(asked).fewest_rounds
    assert judge(run.data).verdict is not Verdict.INCOMPLETE
