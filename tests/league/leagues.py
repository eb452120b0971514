"""Leagues for tests: simulated rankings of stacks whose true throughput is known."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from itertools import count
from pathlib import Path

from builders import START, SimulatedRun, SimulatedVariant, simulated_run, with_completed
from webdyno.core.load import Load
from webdyno.core.records import Record, SlotRecord, StopReason, StopRecord
from webdyno.core.testbed import Machine
from webdyno.league.judged import JudgedRun
from webdyno.league.records import machine_folder
from webdyno.league.task import task_of
from webdyno.questions.ranking.settings import RankingSettings

RATES = {
    "actix-web": 90_000.0,
    "axum": 80_000.0,
    "go-chi": 60_000.0,
    "go-nethttp": 60_000.0,
    "bun": 50_000.0,
    "fastify": 30_000.0,
    "express": 15_000.0,
    "gunicorn-flask": 5_000.0,
}
"""Throughput by stack; two are equal."""
ROUNDS = 18
FIRST = ("actix-web", "go-chi", "fastify", "express")
SECOND = ("go-chi", "fastify", "axum", "bun")
THIRD = ("go-chi", "fastify", "go-nethttp", "gunicorn-flask")


def run_of(
    stacks: Sequence[str],
    *,
    seed: int = 1,
    together: int = 6,
    drift: float = 1.0,
    rates: Mapping[str, float] = RATES,
    rounds: int = ROUNDS,
    at_clients_limit: Collection[str] = (),
) -> SimulatedRun:
    """A ranking; on that day all are so many times as fast."""
    variants = {
        name: SimulatedVariant(
            stack=name,
            throughput_rps=rates[name] * drift,
            server_cpu_us=1e6 / (rates[name] * drift),
            busy=0.97 if name in at_clients_limit else SimulatedVariant.busy,
        )
        for name in stacks
    }
    run = simulated_run(variants, rounds=rounds, seed=seed)
    return run.asking(RankingSettings(together=together))


def with_cold(run: SimulatedRun, stack: str, by_slot: float) -> SimulatedRun:
    """The same run; one stack gets so much faster with each of a round's slots."""
    records = [
        warming_up(record, by_slot)
        if isinstance(record, SlotRecord) and record.variant == stack
        else record
        for record in run.records
    ]
    return SimulatedRun(run.head, records)


def warming_up(slot: SlotRecord, by_slot: float) -> SlotRecord:
    return with_completed(slot, slot.load.requests.completed * (1 + by_slot * slot.slot))


def with_bursts(
    run: SimulatedRun,
    stack: str,
    rates: Callable[[int], Sequence[float]],
    *,
    by_pilot: bool = False,
) -> SimulatedRun:
    """The same run; one stack's warm-ups come in bursts of such throughput, by round."""
    records: list[Record] = []
    numbers = count()
    for record in run.records:
        if not isinstance(record, SlotRecord):
            records.append(record)
            numbers = count()
        elif record.phase == "warmup" and record.variant == stack:
            for rate in rates(record.round):
                burst = record.replace(slot=next(numbers))
                records.append(with_completed(burst, rate * burst.load.measured_s))
        else:
            records.append(record.replace(slot=next(numbers)))
    if by_pilot:
        return SimulatedRun(run.head, records)
    return with_variant(SimulatedRun(run.head, records), stack, warmup_s=10.0, warmup_bursts="on")


def with_variant(run: SimulatedRun, stack: str, **changes: object) -> SimulatedRun:
    """The same run; something else is on record as set of a stack."""
    experiment = run.head.experiment
    changed = experiment.variants | {stack: experiment.variants[stack].replace(**changes)}
    experiment = experiment.replace(variants=changed)
    return SimulatedRun(run.head.replace(experiment=experiment), run.records)


def judged(*runs: SimulatedRun) -> list[JudgedRun]:
    return [JudgedRun(run.data) for run in runs]


def three_runs(drift: float = 1.0) -> list[JudgedRun]:
    """Three runs with two anchors, the newest first."""
    runs = (run_of(THIRD, seed=3), run_of(SECOND, seed=2, drift=drift), run_of(FIRST, seed=1))
    return judged(*runs)


def store(
    folder: Path,
    run: SimulatedRun,
    *,
    site: str = "fortunes",
    days: int = 0,
    rate_rps: float | None = None,
    machine: Machine | None = None,
    is_over: bool = True,
    reason: StopReason = "max-rounds",
) -> Path:
    """Write a run to where a league keeps it."""
    load = Load(paths=[f"/{site}"])
    if rate_rps is not None:
        load = load.replace(loop="open", rate_per_s=rate_rps)
    experiment = run.head.experiment.replace(site=site, load=load)
    began = START + timedelta(days=days)
    head = run.head.replace(
        experiment=experiment, started_at=began, machine=machine or run.head.machine
    )
    why = "every rank is settled"
    ended = [StopRecord(round=ROUNDS, stopped_at=began, reason=reason, why=why)] * is_over
    place = folder / machine_folder(head.machine) / task_of(experiment).name
    return SimulatedRun(head, [*run.records, *ended]).stored(place / f"{began:%Y-%m-%d-%H%M%S}")


def stored_league(folder: Path) -> Path:
    """A league of three runs of one site at full speed, and of two at a rate."""
    for days, stacks in enumerate((FIRST, SECOND, THIRD)):
        store(folder, run_of(stacks, seed=days + 1), days=days)
    store(folder, run_of((*FIRST, "axum"), seed=4, together=1), rate_rps=200.0, days=3)
    return folder
