"""An experiment: which variants are compared, under which load, how often and until when.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from collections.abc import Mapping
from typing import Annotated, Literal, TypedDict, Unpack

import tomli_w
from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from webdyno.model.base import Model
from webdyno.model.capacity import USUAL_MEASURE_OF_SEARCH, CapacitySettings, Objective
from webdyno.model.changes import Changes, changed
from webdyno.model.errors import UserError
from webdyno.model.explain import Advice, Design, Intervention
from webdyno.model.gate import GateSettings, with_usual_limits
from webdyno.model.load import Load, check_users, has_users
from webdyno.model.measure import Measure, MeasureChanges
from webdyno.model.metrics import CAPACITY, INSTRUCTIONS
from webdyno.model.quantities import Seconds
from webdyno.model.race import RaceKind, check_race, usual_measure_of_race
from webdyno.model.replay import unpacked
from webdyno.model.request import Ignored, WrittenRequest, WrittenRequests, parts_of
from webdyno.model.session import ValueName, Values
from webdyno.model.setting import SettingValue, TunedVariant
from webdyno.model.testbed import TestbedSettings
from webdyno.model.text import Name, OneLine
from webdyno.model.variant import Variant

MOST_POINTS = 1_000
"""Combinations of levels in one experiment."""


class State(Model):
    """Commands that put back what a round's requests have changed, so that rounds begin alike."""

    before_round: list[OneLine] = []
    """Run by a shell, as you, before each start of the variants, pilot runs included. Output is
    kept; a failing one ends the run."""
    after_round: list[OneLine] = []
    """The same after the variants were stopped, whatever happened."""
    within_s: Seconds = 60.0
    """Time limit of each."""
    reset: Literal["round", "slot"] = "round"
    """When data of services behind the variants is put back: each round starts them with the same,
    and "slot" restores it before each slot as well, while apps stay connected (PostgreSQL, MariaDB,
    Redis; tables and keys that are there once a variant has started)."""


GeneratorName = str
"""Name of a program that makes load: webdyno's own, or an instrument of older studies."""

OWN_GENERATOR = "loadgen"
MOST_VARIANTS = 100
TOO_FEW = (
    "an experiment needs two variants at least, [variants.A] and [variants.B], the first one being "
    "the baseline; `webdyno up`, `webdyno load` and `webdyno capacity` look at one alone"
)

Level = SettingValue | list[str]
"""One value of a factor; a list where the setting is one, such as `load.paths`."""


def _fit_to_compare(variants: dict[str, Variant]) -> dict[str, Variant]:
    if not variants:
        raise ValueError(TOO_FEW)
    if len(variants) > MOST_VARIANTS:
        raise ValueError(
            f"an experiment has {MOST_VARIANTS} variants at most, and this one {len(variants):,}"
        )
    return variants


def _few_points(factors: Mapping[str, list[Level]]) -> Mapping[str, list[Level]]:
    points = 1
    for key, levels in factors.items():
        equal = [level for place, level in enumerate(levels) if _among(level, levels[:place])]
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
    *("site", "generator", "load", "requests", "login", "values", "endpoint", "ignore"),
    *("same_bodies", "load_with"),
    *("testbed", "state", "workload", "capacity"),
}
"""Under which an experiment's variants are measured, whatever is asked of them. A search for the
capacity is one: it says how a variant is loaded."""


class Study(TypedDict, total=False):
    """What an experiment is that is made of another one's variants: see `Experiment`."""

    interventions: dict[str, Intervention]
    advice: dict[str, Advice]
    design: Design


