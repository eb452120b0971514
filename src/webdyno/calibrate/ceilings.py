"""The most that the client reaches: rate, bandwidth, new connections, exactness of times."""

import ctypes
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import numpy as np

from webdyno.calibrate.null_server import NullServer, null_server
from webdyno.generator import Loadgen
from webdyno.host import Bench
from webdyno.judge.validity.client import BUSY_LIMIT
from webdyno.judge.validity.network import LINK_LIMIT
from webdyno.model.load import Load
from webdyno.model.load_result import LoadResult
from webdyno.model.machine import Lag, Limit, MeasuredCeiling
from webdyno.model.metrics import counted_answers
from webdyno.model.mistake import Trouble
from webdyno.probe.cpu import tree_cpu
from webdyno.probe.network import NetworkReading

SLOTS, SLOT_S, WARMUP_S = 3, 0.4, 0.1
LAG_RATE_PER_S = 1_000.0
SLEEP_S, SLEEPS = 0.001, 500
PR_SET_TIMERSLACK, PR_GET_TIMERSLACK = 29, 30


def measure_ceiling(
    bench: Bench, body_bytes: int, connections: int, keepalive: Literal["always", "never"]
) -> MeasuredCeiling:
    """Give the largest rate of a few slots: noise can only take away from a ceiling."""
    load = Load(connections=connections, keepalive=keepalive)
    with null_server(bench, body_bytes) as server, _client(bench) as client:
        client.slot(server.order(load, WARMUP_S))
        slots = [_slot(bench, client, server, load) for _ in range(SLOTS)]
    best = max(slots, key=lambda slot: _rate_rps(slot.result))
    result = best.result
    if not result.requests.completed:
        raise Trouble(
            f"the client got no answer of {body_bytes} bytes from the null server: "
            f"{'; '.join(result.failure_samples) or 'the link may be too slow for it'}"
        )
    return MeasuredCeiling(
        body_bytes=body_bytes,
        connections=connections,
        keepalive=keepalive,
        rate_rps=_rate_rps(result),
        client_busy=result.client.busy,
        limited_by=_limit(best),
    )


def measure_send_lag(bench: Bench, connections: int) -> Lag:
    """Send requests by a timetable that leaves the client idle most of the time."""
    load = Load(
        loop="open", rate_per_s=LAG_RATE_PER_S, arrivals="constant", connections=connections
    )
    with null_server(bench, 100) as server, _client(bench) as client:
        client.slot(server.order(load, WARMUP_S))
        lag = client.slot(server.order(load, SLOT_S * SLOTS)).send_lag_us
    return Lag(p50_us=lag.p50 or 0.0, p99_us=lag.p99 or 0.0, max_us=lag.max or 0.0)


def measure_timer_lag(bench: Bench) -> Lag:
    """Sleep on the client's CPUs and see how much longer it took than asked."""
    late_us = []
    with _as_the_client(bench):
        for _ in range(SLEEPS):
            began = time.monotonic()
            time.sleep(SLEEP_S)
            late_us.append((time.monotonic() - began - SLEEP_S) * 1e6)
    p50, p99 = np.percentile(late_us, [50, 99])
    return Lag(p50_us=float(p50), p99_us=float(p99), max_us=max(late_us))


def _client(bench: Bench) -> Loadgen:
    return Loadgen(bench.split.client, bench.client_entry())


@dataclass(frozen=True)
class _Slot:
    """A slot, and how much of what could limit it was used."""

    result: LoadResult
    server_busy: float
    """Share of their CPUs that the server's threads used."""
    link_share: float
    """Share of what the link carries; 0 where it has no limit."""


def _slot(bench: Bench, client: Loadgen, server: NullServer, load: Load) -> _Slot:
    wardens = [server.process.warden_pid]
    cpu, network = tree_cpu(wardens), NetworkReading.read_both(*bench.network_pids)
    began = time.monotonic()
    result = client.slot(server.order(load, SLOT_S))
    took_s = time.monotonic() - began
    carried = NetworkReading.read_both(*bench.network_pids).since(network)
    busier_way = max(carried.sent_bytes, carried.received_bytes) / took_s
    return _Slot(
        result=result,
        server_busy=tree_cpu(wardens).since(cpu).cpu_s / took_s / len(bench.split.servers),
        link_share=busier_way / bench.link_bytes_per_s if bench.link_bytes_per_s else 0.0,
    )


def _rate_rps(result: LoadResult) -> float:
    answered, took_s = counted_answers(result)
    return answered / took_s


def _limit(slot: _Slot) -> Limit:
    if slot.link_share > LINK_LIMIT:
        return "link"
    if slot.result.client.busy > BUSY_LIMIT:
        return "client"
    return "server" if slot.server_busy > BUSY_LIMIT else "unknown"


@contextmanager
def _as_the_client(bench: Bench) -> Iterator[None]:
    """Be on the client's CPUs, with timers as exact as the engine's."""
    libc, cpus = ctypes.CDLL(None), os.sched_getaffinity(0)
    slack_ns = libc.prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0)
    os.sched_setaffinity(0, bench.split.client)
    libc.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
    try:
        yield
    finally:
        libc.prctl(PR_SET_TIMERSLACK, slack_ns, 0, 0, 0)
        os.sched_setaffinity(0, cpus)
