"""The lines of `slots.jsonl`: everything that a run measured, in the order in which it happened."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, TypeAdapter

from webdyno.core.base import Amount, Count, Model
from webdyno.core.capacity import Trial
from webdyno.core.load_result import LoadResult
from webdyno.core.looks import (
    BurstsLook,
    ColdFigures,
    FreshStart,
    LookEnd,
    Pilot,
    ServerSample,
    SlotSettings,
    Stall,
)
from webdyno.core.readings import Readings
from webdyno.core.testbed import Machine
from webdyno.core.text import Prose

StopReason = Literal[
    "precision",
    "question",
    "bounds",
    "max-rounds",
    "budget",
    "time",
    "nothing-valid",
    "different-responses",
]
"""Why a point was measured no further: the ratio is known well enough, the question in one
direction is answered, the most rounds or the time are used up, or more of them would say nothing
(`bounds`: interference outweighs all that they could say)."""


class SessionRecord(Model):
    """The start of a run, or of going on with it: what measures from here on, and where."""

    kind: Literal["session"] = "session"
    point: None = None
    round: None = None
    """It counts for all points and rounds that follow."""
    started_at: AwareDatetime
    webdyno_version: str
    machine: Machine
    """The one with the servers."""
    hosts: dict[str, Machine] = {}
    """By name: all that take part, where there are several."""
    versions: dict[str, dict[str, str]]
    """By variant, by service: what the server says its version is."""
    load_generator: str


class ServerUse(Model):
    """What a variant's servers used during a slot, the drain of its last responses included."""

    cpu_user_s: Amount
    cpu_sys_s: Amount
    interrupts_s: Amount = 0.0
    """Of interrupts on the servers' CPUs, where the kernel keeps that time apart from the program's
    that was interrupted: most of it is the network's work for the servers."""
    means: Literal["cgroup-v2", "cgroup-v1", "procfs"]
    """What was read: a control group's counters, or the process tree in /proc."""

    @property
    def cpu_s(self) -> float:
        return self.cpu_user_s + self.cpu_sys_s + self.interrupts_s


Phase = Literal["warmup", "wake-up", "measure", "trial"]
"""What a load is for; trial: a search for the capacity."""


class SlotRecord(Model):
    """One uninterrupted stretch of load on one variant."""

    kind: Literal["slot"] = "slot"
    point: Count = 0
    """Number of the point in a sweep; 0 in an experiment without factors."""
    round: Count
    slot: Count
    """Position within the round, from 0, loads that don't count included."""
    variant: str
    phase: Phase
    """wake-up: load after a pause, before the slot that counts and has the same position."""
    started_at: AwareDatetime
    load: LoadResult
    trial: Trial | None = None
    """What it says of the objectives, where the capacity is searched for."""
    servers: ServerUse
    readings: Readings | None = None
    """What the probes read; None when none were at work."""
    profile: dict[str, Amount] | None = None
    """CPU seconds of the servers' CPUs by what was done, where that was sampled."""
    functions: dict[str, Amount] | None = None
    """The same by the program's own function for which it was done, or else the library's."""
    system_calls: dict[str, Count] | None = None
    """How often the servers' CPUs called the kernel, by call, where that was counted."""
    instructions: Count | None = None
    """That the servers executed in user space, where that was counted."""
    uncounted: str = ""
    """Why they weren't, where that was requested."""
    refusal: str = ""
    """The line of a server's log by which it says that a limit of its own refuses requests."""


