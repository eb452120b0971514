"""What this machine's client can do: measured against a server that does nothing, and kept.

Ceilings are the most that the client reaches: throughput, bandwidth, new connections, exactness of
times. The last step is how small a difference can be seen here. Calibrations are files in the
user's state folder: one per machine and testbed.
"""

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from importlib.metadata import version
from math import expm1, log
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import ValidationError

from webdyno.core.errors import OperationError
from webdyno.core.files import state_folder, write_whole, writing
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.core.measure import Measure
from webdyno.core.testbed import (
    Calibration,
    Delay,
    Limit,
    Machine,
    MeasuredCeiling,
    Noise,
    TestbedSettings,
)
from webdyno.host.listening import Listens
from webdyno.host.machine import exact_timers
from webdyno.host.netns import open_testbed
from webdyno.host.server_process import PLAIN_ENVIRONMENT, ServerProcess
from webdyno.host.this_machine import Testbed
from webdyno.host.users import make_closed, uid_of
from webdyno.host.workspace import Workspace
from webdyno.load.engine import find_loadgen, loadgen_version
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.probes.cpu import tree_cpu
from webdyno.probes.network import NetworkReading
from webdyno.servers.ready import Address, wait_for_listener
from webdyno.servers.service_graph import free_port
from webdyno.statistics.interval import t_half_width
from webdyno.validity.client import BUSY_LIMIT
from webdyno.validity.connections import LINK_LIMIT

PROGRAM = "null-server"
CONFIDENCE = 0.95
NOISE_WARMUP_S, NOISE_SLOT_S = 0.2, 0.5
"""As a pilot usually finds them for servers that are quick and steady."""
BODY_BYTES = 100
FEWEST_ROUNDS = 3
RUN_LENGTHS_S = {"1 min": 60.0, "5 min": 300.0, "20 min": 1200.0}
ABBA = (0, 1, 1, 0)
CEILING_SLOTS, CEILING_SLOT_S, CEILING_WARMUP_S = 3, 0.4, 0.1
DELAY_RATE_PER_S = 1_000.0
SLEEP_S, SLEEPS = 0.001, 500


@dataclass(frozen=True)
class NullServer:
    """A running null server."""

    process: ServerProcess
    url: str
    body_bytes: int

    def order(self, load: Load, duration_s: float) -> LoadOrder:
        """Make an order that loads it."""
        request = Request("/", Expectation(200, self.body_bytes))
        return LoadOrder("calibrate", self.url, (request,), load, duration_s)


@contextmanager
def null_server(testbed: Testbed, body_bytes: int) -> Iterator[NullServer]:
    """Run a null server on the servers' CPUs; raise OperationError when it doesn't start."""
    workspace = Workspace()
    process: ServerProcess | None = None
    try:
        # The servers' user may not get to where the engine is installed.
        program = shutil.copy(find_loadgen(), workspace.path / "loadgen")
        port = free_port(testbed.servers_socket)
        process = testbed.spawn(
            [
                *(str(program), PROGRAM, f"--listen={testbed.host}:{port}", f"--body={body_bytes}"),
                *(f"--cpus={','.join(map(str, testbed.split.servers))}", "--allow-remote"),
            ],
            cwd=workspace.path,
            env=PLAIN_ENVIRONMENT,
            log=workspace.path / "log",
            workspace=workspace,
        )
        _wait(process, Address(testbed.host, port, None, uid_of(testbed.user)), testbed)
        yield NullServer(process, f"http://{testbed.host}:{port}", body_bytes)
    finally:
        if process is not None:
            process.stop()
        workspace.remove()


def _wait(process: ServerProcess, address: Address, testbed: Testbed) -> None:
    def check_alive() -> None:
        if process.poll() is not None:
            raise OperationError(f"the null server ended: {process.log.read_text().strip()}")

    def is_own() -> bool:
        return process.listens(Listens(address.port, address.socket, address.host, address.uid))

    if not wait_for_listener(address, check_alive, is_own, testbed.client_socket):
        raise OperationError("the null server has not accepted connections in time")


