"""The whole judgement, as people and programs read it."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import START, SimulatedVariant, simulated_run
from validity.broken import readings_with
from webdyno.comparison import decide, judge
from webdyno.comparison.judgement import ratios_so_far
from webdyno.comparison.runs import compare_runs
from webdyno.comparison.sentences import known_and_needed
from webdyno.core.base import Interval
from webdyno.core.judgement import Because, Judgement, Verdict
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS
from webdyno.core.readings import ServerStatus
from webdyno.core.records import StopRecord
from webdyno.evidence.point_data import PointData
from webdyno.questions.compare.settings import OneSidedSettings


def judged(
    variants: dict[str, SimulatedVariant], rounds: int = 12, noise: float = 0.02
) -> Judgement:
    """The judgement of a simulated run."""
    run = simulated_run(variants, rounds=rounds, restart_sd=noise, slot_sd=noise)
    return judge(run.data)


def test_a_clear_difference_is_said_with_its_evidence() -> None:
    found = judged({"apache": SimulatedVariant(), "nginx": SimulatedVariant(throughput_rps=76_800)})
    assert found.verdict is Verdict.FASTER
    assert re.fullmatch(
        r"nginx is faster: 1\.\d\d× the throughput of apache \(95% CI 1\.\d\d–1\.\d\d×\)",
        found.headline,
    )
    assert found.rounds == 12
    assert {comparison.metric for comparison in found.comparisons} == {
        metric.name for metric in found.metrics
    }


def test_every_metric_of_every_variant_has_its_interval() -> None:
    found = judged({"apache": SimulatedVariant(), "nginx": SimulatedVariant(server_cpu_us=8.0)})
    values = {(value.variant, value.metric): value for value in found.variants}
    assert len(values) == 2 * len(found.metrics)
    nginx = values["nginx", "server_cpu_us"]
    assert nginx.interval is not None
    assert nginx.interval.estimate == pytest.approx(8.0, rel=0.05)
    assert len(nginx.by_round) == len(nginx.rounds) == 12


def test_equal_variants_are_equivalent_within_delta() -> None:
    found = judged({"a": SimulatedVariant(), "b": SimulatedVariant()}, noise=0.003)
    assert found.verdict is Verdict.EQUIVALENT
    assert re.search(
        r"^equivalent: .*±2% counts as equal; the difference is between "
        r"−[01]\.\d+% and \+[01]\.\d+%$",
        found.headline,
    )


def test_inconclusive_says_what_is_still_needed() -> None:
    found = judged({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6, noise=0.02)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert re.search(
        r"; known: the difference is between −[\d.]+% and \+[\d.]+%; "
        r"do: about \d+ more rounds \(\d+ minutes?\) should decide if the ratio stays as it is$",
        found.headline,
    )


def test_where_the_rate_is_inconclusive_and_another_metric_is_clear_both_are_said() -> None:
    variants = {"a": SimulatedVariant(), "b": SimulatedVariant(server_cpu_us=25.0)}
    found = judged(variants, rounds=8, noise=0.05)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert re.search(
        r"^b needs more CPU per request: \+2\d% \(95% CI \+1\d to \+3\d%\), "
        r"compared with a; inconclusive for throughput: b has .*; known: the difference is between",
        found.headline,
    )
    (rate,) = (it for it in found.comparisons if it.metric == "throughput_rps")
    assert rate.clear
    assert rate.clear.metric == "server_cpu_us"
    assert all(it.clear is None for it in found.comparisons if it.metric != "throughput_rps")


def test_wrong_answers_are_no_verdict_and_name_variant_and_path() -> None:
    found = judged(
        {"nginx": SimulatedVariant(), "apache": SimulatedVariant(wrong_status=404)}, rounds=6
    )
    assert found.verdict is Verdict.INVALID
    reported = "invalid: variant apache answered 404 to /hello.txt, 200 was expected; it says "
    assert found.headline.startswith(reported)
    rules = {warning.rule: warning for warning in found.warnings}
    assert rules.keys() == {"wrong-status"}
    assert {slot.variant for slot in found.excluded} == {"apache"}


def test_a_busy_client_leaves_server_cpu_comparable() -> None:
    found = judged(
        {"nginx": SimulatedVariant(busy=0.97), "apache": SimulatedVariant(server_cpu_us=40.0)}
    )
    by_metric = {comparison.metric: comparison for comparison in found.comparisons}
    assert by_metric["throughput_rps"].verdict is Verdict.INCONCLUSIVE
    assert by_metric["latency_p50_us"].verdict is Verdict.INVALID
    assert by_metric["server_cpu_us"].verdict is Verdict.SLOWER
    assert found.verdict is Verdict.INCONCLUSIVE


def test_the_rate_of_a_variant_that_kept_the_client_busy_is_a_lower_bound() -> None:
    quick = SimulatedVariant(throughput_rps=124_000, busy=0.97)
    found = judged({"apache": SimulatedVariant(), "nginx": quick})
    (rate,) = (it for it in found.comparisons if it.metric == "throughput_rps")
    assert rate.limited_by == {"nginx": "client"}
    assert found.verdict is Verdict.FASTER
    assert re.search(
        r"faster: at least 3.* from (2\.9|3\.0)\d×\); the client limited nginx, which may",
        found.headline.replace("×:", "× :"),
    )
    turned = judged({"nginx": quick, "apache": SimulatedVariant()})
    assert turned.verdict is Verdict.SLOWER
    assert "at most 0.3" in turned.headline


def test_a_client_that_both_variants_kept_busy_leaves_cpu_time_to_judge_by() -> None:
    variants = {
        "nginx": SimulatedVariant(busy=0.97),
        "apache": SimulatedVariant(server_cpu_us=40, busy=0.97),
    }
    found = judged(variants)
    assert found.verdict is Verdict.SLOWER
    assert "apache is worse" in found.headline
    assert "both apache and nginx were client-limited" in found.headline


def test_one_variant_out_of_three_being_broken_leaves_the_others_comparable() -> None:
    found = judged(
        {
            "baseline": SimulatedVariant(),
            "broken": SimulatedVariant(wrong_status=500),
            "quick": SimulatedVariant(throughput_rps=80_000),
        }
    )
    by_variant = {c.a: c.verdict for c in found.comparisons if c.metric == "throughput_rps"}
    assert by_variant == {"broken": Verdict.INVALID, "quick": Verdict.FASTER}
    assert found.verdict is Verdict.INVALID
    assert "invalid" in found.headline
    assert "quick is faster" in found.headline


def test_a_few_bad_slots_are_excluded_and_reported() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=8)
    records = list(run.records)
    at = next(i for i, r in enumerate(records) if r.kind == "slot" and r.phase == "measure")
    slot = records[at]
    assert slot.kind == "slot"
    timed_out = slot.load.failures.model_copy(update={"timeout": 3})
    records[at] = slot.model_copy(
        update={"load": slot.load.model_copy(update={"failures": timed_out})}
    )
    found = judge(PointData.of(run.head, records))
    assert found.verdict is not Verdict.INVALID
    (warning,) = found.warnings
    assert (warning.rule, warning.severity) == ("timeouts", "note")
    assert "in 1 of 32 slots (excluded)" in warning.what
    assert [(left.round, left.slot) for left in found.excluded] == [(slot.round, slot.slot)]


def test_a_percentile_has_its_interval_within_each_round() -> None:
    found = judged({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=6)
    by_metric = {(it.variant, it.metric): it for it in found.variants}
    p99 = by_metric["nginx", "latency_p99_us"]
    assert len(p99.within_rounds) == 6
    for value, within in zip(p99.by_round, p99.within_rounds, strict=True):
        assert within.low is not None
        assert within.high is not None
        assert within.low <= value <= within.high
    assert by_metric["nginx", "throughput_rps"].within_rounds == []


@pytest.mark.parametrize(
    ("question", "throughput_rps", "answer"),
    [
        ("faster", 44_000, "yes"),
        ("faster", 36_000, "no"),
        ("not-slower-by 5%", 40_000, "yes"),
        ("not-slower-by 5%", 30_000, "no"),
    ],
)
def test_a_question_in_one_direction_is_answered(
    question: str, throughput_rps: float, answer: str
) -> None:
    variants = {"nginx": SimulatedVariant(), "new": SimulatedVariant(throughput_rps=throughput_rps)}
    run = simulated_run(variants, rounds=12, restart_sd=0.01, slot_sd=0.01)
    run = run.asking(OneSidedSettings(claim=question))
    found = judge(run.data)
    (asked,) = (it.one_sided for it in found.comparisons if it.one_sided)
    assert asked.answer == answer
    assert f"{question}? {answer}: " in found.headline
    stop = decide(run.data, 10.0)
    assert stop is not None
    assert question in stop.why


@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_an_unfinished_run_is_inconclusive_and_one_without_a_round_incomplete(rounds: int) -> None:
    found = judged({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=rounds)
    assert found.verdict is (Verdict.INCONCLUSIVE if rounds else Verdict.INCOMPLETE)
    assert "few-rounds" in {warning.rule for warning in found.warnings}


@given(st.integers(0, 10_000), st.integers(6, 9), st.floats(0.3, 3))
@settings(max_examples=12)
def test_a_judgement_is_whole_and_always_the_same(seed: int, rounds: int, ratio: float) -> None:
    variants = {"a": SimulatedVariant(), "b": SimulatedVariant(throughput_rps=40_000 * ratio)}
    run = simulated_run(variants, rounds=rounds, seed=seed, measure=Measure(seed=seed))
    found = judge(run.data)
    assert found == judge(run.data)
    assert Judgement.model_validate_json(found.model_dump_json()) == found
    for comparison in found.comparisons:
        assert comparison.ratio is not None
        assert 0 < comparison.ratio.low <= comparison.ratio.estimate <= comparison.ratio.high


@pytest.mark.parametrize("name", METRICS)
@pytest.mark.parametrize("rounds", [0, 6])
def test_a_verdict_on_what_nothing_shows_of_is_incomplete(name: str, rounds: int) -> None:
    """As when a run is interrupted before its first round, or no probe was at work."""
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=rounds)
    measure = Measure.model_construct(**{**dict(Measure(seed=1)), "decide_on": name})
    experiment = run.head.experiment.model_copy(update={"measure": measure})
    head = run.head.model_copy(update={"experiment": experiment})
    found = judge(PointData.of(head, run.records))
    compared = {it.metric: it for it in found.comparisons}
    assert found.verdict is compared[name].verdict
    if not rounds or name in {"memory_mib", "context_switches"}:
        assert found.verdict is Verdict.INCOMPLETE
        assert compared[name].ratio is None
    assert compare_runs(*[PointData.of(head, run.records)] * 2).changes


def test_the_ratio_so_far_is_that_of_the_judgement() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=7)
    (so_far,) = ratios_so_far(run.data)
    assert so_far in judge(run.data).comparisons


def test_the_ratio_so_far_takes_only_the_deciding_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=2)

    def too_dear(_: object) -> float:
        raise AssertionError("another metric was computed")

    for name in set(METRICS) - {"throughput_rps"}:
        monkeypatch.setitem(METRICS, name, replace(METRICS[name], round_value=too_dear))
    assert ratios_so_far(run.data)


def test_why_it_ended_and_what_was_counted_next_to_is_reported() -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "apache": SimulatedVariant()}, rounds=6)
    stop = StopRecord(
        round=6, stopped_at=START, reason="precision", why="the ratio is known to ±2%"
    )
    status = {"cache": ServerStatus(hits=30, misses=10), "nginx": ServerStatus(requests=40)}
    records = [readings_with(status=status)(it) if it.kind == "slot" else it for it in run.records]
    found = judge(PointData.of(run.head, [*records, stop]))
    assert found.stopped_because == "the ratio is known to ±2%"
    assert [(it.variant, it.ready_s, it.hit_share) for it in found.facts] == [
        ("nginx", 0.05, {"cache": 0.75}),
        ("apache", 0.05, {"cache": 0.75}),
    ]
    assert judge(PointData.of(run.head, [stop, *records])).stopped_because is None


@pytest.mark.parametrize("because", ["exact-test", "near-threshold"])
def test_why_it_is_open_is_said_where_the_interval_excludes_1(because: Because) -> None:
    run = simulated_run({"nginx": SimulatedVariant(), "caddy": SimulatedVariant()}, rounds=6)
    first, *_ = judge(run.data).comparisons
    beyond = first.replace(
        verdict=Verdict.INCONCLUSIVE,
        because=because,
        why="The reason.",
        ratio=Interval(low=1.01, estimate=1.04, high=1.07),
        worst_case=None,
        rules_out=None,
        more_rounds=2,
        more_minutes=1.0,
    )
    do = ("Do", "About 2 more rounds (1 minute) should decide if the ratio stays as it is.")
    assert [*known_and_needed(beyond)] == [("Why", "The reason."), do]
    around = beyond.replace(ratio=Interval(low=0.99, estimate=1.04, high=1.07))
    assert [*known_and_needed(around)] == [do]
