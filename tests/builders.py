"""Synthetic runs for tests: true values per variant, lognormal noise, the same for the same seed.

Every part of a run has its own small builder, so that a test names only what it is about:

    run = simulated_run({"nginx": SimulatedVariant(rate_rps=60_000), "apache": SimulatedVariant()})
    run.head, run.records, run.data
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from itertools import count
from math import exp, log
from pathlib import Path
from random import Random
from statistics import NormalDist, fmean
from types import MappingProxyType

from hdrh.histogram import HdrHistogram

from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.load_result import (
    Bytes,
    Client,
    Connections,
    Failures,
    KeepAliveResult,
    LoadResult,
    Requests,
    SendDelay,
    Times,
)
from webdyno.core.looks import ColdFigures, Pilot
from webdyno.core.measure import Measure
from webdyno.core.question import QuestionSettings
from webdyno.core.readings import ServiceUse
from webdyno.core.records import (
    PilotRecord,
    PreflightRecord,
    Record,
    Response,
    RoundRecord,
    ServerUse,
    SlotRecord,
)
from webdyno.core.run import RunHead
from webdyno.core.testbed import CpuSplit, Machine
from webdyno.core.variant import Variant
from webdyno.evidence.point_data import PointData, RunData
from webdyno.measure.folder import RunFolder
from webdyno.measure.round import round_order

START = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
HELLO = b"Hello, World!"
HEAD_BYTES = 238
QUANTILES = 200
LONGEST_US = 60_000_000
TWO_STACKS = MappingProxyType({"nginx": "nginx", "apache": "apache-event"})


@dataclass(frozen=True)
class SimulatedVariant:
    """The truth about one variant; a simulated run shows it through noise."""

    stack: str = "nginx"
    throughput_rps: float = 40_000.0
    server_cpu_us: float = 20.0
    """Server CPU time per response."""
    latency_p50_us: float = 1_500.0
    latency_spread: float = 0.3
    """Standard deviation of the logarithm of latency."""
    wrong_status: int | None = None
    """Status of the responses that are wrong."""
    wrong_share: float = 1.0
    """Share of answers with the wrong status, if there is one."""
    busy: float = 0.55
    """Share of its time that the busiest client thread is on the CPU."""
    body: bytes = HELLO
    headers: tuple[tuple[str, str], ...] = (
        ("Server", "nginx"),
        ("Content-Type", "text/plain"),
        ("Content-Length", "13"),
        ("Connection", "keep-alive"),
    )

    @property
    def right_share(self) -> float:
        """Share of responses that are right."""
        return 1.0 if self.wrong_status is None else 1.0 - self.wrong_share


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What a run's folder would hold."""

    head: RunHead
    records: list[Record]

    @property
    def data(self) -> PointData:
        """What there is to judge of its only point."""
        return PointData.of(self.head, self.records)

    @property
    def whole(self) -> RunData:
        """What there is to judge of it, point by point."""
        return RunData(self.head, self.records)

    def asking(self, asks: QuestionSettings) -> "SimulatedRun":
        """The same of an experiment that asks something else."""
        experiment = self.head.experiment.replace(asks=asks)
        return SimulatedRun(self.head.replace(experiment=experiment), self.records)

    def stored(self, path: Path) -> Path:
        """Write it to the folder, which is made."""
        with RunFolder.create(path, self.head) as folder:
            for record in self.records:
                folder.append(record)
        return path