class Response(Model):
    """One response of a variant to a request of the pre-flight check."""

    path: str
    """With the method before it where that isn't GET; or the request's name."""
    expected_status: Count | None
    """None where any from 200 to 299 is right."""
    expected_sha256: str | None
    """None where the body may differ from one response to the next."""
    expected_bytes: Count | None
    status: Count | None
    """None when there was no response; `error` says why."""
    error: str | None = None
    http_version: str | None = None
    tls: str = ""
    """Version and cipher that were agreed upon; empty without TLS."""
    headers: list[tuple[str, str]] = []
    head_bytes: Count = 0
    encoding: str = ""
    """What the body came compressed by; empty when it came as it is."""
    wire_bytes: Count | None = None
    """Length of the body as it came; None in records of runs that knew no compression."""
    body_bytes: Count = 0
    """Length of the body, decoded; so are its sum and its start."""
    body_sha256: str = ""
    body_start: str = ""
    """The first 200 bytes as text, to show an error page."""
    body: Annotated[bytes, Field(exclude=True)] = b""
    """The body, decoded, without what may differ: never on record."""
    unlike: list[str] = []
    """In what its body differs from the baseline's: lines of a diff."""
    fields_more: list[str] = []
    """Of JSON: fields that the baseline's body lacks, by their places, such as `items.*.price`."""
    fields_less: list[str] = []
    """Fields that the baseline's body has, and this one lacks."""
    fields_other: list[str] = []
    """Fields with another value than in the baseline's body."""
    others_are_times: bool = False
    """Whether those are dates and times, all of them."""
    lacks: str | None = None
    """Text that the valid response contains and this one doesn't."""
    lacks_header: str | None = None
    """A header that the valid response has and this one doesn't, and what its value should be."""
    expected_reads: Count = 0
    """Rows that it takes from a database, each by a statement of its own."""
    has_rules: bool = False
    """Whether the site's rules say what is right, so that bodies may differ otherwise."""
    is_login: bool = False
    """Of a user who was not let in; `error` says why."""

    @property
    def has_right_status(self) -> bool:
        """Whether its status is the expected one."""
        if self.expected_status is None:
            return self.status is not None and 200 <= self.status < 300
        return self.status == self.expected_status


class PreflightRecord(Model):
    """What each variant answered to the same requests before the load: the pre-flight check."""

    kind: Literal["preflight"] = "preflight"
    point: Count = 0
    round: Count
    responses: dict[str, list[Response]]
    """By variant."""
    facts: dict[str, dict[str, str]] = {}
    """By variant: settings that should be equal or be known to differ."""
    ran_before: list[str] = []
    """Variants that somebody else had started before the run: the same start in all rounds."""
    round_trips_s: dict[str, Amount] = {}
    """Those of them that are on another machine: the network's round trip to it."""
    broken_rules: dict[str, str] = {}
    """By variant: what breaks a rule of its site; looked for once, before anything is measured."""


class IncidentRecord(Model):
    """Something that should not have happened, such as a server that died or never became ready."""

    kind: Literal["incident"] = "incident"
    point: Count = 0
    round: Count
    variant: str | None
    """Whose servers failed; None: the load generator did, or hosts."""
    of_hosts: bool = False
    """Whether a host was lost, or the network between hosts was cut."""
    happened_at: AwareDatetime
    what: str
    log_tail: list[str] = []


class PilotRecord(Model):
    """A variant alone, before the rounds: what was seen of it, and the times found from that."""

    kind: Literal["pilot"] = "pilot"
    point: Count = 0
    round: None = None
    variant: str
    started_at: AwareDatetime
    took_s: Amount
    window_s: Amount
    """Length of the windows of all series."""
    earlier: list[FreshStart] = []
    """Earlier fresh starts, which seemed to be steady late or never, so that there was another
    one."""
    responses: list[Count]
    """Responses by window, from the beginning of the load on the last fresh start."""
    cpu_s: list[Amount] = []
    """The servers' CPU time in the same windows; empty where it can't be read that often."""
    load_starts: list[list[Count]] = []
    """Responses by window of some later loads on the first fresh start, with a pause before
    each."""
    load_starts_cpu_s: list[list[Amount]] = []
    """The servers' CPU time in the same windows, as far as it was read."""
    start_s: Amount | None = None
    """From the beginning of a fresh start, services and all, until load could begin; None in
    older runs."""
    latency_s: Amount | None
    """Mean latency; None without a response."""
    bursts: BurstsLook | None = None
    """What a warm-up in bursts showed, where that was tried."""
    found: Pilot
    cold: ColdFigures


InWindow = Annotated[int, Field(ge=0, lt=2**32)]
"""How many were counted in one window: those of all windows together are a count as well."""


