"""Runs of experiments with factors."""

from collections.abc import Sequence
from functools import cache
from itertools import product

from builders import SimulatedRun, SimulatedVariant, simulated_run
from evidence.rates import at_rate, instructions
from report.comparisons import APACHE, NGINX, with_readings
from report.questions import GRANIAN
from webdyno.core.experiment import Level
from webdyno.core.records import Record

MARKUP = ("[red]hot[/red]", "[/]", "[link=x]y")
"""What rich would take for styles, or raise an error about."""


@cache
def hostile_markup() -> SimulatedRun:
    """A title, a variant, levels and a server's error that mean something in a terminal."""
    title, variant, level = MARKUP
    gone = SimulatedVariant(wrong_status=500, body=b"[/bold]")
    run = simulated_run({"nginx": NGINX, variant: gone}, rounds=6, title=title)
    paths: list[Level] = [["/a.txt"], [f"/{level}.txt"]]
    experiment = run.head.experiment.model_copy(update={"factors": {"load.paths": paths}})
    records = [
        record.model_copy(update={"point": point}) for point in (0, 1) for record in run.records
    ]
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), records)


@cache
def rates() -> SimulatedRun:
    """What two servers cost at two arrival rates, one of which is too high for one of them."""
    records: list[Record] = []
    for number, rate_rps in enumerate((500, 5_000)):
        weak = SimulatedVariant(throughput_rps=2_800, server_cpu_us=340.0, latency_p50_us=420.0)
        run = at_rate(rate_rps, {"uvicorn": weak, "granian": GRANIAN}, rounds=6)
        first = instructions("uvicorn", fault="this machine has no counters")
        records += [record.replace(point=number) for record in [first, *run.records]]
    experiment = run.head.experiment.replace(factors={"load.rate_per_s": [500, 5_000]})
    return SimulatedRun(run.head.replace(experiment=experiment), records)


def sweep(
    factors: dict[str, list[Level]], *, probes: bool = True, restart_sd: float = 0.02
) -> SimulatedRun:
    """Variants that react to their point: nginx gains most at many connections."""
    records: list[Record] = []
    combinations = list(product(*factors.values()))
    for number, levels in enumerate(combinations):
        run = simulated_run(_variants_at(levels), rounds=6, restart_sd=restart_sd, seed=number)
        for record in run.records:
            there = record.model_copy(update={"point": number})
            records.append(with_readings(there) if probes else there)
    experiment = run.head.experiment.model_copy(update={"factors": factors})
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), records)


def _variants_at(levels: Sequence[Level]) -> dict[str, SimulatedVariant]:
    number = levels[0] if isinstance(levels[0], int) else 64
    kept = 0.25 if "never" in levels else 1.0
    grown = number / (number + 6)
    return {
        "apache-event": SimulatedVariant(
            stack="apache-event",
            throughput_rps=46_000 * grown * kept,
            server_cpu_us=26 / kept,
            latency_p50_us=1e6 * number / (46_000 * grown * kept),
        ),
        "nginx": SimulatedVariant(
            throughput_rps=82_000 * grown**1.4 * kept,
            server_cpu_us=(11 + 12 / number) / kept,
            latency_p50_us=1e6 * number / (82_000 * grown**1.4 * kept),
        ),
    }


@cache
def connections() -> SimulatedRun:
    """One factor in powers."""
    return sweep({"load.connections": [1, 4, 16, 64, 256]})


@cache
def two_factors() -> SimulatedRun:
    """A number and a choice."""
    return sweep({"load.connections": [1, 8, 64], "load.keepalive": ["always", "never"]})


@cache
def names() -> SimulatedRun:
    """A factor whose levels are words, another of switches."""
    return sweep(
        {"load.keepalive": ["always", "never"], "variants.nginx.settings.sendfile": [True, False]},
        probes=False,
    )


@cache
def broken_point() -> SimulatedRun:
    """A sweep that was stopped in its second point, with wrong responses at the first."""
    run = two_factors()
    wrong = SimulatedVariant(stack="nginx", wrong_status=404, body=b"<title>Not Found</title>")
    first = simulated_run({"apache-event": APACHE, "nginx": wrong}, rounds=6).records
    second = [record for record in run.records if record.point == 1]
    return SimulatedRun(run.head, [*first, *second[:-1]])


SWEEPS = (connections, two_factors, names, rates, broken_point, hostile_markup)
"""Runs of experiments with factors."""
