"""An experiment: which arms are compared, under which load, how often and until when.

What is said of each key here is what `docs/experiment.md` says.
"""

from collections.abc import Mapping
from typing import Annotated, TypedDict, Unpack

import tomli_w
from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from webdyno.model.base import Model
from webdyno.model.bench import BenchSettings
from webdyno.model.capacity import USUAL_MEASURE_OF_SEARCH, CapacitySettings, Objective
from webdyno.model.changes import Changes, changed
from webdyno.model.errors import UserError
from webdyno.model.gate import GateSettings
from webdyno.model.knob import KnobValue, TunedSide
from webdyno.model.load import Load, unpacked
from webdyno.model.measure import Measure, MeasureChanges
from webdyno.model.metrics import CAPACITY
from webdyno.model.quantities import Seconds, Size
from webdyno.model.race import RaceKind, check_race, usual_measure_of_race
from webdyno.model.request import Ignored, Request, WrittenPaths, WrittenRequests, endpoints_of
from webdyno.model.text import Name, OneLine
from webdyno.model.why import Advice, Design, Intervention

MOST_POINTS = 1_000
"""Combinations of levels in one experiment."""


class State(Model):
    """Commands that put back what a block's requests have changed, so that blocks begin alike."""

    before_block: list[OneLine] = []
    """Run by a shell, one after the other, before each start of the arms, those of pilots
    included: as who called webdyno, in the folder where that was. Where root goes on with a run of
    somebody else, they run as that one. What they say is kept with the run; a failing one ends
    it."""
    after_block: list[OneLine] = []
    """The same after the arms were stopped, whatever happened."""
    within_s: Seconds = 60.0
    """What each of them may take."""


class Arm(Model):
    """One stack with its knobs and site, and whatever else differs from the other arms."""

    stack: str
    """A stack of the catalogue, or a system of your own (`cmd:…`, `rev:…`, `conf:…`, `image:…`,
    `url:…`, see docs/own.md), which has the keys `dir`, `environment`, `services`,
    `prepare`, `ready` and `ready_within` beside it."""
    site: str | None = None
    """The experiment's site unless named here. With a site of its own an arm is asked for that
    site's first path, unless paths are given."""
    paths: WrittenPaths | None = None
    """The load's paths unless named here; short for `load.paths`."""
    load: Changes = {}
    """Keys of `[load]` that are other than the experiment's; all but `loop`."""
    bench: Changes = {}
    """Keys of `[bench]` that are other than the experiment's."""
    knobs: dict[str, KnobValue] = {}
    """Settings of the stack and its site, see `webdyno stacks NAME`; their own defaults else."""
    memory: Size | None = None
    """Limit for all its services together; none unless given."""
    cpus: Annotated[float, Field(ge=0.05, le=4096)] | None = None
    """How many of the servers' CPUs it gets, all of them unless given; 0.8 is 80% of one's time.
    """

    @model_validator(mode="after")
    def _paths_once(self) -> "Arm":
        if self.paths is not None and "paths" in self.load:
            raise ValueError("paths is short for load.paths; give one of them")
        return self

    def with_knobs(self, knobs: Mapping[str, KnobValue]) -> "Arm":
        """Give it with some knobs turned otherwise."""
        return self.replace(knobs={**self.knobs, **knobs})

    @property
    def load_changes(self) -> Changes:
        """All that the load has of its own here."""
        return {**self.load, "paths": [*self.paths]} if self.paths else self.load


GeneratorName = str
"""Name of a program that makes load: webdyno's own, or an instrument of older studies."""

OWN_GENERATOR = "loadgen"
MOST_ARMS = 100
TOO_FEW = (
    "an experiment compares arms and needs two at least, [arms.A] and [arms.B], the first one "
    "being the baseline; `webdyno up`, `webdyno load` and `webdyno capacity` look at one alone"
)

Level = KnobValue | list[str]
"""One value of a factor; a list where the setting is one, such as `load.paths`."""


