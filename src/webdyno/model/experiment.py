"""An experiment: which arms are compared, under which load, how often and until when."""

from typing import Annotated, Literal

from pydantic import Field, PositiveInt

from webdyno.model.base import Model
from webdyno.model.knob import KnobValue
from webdyno.model.size import Size

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]

KeepAlive = Literal["always", "never"] | PositiveInt
"""Whether connections are reused; a number closes each connection after that many requests."""


class Load(Model):
    """What the clients do during a slot."""

    paths: Annotated[list[str], Field(min_length=1)] = ["/"]
    """Asked for in equal shares; each must be a path of the site."""
    loop: Literal["closed"] = "closed"
    """closed: each connection sends its next request when the last one was answered."""
    connections: PositiveInt = 64
    """Connections over all client threads."""
    keepalive: KeepAlive = "always"
    timeout_s: Seconds = 5.0
    """A request that isn't answered within this time is a failure."""


class Arm(Model):
    """One stack with its knobs and site."""

    stack: str
    site: str | None = None
    """The experiment's site unless named here."""
    paths: Annotated[list[str], Field(min_length=1)] | None = None
    """The load's paths unless named here."""
    knobs: dict[str, KnobValue] = {}
    memory: Size | None = None
    """Limit for all its services together, such as "512MB"; none unless given."""
    cpus: PositiveInt | None = None
    """How many of the servers' CPUs it gets; all of them unless given."""


class Measure(Model):
    """How the comparison is made: blocks, slots and the stop rule of the method."""

    decide_on: Literal["rate_rps", "server_cpu_us", "response_p50_us", "response_p99_us"] = (
        "rate_rps"
    )
    """The metric that the verdict is about; the others are shown beside it."""
    slot_s: Seconds = 0.5
    slots_per_arm: Annotated[int, Field(ge=2, multiple_of=2)] = 4
    """Slots of each arm in a block; even, so that ABBA order is balanced."""
    warmup_s: Annotated[float, Field(ge=0)] = 1.0
    """Load on each arm before the first slot of a block that counts."""
    precision: Annotated[float, Field(gt=0, lt=1)] = 0.02
    """Stop when the interval of the ratio is at most this far to each side of the estimate."""
    budget_s: Seconds = 90.0
    """Stop after this much time all the same, though never before `min_blocks` blocks."""
    min_blocks: Annotated[int, Field(ge=6)] = 6
    """Six blocks are the fewest for which an exact two-sided test can reach p < 0.05."""
    max_blocks: Annotated[int, Field(ge=6)] = 30
    seed: int | None = None
    """Seed of all random orders; drawn and recorded when it isn't given."""


class Experiment(Model):
    """A question about web stacks, complete enough to be run again by somebody else."""

    title: str
    question: str
    site: str
    load: Load = Load()
    measure: Measure = Measure()
    arms: Annotated[dict[str, Arm], Field(min_length=2)]
    """By name, in the order in which they are shown; the first one is the baseline."""
