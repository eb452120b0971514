"""Two runs of the same experiment."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from builders import SimulatedRun, SimulatedVariant, simulated_run
from validity.broken import readings_with
from webdyno.comparison.runs import TAKEN_BY_OTHERS, compare_runs
from webdyno.core.judgement import Verdict
from webdyno.core.measure import Measure
from webdyno.core.records import Record, SlotRecord
from webdyno.core.request import WrittenRequest
from webdyno.core.sweep import Change, RunComparison
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import welch

VARIANTS = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=20_000)}


def run(variants: dict[str, SimulatedVariant], seed: int, rounds: int = 10) -> SimulatedRun:
    """A run with little noise."""
    return simulated_run(
        variants,
        rounds=rounds,
        restart_sd=0.005,
        slot_sd=0.005,
        seed=seed,
        measure=Measure(seed=seed),
    )


def compared(before: SimulatedRun, after: SimulatedRun) -> RunComparison:
    """The second run judged against the first."""
    return compare_runs(before.data, after.data)


def rates(found: RunComparison) -> dict[str, Change]:
    """Changes of throughputs by subject."""
    return {change.subject: change for change in found.changes if change.metric == "throughput_rps"}


def test_welch_is_scipys() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.1, 0.02, 7), rng.normal(0, 0.08, 12)
    theirs = stats.ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    found = welch(a, b, 0.95)
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high))


def test_nothing_changed() -> None:
    found = compared(run(VARIANTS, 1), run(VARIANTS, 2))
    assert found.verdict is Verdict.EQUIVALENT
    assert found.differences == []
    assert set(rates(found)) == {"nginx", "apache", "apache / nginx"}


def test_a_variant_that_became_slower_decides() -> None:
    slower = VARIANTS | {"apache": SimulatedVariant(throughput_rps=16_000)}
    found = compared(run(VARIANTS, 1), run(slower, 2))
    assert found.verdict is Verdict.SLOWER
    assert "apache: 0.804× the throughput of before" in found.headline
    by_subject = rates(found)
    assert by_subject["nginx"].verdict is Verdict.EQUIVALENT
    assert by_subject["apache / nginx"].verdict is Verdict.SLOWER
    assert by_subject["apache / nginx"].change is not None
    assert by_subject["apache / nginx"].change.estimate == pytest.approx(0.8, rel=0.02)


def test_a_slower_machine_changes_variants_but_no_ratios() -> None:
    slower = {
        "nginx": SimulatedVariant(throughput_rps=30_000),
        "apache": SimulatedVariant(throughput_rps=15_000),
    }
    by_subject = rates(compared(run(VARIANTS, 1), run(slower, 2)))
    assert by_subject["nginx"].verdict is Verdict.SLOWER
    assert by_subject["apache / nginx"].verdict is Verdict.EQUIVALENT


def test_of_a_run_that_others_disturbed_nothing_can_be_said() -> None:
    """The second run has a sixth of the throughput, as others had the CPUs."""
    slower = {
        name: replace(variant, throughput_rps=variant.throughput_rps / 6)
        for name, variant in VARIANTS.items()
    }
    quiet, disturbed = (
        _next_to(run(VARIANTS, 1), others_s=0.0),
        _next_to(run(slower, 2), others_s=4.0),
    )
    found = compare_runs(quiet, disturbed)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "others took 0% of the servers' CPUs before and 9" in found.headline
    assert [it.what for it in found.differences] == [TAKEN_BY_OTHERS]


def _next_to(made: SimulatedRun, others_s: float) -> PointData:
    """A run next to others who used so many CPU seconds in each slot."""
    records: list[Record] = []
    for it in made.records:
        if isinstance(it, SlotRecord):
            used_s = it.servers.cpu_s + others_s
            cpus = {"user_s": used_s, "system_s": 0.0, "interrupts_s": 0.0, "idle_s": 0.0}
            records.append(readings_with(host={"servers": cpus})(it))
        else:
            records.append(it)
    return PointData.of(made.head, records)


def test_differences_of_the_surroundings_are_named() -> None:
    after = run(VARIANTS, 2)
    machine = after.head.machine.model_copy(update={"kernel": "6.12.0"})
    versions = after.head.versions | {"nginx": {"nginx": "1.28.0"}}
    head = after.head.model_copy(update={"machine": machine, "versions": versions})
    found = compared(run(VARIANTS, 1), SimulatedRun(head, after.records))
    assert {d.what: d.after for d in found.differences} == {
        "machine.kernel": "6.12.0",
        "versions.nginx.nginx": "1.28.0",
    }
    assert found.verdict is Verdict.EQUIVALENT


def test_a_warm_up_is_how_a_variant_was_measured_and_not_what_it_is() -> None:
    before, after = run(VARIANTS, 1), run(VARIANTS, 2)
    experiment = after.head.experiment
    longer = {**experiment.variants, "nginx": experiment.variants["nginx"].replace(warmup_s=30)}
    head = after.head.replace(experiment=experiment.replace(variants=longer))
    found = compared(before, replace(after, head=head))
    assert not found.mismatches
    assert [it.what for it in found.differences] == ["variants.nginx.warmup_s"]


def test_different_experiments_are_not_compared() -> None:
    after = run(VARIANTS, 2)
    load = after.head.experiment.load.model_copy(update={"connections": 16})
    experiment = after.head.experiment.model_copy(update={"load": load})
    found = compare_runs(run(VARIANTS, 1).data, after.data.under(experiment))
    assert found.verdict is Verdict.INVALID
    assert "load.connections was 64, now 16" in found.headline


def test_an_invalid_run_gives_no_verdict() -> None:
    broken = VARIANTS | {"apache": SimulatedVariant(wrong_status=500)}
    found = compared(run(VARIANTS, 1), run(broken, 2))
    assert found.verdict is Verdict.INVALID
    assert rates(found)["nginx"].verdict is Verdict.EQUIVALENT


def test_too_few_rounds_decide_nothing() -> None:
    found = compared(run(VARIANTS, 1), run(VARIANTS, 2, rounds=4))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "6 rounds" in rates(found)["nginx"].why


def test_runs_without_a_common_variant_are_not_compared() -> None:
    others = {"caddy": SimulatedVariant(), "lighttpd": SimulatedVariant()}
    assert compared(run(VARIANTS, 1), run(others, 2)).verdict is Verdict.INVALID


def test_other_requests_are_another_experiment() -> None:
    before, after = run(VARIANTS, 1), run(VARIANTS, 2)
    asked = {
        "requests": [
            WrittenRequest(path="/"),
            WrittenRequest(path="/order", method="POST", body="x"),
        ]
    }
    experiment = after.head.experiment.model_copy(update=asked)
    found = compare_runs(before.data, after.data.under(experiment))
    assert found.verdict is Verdict.INVALID
    assert [it.what for it in found.mismatches] == ["requests"]
