"""Claims compared with runs whose truth is known."""

from math import exp
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import SimulatedRun, SimulatedVariant, simulated_run
from comparison.searches import Variant, searched
from webdyno.comparison import judge
from webdyno.config import Catalogue
from webdyno.config.catalogue import check_study, levels_first, read_studies
from webdyno.core.base import Interval
from webdyno.core.judgement import Bias, Comparison, Verdict
from webdyno.core.load_result import Bytes
from webdyno.core.metrics import CAPACITY
from webdyno.core.records import SlotRecord
from webdyno.core.study import Claim, ClaimRow, Outcome
from webdyno.core.sweep import plan_points
from webdyno.evidence.point_data import RunData
from webdyno.load.interface import generator_fault
from webdyno.measure.budget import need_s, reduce_levels
from webdyno.report.claims import claims_markdown
from webdyno.studies.claims import (
    RESERVE,
    claimed_range,
    further_rounds,
    judge_claim,
    next_batch,
    outcome_at,
    rounds_to_decide,
)

CATALOGUE = Catalogue.load()
STUDIES = read_studies()


def run(nginx: SimulatedVariant, *, rounds: int = 8, noise: float = 0.01) -> SimulatedRun:
    """Simulate a run of nginx against an Apache that answers 20 000 requests per second."""
    variants = {"apache": SimulatedVariant(throughput_rps=20_000), "nginx": nginx}
    return simulated_run(variants, rounds=rounds, restart_sd=noise, slot_sd=noise)


def claim(**bounds: float) -> Claim:
    """Claim that nginx's throughput is so many times Apache's."""
    data = {
        "says": "",
        "published": "",
        "experiment": "x",
        "variants": ["nginx"],
        "against": "apache",
    }
    return Claim.model_validate(data | bounds)


def judged(claim: Claim, run: SimulatedRun) -> ClaimRow:
    """Judge a claim by a run."""
    return judge_claim("study", claim, run.whole)


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ({"above": 1.0}, Outcome.HOLDS),
        ({"above": 1.7, "below": 2.3}, Outcome.HOLDS),
        ({"above": 3.0}, Outcome.FAILS),
        ({"below": 1.0}, Outcome.FAILS),
        ({"above": 1.0, "below": 1.25}, Outcome.FAILS),
    ],
)
def test_a_claim_holds_where_the_whole_interval_is_inside_its_bounds(
    bounds: dict[str, float], outcome: Outcome
) -> None:
    row = judged(claim(**bounds), run(SimulatedVariant(throughput_rps=40_000)))
    assert row.outcome is outcome
    assert row.reported[0].found[0].estimate == pytest.approx(2, rel=0.1)
    assert "interval lies" in row.reason


def test_an_interval_around_a_bound_decides_nothing() -> None:
    row = judged(claim(above=2.0), run(SimulatedVariant(throughput_rps=40_000), noise=0.2))
    assert row.outcome is Outcome.INCONCLUSIVE
    assert "above 2" in row.reason


def test_five_rounds_decide_nothing() -> None:
    row = judged(claim(above=1.0), run(SimulatedVariant(throughput_rps=40_000), rounds=5))
    assert row.outcome is Outcome.INCONCLUSIVE
    assert row.reason == "only 5 valid rounds, 6 are the fewest"


def test_a_claim_may_compare_any_two_variants_and_several_with_one() -> None:
    rates = {"apache": 20_000, "nginx": 40_000, "cdn": 80_000}
    variants = {name: SimulatedVariant(throughput_rps=rate) for name, rate in rates.items()}
    simulated = simulated_run(variants, rounds=8, restart_sd=0.01, slot_sd=0.01)
    slowest = claim(above=1.0).model_copy(update={"variants": ["nginx", "cdn"]})
    row = judged(slowest, simulated)
    assert row.outcome is Outcome.HOLDS
    assert [round(ratio.estimate) for ratio in row.reported[0].found] == [2, 4]
    assert row.reason.startswith("in 2 of 2 comparisons ")
    assert judged(slowest.model_copy(update={"below": 3.0}), simulated).outcome is Outcome.FAILS
    half = claim(below=0.6).model_copy(update={"against": "cdn"})
    assert judged(half, simulated).outcome is Outcome.HOLDS


def test_error_pages_report_nothing_and_the_reason_says_so() -> None:
    row = judged(claim(above=1.0), run(SimulatedVariant(throughput_rps=40_000, wrong_status=503)))
    assert row.outcome is Outcome.NOT_JUDGED
    assert "503" in row.reason


def test_a_claim_without_a_run_has_a_row_with_the_reason() -> None:
    nothing = judge_claim("study", claim(above=1.0), None)
    assert (nothing.outcome, nothing.reason) == (
        Outcome.NOT_JUDGED,
        "experiment x has not been run",
    )


