"""An experiment: which arms are compared, under which load, how often and until when."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PositiveInt, model_validator

from webdyno.model.base import Model
from webdyno.model.bench import BenchSettings
from webdyno.model.knob import KnobValue
from webdyno.model.metrics import DecidingMetric, metric_rule
from webdyno.model.paths import WrittenPath
from webdyno.model.quantities import read_share
from webdyno.model.size import Size

FIRST_SLOTS = 4

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

KeepAlive = Literal["always", "never"] | PositiveInt
"""Whether connections are reused; a number closes each connection after that many requests."""


class SlowReaders(Model):
    """Clients beside the load that take their answers in slowly, as mobile phones do."""

    connections: PositiveInt
    bytes_per_s: PositiveInt
    """Of each connection."""


class Load(Model):
    """What the clients do during a slot."""

    paths: Annotated[list[WrittenPath], Field(min_length=1)] = ["/"]
    """Asked for in equal shares; each must be a path of the site, or stand for many of them:
    `/many/{1..2000}.txt`."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Ask for the paths by Zipf's law with this exponent instead, the first one most often."""
    loop: Literal["closed", "open"] = "closed"
    """closed: each connection sends its next request when the last one was answered.
    open: requests are due at a rate, whether or not the server keeps up."""
    rate_per_s: Annotated[float, Field(gt=0)] | None = None
    """Open loop: what is due per second, in units of `due`."""
    due: Literal["request", "connection"] = "request"
    """Open loop: what the rate counts; a connection is a new one, with `keepalive` requests."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Open loop: times between what is due, random as of independent users, or all the same."""
    think_s: Annotated[float, Field(ge=0)] = 0.0
    """Closed loop: mean pause between an answer and the connection's next request."""
    connections: PositiveInt = 64
    """Connections over all client threads; in an open loop the most that may be in use."""
    keepalive: KeepAlive = "always"
    timeout_s: Seconds = 5.0
    """A request that isn't answered within this time is a failure."""
    idle_connections: Annotated[int, Field(ge=0)] = 0
    """Connections held open beside the load, without a request."""
    slow_readers: SlowReaders | None = None

    @model_validator(mode="after")
    def _loop_fits(self) -> "Load":
        if self.loop == "open" and self.rate_per_s is None:
            raise ValueError("an open loop needs rate_per_s, what is due per second")
        if self.loop == "closed" and self.rate_per_s is not None:
            raise ValueError('rate_per_s needs loop = "open"; a closed loop has no rate of its own')
        if self.loop == "open" and self.think_s:
            raise ValueError('think_s needs loop = "closed"; an open loop has its timetable')
        if self.due == "connection" and not isinstance(self.keepalive, int):
            raise ValueError('due = "connection" needs keepalive = N, the requests on each')
        return self

    def shares(self, paths: int) -> list[float]:
        """Give how often each of so many paths is asked for, as shares that add up to 1."""
        weights = [rank ** -(self.zipf or 0.0) for rank in range(1, paths + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    @property
    def offered_rps(self) -> float | None:
        """Requests due per second; None in a closed loop."""
        if self.rate_per_s is None:
            return None
        per_connection = self.due == "connection" and isinstance(self.keepalive, int)
        return self.rate_per_s * (int(self.keepalive) if per_connection else 1)


class Arm(Model):
    """One stack with its knobs and site."""

    stack: str
    site: str | None = None
    """The experiment's site unless named here."""
    paths: Annotated[list[WrittenPath], Field(min_length=1)] | None = None
    """The load's paths unless named here."""
    knobs: dict[str, KnobValue] = {}
    memory: Size | None = None
    """Limit for all its services together, such as "512MB"; none unless given."""
    cpus: PositiveInt | None = None
    """How many of the servers' CPUs it gets; all of them unless given."""


class Measure(Model):
    """How the comparison is made: blocks, slots and the stop rule of the method."""

    decide_on: DecidingMetric = "rate_rps"
    """The metric that the verdict is about; the others are shown beside it."""
    slot_s: Seconds = 0.5
    slots_per_arm: Annotated[int, Field(ge=2, multiple_of=2)] | None = None
    """Slots of each arm in a block; even, so that ABBA order is balanced. Unless given, blocks
    begin with 4, and after the first six it is chosen from the noise seen, from 4 to 8."""
    warmup_s: Annotated[float, Field(ge=0)] = 1.0
    """Load on each arm before the first slot of a block that counts."""
    precision: Annotated[float, BeforeValidator(read_share), Field(gt=0, lt=1)] = 0.02
    """Stop when the interval of the ratio is at most this far to each side of the estimate;
    a share, or text such as "2%"."""
    budget_s: Seconds = 90.0
    """Stop after this much time all the same, though never before `min_blocks` blocks."""
    min_blocks: Annotated[int, Field(ge=6)] = 6
    """Six blocks are the fewest for which an exact two-sided test can reach p < 0.05."""
    max_blocks: Annotated[int, Field(ge=6)] = 30
    seed: int | None = None
    """Seed of all random orders; drawn and recorded when it isn't given."""

    @property
    def first_slots_per_arm(self) -> int:
        """Slots of each arm in the first blocks, before anything is known of the noise."""
        return self.slots_per_arm or FIRST_SLOTS


GeneratorName = Literal["loadgen", "ab", "httperf", "wrk", "redis-benchmark"]
"""Programs that make load: webdyno's own, and the instruments of older studies."""

Level = KnobValue | list[str]
"""One value of a factor; a list where the setting is one, such as `load.paths`."""


class Experiment(Model):
    """A question about web stacks, complete enough to be run again by somebody else."""

    title: str
    question: str
    site: str
    generator: GeneratorName = "loadgen"
    load: Load = Load()
    measure: Measure = Measure()
    bench: BenchSettings = BenchSettings()
    arms: Annotated[dict[str, Arm], Field(min_length=2)]
    """By name, in the order in which they are shown; the first one is the baseline."""
    factors: dict[str, Annotated[list[Level], Field(min_length=1)]] = {}
    """What is varied: a setting's dotted key, as for --set, and its levels. The arms are compared
    at every combination of levels; the measuring time is shared out among these points."""

    @property
    def protocol(self) -> str:
        """What its generator speaks to the stacks."""
        return "redis" if self.generator == "redis-benchmark" else "http"

    @model_validator(mode="after")
    def _generator_tells(self) -> "Experiment":
        needs = metric_rule(self.measure.decide_on).needs
        if self.generator != "loadgen" and needs == "times":
            raise ValueError(
                f"{self.generator} doesn't tell the distribution of response times, which "
                f'decide_on = "{self.measure.decide_on}" needs; use generator = "loadgen"'
            )
        return self
