"""Long looks made up for tests: the truth is known, and what was seen of it is drawn."""

from dataclasses import dataclass, field

import numpy as np

from builders import START, latencies, load_result, server_use
from webdyno.core.looks import ServerSample, Stall
from webdyno.core.records import LongLookRecord

WINDOW_S = 0.025


@dataclass(frozen=True)
class Truth:
    """What a variant does under load without a break."""

    every_s: float | None = None
    """From one stall to the next; None for none."""
    stall_s: float = 0.0
    slow_level: float = 0.0
    """What of the usual throughput is left in a stall."""
    throughput_rps: float = 20_000.0
    noise: float = 0.1
    """Standard deviation of ln(throughput) of a window."""
    looked_s: float = 12.0
    drifts_to: float = 1.0
    """Factor of throughput and CPU per request in the second half."""
    leak_bytes_per_s: float = 0.0
    waited: bool = False
    """Whether other programs have the servers' CPUs in stalls."""
    stolen: bool = False
    stopped: bool = False
    client_paused: bool = False
    pages: float = field(default=0.0)
    """Standard deviation of memory, in bytes."""


def stretch(truth: Truth, variant: str = "nginx", seed: int = 0) -> LongLookRecord:
    """Draw a long look at a variant."""
    rng = np.random.default_rng(seed)
    windows = int(truth.looked_s / WINDOW_S)
    at_s = np.arange(windows) * WINDOW_S
    stalled = np.zeros(windows)
    pauses = []
    begin_s = rng.uniform(0, truth.every_s) if truth.every_s else np.inf
    while begin_s < truth.looked_s and truth.every_s:
        end_s = begin_s + truth.stall_s
        overlap_s = np.clip(end_s, at_s, at_s + WINDOW_S) - np.clip(begin_s, at_s, at_s + WINDOW_S)
        stalled += overlap_s / WINDOW_S
        pauses.append(Stall(at_s=begin_s, length_s=truth.stall_s, cause="client"))
        begin_s += truth.every_s
    level = np.where(at_s < truth.looked_s / 2, 1.0, truth.drifts_to)
    expected = truth.throughput_rps * WINDOW_S * level * np.exp(rng.normal(0, truth.noise, windows))
    responses = rng.poisson(expected * np.clip(1 - stalled * (1 - truth.slow_level), 0, 1))
    total = int(responses.sum())
    load = load_result(duration_s=truth.looked_s)
    times = latencies(total, 1_500.0, 0.3)
    return LongLookRecord(
        variant=variant,
        started_at=START,
        took_s=truth.looked_s,
        window_s=WINDOW_S,
        responses=responses.tolist(),
        client_pauses=pauses if truth.client_paused else [],
        samples=_samples(truth, stalled, rng),
        server_cpus=1,
        load=load.model_copy(update={"latency_us": times}),
        servers=server_use(total * 20e-6),
    )


def _samples(truth: Truth, stalled: np.ndarray, rng: np.random.Generator) -> list[ServerSample]:
    """Give what was read of the servers at the end of each window."""
    in_stalls_s = np.cumsum(stalled) * WINDOW_S
    at_s = (np.arange(len(stalled)) + 1) * WINDOW_S
    served_s = at_s - in_stalls_s
    # The kernel counts a wait when it ends.
    reported_s = np.maximum.accumulate(np.where(stalled > 0, 0.0, in_stalls_s))
    memory = 50e6 + truth.leak_bytes_per_s * at_s + rng.normal(0, truth.pages, len(at_s))
    return [
        ServerSample(
            at_s=float(at_s[n]),
            cpu_s=float(served_s[n]),
            busy_s=float(at_s[n] if truth.waited else served_s[n]),
            stolen_s=float(in_stalls_s[n]) if truth.stolen else 0.0,
            waited_s=float(reported_s[n]) if truth.waited else 0.0,
            stopped=bool(truth.stopped and stalled[n] > 0),
            memory_bytes=max(int(memory[n]), 0) if n % 10 == 0 else None,
        )
        for n in range(len(stalled))
    ]