def figure(**changes: Any) -> Claim:  # noqa: ANN401
    """Claim a figure of nginx."""
    data = {"says": "", "published": "0.4 ms", "experiment": "x", "variants": ["nginx"]}
    return Claim.model_validate(data | changes)


def test_a_capacity_stands_next_to_the_published_one() -> None:
    simulated = searched(slo=["failures<0.1%"], apache=Variant(15_000), nginx=Variant(50_000))
    row = judged(figure(metric=CAPACITY, published="2000 requests/s"), simulated)
    assert row.outcome is Outcome.SHOWN
    assert row.reported[0].found[0].estimate == pytest.approx(50_000, rel=0.03)
    assert "limit of" not in row.reason


def test_a_capacity_beyond_the_load_generator_is_reported_as_such() -> None:
    simulated = searched(apache=Variant(15_000), nginx=Variant(50_000, client_rps=30_000))
    row = judged(figure(metric=CAPACITY), simulated)
    assert row.reason.endswith("; nginx: limited by client or link")


def test_rates_before_failure_are_capacities() -> None:
    claims = [(study.name, it) for study in STUDIES.values() for it in study.claims]
    found = {name: it for name, it in claims if it.metric == CAPACITY}
    assert set(found) == {"deathmatch", "heroku-wordpress"}
    for it in found.values():
        asked = CATALOGUE.experiment(it.experiment).capacity
        assert asked
        assert "failures<0.1%" in asked.slo


def test_a_figure_of_another_machine_is_shown_without_a_verdict() -> None:
    simulated = run(SimulatedVariant(throughput_rps=40_000, latency_p50_us=400))
    row = judged(figure(metric="latency_p50_us"), simulated)
    assert row.outcome is Outcome.SHOWN
    (found,) = row.reported[0].found
    assert found.estimate == pytest.approx(400, rel=0.1)
    assert "0.4 ms" in claims_markdown([row])
    wrong = judged(figure(), run(SimulatedVariant(wrong_status=503)))
    assert (wrong.outcome, wrong.reported[0].found) == (Outcome.NOT_JUDGED, [])


def test_equal_variants_refute_a_difference_of_whatever_size() -> None:
    equal = run(SimulatedVariant(throughput_rps=20_000), rounds=30, noise=0.002)
    assert judged(claim(above=1.0), equal).outcome is Outcome.FAILS
    assert "no difference that matters" in judged(claim(above=1.0), equal).reason
    assert "the difference is between" in judged(claim(above=0.9, below=1.1), equal).reason
    assert judged(claim(above=0.9, below=1.1), equal).outcome is Outcome.HOLDS


def compared(simulated: SimulatedRun, **changes: Any) -> Comparison:  # noqa: ANN401
    """Compare nginx with Apache by throughput, with changes to the comparison."""
    (first,) = (it for it in judge(simulated.data).comparisons[:1])
    return first.model_copy(update=changes)


def test_a_ratio_known_from_one_side_decides_where_that_side_suffices() -> None:
    found = compared(run(SimulatedVariant(throughput_rps=40_000)))
    assert found.ratio is not None
    at_least = found.ratio.model_copy(update={"high": 1e300})
    censored = found.model_copy(
        update={
            "worst_case": at_least,
            "limited_by": {"nginx": "client"},
            "verdict": Verdict.FASTER,
        }
    )
    assert outcome_at(claim(above=1.5), censored) is Outcome.HOLDS
    assert outcome_at(claim(above=1.5, below=2.5), censored) is Outcome.INCONCLUSIVE
    assert outcome_at(claim(above=1.2, below=1.5), censored) is Outcome.FAILS


def test_interference_counts_against_an_outcome() -> None:
    found = compared(run(SimulatedVariant(throughput_rps=40_000)))
    assert found.ratio is not None
    bias = Bias(cause="steal", variant="nginx", too_low=None, too_high=2.0)
    wide = found.ratio.model_copy(update={"low": found.ratio.low / 2})
    interfered = found.model_copy(update={"worst_case": wide, "biases": [bias]})
    assert outcome_at(claim(above=1.5), interfered) is Outcome.INCONCLUSIVE
    assert outcome_at(claim(above=1.5), found) is Outcome.HOLDS


def test_rounds_are_foreseen_that_decide() -> None:
    """Half the width takes four times the rounds; what is biased or balanced is in vain."""
    found = compared(
        run(SimulatedVariant()),
        ratio=Interval(low=exp(-0.1), estimate=1.0, high=exp(0.1)),
        by_round=[1.0] * 10,
        worst_case=None,
    )
    more = rounds_to_decide(claim(above=exp(-0.05)), found)
    assert more == pytest.approx(10 * 4 * RESERVE - 10, abs=1)
    assert rounds_to_decide(claim(above=exp(-0.001)), found) is None
    biased = Interval(low=exp(-0.16), estimate=1.0, high=exp(0.1))
    interfered = found.model_copy(update={"worst_case": biased})
    assert rounds_to_decide(claim(above=exp(-0.05)), interfered) is None


