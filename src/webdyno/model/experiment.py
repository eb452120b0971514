"""An experiment: which arms are compared, under which load, how often and until when.

What is said of each key here is what `docs/experiment.md` says.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, Strict, model_validator

from webdyno.model.base import Model
from webdyno.model.bench import BenchSettings
from webdyno.model.changes import Changes, changed
from webdyno.model.gate import GateSettings
from webdyno.model.headers import Headers, accepted_encodings, may_be_compressed
from webdyno.model.ignored import Ignored
from webdyno.model.knob import KnobValue
from webdyno.model.metrics import DecidingMetric
from webdyno.model.names import Name, OneLine
from webdyno.model.paths import WrittenPaths
from webdyno.model.quantities import SHARE, SIZE, Budget, Lag, Pause, Quantity, Seconds, Size
from webdyno.model.request import Request, WrittenRequests, endpoints_of

FIRST_SLOTS = 4
MOST_CONNECTIONS = 1_000_000
MOST_POINTS = 1_000
"""Combinations of levels in one experiment."""

Connections = Annotated[int, Strict(), Field(ge=1, le=MOST_CONNECTIONS)]
Requests = Annotated[int, Field(ge=1, le=1_000_000_000)]

KeepAlive = Literal["always", "never"] | Requests
"""Whether connections are reused; a number closes each connection after that many requests."""


class SlowReaders(Model):
    """Clients beside the load that take their answers in slowly, as mobile phones do."""

    connections: Connections
    """How many."""
    bytes_per_s: Annotated[int, Quantity(SIZE, 1, 4 * 10**9)]
    """What each of them reads per second."""


class Load(Model):
    """What the clients do during a slot."""

    paths: WrittenPaths = ["/"]
    """Asked for in equal shares; `/many/{1..2000}.txt` stands for many. An arm may have its own."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Ask for the paths by Zipf's law with this exponent instead, the first one most often."""
    headers: Headers = {}
    """Sent with each request; `${env:NAME}` stands for a secret. With `Accept-Encoding` answers may
    come compressed: bodies are then looked at before the load, decoded; under load only their
    status counts."""
    loop: Literal["closed", "open"] = "closed"
    """closed: each connection sends its next request when the last one was answered.
    open: requests are due at a rate, whether or not the server keeps up."""
    rate_per_s: Annotated[float, Field(ge=0.001, le=100_000_000)] | None = None
    """Open loop: what is due per second, in units of `due`."""
    due: Literal["request", "connection"] = "request"
    """Open loop: what the rate counts; a connection is a new one, with `keepalive` requests."""
    arrivals: Literal["poisson", "constant"] = "poisson"
    """Open loop: times between what is due, random as of independent users, or all the same."""
    send_lag_budget: Lag = 0.0
    """Open loop: requests may be sent so much later than they are due, several at a time, and
    answers are timed by when the kernel got them: that costs the client less. 0 is exact, as on
    Unix sockets always."""
    think_s: Pause = 0.0
    """Closed loop: mean pause between an answer and the connection's next request."""
    connections: Connections = 64
    """Connections over all client threads; in an open loop the most that may be in use."""
    keepalive: KeepAlive = "always"
    """Whether connections are reused; a number closes each after that many requests."""
    protocol: Literal["http", "https", "h2", "h2c"] = "http"
    """http: HTTP/1.1. https: the same over TLS. h2: HTTP/2 over TLS. h2c: HTTP/2 without TLS. The
    servers' certificate is made for the run."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """HTTP/2: requests at a time on each connection."""
    tls_resumption: bool = True
    """Whether new connections resume TLS sessions of earlier ones."""
    timeout_s: Seconds = 5.0
    """A request that isn't answered within this time is a failure."""
    requests: Requests | None = None
    """Closed loop: a slot ends when so many requests were answered, as with `ab -n`, instead of
    after its time. `measure.slot_s` is then the longest that it may take, 60 s unless given."""
    idle_connections: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0
    """Connections held open beside the load, without a request."""
    slow_readers: SlowReaders | None = None
    """Clients beside the load that take their answers in slowly, as mobile phones do."""

    @model_validator(mode="after")
    def _loop_fits(self) -> "Load":
        if self.loop == "open" and self.rate_per_s is None:
            raise ValueError("an open loop needs rate_per_s, what is due per second")
        if self.loop == "closed" and self.rate_per_s is not None:
            raise ValueError('rate_per_s needs loop = "open"; a closed loop has no rate of its own')
        if self.loop == "closed" and self.send_lag_budget:
            raise ValueError('send_lag_budget needs loop = "open"; in a closed loop nothing is due')
        if self.loop == "open" and self.think_s:
            raise ValueError('think_s needs loop = "closed"; an open loop has its timetable')
        if self.loop == "open" and self.requests:
            raise ValueError('requests needs loop = "closed"; an open loop has its timetable')
        if self.due == "connection" and not isinstance(self.keepalive, int):
            raise ValueError('due = "connection" needs keepalive = N, the requests on each')
        beside = self.idle_connections or self.slow_readers
        if beside and self.protocol != "http":
            raise ValueError(
                "idle_connections and slow_readers are there for plain HTTP/1.1 only; leave them "
                'out, or protocol = "http"'
            )
        if self.streams > 1 and self.protocol not in {"h2", "h2c"}:
            raise ValueError('streams needs HTTP/2: protocol = "h2" or "h2c"')
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

    @property
    def accepted_encodings(self) -> set[str]:
        """Encodings of bodies that requests accept; none unless a header says so."""
        return accepted_encodings(self.headers)

    @property
    def may_be_compressed(self) -> bool:
        """Whether answers may come compressed, so that bytes on the wire aren't the page's."""
        return may_be_compressed(self.headers)


