"""A whole calibration, step by step; the last is how small a difference can be seen here."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from importlib.metadata import version
from math import expm1, log

import numpy as np

from webdyno.calibrate.ceilings import measure_ceiling, measure_send_lag, measure_timer_lag
from webdyno.calibrate.null_server import NullServer, null_server
from webdyno.generator import Loadgen, find_loadgen, loadgen_version
from webdyno.host import Bench, open_bench
from webdyno.judge.interval import t_quantile
from webdyno.model.bench import BenchSettings
from webdyno.model.load import Load
from webdyno.model.machine import Calibration, Noise
from webdyno.model.measure import Measure
from webdyno.model.mistake import Trouble
from webdyno.probe.cpu import tree_cpu

CONFIDENCE = 0.95
WARMUP_S, SLOT_S = 0.2, 0.5
"""As a pilot usually finds them for servers that are quick and steady."""
BODY_BYTES = 100
FEWEST_BLOCKS = 3
RUN_LENGTHS_S = {"1 min": 60.0, "5 min": 300.0, "20 min": 1200.0}
ABBA = (0, 1, 1, 0)


def measure_calibration(
    bodies: Sequence[int],
    connections: Sequence[int],
    settings: BenchSettings,
    budget_s: float,
    tell: Callable[[str], None],
) -> Calibration:
    """Measure ceilings for each length of body and number of connections, then lags and noise.

    What the ceilings leave of the budget is for the noise. `tell` hears what is being done.
    """
    began = time.monotonic()
    made_at = datetime.now().astimezone()
    with open_bench(settings, find_loadgen()) as bench:
        ceilings = []
        for count in connections:
            for body_bytes in bodies:
                tell(f"answers of {body_bytes:,} bytes over {count} connections")
                ceilings.append(measure_ceiling(bench, body_bytes, count, "always"))
            tell(f"new connections, {count} at a time")
            ceilings.append(measure_ceiling(bench, min(bodies), count, "never"))
        tell("how late timers and requests are")
        timer_lag = measure_timer_lag(bench)
        send_lag = measure_send_lag(bench, max(connections))
        left_s = budget_s - (time.monotonic() - began)
        noise = measure_noise(bench, max(connections), left_s, tell)
        return Calibration(
            made_at=made_at,
            webdyno_version=version("webdyno"),
            load_generator=loadgen_version(),
            machine=bench.describe(),
            bench=settings,
            ceilings=ceilings,
            timer_lag=timer_lag,
            send_lag=send_lag,
            noise=noise,
        )


def measure_noise(
    bench: Bench, connections: int, budget_s: float, tell: Callable[[str], None]
) -> list[Noise]:
    """Run blocks of two equal arms, as long as they fit into the budget but three at least."""
    usual = Measure()
    load = Load(connections=connections)
    began = time.monotonic()
    ratios: list[tuple[float, float]] = []
    while True:
        tell(f"the same arm against itself, block {len(ratios) + 1}")
        ratios.append(_block(bench, load, usual))
        took_s = (time.monotonic() - began) / len(ratios)
        left_s = budget_s - (time.monotonic() - began)
        if len(ratios) >= FEWEST_BLOCKS and left_s < took_s:
            break
    block_s = took_s
    rate, cpu = (np.array(values) for values in zip(*ratios, strict=True))
    return [
        describe_noise("rate_rps", float(rate.std(ddof=1)), len(ratios), block_s),
        describe_noise("server_cpu_us", float(cpu.std(ddof=1)), len(ratios), block_s),
    ]


def describe_noise(metric: str, block_sd: float, blocks: int, block_s: float) -> Noise:
    """Extrapolate to runs of some lengths: half-width t(n - 1) · sd / √n for n blocks."""
    visible = {}
    for length, length_s in RUN_LENGTHS_S.items():
        n = max(int(length_s / block_s), Measure().min_blocks)
        visible[length] = expm1(t_quantile(n, CONFIDENCE) * block_sd / n**0.5)
    return Noise(metric=metric, blocks=blocks, block_sd=block_sd, block_s=block_s, visible=visible)


def _block(bench: Bench, load: Load, measure: Measure) -> tuple[float, float]:
    """Start both arms anew; give the log ratios of rate and of server CPU time per request."""
    rounds = measure.first_slots_per_arm // 2
    answers, cpu_s = [0, 0], [0.0, 0.0]
    with ExitStack() as exits:
        arms = [exits.enter_context(null_server(bench, BODY_BYTES)) for _ in range(2)]
        client = exits.enter_context(Loadgen(bench.split.client, bench.client_entry()))
        for arm in arms:
            client.slot(arm.order(load, WARMUP_S))
        for which in ABBA * rounds:
            answered, used_s = _slot(client, arms[which], load, SLOT_S)
            answers[which] += answered
            cpu_s[which] += used_s
    if not all(answers) or not all(cpu_s):
        raise Trouble("the client got no answers from the null server; is this machine very busy?")
    rate = log(answers[0] / answers[1])
    return rate, log(cpu_s[0] / cpu_s[1]) - rate


def _slot(client: Loadgen, arm: NullServer, load: Load, slot_s: float) -> tuple[int, float]:
    wardens = [arm.process.warden_pid]
    before = tree_cpu(wardens)
    result = client.slot(arm.order(load, slot_s))
    return result.requests.completed, tree_cpu(wardens).since(before).cpu_s