@given(rate=st.floats(0.5, 2.0), noise=st.floats(0.01, 0.2), bound=st.floats(0.5, 2.0))
@settings(max_examples=20, deadline=None)
def test_only_inconclusive_claims_get_more_rounds(rate: float, noise: float, bound: float) -> None:
    simulated = run(SimulatedVariant(throughput_rps=20_000 * rate), rounds=6, noise=noise)
    of = claim(above=bound)
    foreseen = further_rounds(of, simulated.whole)
    due = next_batch(foreseen, 1000.0, [])
    if judged(of, simulated).outcome is not Outcome.INCONCLUSIVE:
        assert due is None
    elif due:
        assert 0 < due.more <= 6
        assert due.rounds == 6 + due.more
        assert next_batch(foreseen, 1000.0, [due]) is None
    assert next_batch(foreseen, 0.0, []) is None


def test_a_claim_with_too_few_rounds_gets_those_it_lacks() -> None:
    simulated = run(SimulatedVariant(throughput_rps=40_000), rounds=4)
    lacking = further_rounds(claim(above=1.0), simulated.whole)
    due = next_batch(lacking, 100.0, [])
    assert due is not None
    assert (due.rounds, due.more) == (6, 2)


@pytest.mark.parametrize(("rounds", "said_of", "more"), [(8, 0, 0), (4, 0, 6), (8, 3, 8)])
def test_rounds_that_report_nothing_are_not_measured_again_and_again(
    rounds: int, said_of: int, more: int
) -> None:
    """As where a load generator doesn't count bytes."""
    simulated = run(SimulatedVariant(throughput_rps=40_000), rounds=rounds)
    silent = [
        it.model_copy(update={"load": it.load.model_copy(update={"bytes": Bytes()})})
        if isinstance(it, SlotRecord) and it.variant == "nginx" and it.round >= said_of
        else it
        for it in simulated.records
    ]
    of = claim(above=1.0).model_copy(update={"metric": "response_bytes"})
    lacking = further_rounds(of, RunData(simulated.head, silent))
    assert [it.more for it in lacking] == ([more] if more else [])


def test_levels_that_were_not_measured_are_reported() -> None:
    simulated = run(SimulatedVariant())
    factors = {"load.connections": [1, 512]}
    experiment = simulated.head.experiment.model_copy(update={"factors": factors})
    head = simulated.head.model_copy(update={"experiment": experiment})
    at_512 = claim(above=1.0).model_copy(update={"at": {"load.connections": 512}})
    row = judge_claim("study", at_512, RunData(head, simulated.records))
    assert row.outcome is Outcome.NOT_JUDGED
    assert "no finished round at its levels" in row.reason


def test_a_claim_without_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="above or below"):
        claim()


def test_bounds_in_words() -> None:
    assert [claimed_range(claim(above=2.0)), claimed_range(claim(below=1.0))] == [
        "above 2",
        "below 1",
    ]
    assert claimed_range(claim(above=0.9, below=1.1)) == "0.9 to 1.1"


@pytest.mark.parametrize("name", STUDIES)
def test_every_study_fits_its_experiments(name: str) -> None:
    check_study(STUDIES[name], CATALOGUE)


@pytest.mark.parametrize("name", CATALOGUE.experiments)
def test_every_experiment_can_be_run_at_all_of_its_points(name: str) -> None:
    for plan in plan_points(CATALOGUE.experiment(name)):
        assert generator_fault(plan.experiment) is None


def test_an_hour_measures_where_every_claim_of_a_study_can_be_reported() -> None:
    planned = [
        (study, name, CATALOGUE.experiment(name))
        for study in STUDIES.values()
        for name in study.experiments
    ]
    firsts = [levels_first(*plan) for plan in planned]
    needs = [need_s(plan[2], CATALOGUE, first) for plan, first in zip(planned, firsts, strict=True)]
    assert sum(needs) <= 3600
    for (study, name, experiment), first, need in zip(planned, firsts, needs, strict=True):
        kept = reduce_levels(experiment, CATALOGUE, 3600 * need / sum(needs), first)
        levels = [plan.point.levels for plan in plan_points(kept)]
        for each in study.claims:
            if each.experiment == name:
                assert any(each.at.items() <= there.items() for there in levels), each.says
        assert kept.factors.get("generator") == experiment.factors.get("generator")