class State(Model):
    """Commands that put back what a block's requests have changed, so that blocks begin alike."""

    before_block: list[OneLine] = []
    """Run by a shell, one after the other, before each start of the arms, those of pilots
    included: as who called webdyno, in the folder where that was. What they say is kept with the
    run; a failing one ends it."""
    after_block: list[OneLine] = []
    """The same after the arms were stopped, whatever happened."""
    within_s: Seconds = 60.0
    """What each of them may take."""


class Arm(Model):
    """One stack with its knobs and site, and whatever else differs from the other arms."""

    stack: str
    """A stack of the catalogue, or a system of your own (`cmd:…`, `rev:…`, `conf:…`, `image:…`,
    `url:…`, see docs/own.md), which has the keys `dir`, `environment`, `ready` and `ready_within`
    beside it."""
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
    cpus: Annotated[int, Field(ge=1, le=4096)] | None = None
    """How many of the servers' CPUs it gets; all of them unless given."""

    @model_validator(mode="after")
    def _paths_once(self) -> "Arm":
        if self.paths is not None and "paths" in self.load:
            raise ValueError("paths is short for load.paths; give one of them")
        return self

    @property
    def load_changes(self) -> Changes:
        """All that the load has of its own here."""
        return {**self.load, "paths": [*self.paths]} if self.paths else self.load


FASTER_QUESTION, NOT_SLOWER_QUESTION = "faster", "not-slower-by"


def tolerance_of(question: str) -> float:
    """Read `faster` or `not-slower-by 5%`; give the share by which it may be slower.

    Raises ValueError.
    """
    word, _, amount = question.strip().partition(" ")
    if word == FASTER_QUESTION and not amount:
        return 0.0
    tolerance = SHARE.read(amount) if word == NOT_SLOWER_QUESTION else None
    if tolerance is None or not 0 < tolerance < 1:
        raise ValueError(
            f"{question!r} is no question; there are two, 'faster' and 'not-slower-by 5%' (any "
            "share between 0% and 100%)"
        )
    return tolerance


def _question(text: str) -> str:
    tolerance_of(text)
    return text.strip()