def _fit_to_compare(arms: dict[str, Arm]) -> dict[str, Arm]:
    if not arms:
        raise ValueError(TOO_FEW)
    if len(arms) > MOST_ARMS:
        raise ValueError(f"an experiment has {MOST_ARMS} arms at most, and this one {len(arms):,}")
    return arms


def _few_points(factors: Mapping[str, list[Level]]) -> Mapping[str, list[Level]]:
    points = 1
    for key, levels in factors.items():
        equal = [level for at, level in enumerate(levels) if _among(level, levels[:at])]
        if equal:
            raise ValueError(f"{key} has the level {equal[0]!r} twice; each is measured once")
        points *= len(levels)
    if points > MOST_POINTS:
        raise ValueError(
            f"these are {points} combinations of levels; {MOST_POINTS} are the most, so leave "
            "some levels out"
        )
    return factors


def _among(level: Level, others: list[Level]) -> bool:
    """Whether a level is one of others; true and 1 are two things."""
    return any(
        level == other and isinstance(level, bool) == isinstance(other, bool) for other in others
    )


CONDITIONS = {
    *("site", "generator", "load", "requests", "endpoint", "ignore", "same_bodies", "load_with"),
    *("bench", "state", "workload", "capacity"),
}
"""Under which an experiment's arms are measured, whatever is asked of them. A search for the
capacity is one: it says how an arm is loaded."""


class Study(TypedDict, total=False):
    """What an experiment is that is made of another one's arms: see `Experiment`."""

    interventions: dict[str, Intervention]
    advice: dict[str, Advice]
    design: Design


