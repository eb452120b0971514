"""Variants against the baseline, on records."""

import numpy as np
import pytest

from builders import SimulatedVariant, run_head, simulated_run
from webdyno.comparison import judge
from webdyno.comparison.comparison import compare_variants, fewest_rounds, invert
from webdyno.comparison.ratio import shown_estimate
from webdyno.comparison.sentences import further, headline
from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.evidence.log_ratios import log_ratios
from webdyno.evidence.point_data import PointData
from webdyno.statistics.interval import estimate

THROUGHPUT, SWITCHES = METRICS["throughput_rps"], METRICS["context_switches"]


def compared(
    variants: dict[str, SimulatedVariant], rounds: int, noise: float = 0.01
) -> list[Comparison]:
    """Comparisons of simulated variants by throughput."""
    run = simulated_run(variants, rounds=rounds, restart_sd=noise, slot_sd=noise)
    return compare_variants(run.data, list(variants), THROUGHPUT, run.head.experiment.measure)


def test_the_ratio_is_of_the_variant_to_the_baseline() -> None:
    variants = {
        "old": SimulatedVariant(throughput_rps=40_000),
        "new": SimulatedVariant(throughput_rps=60_000),
    }
    (comparison,) = compared(variants, rounds=8)
    assert (comparison.a, comparison.b) == ("new", "old")
    assert comparison.ratio is not None
    assert comparison.ratio.low < 1.5 < comparison.ratio.high
    assert comparison.verdict is Verdict.FASTER
    assert len(comparison.rounds) == len(comparison.by_round) == 8
    assert np.exp(np.log(comparison.by_round).mean()) == pytest.approx(comparison.ratio.estimate)


def test_all_intervals_are_turned_with_the_ratio() -> None:
    fleet = {name: SimulatedVariant() for name in ("b", "a")}
    (comparison,) = compared(fleet, rounds=8)
    known = comparison.replace(
        worst_case=Interval(low=0.98, estimate=1.0, high=1.04),
        alone=Interval(low=0.5, estimate=1.0, high=4.0),
        rules_out="the difference is between −2% and +4%",
    )
    turned = invert(known)
    assert turned.alone is not None
    assert (turned.alone.low, turned.alone.high) == (0.25, 2.0)
    assert turned.rules_out == "the difference is between −3.9% and +2.1%"


def test_only_rounds_with_both_values_are_paired() -> None:
    (pair,) = log_ratios({"b": {0: 1.0, 1: 2.0, 3: 4.0}, "a": {1: 4.0, 2: 1.0, 3: 4.0}})
    assert pair.rounds == [1, 3]
    assert pair.d == pytest.approx([np.log(2), 0.0])


def test_more_variants_ask_for_more_rounds() -> None:
    measure = Measure()
    assert [fewest_rounds(measure, n) for n in (1, 2, 3, 4, 12)] == [6, 7, 7, 8, 9]


def test_holm_asks_most_of_the_clearest_difference() -> None:
    variants = {
        "baseline": SimulatedVariant(throughput_rps=40_000),
        "far": SimulatedVariant(throughput_rps=80_000),
        "near": SimulatedVariant(throughput_rps=42_000),
        "same": SimulatedVariant(throughput_rps=40_000),
    }
    by_variant = {comparison.a: comparison for comparison in compared(variants, rounds=14)}
    assert list(by_variant) == ["far", "near", "same"]
    assert by_variant["far"].verdict is Verdict.FASTER
    assert by_variant["near"].verdict is Verdict.FASTER
    assert by_variant["same"].verdict not in {Verdict.FASTER, Verdict.SLOWER}
    levels = sorted(c.ratio.confidence for c in by_variant.values() if c.ratio)
    assert levels == pytest.approx([0.95, 0.975, 1 - 0.05 / 3])
    assert by_variant["same"].ratio is not None
    assert by_variant["same"].ratio.confidence == pytest.approx(0.95)


def test_holm_stays_at_the_level_that_did_not_hold() -> None:
    variants = {name: SimulatedVariant() for name in ("baseline", "x", "y", "z")}
    found = compared(variants, rounds=9)
    assert not {c.verdict for c in found} & {Verdict.FASTER, Verdict.SLOWER}
    assert {round(c.ratio.confidence, 6) for c in found if c.ratio} == {round(1 - 0.05 / 3, 6)}


def test_a_variant_without_values_has_no_interval() -> None:
    variants = {"baseline": SimulatedVariant(), "dead": SimulatedVariant(wrong_status=500)}
    (comparison,) = compared(variants, rounds=6)
    assert comparison.ratio is None
    assert comparison.sign_flip_p is None
    assert comparison.verdict is Verdict.INCOMPLETE


