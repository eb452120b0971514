"""Simulated pilots whose steady state is known: 20 s in windows of 50 ms.

Run as a program it prints the table of docs/validation/coverage.md:

    uv run python tests/simulations/steady.py [PILOTS]
"""

import sys
from collections.abc import Callable

import numpy as np

from webdyno.measure.pilot_looks import LOAD_START_S, LOAD_STARTS
from webdyno.statistics.interval import Logs
from webdyno.statistics.steady import Onset, Series, cycle, onset
from webdyno.statistics.steady_starts import next_step, steady_from

WINDOW_S = 0.05
WINDOWS = 400
TIME_S = np.arange(WINDOWS) * WINDOW_S
MOST_S = 3.0
"""How long a pilot of a run with the default budget looks at most after fresh starts."""

Make = Callable[[np.random.Generator], Logs]


def noise(rng: np.random.Generator) -> Logs:
    return rng.normal(0, 0.02, WINDOWS)


def remembering(rng: np.random.Generator, memory: float, windows: int = WINDOWS) -> Logs:
    """Give an AR(1) with a standard deviation of 3%."""
    shocks = rng.normal(0, 0.03 * np.sqrt(1 - memory**2), windows)
    values = np.empty(windows)
    values[0] = rng.normal(0, 0.03)
    for i in range(1, windows):
        values[i] = memory * values[i - 1] + shocks[i]
    return values


def with_stalls(rng: np.random.Generator, logs: Logs) -> Logs:
    """Let the machine stall for 20 to 47 ms in every fiftieth window."""
    stalled = rng.random(len(logs)) < 0.02
    return np.asarray(logs + stalled * np.log(1 - rng.uniform(0.4, 0.94, len(logs))))


