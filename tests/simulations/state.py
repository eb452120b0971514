"""Simulated runs of two equal servers whose requests write: how often slots are called dearer.

Both become dearer from slot to slot, by nothing or by some per cent, on machines of different
rest. Run as a program it prints the table of docs/validation/method.md:

    cd tests && PYTHONPATH=. uv run python simulations/state.py [RUNS]
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from builders import SimulatedVariant, service_use, simulated_run
from validity.broken import quiet_readings
from webdyno.core.measure import Measure
from webdyno.core.readings import DatabaseUse, Readings
from webdyno.core.records import SlotRecord
from webdyno.evidence.point_data import PointData
from webdyno.validity.growing_state import state_drift

RESPONSES, COST_S = 2_000, 0.002
DATABASE_SHARE = 0.6
ROW_BYTES, ROWS = 500, 400
"""Of a slot."""
HELD_BYTES = 5_000_000


@dataclass(frozen=True)
class World:
    """How two equal servers, and their machine, behave. Noise is of ln(CPU per request)."""

    name: str
    machine_sd: float = 0.01
    """Of a slot, in which all services are slower or faster alike."""
    own_sd: float = 0.01
    """Of a slot, for each service by itself."""
    walk_sd: float = 0.0
    """Of the step from a slot of the round to the next: a machine that wanders."""
    start_sd: float = 0.02
    over_the_run: float = 0.0
    """By how much ln of the machine's speed falls from the first round to the last."""
    first_slot: float = 0.0
    """By how much a variant's first slot of a round costs more."""


STEADY = (
    World("quiet"),
    World("restless", machine_sd=0.1, own_sd=0.02),
    World("wanders in rounds", machine_sd=0.02, walk_sd=0.03),
    World("slows by 30% in the run", over_the_run=0.3),
    World("first slot 10% dearer", first_slot=0.1),
    World("starts differ by 10%", start_sd=0.1),
)
DRIFTS = (0.01, 0.02, 0.05)


def reported(
    world: World,
    how_many: int,
    *,
    per_slot: float = 0.0,
    rounds: int = 12,
    slots: int = 4,
    in_database: bool = True,
    has_database: bool = True,
    seed: int = 0,
) -> Iterator[bool]:
    """Report each run whether slots of any variant are called dearer.

    `per_slot`: by how much each slot of a variant costs more than its one before; all of that is
    the database's, or the app's.
    """
    measure = Measure(seed=seed, slots_per_variant=slots)
    variants = {"one": SimulatedVariant(), "other": SimulatedVariant()}
    data = simulated_run(variants, rounds=rounds, measure=measure).data
    if not has_database:
        data = _that_posts(data)
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        simulated = _drawn(data, world, rng, per_slot, in_database, has_database)
        yield any(state_drift(simulated, variant) for variant in variants)


def _that_posts(data: PointData) -> PointData:
    """Give it with requests that say by their method that they write."""
    post = {"path": "/notes", "method": "POST"}
    given = data.experiment.model_dump(exclude={"load": {"paths"}}) | {"requests": [post]}
    return data.under(type(data.experiment).model_validate(given))


def _drawn(
    data: PointData,
    world: World,
    rng: np.random.Generator,
    per_slot: float,
    in_database: bool,
    has_database: bool,
) -> PointData:
    rounds, so_far = [], 0
    for place, a_round in enumerate(data.rounds):
        slots, turns, speed = list[SlotRecord](), dict[str, int](), 0.0
        starts = {variant: rng.normal(0, world.start_sd) for variant in data.experiment.variants}
        for slot in a_round.slots:
            turn = turns.get(slot.variant, 0)
            turns[slot.variant] = turn + 1
            speed += rng.normal(0, world.walk_sd)
            log = speed + starts[slot.variant] + rng.normal(0, world.machine_sd)
            log += world.over_the_run * place / max(len(data.rounds) - 1, 1)
            log += world.first_slot if turn == 0 else 0.0
            own = [exp(log + rng.normal(0, world.own_sd)) * COST_S for _ in range(2)]
            grown = turn if has_database else so_far + turn
            slots.append(_slot(slot, own, 1 + per_slot * grown, turn, in_database, has_database))
        so_far += max(turns.values())
        rounds.append(replace(a_round, slots=tuple(slots)))
    return replace(data, rounds=tuple(rounds))


def _slot(
    slot: SlotRecord,
    costs_s: list[float],
    dearer: float,
    turn: int,
    in_database: bool,
    has_database: bool,
) -> SlotRecord:
    """Give a slot in which app and database cost so much, one of them made dearer."""
    more_s = (dearer - 1) * (costs_s[0] + costs_s[1]) / 2
    app_s = (1 - DATABASE_SHARE) * costs_s[0] + (0.0 if in_database else more_s)
    database_s = DATABASE_SHARE * costs_s[1] + (more_s if in_database else 0.0)
    answered = slot.load.requests.completed + slot.load.requests.drained
    use = {"cpu_user_s": (app_s + database_s) * answered, "cpu_sys_s": 0.0, "interrupts_s": 0.0}
    servers = slot.servers.model_copy(update=use)
    readings = None
    if has_database:
        readings = _readings(slot, app_s * answered, database_s * answered, turn)
    return slot.model_copy(update={"servers": servers, "readings": readings})


def _readings(slot: SlotRecord, app_s: float, database_s: float, turn: int) -> Readings:
    before = HELD_BYTES + turn * ROWS * ROW_BYTES
    use = DatabaseUse.model_construct(
        calls=1_000,
        rows_written=ROWS,
        bytes_before=before,
        bytes_after=before + ROWS * ROW_BYTES,
        grown={"note": ROWS * ROW_BYTES},
    )
    services = {
        "app": service_use(cpu_user_s=app_s),
        "db": service_use(cpu_user_s=database_s),
    }
    update = {"services": services, "databases": {"db": use}}
    return quiet_readings(slot).model_copy(update=update)


def main(runs: int) -> None:
    """Print the table."""
    _row("machine", "rounds × slots", "no drift", *(f"{it:.0%} a slot" for it in DRIFTS))
    _row(*["---"] * (3 + len(DRIFTS)))
    for world in STEADY:
        for rounds, slots in ((6, 2), (12, 4), (20, 4)):
            shares = [
                sum(reported(world, runs, per_slot=it, rounds=rounds, slots=slots)) / runs
                for it in (0.0, *DRIFTS)
            ]
            _row(world.name, f"{rounds} × {slots}", *(f"{share:.1%}" for share in shares))


def _row(*cells: str) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
