"""Soaks made up: parts of a long look whose truth is known, and how many of them are measured.

    cd tests && PYTHONPATH=. python simulations/soaks.py 200

says how often steady servers are accused by looks that may end early, and by whole ones.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import accumulate

import numpy as np

from builders import run_head
from evidence.stretches import Truth, stretch
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.records import LongLookRecord
from webdyno.evidence.long_look import look_at
from webdyno.measure.long_look import why_over

PART_S, PARTS = 4.0, 20
LOOK_S = PART_S * PARTS
BYTES = 50e6


def _soak() -> Experiment:
    measure = Measure(seed=1, soak_s=LOOK_S)
    return run_head({"nginx": "nginx", "apache": "apache-event"}, measure=measure).experiment


def soak(
    seed: int,
    *,
    part_noise: float = 0.002,
    growth: float = 0.0,
    decline: float = 0.0,
    every_s: float | None = None,
    stall_s: float = 0.0,
) -> list[LongLookRecord]:
    """Draw a look: `growth` of memory and `decline` of throughput are shares in the whole of it."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(PARTS):
        level = (1 - decline * number / PARTS) * np.exp(rng.normal(0, part_noise))
        drawn = stretch(
            Truth(
                looked_s=PART_S,
                throughput_rps=20_000 * level,
                pages=50_000.0,
                leak_bytes_per_s=BYTES * growth / LOOK_S,
                every_s=every_s,
                stall_s=stall_s,
            ),
            seed=seed * PARTS + number,
        )
        grown = round(BYTES * growth * number / PARTS)
        samples = [
            it.model_copy(update={"memory_bytes": it.memory_bytes and it.memory_bytes + grown})
            for it in drawn.samples
        ]
        update = {"part": number, "samples": samples, "ended_by": None}
        made.append(drawn.model_copy(update=update))
    return made


def until_over(parts: list[LongLookRecord]) -> list[LongLookRecord]:
    """Give the parts that are measured until the look is over."""
    experiment = _soak()
    prefixes: Iterator[list[LongLookRecord]] = accumulate([it] for it in parts)
    return next(it for it in prefixes if why_over(it, experiment))


def is_accused(parts: Sequence[LongLookRecord]) -> bool:
    """Whether a look at a steady server found something."""
    look = look_at(*parts)
    return bool(look.stalls or look.drifts or look.growth)


def _simulate(looks: int) -> None:
    for part_noise in (0.002, 0.01, 0.03):
        early = lasted = accused = accused_whole = 0
        for seed in range(looks):
            parts = soak(seed, part_noise=part_noise)
            measured = until_over(parts)
            early += len(measured) < PARTS
            lasted += len(measured)
            accused += is_accused(measured)
            accused_whole += is_accused(parts)
        print(  # noqa: T201
            f"| {part_noise:.1%} | {early / looks:.0%} | {lasted / looks / PARTS:.0%} "
            f"| {accused / looks:.1%} | {accused_whole / looks:.1%} |",
            flush=True,
        )


if __name__ == "__main__":
    _simulate(int(sys.argv[1]))
