"""Simulated searches for the capacity: planted trials."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import exp
from random import Random

from builders import START, SimulatedRun, load_result, run_head, server_use
from webdyno.core.capacity import Purpose, Trial
from webdyno.core.experiment import Experiment
from webdyno.core.load_result import Connections, KeepAliveResult, Times
from webdyno.core.measure import Measure
from webdyno.core.objectives import objective
from webdyno.core.records import Record, RoundRecord, SlotRecord

ROUNDS, TRIAL_S, OVERLOAD_S = 8, 4.0, 2.0
STEPS = (0.7, 0.9, 0.97, 1.03, 1.1, 1.3)
"""Rates that are tried, in capacities."""


@dataclass(frozen=True)
class Variant:
    """How a variant behaves saturated."""

    capacity_rps: float
    client_rps: float = 1e9
    comes_back: bool = True
    holds: bool = True
    server_closes: bool = False
    stalls: bool = False
    """Whether stalls make its trials fail."""
    dies: bool = False
    """Whether it ends in trials that fail, and in overloads."""
    beyond: float | None = None
    """Its goodput at any overload, as a share of its capacity; None where none is tried."""
    back_s: float | None = 0.3
    """How long it takes to come back from one; None for longer than that is awaited."""
    latency_us: float = 500.0
    """Mean time of a response."""
    probed: Callable[[SlotRecord], SlotRecord] | None = None
    """Gives a slot what the probes read."""


def searched(*, slo: Sequence[str] = ("p99<50ms",), **variants: Variant) -> SimulatedRun:
    """A run in whose rounds a trial passes below the capacity and fails above it.

    What fails is beyond the first objective.
    """
    head = run_head(dict.fromkeys([*variants, "excluded"], "nginx"), measure=Measure(seed=1))
    settings = head.experiment.model_dump(exclude_unset=True)
    del settings["variants"]["excluded"]  # without a search two variants are the fewest
    asked = {"capacity": {"slo": list(slo)}, "measure": {"seed": 1}}
    experiment = Experiment.model_validate(settings | asked)
    random, records = Random(1), list[Record]()
    for round_number in range(1, ROUNDS + 1):
        order: list[str] = []
        took_s = 60.0 + 8.0 * sum(variant.beyond is not None for variant in variants.values())
        for name, variant in variants.items():
            limit_rps = min(variant.capacity_rps, variant.client_rps) * exp(random.gauss(0, 0.02))
            tried: list[tuple[float, Purpose]] = [(limit_rps * step, "search") for step in STEPS]
            tried.append((limit_rps * STEPS[0], "recovery"))
            for rate_rps, purpose in tried:
                late = rate_rps > limit_rps or not variant.holds
                late = late or (purpose == "recovery" and not variant.comes_back)
                due = round(rate_rps * TRIAL_S)
                trial = Trial(
                    purpose=purpose,
                    rate_rps=rate_rps,
                    length_s=TRIAL_S,
                    asked=due,
                    beyond=[due if late else 0, *[0] * (len(slo) - 1)],
                    allowed=[objective(it).allowed for it in slo],
                    within_s=[objective(it).within_s for it in slo],
                    client_limited=rate_rps > variant.client_rps,
                    stalled_s=0.2 if late and variant.stalls else 0.0,
                    died=f"{name} ended with exit code 137" if late and variant.dies else "",
                )
                records.append(slot(round_number, len(order), name, trial, variant))
                order.append(name)
            if variant.beyond is not None:
                times = (1.2, 2.0)[(round_number - 1) % 2]
                for trial in overload(limit_rps, times, variant, slo):
                    records.append(slot(round_number, len(order), name, trial, variant))
                    order.append(name)
        records.append(
            RoundRecord(
                round=round_number, order=order, started_at=START, took_s=took_s, ready_s={}
            )
        )
    return SimulatedRun(head.model_copy(update={"experiment": experiment}), records)


def overload(
    capacity_rps: float, times: float, variant: Variant, slo: Sequence[str]
) -> Iterator[Trial]:
    """A multiple of the capacity, then half of it."""
    due = round(times * capacity_rps * OVERLOAD_S)
    good = round((variant.beyond or 0.0) * capacity_rps * OVERLOAD_S)
    over = Trial(
        purpose="overload",
        rate_rps=times * capacity_rps,
        length_s=OVERLOAD_S,
        asked=due,
        beyond=[due - good, *[0] * (len(slo) - 1)],
        allowed=[objective(it).allowed for it in slo],
        within_s=[objective(it).within_s for it in slo],
        times=times,
        died="it ended with exit code 137" if variant.dies else "",
    )
    yield over
    if variant.dies:
        return
    yield over.replace(
        purpose="return",
        rate_rps=capacity_rps / 2,
        asked=round(capacity_rps / 2 * OVERLOAD_S),
        beyond=[0] * len(slo),
        back_s=variant.back_s,
    )


def slot(round_number: int, position: int, name: str, trial: Trial, variant: Variant) -> SlotRecord:
    """The record of a trial."""
    load = load_result(duration_s=trial.length_s)
    answered = load.requests.model_copy(update={"completed": trial.asked})
    update = {
        "loop": "open",
        "requests": answered,
        "service_time_us": Times(mean=variant.latency_us),
    }
    load = load.model_copy(update=update)
    if variant.server_closes:
        closed = load.requests.completed
        load = load.model_copy(
            update={
                "keepalive": KeepAliveResult(requested="always", server_closed=closed),
                "connections": Connections(opened=closed, reused_requests=0),
            }
        )
    found = SlotRecord(
        round=round_number,
        slot=position,
        variant=name,
        phase="trial",
        started_at=START,
        load=load,
        trial=trial,
        servers=server_use(1.0),
    )
    return variant.probed(found) if variant.probed else found
