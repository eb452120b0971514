"""Runs that ask for something else: a gate, ranks, tunings, capacities, costs."""

from functools import cache

from builders import START, SimulatedRun, SimulatedVariant, simulated_run
from comparison.searches import Variant, searched
from evidence.rates import at_rate, instructions, rest
from report.comparisons import LONG_NAME, NGINX
from validity.broken import readings_with
from webdyno.core.limits import BASELINE, BASELINE_AGAIN, HEAD
from webdyno.core.readings import CpuUse
from webdyno.core.records import IncidentRecord, Record, RoundRecord, SlotRecord
from webdyno.core.run import RunHead
from webdyno.core.setting import SettingShare, TunedVariant, TuningStep
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.ranking.settings import RankingSettings

UVICORN = SimulatedVariant(stack="uvicorn", server_cpu_us=340.0, latency_p50_us=420.0)
GRANIAN = SimulatedVariant(stack="granian", server_cpu_us=210.0, latency_p50_us=390.0)
GATHERS = SimulatedVariant(stack="gathers", server_cpu_us=150.0, latency_p50_us=9_000.0)


@cache
def gated() -> SimulatedRun:
    """A revision that costs its servers a fifth more than the one it is based on."""
    variants = {BASELINE: NGINX, BASELINE_AGAIN: NGINX, HEAD: SimulatedVariant(server_cpu_us=13.6)}
    run = simulated_run(variants, rounds=8, title="The working tree against main")
    return run.asking(GateSettings())


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
def many() -> SimulatedRun:
    """More variants than there are colors."""
    variants = {
        f"server-{n}": SimulatedVariant(stack=f"server-{n}", throughput_rps=9_000 + 4_000 * (n % 5))
        for n in range(7)
    }
    return _racing(*_parts(simulated_run(variants, rounds=12, title="A ranking of 7")))


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
    counted = [
        instructions("uvicorn", record.round),
        instructions("gathers", record.round, each=150_000),
    ]
    return [*counted, rest("uvicorn", record.round), idle.replace(held=12), record]


def _busy(slot: SlotRecord) -> SlotRecord:
    cpus = CpuUse(user_s=0.96, system_s=0, interrupts_s=0, idle_s=0.04, steal_s=0)
    return readings_with(host={"servers": cpus})(slot)


def _parts(run: SimulatedRun) -> tuple[RunHead, list[Record]]:
    return run.head, run.records


def _racing(head: RunHead, records: list[Record]) -> SimulatedRun:
    return SimulatedRun(head, records).asking(RankingSettings())
