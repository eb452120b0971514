"""The kinds of run that a report must be able to show."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

from builders import START, SimulatedRun, SimulatedVariant, pilot_record, service_use, simulated_run
from judge.rates import at_rate, rest
from judge.searches import Variant, searched
from judge.validity.broken import quiet_readings, readings_with
from webdyno.judge.sweep import judge_sweep
from webdyno.model.experiment import Level
from webdyno.model.gate import BASELINE, BASELINE_AGAIN, HEAD, GateSettings
from webdyno.model.pilot import SlotSettings
from webdyno.model.race import RANKING
from webdyno.model.readings import CpuUse, HostSample, ServiceUse
from webdyno.model.records import AdjustmentRecord, IncidentRecord, Record, RoundRecord, SlotRecord
from webdyno.model.run import RunHead
from webdyno.model.setting import SettingShare, TunedVariant, TuningStep
from webdyno.report.view import RunView, run_view

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
def gated() -> SimulatedRun:
    """A revision that costs its servers a fifth more than the one it is based on."""
    variants = {BASELINE: NGINX, BASELINE_AGAIN: NGINX, HEAD: SimulatedVariant(server_cpu_us=13.6)}
    run = simulated_run(variants, rounds=8, title="The working tree against main")
    experiment = run.head.experiment.model_copy(update={"gate": GateSettings()})
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), run.records)


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
def probed() -> SimulatedRun:
    """The clear difference with probes at work."""
    run = decided()
    return SimulatedRun(run.head, [_with_readings(record) for record in run.records])


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


@cache
def ranking() -> SimulatedRun:
    """Five variants of which two share the first ranks; the server of one died."""
    rates = {"nginx": 77_000, "lighttpd": 76_000, "caddy": 41_000, LONG_NAME: 20_000, "node": 9_000}
    variants = {
        name: SimulatedVariant(stack=name, throughput_rps=rate) for name, rate in rates.items()
    }
    run = simulated_run(variants, rounds=12, title="A ranking of 5")
    died = IncidentRecord(round=3, variant="node", happened_at=START, what="node died of signal 9")
    kept = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.variant == "node" and it.round >= 3)
    ]
    return _racing(run.head, [*kept, died])


@cache
def tuned() -> SimulatedRun:
    """Two stacks as they are and tuned; of one nothing better was found."""
    rates = {"nginx (default)": 50_000, "nginx (tuned)": 60_000, "node (default)": 9_000}
    variants = {
        name: SimulatedVariant(stack=name[:5], throughput_rps=rate) for name, rate in rates.items()
    }
    run = _racing(*_parts(simulated_run(variants, rounds=12, title="Tuning nginx and node")))
    tuning = [
        TunedVariant(
            name="nginx",
            variant="nginx (tuned)",
            default_variant="nginx (default)",
            stack="nginx",
            searched=["workers", "open_file_cache"],
            settings={"workers": 4, "open_file_cache": True},
            used_s=881.0,
            tried=61,
            rounds=28,
            measurements=160,
            steps=[TuningStep(used_s=100.0 * n, gain=1 + 0.03 * n) for n in range(1, 8)],
            shares=[
                SettingShare(setting="workers", share=0.8, low=0.6, high=0.93),
                SettingShare(setting="open_file_cache", share=0.2, low=0.07, high=0.4),
            ],
        ),
        TunedVariant(
            name="node",
            variant="node (tuned)",
            default_variant="node (default)",
            stack="node",
            searched=["processes"],
            settings={},
            used_s=874.0,
            tried=16,
            rounds=27,
            measurements=158,
            steps=[TuningStep(used_s=110.0 * n, gain=1.0) for n in range(1, 7)],
            shares=[],
        ),
    ]
    known = run.head.experiment.variants
    better = {"nginx (tuned)": known["nginx (tuned)"].with_settings({"workers": 4})}
    changes = {"tuning": tuning, "variants": known | better}
    experiment = run.head.experiment.model_copy(update=changes)
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), run.records)


@cache
def capacities() -> SimulatedRun:
    """What two servers can take, one of them until its CPUs are busy; two objectives."""
    slo = ["p99<50ms", "failures<0.1%"]
    variants = {
        "apache-event": Variant(15_000, probed=_busy, beyond=0.0, back_s=None),
        "nginx": Variant(50_000, latency_us=1_250, beyond=0.97),
    }
    run = searched(slo=slo, **variants)
    title = {"title": "nginx against apache-event", "question": "Which can take more?"}
    experiment = run.head.experiment.model_copy(update=title)
    return SimulatedRun(run.head.model_copy(update={"experiment": experiment}), run.records)


UVICORN = SimulatedVariant(stack="uvicorn", server_cpu_us=340.0, latency_p50_us=420.0)
GRANIAN = SimulatedVariant(stack="granian", server_cpu_us=210.0, latency_p50_us=390.0)
GATHERS = SimulatedVariant(stack="gathers", server_cpu_us=150.0, latency_p50_us=9_000.0)


@cache
def costs() -> SimulatedRun:
    """What two servers cost at an arrival rate and at rest; one of them lets requests wait."""
    run = at_rate(2_000, {"uvicorn": UVICORN, "gathers": GATHERS}, rounds=6)
    return SimulatedRun(run.head, [it for record in run.records for it in _after_rest(record)])


def _after_rest(record: Record) -> list[Record]:
    """Give the end of a round with what was seen at rest before it."""
    if not isinstance(record, RoundRecord):
        return [record]
    idle = rest("gathers", record.round, cpu_s=0.0, wake_ups=50, memory_bytes=9_000_000)
    return [rest("uvicorn", record.round), idle.replace(held=12), record]


@cache
def rates() -> SimulatedRun:
    """What two servers cost at two arrival rates, one of which is too high for one of them."""
    records: list[Record] = []
    for number, rate_rps in enumerate((500, 5_000)):
        weak = SimulatedVariant(throughput_rps=2_800, server_cpu_us=340.0, latency_p50_us=420.0)
        run = at_rate(rate_rps, {"uvicorn": weak, "granian": GRANIAN}, rounds=6)
        records += [record.replace(point=number) for record in run.records]
    experiment = run.head.experiment.replace(factors={"load.rate_per_s": [500, 5_000]})
    return SimulatedRun(run.head.replace(experiment=experiment), records)


def _busy(slot: SlotRecord) -> SlotRecord:
    cpus = CpuUse(user_s=0.96, system_s=0, interrupts_s=0, idle_s=0.04, steal_s=0)
    return readings_with(host={"servers": cpus})(slot)


def _parts(run: SimulatedRun) -> tuple[RunHead, list[Record]]:
    return run.head, run.records


def _racing(head: RunHead, records: list[Record]) -> SimulatedRun:
    experiment = head.experiment.model_copy(update={"race": RANKING})
    return SimulatedRun(head.model_copy(update={"experiment": experiment}), records)


def _with_readings(record: Record) -> Record:
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


def sweep(factors: dict[str, list[Level]], *, probes: bool = True) -> SimulatedRun:
    """Variants that react to their point: nginx gains most at many connections."""
    records: list[Record] = []
    combinations = list(product(*factors.values()))
    for number, levels in enumerate(combinations):
        run = simulated_run(_variants_at(levels), rounds=6, seed=number)
        for record in run.records:
            there = record.model_copy(update={"point": number})
            records.append(_with_readings(there) if probes else there)
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

ALL = (
    capacities,
    costs,
    ranking,
    tuned,
    decided,
    probed,
    interference,
    piloted,
    several_variants,
    invalid,
    inconclusive,
    censored,
    gated,
    one_round,
    no_round,
    hostile,
    hostile_words,
)
Make = Callable[[], SimulatedRun]


@cache
def seen(run: SimulatedRun) -> RunView:
    """What there is to see of a run."""
    return run_view(run.whole, judge_sweep(run.whole))
