"""Simulated runs at a given arrival rate, of variants whose costs and latency are known."""

from collections.abc import Mapping
from dataclasses import replace

from builders import START, SimulatedRun, SimulatedVariant, simulated_run
from webdyno.core.load import Load
from webdyno.core.measure import Measure
from webdyno.core.metrics import CPU_TIME
from webdyno.core.records import InstructionsRecord, Record, RestRecord, SlotRecord

MIB = 2**20


def at_rate(
    rate_rps: float,
    variants: Mapping[str, SimulatedVariant],
    *,
    rounds: int = 8,
    noise: float = 0.01,
    seed: int = 1,
    decide_on: str = CPU_TIME,
) -> SimulatedRun:
    """Variants that are asked for so much; one that can do less answers what it can."""
    able = {
        name: replace(variant, throughput_rps=min(variant.throughput_rps, rate_rps))
        for name, variant in variants.items()
    }
    run = simulated_run(
        able,
        rounds=rounds,
        measure=Measure(seed=seed, decide_on=decide_on),
        restart_sd=noise,
        slot_sd=noise,
        seed=seed,
        title="What does it cost?",
    )
    load = Load(paths=["/hello.txt"], loop="open", rate_per_s=rate_rps)
    head = run.head.replace(experiment=run.head.experiment.replace(load=load))
    return SimulatedRun(head, [_in_open_loop(record, rate_rps) for record in run.records])


def _in_open_loop(record: Record, rate_rps: float) -> Record:
    """All that was sent was answered in the window."""
    if not isinstance(record, SlotRecord):
        return record
    answered = record.load.requests.completed
    requests = record.load.requests.replace(sent=answered, unanswered=0, drained=0)
    load = record.load.replace(loop="open", offered_rps=rate_rps, requests=requests)
    return record.replace(load=load)


def rest(variant: str, round_number: int = 0, **known: float | None) -> RestRecord:
    """A second of rest: 10 wake-ups, a millisecond of CPU time, 20 MiB, 2 KiB a connection."""
    usual: dict[str, object] = {
        "cpu_s": 0.001,
        "wake_ups": 10,
        "memory_bytes": 20 * MIB,
        "held": 250,
        "memory_with_held_bytes": 20 * MIB + 250 * 2_048,
    }
    return RestRecord.model_validate(
        {
            "round": round_number,
            "variant": variant,
            "started_at": START,
            "rested_s": 1.0,
            **usual,
            **known,
        }
    )


def instructions(
    variant: str, round_number: int = 0, *, each: int = 400_000, fault: str = ""
) -> InstructionsRecord:
    """A slot of 300 responses in which they were counted, or weren't for some fault."""
    known = InstructionsRecord(round=round_number, variant=variant, started_at=START, fault=fault)
    return known if fault else known.replace(instructions=300 * each, responses=300)