class LongLookRecord(Model):
    """A part of the long load on a variant after its rounds; on record as soon as it was measured.

    Short looks have one part. Nothing was restarted from one part of a stretch to the next.
    """

    kind: Literal["long-look"] = "long-look"
    point: Count = 0
    round: None = None
    variant: str
    stretch: Count = 0
    """The servers were started again before each: the look was interrupted, and went on later."""
    part: Count = 0
    """Position in the stretch."""
    ended_by: LookEnd | None = "time"
    """Why this was the last part of the look; None: another one was to follow."""
    started_at: AwareDatetime
    took_s: Amount
    window_s: Annotated[float, Field(ge=0.001, le=3_600)]
    responses: list[InWindow]
    """Valid ones, by window, after the warm-up."""
    failed: list[InWindow] = []
    """Requests and connections that failed, in the same windows."""
    said: str = ""
    """What the servers' log says of why they failed."""
    died: str = ""
    """How a server ended meanwhile; empty where all lived."""
    client_pauses: list[Stall] = []
    """In which the load generator stalled."""
    samples: list[ServerSample] = []
    """Of the servers, in the same time; empty where they can't be read that often. Of long parts
    there are fewer where nothing happened."""
    server_cpus: Count = 1
    """How many CPUs the servers may use."""
    load: LoadResult
    """Of the whole part, without its windows."""
    trial: Trial | None = None
    """What it says of the objectives, where the capacity that was found is confirmed."""
    servers: ServerUse
    readings: Readings | None = None


class RestRecord(Model):
    """What a variant used after the slots of a round, while nobody asked it anything."""

    kind: Literal["rest"] = "rest"
    point: Count = 0
    round: Count
    variant: str
    started_at: AwareDatetime
    rested_s: Annotated[float, Field(gt=0, le=1e6)]
    """How long nobody asked."""
    cpu_s: Amount
    """CPU time of the servers in that time."""
    wake_ups: Count
    """How often their threads waited and went on."""
    memory_bytes: Count | None = None
    """Resident memory of all their processes; None where it wasn't read."""
    held: Count = 0
    """Connections that were open after that, each after one request; 0 where none were asked
    for."""
    memory_with_held_bytes: Count | None = None
    """Resident memory with these."""


class InstructionsRecord(Model):
    """What a variant's servers executed under load, after the slots of one of the first rounds."""

    kind: Literal["instructions"] = "instructions"
    point: Count = 0
    round: Count
    variant: str
    started_at: AwareDatetime
    instructions: Count | None = None
    """In user space; None where they can't be counted."""
    responses: Count = 0
    """To which they belong."""
    fault: str = ""
    """Why they can't be counted; then no load was made for it."""


class AdjustmentRecord(Model):
    """Interference that webdyno adjusted for by itself."""

    kind: Literal["adjustment"] = "adjustment"
    point: Count = 0
    round: Count
    """The last finished round before it; 0 when none was."""
    rule: str
    variant: str | None
    what: Prose
    """What was found, with figures, and what was done about it, in a sentence."""
    settings: SlotSettings | None = None
    """The settings of the rounds after it; None where they stay as they were."""
    again: bool = False
    """Whether the rounds before it no longer count: they can't be compared with those after it."""


class RoundRecord(Model):
    """A round that came to its end.

    Slots of a round without this line are excluded from verdicts.
    """

    kind: Literal["round"] = "round"
    point: Count = 0
    round: Count
    order: list[str]
    """The variants of the slots that count, in their order."""
    started_at: AwareDatetime
    took_s: Amount
    rested_s: Amount = 0.0
    """How much of it slots waited for servers to end what was left of their load."""
    ready_s: dict[str, Amount]
    """By variant: from start to the first valid response."""


class StopRecord(Model):
    """The stop rule held: the point is measured no further, unless somebody asks for more."""

    kind: Literal["stop"] = "stop"
    point: Count = 0
    round: Count
    """The last finished one; 0 when none was."""
    stopped_at: AwareDatetime
    reason: StopReason
    why: Prose
    """The reason in words."""


Record = Annotated[
    SessionRecord
    | PilotRecord
    | LongLookRecord
    | RestRecord
    | InstructionsRecord
    | AdjustmentRecord
    | SlotRecord
    | PreflightRecord
    | IncidentRecord
    | RoundRecord
    | StopRecord,
    Field(discriminator="kind"),
]
RECORD: TypeAdapter[Record] = TypeAdapter(Record, config=ConfigDict(defer_build=True))
"""Reads a line of `slots.jsonl`."""