def swing(rng: np.random.Generator, windows: int = WINDOWS) -> Logs:
    """Swing between 20 000 and 25 500/s as Apache's event MPM does, from the bottom."""
    periods_s = np.repeat(rng.uniform(0.9, 1.6, windows // 20 + 1), 20)[:windows]
    phase = -np.pi / 2 + np.cumsum(2 * np.pi * WINDOW_S / periods_s)
    return np.asarray(np.log(1 + 0.12 * np.sin(phase)) + rng.normal(0, 0.01, windows))


def in_bursts(rng: np.random.Generator, windows: int = WINDOWS, window_s: float = WINDOW_S) -> Logs:
    """Let a program on the server's only CPU work for 10 to 50 ms, again and again.

    The scheduler gives each of them half of the CPU meanwhile: short windows lose nothing, or much.
    """
    steps = 100  # of each window
    busy, at = np.zeros(windows * steps), 0
    while at < len(busy):
        at += int(rng.uniform(0.03, 0.15) / window_s * steps)
        lasts = int(rng.uniform(0.01, 0.05) / window_s * steps)
        busy[at : at + lasts] = 1
        at += lasts
    left = 1 - busy.reshape(windows, steps).mean(axis=1) / 2
    return np.asarray(np.log(left) + rng.normal(0, 0.004, windows))


SLOW_START = np.log(1 - 0.4 * np.exp(-TIME_S))
PREFORK = np.log(np.clip(2 ** np.floor(TIME_S) / 8, 0.125, 1))

STEADY: dict[str, tuple[Make, float, float]] = {
    "level from the beginning": (noise, 0, 0.4),
    "stalls of the machine": (lambda rng: with_stalls(rng, noise(rng)), 0, 0.4),
    "a memory of 0.1 s": (lambda rng: remembering(rng, 0.7), 0, 0.5),
    "a neighbor in bursts": (in_bursts, 0, 0.4),
    "a ramp": (lambda rng: noise(rng) + SLOW_START, 2.4, 5.5),
    "a ramp with stalls": (lambda rng: with_stalls(rng, noise(rng) + SLOW_START), 2.4, 5.5),
    "prefork's doubling": (lambda rng: noise(rng) + PREFORK, 2.95, 3.2),
    "a JIT that steps up": (lambda rng: noise(rng) + np.where(TIME_S < 6, -0.8, 0), 5.9, 6.2),
    "the same beside bursts": (lambda rng: in_bursts(rng) + np.where(TIME_S < 6, -0.8, 0), 5.9, 7),
    "a small step": (lambda rng: noise(rng) + np.where(TIME_S < 6, -0.05, 0), 5.8, 6.3),
    "a swing": (swing, 0, 1.8),
    "a swing after a ramp": (lambda rng: swing(rng) + SLOW_START, 1.1, 5.5),
}
"""By name: the throughput, and between which times its onset has to be found."""

NOT_STEADY: dict[str, Make] = {
    "a JIT that steps up near the end": lambda rng: noise(rng) + np.where(TIME_S < 17, -0.8, 0),
    "a drift of a tenth": lambda rng: noise(rng) + 0.1 * TIME_S / 20,
    "a drift with stalls": lambda rng: with_stalls(rng, noise(rng) + 0.1 * TIME_S / 20),
    "a drift of a fifth": lambda rng: noise(rng) + 0.2 * TIME_S / 20,
}


def mser5(series: Series) -> Onset:
    """Cut where MSER-5 does; steady when that lies in the first half (White 1997)."""
    batches = series.logs[: len(series.logs) // 5 * 5].reshape(-1, 5).mean(axis=1)
    n = len(batches)
    cut = int(np.argmin([batches[at:].var() / (n - at) for at in range(n - 2)]))
    return Onset(cut * 5 * series.window_s, steady=cut < n // 2, why="")


def next_to_neighbors(rng: np.random.Generator, windows: int = WINDOWS) -> Logs:
    """Let other programs take 5 to 30% of the throughput for half a second, every second or so."""
    taken, at = np.zeros(windows), 0
    while at < windows:
        at += 1 + int(rng.exponential(0.7) / WINDOW_S)
        lasts = 1 + int(rng.exponential(0.5) / WINDOW_S)
        taken[at : at + lasts] = rng.uniform(0.05, 0.3)
        at += lasts
    return np.asarray(rng.normal(0, 0.05, windows) + np.log(1 - taken))


def swinging(rng: np.random.Generator, windows: int = WINDOWS) -> Logs:
    """Swing by 13% with an autocorrelation time of 0.6 s, as Apache's event MPM does at times."""
    return remembering(rng, 0.85, windows) * 13 / 3


def looked_at(make: Make, rng: np.random.Generator, first_s: float, starts: int) -> Onset:
    """Look at so many fresh starts at most, each for `first_s`, or up to `MOST_S` in all."""
    seen, load_starts = list[list[Series]](), list[list[Series]]()
    begun = round(LOAD_START_S / WINDOW_S)
    for left in reversed(range(starts)):
        logs = make(rng)
        before = sum(len(each[0].logs) for each in seen)
        most = max(round(MOST_S / WINDOW_S) - before, round(first_s / WINDOW_S))
        looked = round(first_s / WINDOW_S)
        seen.append([])
        while True:
            seen[-1] = [Series(WINDOW_S, logs[:looked])]
            load_starts = [
                [Series(WINDOW_S, logs[looked + start * begun :][:begun])]
                for start in range(LOAD_STARTS)
            ]
            step = next_step(seen, load_starts, is_last_start=not left)
            if step != "longer" or looked >= most:
                break
            looked = min(2 * (looked + LOAD_STARTS * begun), most)
        if step != "again":
            break
    return steady_from(seen, load_starts)[0]


def print_starts(pilots: int) -> None:
    """Print what several short looks find next to neighbours, and what one long one does."""
    longest_s = 3.0
    for name, make in {
        "beside neighbors": next_to_neighbors,
        "beside bursts": in_bursts,
        "swinging slowly": swinging,
        "the same with a ramp": lambda rng: next_to_neighbors(rng) + SLOW_START,
        "the same with a step at 0.8 s": lambda rng: (
            next_to_neighbors(rng) + np.where(TIME_S < 0.8, -0.8, 0)
        ),
    }.items():
        for first_s, starts in ((1.0, 1), (1.0, 2), (1.0, 3), (0.6, 3)):
            rng = np.random.default_rng(0)
            found = [looked_at(make, rng, first_s, starts) for _ in range(pilots)]
            warmup_s = np.mean([it.at_s if it.steady else longest_s for it in found])
            print(  # noqa: T201
                f"{name:32} {starts} x {first_s} s: {warmup_s:.2f} s, "
                f"not steady {np.mean([not it.steady for it in found]):.1%}",
                flush=True,
            )


def main() -> None:
    """Print how often each way finds the truth."""
    pilots = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    rules: dict[str, Callable[[Series], Onset]] = {
        "change points": onset,
        "MSER-5": mser5,
        "MSER-5, cleaned": lambda series: mser5(series.without_outliers()),
    }
    print(f"{pilots} pilots each; valid responses by", *rules, sep="  ")  # noqa: T201
    for name in (*STEADY, *NOT_STEADY):
        make = STEADY[name][0] if name in STEADY else NOT_STEADY[name]
        shares = []
        for rule in rules.values():
            rng = np.random.default_rng(0)
            found = [rule(Series(WINDOW_S, make(rng))) for _ in range(pilots)]
            shares.append(sum(right(name, it) for it in found) / pilots)
        print(f"{name:34}", *(f"{share:6.1%}" for share in shares), flush=True)  # noqa: T201
    for memory in (0.0, 0.5, 0.7, 0.9):
        rng = np.random.default_rng(0)
        logs = [remembering(rng, memory) for _ in range(pilots)]
        steady = sum(onset(Series(WINDOW_S, each)).steady for each in logs) / pilots
        cycles = sum(cycle(Series(WINDOW_S, each)) is not None for each in logs) / pilots
        print(f"memory {memory}: steady {steady:.1%}, cycles found {cycles:.1%}")  # noqa: T201
    print_starts(pilots)


def right(name: str, found: Onset) -> bool:
    """Whether a response is right in the world of this name."""
    if name in NOT_STEADY:
        return not found.steady
    _, earliest_s, latest_s = STEADY[name]
    return found.steady and earliest_s <= found.at_s <= latest_s


if __name__ == "__main__":
    main()
