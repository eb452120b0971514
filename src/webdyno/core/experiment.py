"""An experiment: which variants are compared, under which load, how often and until when.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

from collections.abc import Mapping
from itertools import chain
from math import prod
from typing import Annotated, Any, Literal, Self, Unpack

import tomli_w
from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    InstanceOf,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from webdyno.core.base import Bursts, Model, Seconds
from webdyno.core.errors import UserError
from webdyno.core.load import Load, check_requests, check_users, has_users
from webdyno.core.measure import USUAL_MEASURE_OF_SEARCH, CapacitySettings, Measure, MeasureChanges
from webdyno.core.metrics import CAPACITY, GOODPUT, INSTRUCTIONS
from webdyno.core.migration import migrated_experiment
from webdyno.core.objectives import Objective
from webdyno.core.patterns import Ignored
from webdyno.core.question import (
    TOO_FEW,
    Q,
    QuestionSettings,
    comparison,
    read_question,
    settings_class,
)
from webdyno.core.registry import WITHOUT_KEY, key_without, question_keys
from webdyno.core.request import WrittenRequest, WrittenRequests, parts_of
from webdyno.core.session import ValueName, Values
from webdyno.core.setting import SettingValue, TunedVariant
from webdyno.core.tables import TomlTable, as_table, count_values, is_table
from webdyno.core.testbed import TestbedSettings
from webdyno.core.text import Name, OneLine
from webdyno.core.variant import Changes, Variant, with_changes

MOST_POINTS = 1_000
"""Combinations of levels in one experiment."""


MOST_PARTS = 2_000_000
"""Requests, paths and the like of one experiment, counted at each of its points."""


class State(Model):
    """Commands that put back what a round's requests have changed, so that rounds begin alike."""

    before_round: list[OneLine] = []
    """Run by a shell, as you, before variants start; a failing one ends the run."""
    after_round: list[OneLine] = []
    """The same after they were stopped, whatever happened."""
    within_s: Seconds = 60.0
    """Time limit of each."""
    reset: Literal["round", "slot"] = "round"
    """When data of services is put back: before each round; or before each slot as well, while apps
    stay connected (PostgreSQL, MariaDB, Redis)."""


GeneratorName = str
"""Name of a program that makes load: webdyno's own, or an instrument of older studies."""

OWN_GENERATOR = "loadgen"
MOST_VARIANTS = 100

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
    for key, levels in factors.items():
        for place, level in enumerate(levels):
            equal = [other for other in levels[:place] if other == level]
            if any(isinstance(other, bool) == isinstance(level, bool) for other in equal):
                raise ValueError(f"{key} has the level {level!r} twice; each is measured once")
    points = prod(map(len, factors.values()))
    if points > MOST_POINTS:
        raise ValueError(
            f"these are {points} combinations of levels; {MOST_POINTS} are the most, so leave "
            "some levels out"
        )
    return factors


CONDITIONS = {
    *("site", "generator", "load", "requests", "login", "values", "endpoint", "ignore"),
    *("same_bodies", "load_with"),
    *("testbed", "state", "workload", "capacity"),
}
"""Under which an experiment's variants are measured, whatever is asked of them. A search for the
capacity is one: it says how a variant is loaded."""


def _with_question(given: dict[str, Any]) -> dict[str, Any]:
    """Make the table that asks something a question, or what is asked where there is none."""
    if "asks" in given:
        if isinstance(given["asks"], QuestionSettings):
            return given
        raise ValueError("asks is no key of a file: name the question's table, such as [gate]")
    keys = [key for key in question_keys() if key in given]
    if len(keys) > 1:
        raise ValueError(f"[{keys[0]}] and [{keys[1]}] are two questions: leave one out")
    key = keys[0] if keys else key_without(len(as_table(given.get("variants"))))
    asks = read_question(key, given.get(key, {}), given)
    return {name: value for name, value in given.items() if name != key} | {"asks": asks}


def _with_usual_measure(given: dict[str, Any]) -> dict[str, Any]:
    """Add what is usual with the question, and with a search for the capacity, which decides.

    Points share their time, and none takes more.
    """
    usual: dict[str, object] = {"patience": 1.0} if given.get("factors") else {}
    usual |= given["asks"].usual_measure
    if given.get("capacity") is not None:
        usual |= USUAL_MEASURE_OF_SEARCH
    measure = given.get("measure", {})
    if isinstance(measure, Model):
        measure = measure.model_dump(exclude_unset=True)
    if not usual or not is_table(measure):
        return given
    return {**given, "measure": {**usual, **measure}}