def test_missing_minutes_follow_from_missing_rounds() -> None:
    (comparison,) = compared(
        {"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6, noise=0.04
    )
    assert comparison.verdict is Verdict.INCONCLUSIVE
    assert comparison.more_rounds is not None
    assert comparison.more_minutes is not None
    assert comparison.more_minutes == pytest.approx(comparison.more_rounds * 6.56 / 60, rel=0.01)


def test_intervals_that_end_a_run_early_are_widened() -> None:
    d = np.random.default_rng(0).normal(0.0, 0.01, 12)
    shown, precise = shown_estimate(d, Measure(), 0.95)
    assert precise
    first, _ = shown_estimate(d[:6], Measure(), 0.95)
    assert first.half_width == pytest.approx(estimate(d[:6], 0.95).half_width)
    assert shown.half_width == pytest.approx(1.08 * estimate(d, 0.95).half_width)
    _, precise = shown_estimate(d, Measure(precision=0.0001), 0.95)
    assert not precise


def test_intervals_that_no_run_stops_for_are_shown_as_they_are() -> None:
    d = np.random.default_rng(0).normal(0.0, 0.1, 12)
    shown, precise = shown_estimate(d, Measure(), 0.95)
    assert not precise
    assert shown == estimate(d, 0.95)


def by_switches(a: float, b: float, noise: float = 0.02) -> Comparison:
    """A comparison by context switches per request: those of a variant, and of the baseline."""
    rng = np.random.default_rng(1)

    class Counted(PointData):
        def values(self, variant: str, _: MetricRule) -> dict[int, float]:
            mean = {"a": a, "b": b}[variant]
            return {n: mean * float(np.exp(rng.normal(0, noise))) for n in range(8)}

    (found,) = compare_variants(Counted(run_head()), ["b", "a"], SWITCHES, Measure())
    return found


def test_a_ratio_of_next_to_nothing_is_no_difference() -> None:
    """One switch in a hundred requests against one in two hundred: twice as many, of nothing."""
    found = by_switches(0.010, 0.005)
    assert found.ratio is not None
    assert found.ratio.low > 1.9
    assert (found.verdict, found.negligible) == (Verdict.EQUIVALENT, True)
    assert "less than 0.05 context switches per request" in found.why
    assert headline([found]).endswith("the difference is below the practical threshold")


def test_the_same_ratio_of_something_is_a_difference() -> None:
    found = by_switches(1.0, 0.5)
    assert (found.verdict, found.negligible) == (Verdict.SLOWER, False)


def test_an_interval_that_reaches_beyond_the_floor_is_inconclusive() -> None:
    found = by_switches(0.06, 0.03, noise=0.8)
    assert (found.verdict, found.negligible) == (Verdict.INCONCLUSIVE, False)


def test_equals_are_no_more_negligible_than_equivalent() -> None:
    found = by_switches(0.0100, 0.0100, noise=0.001)
    assert (found.verdict, found.negligible) == (Verdict.EQUIVALENT, False)


def test_extreme_ratios_have_an_interval_all_the_same() -> None:
    found = by_switches(1e300, 1e-300, noise=5.0)
    assert found.ratio is not None
    assert np.isfinite(found.ratio.high)


def judged(variants: dict[str, SimulatedVariant], noise: float, rounds: int = 8) -> Judgement:
    """The judgement of variants, of which those with the same stack are doubles."""
    run = simulated_run(variants, rounds=rounds, restart_sd=noise, slot_sd=noise)
    return judge(run.data)


def by_rate(judgement: Judgement) -> dict[str, Comparison]:
    """The comparisons of throughputs by variant."""
    return {c.a: c for c in judgement.comparisons if c.metric == "throughput_rps"}


def test_the_noise_between_equals_is_the_smallest_difference_that_counts() -> None:
    variants = {
        "nginx": SimulatedVariant(),
        "again": SimulatedVariant(),
        "apache": SimulatedVariant(stack="apache", throughput_rps=20_000),
    }
    found = by_rate(judged(variants, noise=0.05))
    assert found["again"].same_variant
    assert not found["apache"].same_variant
    assert found["again"].ratio is not None
    half_width = found["again"].ratio.high / found["again"].ratio.estimate - 1
    assert half_width > 0.02
    assert found["apache"].delta == pytest.approx(half_width)
    assert found["apache"].verdict is Verdict.SLOWER
    assert found["apache"].ratio is not None
    assert found["apache"].ratio.confidence == 0.95


def test_on_a_quiet_machine_delta_stays_at_two_per_cent() -> None:
    variants = {
        "nginx": SimulatedVariant(),
        "again": SimulatedVariant(),
        "apache": SimulatedVariant(stack="apache"),
    }
    assert by_rate(judged(variants, noise=0.002))["apache"].delta == 0.02


def test_equals_that_come_out_different_widen_delta_and_are_reported() -> None:
    variants = {
        "nginx": SimulatedVariant(),
        "again": SimulatedVariant(throughput_rps=42_500),
        "apache": SimulatedVariant(stack="apache", throughput_rps=41_000),
    }
    judgement = judged(variants, noise=0.003)
    found = by_rate(judgement)
    assert found["apache"].delta == pytest.approx(0.065, abs=0.015)
    assert found["apache"].verdict is Verdict.EQUIVALENT
    warning = next(
        f for f in judgement.warnings if f.rule == "same-variant" and "throughput_rps" in f.metrics
    )
    assert warning.severity == "note"
    assert "defined like nginx" in warning.what
    assert warning.metrics == ["throughput_rps"]


def test_where_equals_differ_by_much_nothing_is_equivalent() -> None:
    variants = {
        "nginx": SimulatedVariant(),
        "again": SimulatedVariant(throughput_rps=60_000, latency_p50_us=900),
        "apache": SimulatedVariant(stack="apache"),
    }
    judgement = judged(variants, noise=0.003)
    found = by_rate(judgement)["apache"]
    assert found.delta > 0.4
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.more_rounds is None
    assert "too noisy to say: copies of nginx differ by up to" in " ".join(further(found))
    (warning,) = (it for it in judgement.warnings if it.rule == "same-variant")
    assert "throughput_rps" in warning.metrics
    assert "latency_p50_us" in warning.metrics


def test_only_equals_are_compared_as_usual() -> None:
    judgement = judged({"nginx": SimulatedVariant(), "again": SimulatedVariant()}, noise=0.003)
    assert judgement.verdict is Verdict.EQUIVALENT
    assert by_rate(judgement)["again"].same_variant
    assert judgement.warnings == []
