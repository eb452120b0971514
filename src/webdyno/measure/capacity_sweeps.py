"""Sweeps next to capacities: latency by arrival rate, throughput by connections."""

from collections.abc import Iterable, Iterator, Sequence

from webdyno.core.experiment import Experiment
from webdyno.core.run import SWEEPS

SWEEP_SHARES = (0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.2)
"""Rates around a capacity, as shares of it."""
LEAST_RATIO = 1.05
"""Least ratio between two rates of a sweep: closer ones show nothing new."""
CONNECTIONS_FACTOR = 8
"""Factor from one number of connections to the next."""


def capacity_sweeps(
    experiment: Experiment, capacities_rps: Iterable[float]
) -> Iterator[tuple[str, Experiment]]:
    """Return the sweeps next to a search that found these capacities, each with its folder.

    None where none was requested; without a capacity there are no rates to go to.
    """
    asked = experiment.capacity
    if asked is None or asked.sweep_s is None:
        return
    each_s = asked.sweep_s / len(SWEEPS)
    if rates := rates_around(capacities_rps):
        load = experiment.load.replace(**asked.of_load, rate_per_s=rates[0])
        there = experiment.replace(load=load)
        yield (
            "rates",
            _with_factor(there, "rates", "load.rate_per_s", rates, "latency_p99_us", each_s),
        )
    numbers = connections_up_to(experiment.load.connections)
    yield (
        "connections",
        _with_factor(
            experiment, "connections", "load.connections", numbers, "throughput_rps", each_s
        ),
    )


def _with_factor(
    experiment: Experiment,
    name: str,
    factor: str,
    levels: Sequence[float],
    decide_on: str,
    budget_s: float,
) -> Experiment:
    swept = experiment.replace(
        title=f"{experiment.title}: {SWEEPS[name]}",
        asks=experiment.asks.without_claim,
        capacity=None,
        factors={factor: [*levels]},
    )
    return swept.with_measure(decide_on=decide_on, budget_s=budget_s, patience=1.0)


def rates_around(capacities_rps: Iterable[float]) -> list[float]:
    """Return rates around each of some capacities, three digits each; none too near to another."""
    wanted = sorted(float(f"{rps * share:.3g}") for rps in capacities_rps for share in SWEEP_SHARES)
    kept: list[float] = []
    for rate in wanted:
        if not kept or rate > LEAST_RATIO * kept[-1]:
            kept.append(rate)
    return kept


def connections_up_to(most: int) -> list[int]:
    """Return 1, 8, 64 and so on, and the most."""
    numbers = [1]
    while numbers[-1] * CONNECTIONS_FACTOR < most:
        numbers.append(numbers[-1] * CONNECTIONS_FACTOR)
    return sorted({*numbers, most})