def _without_serializer(schema: Any) -> Any:  # noqa: ANN401
    """Return pydantic's schema of a model whose fields are written as they are."""
    if schema["type"] == "model":
        return {name: part for name, part in schema.items() if name != "serialization"}
    return {**schema, "schema": _without_serializer(schema["schema"])}


class Experiment(Model):
    """A question about web stacks, complete enough to be run again by somebody else."""

    title: OneLine
    """What it is about."""
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
    """What each user (connection) requests once, unmeasured."""
    values: dict[ValueName, Values] = {}
    """By name: what `{{NAME}}` stands for in requests."""
    endpoint: Name | None = None
    """Use only the requests of this name."""
    ignore: Ignored = []
    """What may differ in bodies: regular expressions, places in JSON (`$.items[*].id`)."""
    same_bodies: bool = True
    """Refuse other bodies where the site defines none, not only report them; with `rev:` not by
    default."""
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
    """Dotted keys and their levels, compared at every combination."""
    workload: TomlTable = {}
    """What `webdyno traffic` found in the log that load and requests are made of. It is only kept
    with the run."""
    tuning: list[TunedVariant] = []
    """How `webdyno tune` found the variants' settings. It is only kept with the run."""
    profile: bool = False
    """Sample by `perf`, as `webdyno explain --profile` does."""
    capacity: CapacitySettings | None = None
    """Search for the capacity of each variant. `load` gives the requests and the most connections.
    """
    asks: SerializeAsAny[InstanceOf[QuestionSettings]] = Field(default_factory=comparison)
    """The question. In files it is a table of the question's name, such as `[gate]`; without any,
    variants are compared with the baseline."""

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, given: object) -> object:
        if not is_table(given):
            return given
        return _with_usual_measure(_with_question(migrated_experiment(given)))

    @model_serializer(mode="wrap")
    def _written(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        asked = written.pop("asks", None)
        if asked is not None and self.asks.key not in WITHOUT_KEY:
            written[self.asks.key] = asked
        return written

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe it as it is written: questions are tables, each in the place of all others."""
        made = handler(_without_serializer(schema))
        described = handler.resolve_ref_schema(made)
        del described["properties"]["asks"]
        for key in question_keys():
            settings = TypeAdapter(settings_class(key))
            described["properties"][key] = handler(settings.core_schema)
        return made

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        self._check_points()
        self._check_search()
        self.asks.check(self)
        own_paths = [name for name, its in self.variants.items() if "paths" in its.load_changes]
        if self.measure.decide_on == GOODPUT and not self.load.goodput:
            raise ValueError(
                f'decide_on = "{GOODPUT}" needs load.goodput = ["ttft<500ms", "tpot<50ms"]'
            )
        check_requests(self.requests, self.load, self.endpoint, own_paths=own_paths)
        check_users(self.login, self.requests, self.values, self.load)
        return self

    def _check_points(self) -> None:
        """Whoever reads it checks all of it at each combination of its levels."""
        if not self.factors:
            return
        lists = [self.requests, self.login, self.load.paths, self.tuning]
        rows = [values.rows for values in self.values.values()]
        tables = [self.workload, self.load_with, *(each.tables for each in self.variants.values())]
        longest = max(map(count_values, chain(*self.factors.values())))
        parts = count_values([lists, rows, tables]) + longest
        if (points := prod(map(len, self.factors.values()))) * parts > MOST_PARTS:
            raise ValueError(
                f"{points:,} combinations of levels and {parts:,} requests, paths and rows are "
                "too many together; leave some levels out"
            )

    def _check_search(self) -> None:
        decides = self.measure.decide_on == CAPACITY
        if self.capacity is None:
            if decides:
                raise ValueError(
                    f'decide_on = "{CAPACITY}" needs a table [capacity] with slo = ["p99<50ms"]'
                )
            return
        others = {
            f'decide_on = "{self.measure.decide_on}"': not decides,
            f'generator = "{self.generator}"': self.generator != OWN_GENERATOR,
            f"[{self.asks.key}]": not self.asks.goes_with_search,
        }
        loads = [self.load_of(variant) for variant in self.variants]
        self.capacity.check(others, loads, varies=bool(self.factors))

    def __hash__(self) -> int:
        """Distinguish experiments by what mostly differs; tables in them have no hash."""
        return hash((self.title, self.question, *self.variants, *self.factors))

    def with_measure(self, **changes: Unpack[MeasureChanges]) -> "Experiment":
        """Return it with some of `measure` set otherwise."""
        return self.replace(measure=self.measure.replace(**changes))

    def derive(
        self,
        title: str,
        question: str,
        variants: Mapping[str, Variant],
        measure: Measure | None = None,
        asks: QuestionSettings | None = None,
    ) -> "Experiment":
        """Return another experiment, about `variants` of this one under the same conditions.

        Whatever else this one asks or is, such as a sweep, the other one isn't; it `asks` which is
        better unless given. `measure`: this one's unless given, without rests. Raise UserError
        where all of it doesn't fit together.
        """
        kept = {name: getattr(self, name) for name in CONDITIONS & self.model_fields_set}
        measure = measure or self.measure.replace(rest_s=None)
        made = {"title": title, "question": question, "variants": {**variants}, "measure": measure}
        if asks is not None:
            made["asks"] = asks
        try:
            return Experiment.model_validate({**kept, **made})
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
        decisive = {self.measure.decide_on, *self.asks.limited_metrics}
        is_wanted = self.measure.count_instructions or INSTRUCTIONS in decisive
        return is_wanted and not self.profile

    @property
    def load_of_slots(self) -> Load:
        """What clients do in a slot; in a search for the capacity the arrival rate is left open."""
        return self.load.replace(**self.capacity.of_load) if self.capacity else self.load

    def toml(self) -> str:
        """Return it as a file that `webdyno run` takes."""
        requests = [request.without_nulls for request in self.requests]
        login = [request.without_nulls for request in self.login]
        written = self.replace(requests=requests, login=login)
        return tomli_w.dumps(written.model_dump(mode="json", exclude_none=True))

    @property
    def has_users(self) -> bool:
        """Whether connections are users who log in or keep something."""
        return has_users(self.login, self.requests, self.values)

    @property
    def sweep_s(self) -> float | None:
        """For how long sweeps next to the capacities are measured; None for none."""
        return self.capacity.sweep_s if self.capacity else None

    @property
    def selected_requests(self) -> list[WrittenRequest]:
        """The requests, those of one endpoint alone if there is one."""
        if self.endpoint is None:
            return self.requests
        named = zip(parts_of(self.requests), self.requests, strict=True)
        return [request for name, request in named if name == self.endpoint]

    def asks_as(self, settings: type[Q]) -> Q:
        """Return what it asks, where that is known to be this."""
        if not isinstance(self.asks, settings):
            raise TypeError(f"{self.asks.key} is asked, not {settings.key}")
        return self.asks

    def alike(self, variant: str) -> list[str]:
        """Return the variants that are defined like one, that one first."""
        own = self.variants[variant]
        others = [name for name, its in self.variants.items() if name != variant and its == own]
        return [variant, *others]

    def settings_of(self, variant: str) -> dict[str, SettingValue]:
        """Return a variant's settings, with what its load has it speak."""
        settings, protocol = self.variants[variant].settings, self.load_of(variant).protocol
        return settings if protocol == "http" else {**settings, "protocol": protocol}

    def warmup_s_of(self, variant: str) -> float | None:
        """Return how long a variant is loaded after each start; None: as its pilot finds."""
        own_s = self.variants[variant].warmup_s
        return self.measure.warmup_s if own_s is None else own_s

    def warmup_bursts_of(self, variant: str) -> Bursts:
        """Return whether a variant's warm-up comes in bursts."""
        return self.variants[variant].warmup_bursts or self.measure.warmup_bursts

    def load_of(self, variant: str) -> Load:
        """Return what the clients do with a variant."""
        return with_changes(self.load, *self.load_changes_of(variant))

    def requests_of(self, variant: str) -> list[WrittenRequest]:
        """Return what a variant is asked for; a load's paths are short for GET requests."""
        return self.selected_requests or [
            WrittenRequest(path=path) for path in self.load_of(variant).paths
        ]

    def load_changes_of(self, variant: str) -> tuple[Changes, Changes]:
        """Return what is other than in `load`: with the load generator, and with the variant."""
        return self.load_with.get(self.generator, {}), self.variants[variant].load_changes

    def testbed_of(self, variant: str) -> TestbedSettings:
        """Return where a variant runs."""
        return with_changes(self.testbed, self.variants[variant].testbed)

    def site_of(self, variant: str) -> str:
        return self.variants[variant].site or self.site