def measure_calibration(
    bodies: Sequence[int],
    connections: Sequence[int],
    settings: TestbedSettings,
    budget_s: float,
    notify: Callable[[str], None],
) -> Calibration:
    """Measure ceilings for each length of body and number of connections, then delays and noise.

    What the ceilings leave of the budget is for the noise.
    """
    began = time.monotonic()
    made_at = datetime.now().astimezone()
    with open_testbed(settings, find_loadgen()) as testbed:
        ceilings = []
        for count in connections:
            for body_bytes in bodies:
                notify(f"responses of {body_bytes:,} bytes over {count} connections")
                ceilings.append(measure_ceiling(testbed, body_bytes, count, "always"))
            notify(f"new connections, {count} at a time")
            ceilings.append(measure_ceiling(testbed, min(bodies), count, "never"))
        notify("how late timers and requests are")
        timer_delay = measure_timer_delay(testbed)
        send_delay = measure_send_delay(testbed, max(connections))
        left_s = budget_s - (time.monotonic() - began)
        noise = measure_noise(testbed, max(connections), left_s, notify)
        return Calibration(
            made_at=made_at,
            webdyno_version=version("webdyno"),
            load_generator=loadgen_version(),
            machine=testbed.describe(),
            testbed=settings,
            ceilings=ceilings,
            timer_delay=timer_delay,
            send_delay=send_delay,
            noise=noise,
        )


def measure_noise(
    testbed: Testbed, connections: int, budget_s: float, notify: Callable[[str], None]
) -> list[Noise]:
    """Run rounds of two equal variants, as long as they fit into the budget but three at least."""
    usual = Measure()
    load = Load(connections=connections)
    began = time.monotonic()
    ratios: list[tuple[float, float]] = []
    while True:
        notify(f"the same variant against itself, round {len(ratios) + 1}")
        ratios.append(_round(testbed, load, usual))
        took_s = (time.monotonic() - began) / len(ratios)
        left_s = budget_s - (time.monotonic() - began)
        if len(ratios) >= FEWEST_ROUNDS and left_s < took_s:
            break
    round_s = took_s
    throughput, cpu = (np.array(values) for values in zip(*ratios, strict=True))
    return [
        describe_noise("throughput_rps", float(throughput.std(ddof=1)), len(ratios), round_s),
        describe_noise("server_cpu_us", float(cpu.std(ddof=1)), len(ratios), round_s),
    ]


def describe_noise(metric: str, round_sd: float, rounds: int, round_s: float) -> Noise:
    """Extrapolate to runs of some lengths: half-width t(n - 1) · sd / √n for n rounds."""
    visible = {}
    for length, length_s in RUN_LENGTHS_S.items():
        n = max(int(length_s / round_s), Measure().min_rounds)
        visible[length] = expm1(t_half_width(n, round_sd, CONFIDENCE))
    return Noise(metric=metric, rounds=rounds, round_sd=round_sd, round_s=round_s, visible=visible)


def _round(testbed: Testbed, load: Load, measure: Measure) -> tuple[float, float]:
    """Start both variants again; give the log ratios of throughput and CPU per request."""
    repeats = measure.first_slots_per_variant // 2
    responses, cpu_s = [0, 0], [0.0, 0.0]
    with ExitStack() as exits:
        variants = [exits.enter_context(null_server(testbed, BODY_BYTES)) for _ in range(2)]
        client = exits.enter_context(Loadgen(testbed.split.client, testbed.client_entry()))
        for variant in variants:
            client.slot(variant.order(load, NOISE_WARMUP_S))
        for which in ABBA * repeats:
            slot = _slot(testbed, client, variants[which], load, NOISE_SLOT_S)
            responses[which] += slot.result.requests.completed
            cpu_s[which] += slot.server_cpu_s
    if not all(responses) or not all(cpu_s):
        raise OperationError(
            "the client got no responses from the null server; is this machine very busy?"
        )
    throughput = log(responses[0] / responses[1])
    return throughput, log(cpu_s[0] / cpu_s[1]) - throughput


def measure_ceiling(
    testbed: Testbed, body_bytes: int, connections: int, keepalive: Literal["always", "never"]
) -> MeasuredCeiling:
    """Return the largest throughput of a few slots: noise can only take away from a ceiling."""
    load = Load(connections=connections, keepalive=keepalive)
    with null_server(testbed, body_bytes) as server, _client(testbed) as client:
        client.slot(server.order(load, CEILING_WARMUP_S))
        slots = [_slot(testbed, client, server, load, CEILING_SLOT_S) for _ in range(CEILING_SLOTS)]
    best = max(slots, key=lambda slot: _throughput_rps(slot.result))
    result = best.result
    if not result.requests.completed:
        raise OperationError(
            f"the client got no response of {body_bytes} bytes from the null server: "
            f"{'; '.join(result.failure_samples) or 'the link may be too slow for it'}"
        )
    return MeasuredCeiling(
        body_bytes=body_bytes,
        connections=connections,
        keepalive=keepalive,
        throughput_rps=_throughput_rps(result),
        client_busy=result.client.busy,
        limited_by=_limit(best),
    )


