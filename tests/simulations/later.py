"""Simulated long looks: how often something is seen that isn't there, and what is there.

Responses of windows come in bursts, or are few; noise remembers; a neighbour takes 30 to 70% of
the servers' CPUs for 0.2 to 3 s, which steal and run queues show as a probe would see it; memory
grows to a plateau, or with the logarithm of time. Run as a program it prints the table of
docs/validation/coverage.md:

    cd tests && PYTHONPATH=.:../bench uv run python simulations/later.py [LOOKS]
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from builders import START, latencies, load_result, server_use
from rig.shares import share_words
from webdyno.core.looks import LongLook, ServerSample
from webdyno.core.records import LongLookRecord
from webdyno.evidence.long_look import look_at
from webdyno.statistics.interval import Logs

WINDOW_S, LOOK_S = 0.025, 10.0
STEPS = 5
"""Moments of a window, at which a server has its CPU or not."""
START_MEMORY, PAGE_BYTES = 50e6, 4096
MEMORY_EVERY = 10
"""Windows from one reading of the memory to the next."""

Memory = Literal["level", "plateau", "logarithm", "collected"]


@dataclass(frozen=True)
class Server:
    """A server's truth, and that of its neighbours."""

    throughput_rps: float = 10_000.0
    latency_us: float = 1_500.0
    burst: float = 1.0
    """Responses that come together: so many times the variance of a Poisson count."""
    noise: float = 0.05
    """Standard deviation of ln(throughput) of a window,"""
    memory_s: float = 0.0
    """and how long it remembers."""
    neighbour: Literal["", "steal", "programs"] = ""
    memory: Memory = "level"
    stall_s: float = 0.0
    every_s: float = 1.0
    stall_level: float = 0.0
    """Share of the usual throughput that is left in a stall."""
    drifts_to: float = 1.0
    """Factor of throughput, and of CPU per request the inverse, in the second half."""
    leak_bytes: float = 0.0
    """Of a request."""
    looked_s: float = LOOK_S


STEADY = {
    "steady": Server(),
    "in bursts": Server(burst=20.0),
    "in large bursts": Server(throughput_rps=2_000, latency_us=32_000, burst=20.0),
    "few responses": Server(throughput_rps=60, latency_us=200_000),
    "very few responses": Server(throughput_rps=10, latency_us=1_000_000),
    "noise that remembers 0.1 s": Server(noise=0.1, memory_s=0.1),
    "noise that remembers 0.5 s": Server(noise=0.1, memory_s=0.5),
    "noise that remembers 2 s": Server(noise=0.05, memory_s=2.0),
    "beside a neighbor (steal)": Server(neighbour="steal"),
    "beside a neighbor (programs)": Server(neighbour="programs"),
    "few responses beside a neighbor": Server(
        throughput_rps=60, latency_us=200_000, neighbour="programs"
    ),
    "memory to a plateau": Server(memory="plateau"),
    "memory like a logarithm": Server(memory="logarithm"),
    "memory that is collected": Server(memory="collected"),
}
THERE = {
    "stalls of 50 ms every 2 s": Server(stall_s=0.05, every_s=2.0),
    "stalls of 1 s every 6 s": Server(stall_s=1.0, every_s=6.0, looked_s=27.0),
    "a second at 40% every 6 s": Server(stall_s=1.0, every_s=6.0, stall_level=0.4, looked_s=27.0),
    "drift of 10%": Server(drifts_to=0.9),
    "leak of 10 kB a request": Server(leak_bytes=10_000),
    "leak of 10 kB, 100 req/s": Server(throughput_rps=100, leak_bytes=10_000),
    "stalls of 1 s beside a neighbor": Server(
        stall_s=1.0, every_s=6.0, looked_s=27.0, neighbour="programs"
    ),
    "a second at 40% every 6 s beside a neighbor": Server(
        stall_s=1.0, every_s=6.0, stall_level=0.4, looked_s=27.0, neighbour="programs"
    ),
    "drift of 10% beside a neighbor": Server(drifts_to=0.9, neighbour="programs"),
    "leak of 10 kB beside a neighbor": Server(leak_bytes=10_000, neighbour="programs"),
}


def looks(server: Server, how_many: int, seed: int = 0) -> Iterator[LongLook]:
    """Look at servers of one kind."""
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        yield look_at(_record(server, rng))


def seen(look: LongLook) -> set[str]:
    """Name what a look says of the servers."""
    found = {"stalls"} if look.stalls else set()
    found |= {"slow"} if look.slow else set()
    found |= {"drift"} if look.drifts else set()
    return found | ({"growth"} if look.growth else set())


def shares(server: Server, how_many: int, seed: int = 0) -> dict[str, float]:
    """Give by warning in which share of looks it is made."""
    found = [seen(look) for look in looks(server, how_many, seed)]
    kinds = ("stalls", "slow", "drift", "growth")
    return {kind: sum(kind in it for it in found) / how_many for kind in kinds}