class Measure(Model):
    """How the comparison is made: blocks, slots and the stop rule of the method."""

    decide_on: DecidingMetric = "rate_rps"
    """The metric that the verdict is about; the others are shown beside it."""
    slot_s: Seconds | None = None
    """The part of a slot that counts: one stretch of load on one arm. Unless given, a pilot finds
    it; 0.5 s with load generators other than webdyno's own, which know no pilot."""
    lead_in_s: Pause | None = None
    """Load at the beginning of each slot that doesn't count. Unless given, a pilot finds it for
    each arm; none where slots and warm-up are given, or with load generators other than webdyno's
    own."""
    slots_per_arm: Annotated[int, Field(ge=2, le=1_000, multiple_of=2)] | None = None
    """Slots of each arm in a block; even, so that ABBA order is balanced. Unless given, the
    first six blocks have 2 (4 without a pilot); then it is chosen from the noise, up to 8."""
    warmup_s: Pause | None = None
    """Load on each arm after its start before anything counts. Unless given, a pilot finds it for
    each arm; 1 s with other load generators than webdyno's own."""
    precision: Annotated[float, Quantity(SHARE, 0.0001, 0.99)] = 0.02
    """Stop when the interval of the ratio is at most this far to each side of the estimate."""
    question: Annotated[str, AfterValidator(_question)] | None = None
    """A one-sided question, `faster` or `not-slower-by 5%`: stop as soon as it is answered instead
    of when the interval is narrow."""
    budget_s: Budget = 90.0
    """Stop after this much time all the same, though never before `min_blocks` blocks."""
    min_blocks: Annotated[int, Field(ge=6, le=10_000)] = 6
    """Six blocks are the fewest for which an exact two-sided test can reach p < 0.05."""
    max_blocks: Annotated[int, Field(ge=6, le=10_000)] = 30
    """Stop after as many blocks, however wide the interval is."""
    patience: Annotated[float, Field(ge=1, le=100)] = 4.0
    """Take as many times the budget and the most blocks, at most, while a ratio isn't even known to
    2.5 % or a quarter of the difference; 1 where `budget_s` or `max_blocks` are given."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of all random orders; drawn and recorded when it isn't given."""

    @model_validator(mode="before")
    @classmethod
    def _what_is_given_counts(cls, given: object) -> object:
        if isinstance(given, dict) and {"budget_s", "max_blocks"} & given.keys():
            return {"patience": 1.0, **given}
        return given

    @model_validator(mode="after")
    def _most_is_most(self) -> "Measure":
        if self.min_blocks > self.max_blocks:
            raise ValueError(
                f"min_blocks = {self.min_blocks} is more than max_blocks = {self.max_blocks}; "
                "raise max_blocks as well"
            )
        return self

    @property
    def first_slots_per_arm(self) -> int:
        """Slots of each arm in the first blocks, before anything is known of the noise."""
        return self.slots_per_arm or FIRST_SLOTS


GeneratorName = str
"""Name of a program that makes load: webdyno's own, or an instrument of older studies."""

OWN_GENERATOR = "loadgen"

Level = KnobValue | list[str]
"""One value of a factor; a list where the setting is one, such as `load.paths`."""


def _two_at_least(arms: dict[str, Arm]) -> dict[str, Arm]:
    if len(arms) < 2:
        raise ValueError(
            "an experiment compares arms and needs two at least, [arms.A] and [arms.B], the first "
            "one being the baseline; `webdyno up` and `webdyno load` look at one stack alone"
        )
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
    load_with: dict[GeneratorName, Changes] = {}
    """By load generator: keys of `[load]` that are other with this one, such as `requests` with
    ab."""
    measure: Measure = Measure()
    """How the comparison is made."""
    bench: BenchSettings = BenchSettings()
    """Where it runs."""
    state: State = State()
    """What puts everything back between blocks."""
    arms: Annotated[dict[Name, Arm], AfterValidator(_two_at_least)]
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
    gate: GateSettings | None = None
    """Makes it a gate, as `webdyno gate` does: is the third arm worse than the first two, which are
    alike?"""

    @model_validator(mode="after")
    def _arms_of_a_gate(self) -> "Experiment":
        arms = list(self.arms.values())
        if self.gate and (len(arms) != 3 or arms[0] != arms[1]):
            raise ValueError("a gate has three arms: the base twice, defined alike, and the head")
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
    def _endpoint_is_there(self) -> "Experiment":
        if self.endpoint is not None and not self.asked:
            known = ", ".join(dict.fromkeys(filter(None, endpoints_of(self.requests))))
            raise ValueError(
                f"endpoint: no request is called {self.endpoint!r}; there are {known or 'none'}"
            )
        return self

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
