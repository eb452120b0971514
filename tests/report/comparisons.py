"""Runs that compare variants: clear, inconclusive, invalid, interfered with, hostile."""

from functools import cache

from builders import SimulatedRun, SimulatedVariant, pilot_record, service_use, simulated_run
from validity.broken import quiet_readings, readings_with
from webdyno.core.looks import SlotSettings
from webdyno.core.readings import HostSample, ServiceUse
from webdyno.core.records import AdjustmentRecord, Record, RoundRecord, SlotRecord

SLOW = SimulatedVariant(throughput_rps=21_000, server_cpu_us=61, latency_p50_us=2_700)
NEAR = SimulatedVariant(throughput_rps=76_500, server_cpu_us=11.4, latency_p50_us=785)
NGINX = SimulatedVariant(throughput_rps=77_000, server_cpu_us=11.3, latency_p50_us=780)
APACHE = SimulatedVariant(
    stack="apache-event",
    headers=(
        ("Server", "Apache"),
        ("Content-Type", "text/plain"),
        ("Content-Length", "13"),
        ("ETag", '"d-64d0"'),
    ),
)
LONG_NAME = "nginx-front-apache-prefork-modphp with 32 children and a page cache"
"""Longer than a column of a terminal or half a telephone's screen."""


@cache
def decided() -> SimulatedRun:
    """Two variants with a clear difference."""
    return simulated_run({"apache-event": APACHE, "nginx": NGINX}, rounds=8)


@cache
def several_variants() -> SimulatedRun:
    """Four variants, one of them with a long name, one close to the baseline."""
    four = {"nginx": NGINX, LONG_NAME: SLOW, "apache-event": APACHE, "nginx again": NEAR}
    return simulated_run(four, rounds=8)


@cache
def invalid() -> SimulatedRun:
    """One variant answers 404 to everything."""
    page = b"<title>Not Found</title>"
    wrong = SimulatedVariant(stack="apache-event", wrong_status=404, body=page)
    return simulated_run({"nginx": NGINX, "apache": wrong}, rounds=6)


@cache
def inconclusive() -> SimulatedRun:
    """Two servers that are nearly alike, too noisy for an answer."""
    near = SimulatedVariant(throughput_rps=80_000, server_cpu_us=11.0, latency_p50_us=750)
    return simulated_run(
        {"nginx": NGINX, "nginx again": near}, rounds=6, restart_sd=0.05, slot_sd=0.05, seed=2
    )


@cache
def censored() -> SimulatedRun:
    """The faster variant kept the client busy: its throughput is a lower bound."""
    quick = SimulatedVariant(throughput_rps=124_000, busy=0.97)
    return simulated_run({"apache-event": APACHE, "nginx": quick}, rounds=6)


@cache
def one_round() -> SimulatedRun:
    """Stopped when only one round was finished."""
    return simulated_run({"nginx": NGINX, "apache": APACHE}, rounds=1)


@cache
def no_round() -> SimulatedRun:
    """Stopped after the pre-flight check, before any slot."""
    run = one_round()
    preflight: list[Record] = run.records[:1]
    return SimulatedRun(run.head, preflight)


@cache
def hostile() -> SimulatedRun:
    """Names and responses that mean something in HTML, scripts and CSV."""
    name = '</script><img src=x onerror="alert(1)">, {{ 7*7 }}'
    page = b"<script>alert('body')</script>"
    wrong = SimulatedVariant(body=page, wrong_status=500, wrong_share=0.5)
    return simulated_run({"nginx": NGINX, name: wrong}, rounds=6, title="<b>& co</b>")


@cache
def hostile_words() -> SimulatedRun:
    """Words that run from right to left or have no end; answers that turn a line around."""
    leftwards, endless = "خادم الويب", "x" * 100
    wrong = SimulatedVariant(
        stack=endless, wrong_status=500, wrong_share=0.5, body="\u202etxet\u2066\x1b[31m\a".encode()
    )
    return simulated_run({leftwards: NGINX, endless: wrong}, rounds=6, title="שלום " + "w" * 90)


@cache
def probed() -> SimulatedRun:
    """The clear difference with probes at work."""
    run = decided()
    return SimulatedRun(run.head, [with_readings(record) for record in run.records])


@cache
def interference() -> SimulatedRun:
    """The clear difference, with a hypervisor that took time from the slower variant."""
    run = decided()
    records = [
        readings_with(host={"servers": {"steal_s": 0.1 * (record.variant == "apache-event")}})(
            record
        )
        if isinstance(record, SlotRecord)
        else record
        for record in run.records
    ]
    return SimulatedRun(run.head, records)


@cache
def piloted() -> SimulatedRun:
    """The clear difference after pilots, one of them of a server that swings.

    With an adjustment.
    """
    run = decided()
    adjustment = AdjustmentRecord(
        round=2,
        rule="slot-trend",
        variant="apache-event",
        what="variant apache-event: its throughput rises by 11% from the first to the last third "
        "of its slots; windows are 1.2 s long from now on, instead of 0.5 s.",
        settings=SlotSettings(
            warmup_s={"apache-event": 0.9, "nginx": 0.25},
            ramp_up_s={"apache-event": 0.3, "nginx": 0.05},
            window_s=1.2,
        ),
        again=True,
    )
    pilots = [
        pilot_record(
            "apache-event", warmup_s=0.9, ramp_up_s=0.3, period_s=0.6, full_throughput_s=0.82
        ),
        pilot_record("nginx", warmup_s=0.25, ramp_up_s=0.05, period_s=None, full_throughput_s=0.11),
    ]
    ends = [n for n, record in enumerate(run.records, 1) if isinstance(record, RoundRecord)]
    before, after = run.records[: ends[1]], run.records[ends[1] :]
    return SimulatedRun(run.head, [*pilots, *before, adjustment, *after])


def with_readings(record: Record) -> Record:
    if not isinstance(record, SlotRecord):
        return record
    readings = quiet_readings(record)
    samples = [
        HostSample(at_s=0.1 * n, running=3, servers_busy=0.9, client_busy=0.6) for n in range(1, 5)
    ]
    host = readings.host.model_copy(update={"samples": samples})
    roles = {"nginx": 0.7, "php": 0.3} if record.variant == "nginx" else {"apache": 1.0}
    services = {role: _service_use(record, share) for role, share in roles.items()}
    update = {"host": host, "services": services}
    return record.model_copy(update={"readings": readings.model_copy(update=update)})


def _service_use(slot: SlotRecord, share: float) -> ServiceUse:
    responses = slot.load.requests.completed
    return service_use(
        cpu_user_s=slot.servers.cpu_user_s * share,
        cpu_sys_s=slot.servers.cpu_sys_s * share,
        switches_voluntary=round(responses * 0.4),
        switches_involuntary=round(responses * 0.02),
        faults_minor=round(responses * 0.01),
    )