def simulated_run(
    variants: dict[str, SimulatedVariant],
    *,
    rounds: int = 8,
    measure: Measure | None = None,
    restart_sd: float = 0.02,
    slot_sd: float = 0.02,
    seed: int = 1,
    title: str = "Which is faster?",
) -> SimulatedRun:
    """Rounds of all variants in random order, with noise of each restart and of each slot.

    `restart_sd` and `slot_sd` are standard deviations of the logarithm of the throughput. More CPU
    time per response and longer latency goes with a lower throughput.
    """
    measure = measure or Measure(seed=seed)
    head = run_head(
        {name: variant.stack for name, variant in variants.items()}, measure=measure, title=title
    )
    random = Random(seed)
    records: list[Record] = [preflight_record(variants)]
    clock = START
    for round_number in range(rounds):
        began = clock
        slowness = {name: exp(random.gauss(0, restart_sd)) for name in variants}
        order = round_order(list(variants), measure.first_slots_per_variant, random)
        phases = [(name, "warmup") for name in variants] + [(name, "measure") for name in order]
        for slot, (name, phase) in zip(count(), phases, strict=False):
            variant = variants[name]
            warmup = phase == "warmup"
            duration_s = (measure.warmup_s or 1.0) if warmup else (measure.slot_s or 0.5)
            records.append(
                SlotRecord(
                    round=round_number,
                    slot=slot,
                    variant=name,
                    phase="warmup" if warmup else "measure",
                    started_at=clock,
                    load=load_result(
                        variant,
                        duration_s=duration_s,
                        slowness=slowness[name] * exp(random.gauss(0, slot_sd)),
                    ),
                    servers=server_use(
                        variant.throughput_rps
                        * variant.server_cpu_us
                        * 1e-6
                        * duration_s
                        * exp(random.gauss(0, slot_sd / 2))
                    ),
                )
            )
            clock += timedelta(seconds=duration_s + 0.02)
        clock += timedelta(seconds=0.4)
        records.append(
            RoundRecord(
                round=round_number,
                order=order,
                started_at=began,
                took_s=(clock - began).total_seconds(),
                ready_s=dict.fromkeys(variants, 0.05),
            )
        )
    return SimulatedRun(head, records)


def with_completed(slot: SlotRecord, completed: float) -> SlotRecord:
    """The same slot with so many requests answered."""
    requests = slot.load.requests.replace(completed=round(completed))
    return slot.replace(load=slot.load.replace(requests=requests))


def point_data(records: Sequence[Record], experiment: Experiment | None = None) -> PointData:
    """What there is to judge of records, of some experiment if none is given."""
    head = run_head()
    changed = {"experiment": experiment or head.experiment}
    return PointData.of(head.model_copy(update=changed), records)


def run_head(
    stacks: Mapping[str, str] = TWO_STACKS,
    *,
    measure: Measure | None = None,
    title: str = "Which is faster?",
) -> RunHead:
    """The head of a run with these variants: stack by variant name."""
    return RunHead(
        webdyno_version="0.1.0",
        experiment_name="static-hello",
        experiment=Experiment(
            title=title,
            question="Which of them serves a small static file faster?",
            site="static",
            load=Load(paths=["/hello.txt"]),
            measure=measure or Measure(seed=1),
            variants={name: Variant(stack=stack) for name, stack in stacks.items()},
        ),
        started_at=START,
        machine=machine(),
        versions={name: {stack.partition("-")[0]: "1.22.1"} for name, stack in stacks.items()},
        load_generator="loadgen 0.1.0",
    )


def machine() -> Machine:
    """A four-CPU virtual machine."""
    return Machine(
        cpu_model="Example CPU @ 2.60GHz",
        cpus=[0, 1, 2, 3],
        physical_cores=4,
        memory_bytes=16 * 2**30,
        kernel="6.1.0-18-amd64",
        distribution="Debian GNU/Linux 12 (bookworm)",
        virtualisation="kvm",
        governor=None,
        open_files_limit=20_000,
        listen_backlog_limit=4_096,
        split=CpuSplit(servers=[0, 1], client=[2, 3], rest=[], shared=False),
    )


def preflight_record(
    variants: dict[str, SimulatedVariant], round_number: int = 0
) -> PreflightRecord:
    """What the variants answered before the load."""
    return PreflightRecord(
        round=round_number,
        responses={name: [response(variant)] for name, variant in variants.items()},
        facts={name: {"workers": "2", "sendfile": "on", "access log": "off"} for name in variants},
    )


def response(variant: SimulatedVariant, path: str = "/hello.txt") -> Response:
    """A variant's response to one request of the pre-flight check."""
    return Response(
        path=path,
        expected_status=200,
        expected_sha256=sha256(HELLO).hexdigest(),
        expected_bytes=len(HELLO),
        status=variant.wrong_status or 200,
        http_version="HTTP/1.1",
        headers=list(variant.headers),
        head_bytes=HEAD_BYTES,
        body_bytes=len(variant.body),
        body_sha256=sha256(variant.body).hexdigest(),
        body_start=variant.body[:200].decode(errors="replace"),
    )


