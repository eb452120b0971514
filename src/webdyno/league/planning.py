"""What a league lacks, and which stacks are ranked together next: pure functions."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil

from webdyno.core.looks import BURSTS_TAKE
from webdyno.core.question import FEWEST_IN_RACE

MOST_AT_ONCE = 10
"""Stacks of a run: with more, rounds take so long that the machine changes within one."""
ANCHORS = 2
"""Stacks of a run that an earlier one had as well, so that both can be joined."""
PLACES = (1 / 3, 2 / 3)
"""Where in a ranking anchors should stand: those at its ends say little of the others."""

LEAST_ROOM, MOST_ROOM = 2.0, 4.0
"""A run's time, as a multiple of what it is expected to take: programs may start slowly, warm-ups
take what their pilots find, and ranks that are open take more rounds."""
WARMUP_SHARE = 0.6
"""Of the time that a run has to spare, for warm-ups of those that an earlier one left cold."""
LONGEST_WARMUP_S, LEAST_WARMUP_S = 40.0, 3.0
"""Serving JSON, Spring Boot got faster for 40 s of load without a break, for 11 s in bursts."""


@dataclass(frozen=True)
class Held:
    """A finished run, as far as planning looks at it."""

    began: datetime
    stacks: list[str]
    """All that were in it."""
    ranked: list[str]
    """Those that have a rank, the best first."""
    changed: frozenset[str] = frozenset()
    """Those whose program or settings are others now."""
    cold: frozenset[str] = frozenset()
    """Those that hadn't warmed up."""


@dataclass(frozen=True)
class Group:
    """Stacks that are ranked together."""

    new: list[str]
    anchors: list[str]

    @property
    def stacks(self) -> list[str]:
        return [*self.anchors, *self.new]


def missing(
    able: Sequence[str], held: Sequence[Held], now: datetime, older_than: timedelta
) -> list[str]:
    """Return the stacks without a result that counts: a fresh one, of that program, warmed up.

    It has to be comparable, too: not of a run that shares no warm stack with those before it.
    """
    fresh, joined = set[str](), set[str]()
    for run in sorted(held, key=lambda run: run.began):
        joining = set(run.ranked) - run.cold
        if now - run.began > older_than or (joined and joined.isdisjoint(joining)):
            continue
        joined |= joining
        fresh |= set(run.stacks) - run.changed - run.cold
    return [stack for stack in able if stack not in fresh]


def anchors_of(held: Sequence[Held], able: Collection[str]) -> list[str]:
    """Return the stacks by which the next run is joined with earlier ones, the newest first.

    Those that most runs have, so that one step leads from any run to any other; of these the ones
    whose places are nearest to a third and two thirds of their ranking.
    """
    times = Counter(stack for run in held for stack in run.ranked if stack in able)
    place: dict[str, float] = {}
    for run in held:
        for number, stack in enumerate(run.ranked):
            place.setdefault(stack, number / max(len(run.ranked) - 1, 1))
    anchors: list[str] = []
    for wanted in PLACES:
        left = [stack for stack in times if stack not in anchors]
        if left:
            anchors.append(
                min(left, key=lambda stack: (-times[stack], abs(place[stack] - wanted), stack))
            )
    return anchors


def cold_of(held: Sequence[Held]) -> set[str]:
    """Return the stacks that no run warmed up so far."""
    return _ever_cold(held) - {
        stack for run in held for stack in run.stacks if stack not in run.cold
    }


def _ever_cold(held: Sequence[Held]) -> set[str]:
    return {stack for run in held for stack in run.cold}


def next_group(
    lacking: Sequence[str], held: Sequence[Held], able: Sequence[str], most: int = MOST_AT_ONCE
) -> Group | None:
    """Return what is ranked together next; None where nothing is missing.

    Groups are of about equal size. A race of two is none: others fill it up.
    """
    if not lacking:
        return None
    anchors = anchors_of(held, set(able) - set(lacking) - _ever_cold(held))
    room = max(most - len(anchors), 1)
    size = ceil(len(lacking) / ceil(len(lacking) / room))
    new = list(lacking[:size])
    spare = [stack for stack in able if stack not in {*new, *anchors}]
    return Group(new, [*anchors, *spare[: max(0, FEWEST_IN_RACE - len(new) - len(anchors))]])


def groups_left(lacking: Sequence[str], held: Sequence[Held], most: int = MOST_AT_ONCE) -> int:
    """Return how many runs it takes until nothing is missing."""
    if not lacking:
        return 0
    if held:
        return ceil(len(lacking) / (most - ANCHORS))
    return 1 + ceil(max(0, len(lacking) - most) / (most - ANCHORS))


def statements_together(held: Sequence[Held], lacking: Sequence[str]) -> int:
    """Return among how many statements a run of a task shares the risk of 5%.

    Where one run has all stacks, its ranks; else each run's ranks and its ratios to anchors.
    """
    stacks_of_interest = {stack for run in held for stack in run.stacks} - set(lacking)
    needed, seen = 0, set[str]()
    for run in held:
        if new := (set(run.stacks) & stacks_of_interest) - seen:
            seen |= new
            needed += 1
    runs = needed + groups_left(lacking, held)
    return 1 if runs <= 1 else 2 * runs


def time_of_run(need_s: float, left_s: float, runs_left: int) -> float:
    """Return how long a run may take: its share of what a sitting has left, within limits.

    So a short sitting has a first look at many stacks, and a long one settles more ranks.
    """
    share_s = left_s / max(runs_left, 1)
    return min(left_s, max(LEAST_ROOM * need_s, min(share_s, MOST_ROOM * need_s)))


def long_warmup_s(spare_s: float, rounds: int, stacks: int) -> float | None:
    """Return the warm-up of stacks that hadn't warmed up before; None where no time is left for it.

    The load that their pilots saw didn't show how long they need. It comes in bursts, whose pauses
    take as long again.
    """
    warmup_s = WARMUP_SHARE * spare_s / (rounds * stacks) / BURSTS_TAKE
    return min(warmup_s, LONGEST_WARMUP_S) if warmup_s >= LEAST_WARMUP_S else None