class Experiment(Model):
    """A question about web stacks, complete enough to be run again by somebody else."""

    title: OneLine
    """What it is about, in a few words."""
    question: OneLine
    """What it answers, as a sentence with a question mark."""
    site: str
    """What all arms serve: a site of the catalogue."""
    generator: GeneratorName = OWN_GENERATOR
    """What makes the load: webdyno's own loadgen, or an instrument of older studies."""
    load: Load = Load()
    """What the clients do."""
    requests: WrittenRequests = []
    """What is asked for, where that is more than pages: in the place of `load.paths`."""
    endpoint: Name | None = None
    """Of the requests, only those that reports call so; a gate varies it."""
    ignore: list[Ignored] = []
    """What of their bodies may differ between the arms: regular expressions, and places in JSON,
    such as `$.items[*].id`. Bodies are compared before the load."""
    same_bodies: bool = True
    """Whether the arms have to answer alike where nobody says what is right. If not, other bodies
    are reported and measured; false unless given where an arm is a revision (`rev:`)."""
    load_with: dict[GeneratorName, Changes] = {}
    """By load generator: keys of `[load]` that are other with this one, such as `requests` with
    ab."""
    measure: Measure = Measure()
    """How the comparison is made."""
    bench: BenchSettings = BenchSettings()
    """Where it runs."""
    state: State = State()
    """What puts everything back between blocks."""
    arms: Annotated[dict[Name, Arm], AfterValidator(_fit_to_compare)]
    """By name, in the order in which they are shown; the first one is the baseline."""
    factors: Annotated[
        dict[str, Annotated[list[Level], Field(min_length=1, max_length=MOST_POINTS)]],
        AfterValidator(_few_points),
    ] = {}
    """What is varied: a setting's dotted key, as for --set, and its levels. The arms are compared
    at every combination of levels; the measuring time is shared out among these points."""
    workload: dict[str, JsonValue] = {}
    """What `webdyno workload` found in the log that load and requests are made of. Nothing is done
    with it; it is kept with the run."""
    tuning: list[TunedSide] = []
    """What `webdyno tune` did to find the arms' settings. Nothing is done with it; it is kept with
    the run."""
    interventions: dict[Name, Intervention] = {}
    """By arm: what `webdyno why` took from it, to see whether that limits the baseline."""
    advice: dict[Name, Advice] = {}
    """By arm: in which one setting `webdyno why --advice` made it other than the baseline."""
    design: Design | None = None
    """Of the arms that `webdyno why --settings` made: which settings each of them has."""
    profile: bool = False
    """Sample what the servers' CPUs do in each slot, by `perf`, as `webdyno why --profile` asks."""
    capacity: CapacitySettings | None = None
    """Makes the question which arm can take more: in each block the highest rate of an open loop is
    searched for at which the objectives hold. `load` says what is asked for, over how many
    connections at most."""
    race: RaceKind | None = None
    """Makes it a race of three arms or more, which arms leave while it goes on. league: each is
    compared with every other, what is told are places, and whose place is settled leaves. halving:
    after each block the worse half of those that aren't the baseline leaves, as in tuning."""
    gate: GateSettings | None = None
    """Makes it a gate, as `webdyno gate` does: is the third arm worse than the first two, which are
    alike?"""

    @model_validator(mode="before")
    @classmethod
    def _usual_measure(cls, given: object) -> object:
        """Have a search for the capacity decided by it; give it, and a league, their time.

        Points share theirs, and none takes more.
        """
        if not isinstance(given, dict):
            return given
        usual: dict[str, object] = {}
        if given.get("factors"):
            usual |= {"patience": 1.0}
        usual |= usual_measure_of_race(given.get("race"))
        if given.get("capacity") is not None:
            usual |= USUAL_MEASURE_OF_SEARCH
        measure = given.get("measure", {})
        if isinstance(measure, Model):
            measure = measure.model_dump(exclude_unset=True)
        if not usual or not isinstance(measure, dict):
            return given
        return {**given, "measure": {**usual, **measure}}

    @model_validator(mode="after")
    def _capacity_fits(self) -> "Experiment":
        decides = self.measure.decide_on == CAPACITY
        if self.capacity is None and decides:
            raise ValueError(
                f'decide_on = "{CAPACITY}" needs a table [capacity] with slo = ["p99<50ms"]'
            )
        if self.capacity is not None:
            beside = {
                f'decide_on = "{self.measure.decide_on}"': not decides,
                f'generator = "{self.generator}"': self.generator != OWN_GENERATOR,
            }
            loads = [self.load_of(arm) for arm in self.arms]
            self.capacity.check(beside, loads, varies=bool(self.factors), gates=bool(self.gate))
        return self

    @model_validator(mode="after")
    def _enough_arms(self) -> "Experiment":
        if len(self.arms) < 2 and self.capacity is None:
            raise ValueError(TOO_FEW)
        if len(self.arms) < 2 and (self.measure.question or self.factors):
            what = "measure.question" if self.measure.question else "factors"
            raise ValueError(f"{what} is about two arms at least: leave it out, or add one")
        return self

    @model_validator(mode="after")
    def _race_fits(self) -> "Experiment":
        if self.race:
            one_sided = "measure.question" if self.measure.question else ""
            check_race(len(self.arms), "[gate]" if self.gate else one_sided)
        return self

    def __hash__(self) -> int:
        """Tell experiments apart by what mostly differs; tables in them have no hash."""
        return hash((self.title, self.question, *self.arms, *self.factors))

    def with_measure(self, **changes: Unpack[MeasureChanges]) -> "Experiment":
        """Give it with some of `measure` set otherwise."""
        return self.replace(measure=self.measure.replace(**changes))

    def derived(
        self,
        title: str,
        question: str,
        arms: Mapping[str, Arm],
        measure: Measure | None = None,
        **study: Unpack[Study],
    ) -> "Experiment":
        """Give another experiment, about `arms` of this one under the same conditions.

        Whatever else this one is, such as a gate, a race, a sweep or a study of its own, the other
        one isn't. `measure`: this one's unless given, without its one-sided question. Raise
        UserError where all of it doesn't fit together.
        """
        kept = {name: getattr(self, name) for name in CONDITIONS & self.model_fields_set}
        measure = measure or self.measure.replace(question=None)
        made = {"title": title, "question": question, "arms": dict(arms), "measure": measure}
        try:
            return Experiment.model_validate({**kept, **made, **study})
        except ValidationError as error:
            why = "; ".join(it["msg"].removeprefix("Value error, ") for it in error.errors())
            raise UserError(f"{title}: {why}") from None

    @property
    def objectives(self) -> list[Objective]:
        """What has to hold where capacities are searched for; empty where none are."""
        return self.capacity.objectives if self.capacity else []

    @property
    def load_of_slots(self) -> Load:
        """What clients do in a slot; in a search for the capacity the rate is left open."""
        return self.load.replace(**self.capacity.of_load) if self.capacity else self.load

    def toml(self) -> str:
        """Give it as a file that `webdyno run` takes."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @model_validator(mode="after")
    def _arms_of_a_gate(self) -> "Experiment":
        if self.gate:
            self.gate.check_arms(list(self.arms.values()))
        return self

    @model_validator(mode="after")
    def _requests_or_paths(self) -> "Experiment":
        own = [name for name, arm in self.arms.items() if "paths" in arm.load_changes]
        if self.requests and (self.load.paths != Load().paths or own):
            where = "load.paths" if not own else f"the paths of arm {own[0]}"
            raise ValueError(
                f"[[requests]] say what is asked for, and so do {where}; leave one out"
            )
        if self.load.zipf is not None and len({it.weight for it in self.requests}) > 1:
            raise ValueError(
                "load.zipf and the requests' weights both say how often; leave one out"
            )
        return self

    @model_validator(mode="after")
    def _replay_fits(self) -> "Experiment":
        if self.load.replay is None:
            return self
        if self.endpoint is not None or any(len(it.paths) > 1 for it in self.requests):
            raise ValueError("a replay asks for all of the [[requests]], each with one path")
        if max(unpacked(self.load.replay).numbers) >= len(self.requests):
            raise ValueError(
                f"the replay asks for more than the {len(self.requests)} [[requests]]; they are in "
                "the file that was written with it"
            )
        return self

    @model_validator(mode="after")
    def _endpoint_is_there(self) -> "Experiment":
        if self.endpoint is not None and not self.asked:
            known = ", ".join(dict.fromkeys(filter(None, endpoints_of(self.requests))))
            raise ValueError(
                f"endpoint: no request is called {self.endpoint!r}; there are {known or 'none'}"
            )
        return self

    @property
    def sweep_s(self) -> float | None:
        """For how long sweeps beside the capacities are measured; None for none."""
        return self.capacity.sweep_s if self.capacity else None

    @property
    def asked(self) -> list[Request]:
        """The requests, those of one endpoint alone if there is one."""
        if self.endpoint is None:
            return self.requests
        named = zip(endpoints_of(self.requests), self.requests, strict=True)
        return [request for name, request in named if name == self.endpoint]

    def alike(self, arm: str) -> list[str]:
        """Name the arms that are defined like one, that one first."""
        others = [it for it in self.arms if it != arm and self.arms[it] == self.arms[arm]]
        return [arm, *others]

    def knobs_of(self, arm: str) -> dict[str, KnobValue]:
        """Give an arm's knobs, with what its load has it speak."""
        knobs, protocol = self.arms[arm].knobs, self.load_of(arm).protocol
        return knobs if protocol == "http" else {**knobs, "protocol": protocol}

    def load_of(self, arm: str) -> Load:
        """Give what the clients do with an arm."""
        return changed(self.load, *self.load_changes_of(arm))

    def requests_of(self, arm: str) -> list[Request]:
        """Give what an arm is asked for; a load's paths are short for GET requests."""
        return self.asked or [Request(path=path) for path in self.load_of(arm).paths]

    def load_changes_of(self, arm: str) -> tuple[Changes, Changes]:
        """Give what is other than in `load`: with the load generator, and with the arm."""
        return self.load_with.get(self.generator, {}), self.arms[arm].load_changes

    def bench_of(self, arm: str) -> BenchSettings:
        """Give where an arm runs."""
        return changed(self.bench, self.arms[arm].bench)

    def site_of(self, arm: str) -> str:
        """Name the site that an arm serves."""
        return self.arms[arm].site or self.site