def measure_send_delay(testbed: Testbed, connections: int) -> Delay:
    """Send requests by a timetable that leaves the client idle most of the time."""
    load = Load(
        loop="open", rate_per_s=DELAY_RATE_PER_S, arrivals="constant", connections=connections
    )
    with null_server(testbed, 100) as server, _client(testbed) as client:
        client.slot(server.order(load, CEILING_WARMUP_S))
        late = client.slot(server.order(load, CEILING_SLOT_S * CEILING_SLOTS)).send_delay_us
    return Delay(p50_us=late.p50 or 0.0, p99_us=late.p99 or 0.0, max_us=late.max or 0.0)


def measure_timer_delay(testbed: Testbed) -> Delay:
    """Sleep on the client's CPUs and see how much longer it took than asked."""
    late_us = []
    with exact_timers(testbed.split.client):
        for _ in range(SLEEPS):
            began = time.monotonic()
            time.sleep(SLEEP_S)
            late_us.append((time.monotonic() - began - SLEEP_S) * 1e6)
    p50, p99 = np.percentile(late_us, [50, 99])
    return Delay(p50_us=float(p50), p99_us=float(p99), max_us=max(late_us))


def _client(testbed: Testbed) -> Loadgen:
    return Loadgen(testbed.split.client, testbed.client_entry())


@dataclass(frozen=True)
class _Slot:
    """A slot, and how much of what could limit it was used."""

    result: LoadResult
    server_cpu_s: float
    server_busy: float
    """Share of their CPUs that the server's threads used."""
    link_share: float
    """Share of what the link carries; 0 where it has no limit."""


def _slot(
    testbed: Testbed, client: Loadgen, server: NullServer, load: Load, duration_s: float
) -> _Slot:
    wardens = [server.process.warden_pid]
    cpu, network = tree_cpu(wardens), NetworkReading.read_both(*testbed.network_pids)
    began = time.monotonic()
    result = client.slot(server.order(load, duration_s))
    took_s = time.monotonic() - began
    cpu_s = tree_cpu(wardens).since(cpu).cpu_s
    carried = NetworkReading.read_both(*testbed.network_pids).since(network)
    busier_way = max(carried.sent_bytes, carried.received_bytes) / took_s
    return _Slot(
        result=result,
        server_cpu_s=cpu_s,
        server_busy=cpu_s / took_s / len(testbed.split.servers),
        link_share=busier_way / testbed.link_bytes_per_s if testbed.link_bytes_per_s else 0.0,
    )


def _throughput_rps(result: LoadResult) -> float:
    answered, took_s = result.counted_responses
    return answered / took_s


def _limit(slot: _Slot) -> Limit:
    if slot.link_share > LINK_LIMIT:
        return "link"
    if slot.result.client.busy > BUSY_LIMIT:
        return "client"
    return "server" if slot.server_busy > BUSY_LIMIT else "unknown"


def calibration_file(machine: Machine, testbed: TestbedSettings) -> Path:
    """Name the file; whatever changes what the client can do gives another one."""
    what_counts = machine.model_dump_json(
        include={"cpu_model", "cpus", "physical_cores", "memory_bytes", "kernel", "split"}
    )
    # A client at its limit is never idle.
    content = (what_counts + testbed.model_dump_json(exclude={"keep_awake"})).encode()
    return state_folder() / f"calibration-{hashlib.sha256(content).hexdigest()[:16]}.json"


def save_calibration(calibration: Calibration) -> Path:
    """Write a calibration for later runs on this machine; raise OperationError when that fails."""
    path = calibration_file(calibration.machine, calibration.testbed)
    with writing(path):
        make_closed(path.parent)
    write_whole(path, calibration.model_dump_json(indent=2) + "\n")
    return path


def load_calibration(machine: Machine, testbed: TestbedSettings) -> Calibration | None:
    """Return the calibration of this machine and testbed; None without one that can be read."""
    try:
        text = calibration_file(machine, testbed).read_text(encoding="utf-8")
        return Calibration.model_validate_json(text)
    except (OSError, ValidationError):
        return None