def load_result(
    variant: SimulatedVariant | None = None,
    *,
    duration_s: float = 0.5,
    slowness: float = 1.0,
    connections: int = 64,
) -> LoadResult:
    """A slot of a variant; `slowness` 2 halves its throughput and doubles its latency."""
    variant = variant or SimulatedVariant()
    responses = round(variant.throughput_rps / slowness * duration_s)
    completed = round(responses * variant.right_share)
    wrong = responses - completed
    by_status = {"200": completed} if completed else {}
    if variant.wrong_status is not None and wrong:
        by_status[str(variant.wrong_status)] = wrong
    times = latencies(completed, variant.latency_p50_us * slowness, variant.latency_spread)
    return LoadResult(
        target="http://127.0.0.1:8080",
        loop="closed",
        measured_s=duration_s,
        drain_s=0.002,
        requests=Requests(
            sent=responses + connections,
            completed=completed,
            unanswered=connections,
            drained=round(connections * variant.right_share),
        ),
        by_status=by_status,
        failures=Failures(status=wrong),
        failure_samples=[f"/hello.txt: status {variant.wrong_status}"] if wrong else [],
        bytes=Bytes(head=HEAD_BYTES * responses, body=len(variant.body) * responses),
        connections=Connections(opened=0, reused_requests=responses + connections),
        keepalive=KeepAliveResult(requested="always", server_closed=0),
        throughput_rps=completed / duration_s,
        latency_us=times,
        service_time_us=times,
        connect_time_us=latencies(0),
        send_delay_us=SendDelay(p50=None, p99=None, max=None),
        client=Client(
            threads=2,
            cpu_user_s=variant.busy * duration_s * 0.4,
            cpu_sys_s=variant.busy * duration_s * 1.4,
            busy=variant.busy,
        ),
    )


@cache
def latencies(requests: int, median_us: float = 1_500.0, spread: float = 0.3) -> Times:
    """Lognormal times at evenly spaced quantiles, `requests` in number."""
    histogram = HdrHistogram(1, LONGEST_US, 3)
    points = min(QUANTILES, requests)
    lognormal = NormalDist(log(median_us), spread)
    values = [round(exp(lognormal.inv_cdf((point + 0.5) / points))) for point in range(points)]
    for point, value in enumerate(values):
        share = requests * (point + 1) // points - requests * point // points
        histogram.record_value(value, share)

    def at(share: float) -> float | None:
        return float(values[min(int(points * share), points - 1)]) if values else None

    return Times(
        min=at(0),
        mean=fmean(values) if values else None,
        p50=at(0.5),
        p90=at(0.9),
        p99=at(0.99),
        p99_9=at(0.999),
        max=at(1),
        histogram=histogram.encode().decode(),
    )


def server_use(cpu_s: float) -> ServerUse:
    """Server CPU time, a third of it in user mode."""
    return ServerUse(cpu_user_s=cpu_s / 3, cpu_sys_s=cpu_s * 2 / 3, means="cgroup-v2")


def service_use(**changes: float) -> ServiceUse:
    """What the processes of a service used, which is next to nothing but for the changes."""
    quiet = ServiceUse(
        cpu_user_s=0.0,
        cpu_sys_s=0.0,
        switches_voluntary=0,
        switches_involuntary=0,
        faults_minor=0,
        faults_major=0,
        disk_read_bytes=None,
        disk_written_bytes=None,
        processes=3,
        threads=4,
        started=0,
        ended=0,
        pss_bytes=12_000_000,
        peak_rss_bytes=18_000_000,
    )
    return quiet.model_copy(update=changes)


def pilot_record(
    variant: str,
    *,
    warmup_s: float = 0.25,
    ramp_up_s: float = 0.1,
    window_s: float = 0.5,
    period_s: float | None = None,
    full_throughput_s: float = 0.2,
    took_s: float = 2.5,
    start_s: float | None = None,
) -> PilotRecord:
    """What was found of a variant alone."""
    swings = "" if period_s is None else f"; the throughput swings with a period of {period_s} s"
    return PilotRecord(
        variant=variant,
        started_at=START,
        took_s=took_s,
        window_s=0.05,
        responses=[1_000] * 40,
        start_s=start_s,
        latency_s=0.0015,
        found=Pilot(
            warmup_s=warmup_s,
            ramp_up_s=ramp_up_s,
            window_s=window_s,
            period_s=period_s,
            steady=True,
            why=f"steady from {warmup_s} s on; windows of {window_s} s for throughput whose "
            f"swings are short{swings}",
        ),
        cold=ColdFigures(first_response_s=0.071, full_throughput_s=full_throughput_s, cpu_s=0.034),
    )