def _record(server: Server, rng: np.random.Generator) -> LongLookRecord:
    windows = round(server.looked_s / WINDOW_S)
    taken = _taken(server, windows, rng)
    stalled = _stalled(server, windows, rng)
    at_s: Logs = np.asarray((np.arange(windows) + 1) * WINDOW_S, dtype=np.float64)
    level = np.where(at_s <= server.looked_s / 2, 1.0, server.drifts_to)
    able = (1 - taken) * (1 - stalled)
    expected = (
        server.throughput_rps * WINDOW_S * level * np.exp(_noise(server, windows, rng)) * able
    )
    responses = np.round(rng.poisson(expected / server.burst) * server.burst).astype(int)
    total = max(int(responses.sum()), 1)
    load = load_result(duration_s=server.looked_s)
    # Quantiles of a few hundred times are as good, and are drawn once.
    times = latencies(300, server.latency_us, 0.3)
    return LongLookRecord(
        variant="nginx",
        started_at=START,
        took_s=server.looked_s,
        window_s=WINDOW_S,
        responses=responses.tolist(),
        samples=list(_samples(server, able, taken, at_s, rng)),
        server_cpus=1,
        load=load.model_copy(update={"latency_us": times, "service_time_us": times}),
        servers=server_use(total * 20e-6),
    )


def _noise(server: Server, windows: int, rng: np.random.Generator) -> Logs:
    if not server.memory_s:
        return rng.normal(0, server.noise, windows)
    kept = np.exp(-WINDOW_S / server.memory_s)
    shocks = rng.normal(0, server.noise * np.sqrt(1 - kept**2), windows)
    values = np.empty(windows)
    values[0] = rng.normal(0, server.noise)
    for n in range(1, windows):
        values[n] = kept * values[n - 1] + shocks[n]
    return values


def _taken(server: Server, windows: int, rng: np.random.Generator) -> Logs:
    """Give the share of each window that a neighbour takes, in time slices of some milliseconds."""
    taken = np.zeros(windows * STEPS)
    step_s, at_s = WINDOW_S / STEPS, rng.exponential(2.0)
    while server.neighbour and at_s < server.looked_s:
        lasts_s, share = rng.uniform(0.2, 3.0), rng.uniform(0.3, 0.7)
        span = slice(int(at_s / step_s), int((at_s + lasts_s) / step_s))
        taken[span] = rng.random(len(taken[span])) < share
        at_s += lasts_s + rng.exponential(2.0)
    return np.asarray(taken.reshape(windows, STEPS).mean(axis=1))


def _stalled(server: Server, windows: int, rng: np.random.Generator) -> Logs:
    begin_s = np.arange(windows) * WINDOW_S
    stalled = np.zeros(windows)
    at_s = rng.uniform(0, server.every_s) if server.stall_s else np.inf
    while at_s < server.looked_s:
        overlap_s = np.minimum(begin_s + WINDOW_S, at_s + server.stall_s) - np.maximum(
            begin_s, at_s
        )
        stalled += np.clip(overlap_s, 0, None) / WINDOW_S
        at_s += server.every_s
    return np.clip(stalled, 0, 1) * (1 - server.stall_level)


def _samples(
    server: Server, worked: Logs, taken: Logs, at_s: Logs, rng: np.random.Generator
) -> Iterator[ServerSample]:
    """Give what a probe reads at the end of each window; a CPU that is there is worked on."""
    cpu_s = np.cumsum(worked * (1 + rng.normal(0, 0.02, len(worked)))) * WINDOW_S
    gone_s = np.cumsum(taken) * WINDOW_S
    by_programs, stolen = server.neighbour == "programs", server.neighbour == "steal"
    held = _held(server, at_s, rng)
    for n, moment_s in enumerate(at_s):
        yield ServerSample(
            at_s=float(moment_s),
            cpu_s=float(cpu_s[n]),
            busy_s=float(cpu_s[n] + (gone_s[n] if by_programs else 0.0)),
            stolen_s=float(gone_s[n]) if stolen else 0.0,
            waited_s=float(gone_s[n]) if by_programs else 0.0,
            memory_bytes=int(held[n]) if n % MEMORY_EVERY == 0 else None,
        )


def _held(server: Server, at_s: Logs, rng: np.random.Generator) -> Logs:
    """Give resident memory: pages come and go, and what the server itself takes."""
    pages = np.abs(rng.normal(0, 10, len(at_s))) * PAGE_BYTES
    size, pace_s = rng.uniform(1e6, 50e6), rng.uniform(0.3, 4.0)
    grown = {
        "level": 0.0 * at_s,
        "plateau": size * (1 - np.exp(-at_s / pace_s)),
        # A heap takes arenas of 256 KB as it fills its plateau, and seldom more later.
        "logarithm": np.floor(size * np.log1p(at_s / pace_s) / 10 / 262_144) * 262_144,
        "collected": size * (np.cumsum(rng.lognormal(0, 0.5, len(at_s))) * WINDOW_S / pace_s % 1.0),
    }[server.memory]
    leaked = server.leak_bytes * server.throughput_rps * at_s
    return np.asarray(START_MEMORY + pages + grown + leaked)


def main() -> None:
    """Print how often what is seen."""
    how_many = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print("| server | stalls | slow stretches | drift | memory growth |")  # noqa: T201
    print("| --- | --- | --- | --- | --- |")  # noqa: T201
    for name, server in (STEADY | THERE).items():
        cells = [
            share_words(round(it * how_many), how_many) for it in shares(server, how_many).values()
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