class Experiment(Model):
    """A question about web stacks, complete enough to be run again by somebody else."""

    title: OneLine
    """What it is about, in a few words."""
    question: OneLine
    """What it answers, with a question mark."""
    site: str
    """What all variants serve."""
    generator: GeneratorName = OWN_GENERATOR
    """`loadgen`, `ab`, `httperf`, `wrk` or `redis-benchmark`."""
    load: Load = Load()
    """What the clients do."""
    requests: WrittenRequests = []
    """The requests, in the place of `load.paths`."""
    login: WrittenRequests = []
    """What each user (connection) requests once, unmeasured, before it is measured."""
    values: dict[ValueName, Values] = {}
    """By name: what `{{NAME}}` stands for in requests."""
    endpoint: Name | None = None
    """Use only the requests of this name."""
    ignore: list[Ignored] = []
    """What may differ in bodies: regular expressions, and places in JSON, such as `$.items[*].id`.
    """
    same_bodies: bool = True
    """Refuse other bodies where the site defines none, instead of reporting them. False by default
    with revisions (`rev:`)."""
    load_with: dict[GeneratorName, Changes] = {}
    """By load generator: keys of `[load]` that differ with it."""
    measure: Measure = Measure()
    """How the comparison is made."""
    testbed: TestbedSettings = TestbedSettings()
    """Where it runs."""
    state: State = State()
    """Commands that reset everything between rounds."""
    variants: Annotated[dict[Name, Variant], AfterValidator(_fit_to_compare)]
    """By name; the first one is the baseline."""
    factors: Annotated[
        dict[str, Annotated[list[Level], Field(min_length=1, max_length=MOST_POINTS)]],
        AfterValidator(_few_points),
    ] = {}
    """A dotted key, and its levels. Variants are compared at every combination; these share the
    time."""
    workload: dict[str, JsonValue] = {}
    """What `webdyno traffic` found in the log that load and requests are made of. It is only kept
    with the run."""
    tuning: list[TunedVariant] = []
    """How `webdyno tune` found the variants' settings. It is only kept with the run."""
    interventions: dict[Name, Intervention] = {}
    """By variant: the resource that `webdyno explain` reduced, to find the baseline's
    bottleneck."""
    advice: dict[Name, Advice] = {}
    """By variant: the one setting that `webdyno explain --advice` changed."""
    design: Design | None = None
    """By variant of `webdyno explain --settings`: which settings it has."""
    profile: bool = False
    """Sample the servers' CPUs by `perf`, as `webdyno explain --profile` does."""
    capacity: CapacitySettings | None = None
    """Search for the capacity of each variant. `load` gives the requests and the most connections.
    """
    race: RaceKind | None = None
    """Three or more variants, some of which leave. ranking: the result is ranks. halving: after
    each round the worse half leaves, except for the baseline."""
    gate: GateSettings | None = None
    """A gate: is head, the third variant, worse than the baseline, the first two?"""

    @model_validator(mode="before")
    @classmethod
    def _usual_measure(cls, given: object) -> object:
        """Have a search for the capacity decided by it; give it, and a ranking, their time.

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

    @model_validator(mode="before")
    @classmethod
    def _usual_limits(cls, given: object) -> object:
        """Have a gate at an arrival rate judged by CPU per request, unless it has limits."""
        if not isinstance(given, dict) or "gate" not in given:
            return given
        return {**given, "gate": with_usual_limits(given["gate"], given.get("load"))}

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
            loads = [self.load_of(variant) for variant in self.variants]
            self.capacity.check(beside, loads, varies=bool(self.factors), gates=bool(self.gate))
        return self

    @model_validator(mode="after")
    def _enough_variants(self) -> "Experiment":
        if len(self.variants) < 2 and self.capacity is None:
            raise ValueError(TOO_FEW)
        if len(self.variants) < 2 and (self.measure.question or self.factors):
            what = "measure.question" if self.measure.question else "factors"
            raise ValueError(f"{what} is about two variants at least: leave it out, or add one")
        return self

    @model_validator(mode="after")
    def _race_fits(self) -> "Experiment":
        if self.race:
            one_sided = "measure.question" if self.measure.question else ""
            check_race(len(self.variants), "[gate]" if self.gate else one_sided)
        return self

    def __hash__(self) -> int:
        """Tell experiments apart by what mostly differs; tables in them have no hash."""
        return hash((self.title, self.question, *self.variants, *self.factors))

    def with_measure(self, **changes: Unpack[MeasureChanges]) -> "Experiment":
        """Give it with some of `measure` set otherwise."""
        return self.replace(measure=self.measure.replace(**changes))

    def derived(
        self,
        title: str,
        question: str,
        variants: Mapping[str, Variant],
        measure: Measure | None = None,
        **study: Unpack[Study],
    ) -> "Experiment":
        """Give another experiment, about `variants` of this one under the same conditions.

        Whatever else this one is, such as a gate, a race, a sweep or a study of its own, the other
        one isn't. `measure`: this one's unless given, without its one-sided question and rests.
        Raise UserError where all of it doesn't fit together.
        """
        kept = {name: getattr(self, name) for name in CONDITIONS & self.model_fields_set}
        measure = measure or self.measure.replace(question=None, rest_s=None)
        made = {"title": title, "question": question, "variants": {**variants}, "measure": measure}
        try:
            return Experiment.model_validate({**kept, **made, **study})
        except ValidationError as error:
            why = "; ".join(error["msg"].removeprefix("Value error, ") for error in error.errors())
            raise UserError(f"{title}: {why}") from None

    @property
    def objectives(self) -> list[Objective]:
        """What has to hold where capacities are searched for; empty where none are."""
        return self.capacity.objectives if self.capacity else []

    @property
    def counts_instructions(self) -> bool:
        """Whether instructions are counted in slots: profile rounds are for something else."""
        decisive = {self.measure.decide_on, *(self.gate.worse_than if self.gate else ())}
        is_wanted = self.measure.count_instructions or INSTRUCTIONS in decisive
        return is_wanted and not self.profile

    @property
    def load_of_slots(self) -> Load:
        """What clients do in a slot; in a search for the capacity the arrival rate is left open."""
        return self.load.replace(**self.capacity.of_load) if self.capacity else self.load

    def toml(self) -> str:
        """Give it as a file that `webdyno run` takes."""
        return tomli_w.dumps(self.model_dump(mode="json", exclude_none=True))

    @model_validator(mode="after")
    def _variants_of_a_gate(self) -> "Experiment":
        if self.gate:
            self.gate.check_variants(list(self.variants.values()))
            self.gate.check_load(self.load.offered_rps)
        return self

    @model_validator(mode="after")
    def _requests_or_paths(self) -> "Experiment":
        own = [name for name, variant in self.variants.items() if "paths" in variant.load_changes]
        if self.requests and (self.load.paths != Load().paths or own):
            where = "load.paths" if not own else f"the paths of variant {own[0]}"
            raise ValueError(
                f"[[requests]] say what is requested, and so do {where}; leave one out"
            )
        if self.load.zipf is not None and len({request.weight for request in self.requests}) > 1:
            raise ValueError(
                "load.zipf and the requests' weights both say how often; leave one out"
            )
        return self

    @model_validator(mode="after")
    def _replay_fits(self) -> "Experiment":
        if self.load.replay is None:
            return self
        if self.endpoint is not None or any(len(request.paths) > 1 for request in self.requests):
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
            known = ", ".join(dict.fromkeys(filter(None, parts_of(self.requests))))
            raise ValueError(
                f"endpoint: no request is called {self.endpoint!r}; there are {known or 'none'}"
            )
        return self

    @model_validator(mode="after")
    def _users_fit(self) -> "Experiment":
        check_users(self.login, self.requests, self.values, self.load)
        return self

    @property
    def has_users(self) -> bool:
        """Whether connections are users who log in or keep something."""
        return has_users(self.login, self.requests, self.values)

    @property
    def sweep_s(self) -> float | None:
        """For how long sweeps beside the capacities are measured; None for none."""
        return self.capacity.sweep_s if self.capacity else None

    @property
    def asked(self) -> list[WrittenRequest]:
        """The requests, those of one endpoint alone if there is one."""
        if self.endpoint is None:
            return self.requests
        named = zip(parts_of(self.requests), self.requests, strict=True)
        return [request for name, request in named if name == self.endpoint]

    def alike(self, variant: str) -> list[str]:
        """Name the variants that are defined like one, that one first."""
        own = self.variants[variant]
        others = [name for name, its in self.variants.items() if name != variant and its == own]
        return [variant, *others]

    def settings_of(self, variant: str) -> dict[str, SettingValue]:
        """Give a variant's settings, with what its load has it speak."""
        settings, protocol = self.variants[variant].settings, self.load_of(variant).protocol
        return settings if protocol == "http" else {**settings, "protocol": protocol}

    def load_of(self, variant: str) -> Load:
        """Give what the clients do with a variant."""
        return changed(self.load, *self.load_changes_of(variant))

    def requests_of(self, variant: str) -> list[WrittenRequest]:
        """Give what a variant is asked for; a load's paths are short for GET requests."""
        return self.asked or [WrittenRequest(path=path) for path in self.load_of(variant).paths]

    def load_changes_of(self, variant: str) -> tuple[Changes, Changes]:
        """Give what is other than in `load`: with the load generator, and with the variant."""
        return self.load_with.get(self.generator, {}), self.variants[variant].load_changes

    def testbed_of(self, variant: str) -> TestbedSettings:
        """Give where a variant runs."""
        return changed(self.testbed, self.variants[variant].testbed)

    def site_of(self, variant: str) -> str:
        """Name the site that a variant serves."""
        return self.variants[variant].site or self.site
