"""What the pilot of an arm found: the settings with which its steady state is measured."""

from math import ceil

from pydantic import model_validator

from webdyno.model.base import Amount, Count, Model

BURST_S = BURST_PAUSE_S = 0.5
"""A warm-up in bursts: load for so long, then none for so long, again and again."""


class Pilot(Model):
    """Times that an arm needs, found from that arm alone."""

    warmup_s: float
    """Load after a fresh start until rate and CPU time per request are steady."""
    in_bursts: bool = False
    """Whether that load comes in bursts, with a pause after each."""
    lead_in_s: float
    """Load at the beginning of each slot that doesn't count."""
    window_s: float
    """The part of a slot that counts."""
    period_s: float | None
    """Period of a cycle of the rate; None where none was found."""
    steady: bool
    """False when it wasn't steady yet where the pilot ended, or a cap cut warm-up or lead-in."""
    why: str
    """What the times rest on, in a sentence or two."""


class FreshStart(Model):
    """What was seen of an arm under load from a fresh start on, by window."""

    answers: list[Count]
    cpu_s: list[Amount] = []
    """The servers' CPU time; empty where it can't be read that often."""


class BurstsLook(Model):
    """An arm that was started anew to be warmed up in bursts, and what that was worth."""

    bursts: list[list[Count]]
    """Answers by window, of each burst."""
    after: list[Count]
    """The same of load without a break after them."""
    after_cpu_s: list[Amount] = []
    """The servers' CPU time in the same windows; empty where it can't be read that often."""
    continuous: list[Count] = []
    """The same from another fresh start on, for as long as bursts, pauses and that load took
    together, without a break; empty where the pilot's other looks had shown enough."""
    continuous_cpu_s: list[Amount] = []
    told: str = ""
    """What is worth telling, in a sentence; empty where pauses made no difference."""


class ColdFigures(Model):
    """How an arm begins: a fresh start, and load from its first right answer on."""

    first_answer_s: Amount
    """From the start of its servers to the first right answer."""
    full_rate_s: Amount | None
    """From the start of its servers until its rate first reached 90% of the steady one, without
    the time in which it waited for the load; None where it wasn't steady."""
    cpu_s: Amount | None
    """CPU time of the servers until then; None where it can't be read often enough."""


class SlotSettings(Model):
    """The times with which blocks are measured."""

    warmup_s: dict[str, Amount]
    """By arm: load after a fresh start, before what counts of its first slot. It takes a slot of
    its own where the arm's lead-in is shorter."""
    lead_in_s: dict[str, Amount]
    """By arm: load at the beginning of each slot that doesn't count."""
    in_bursts: list[str] = []
    """Arms whose warm-up comes in bursts, with a pause after each."""
    window_s: Amount
    """The part of each slot that counts; the same for all arms."""
    phase_s: dict[str, Amount] = {}
    """By arm: each lead-in is longer by a random time up to this, so that windows begin anywhere in
    the cycles of an arm that answers in batches."""
    rest_s: Amount = 0.0
    """Longest wait before each slot for all servers to come to rest."""
    slots_per_arm: int | None = None
    """Slots of each arm in a block; None where it is chosen from the noise."""

    @model_validator(mode="before")
    @classmethod
    def _one_lead_in_for_all(cls, told: object) -> object:
        """Read settings on record from when all arms had the lead-in of the one that needs most."""
        if isinstance(told, dict) and isinstance(lead_in_s := told.get("lead_in_s"), int | float):
            return told | {"lead_in_s": dict.fromkeys(told.get("warmup_s", ()), lead_in_s)}
        return told

    def warmup_loads_s(self, arm: str) -> list[float]:
        """Give the stretches of load of an arm's warm-up: one, or its bursts, all as long."""
        load_s = self.warmup_s[arm]
        stretches = ceil(load_s / BURST_S - 1e-9) if arm in self.in_bursts else int(load_s > 0)
        return [load_s / stretches] * stretches if stretches else []

    def pause_s(self, arm: str) -> float:
        """Give the pause after each stretch of an arm's warm-up."""
        return BURST_PAUSE_S if arm in self.in_bursts else 0.0

    def warmup_takes_s(self, arm: str) -> float:
        """Give how long an arm's warm-up takes, pauses and all."""
        loads_s = self.warmup_loads_s(arm)
        return sum(loads_s) + len(loads_s) * self.pause_s(arm)
