"""One ranking of several runs."""

import re
from itertools import combinations

import pytest

from builders import SimulatedRun
from league.leagues import (
    FIRST,
    RATES,
    SECOND,
    THIRD,
    judged,
    run_of,
    three_runs,
    with_bursts,
    with_cold,
)
from variants import further
from webdyno.core.judgement import Ranking, VariantValue, Verdict
from webdyno.core.metrics import CPU_TIME, THROUGHPUT
from webdyno.league.joined import APART, CONTRADICTED, Joined, join
from webdyno.league.judged import JudgedRun, current_runs

PARTS = (THIRD, SECOND, FIRST)


def ranks_of(ranking: Ranking) -> dict[str, tuple[int, int]]:
    return {rank.variant: (rank.best, rank.worst) for rank in ranking.ranks}


def true_ranks() -> dict[str, tuple[int, int]]:
    return {
        name: (
            1 + sum(other > rate for other in RATES.values()),
            sum(other >= rate for other in RATES.values()),
        )
        for name, rate in RATES.items()
    }


def assert_right(joined: Joined) -> None:
    found, true = ranks_of(joined.ranking), true_ranks()
    assert set(found) == set(true)
    for name, (best, worst) in found.items():
        assert best <= true[name][0], name
        assert worst >= true[name][1], name


@pytest.mark.parametrize("drift", [0.7, *map(further, (1.0, 1.4))])
def test_stacks_of_three_runs_get_their_ranks_whatever_the_day_was_like(drift: float) -> None:
    joined = join(three_runs(drift))
    assert_right(joined)
    ranks = ranks_of(joined.ranking)
    assert ranks["actix-web"] == (1, 1)
    assert ranks["gunicorn-flask"] == (8, 8)
    assert joined.figures[THROUGHPUT]["axum"].estimate == pytest.approx(RATES["axum"], rel=0.05)
    assert joined.figures[CPU_TIME]["axum"].estimate == pytest.approx(1e6 / RATES["axum"], rel=0.05)


def test_a_figure_of_another_run_has_the_uncertainty_of_the_stacks_that_join_it() -> None:
    joined = join(three_runs())
    measured = joined.of_stack["axum"].value("axum", joined.decide_on)
    assert measured
    assert measured.interval
    on_scale = joined.figures[joined.decide_on]["axum"]
    shown, own = (each.high / each.low for each in (on_scale, measured.interval))
    assert own < shown < own**2


def test_a_figure_whose_lower_end_is_0_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    known = JudgedRun.value

    def wide(run: JudgedRun, stack: str, metric: str) -> VariantValue | None:
        value = known(run, stack, metric)
        if value is None or value.interval is None:
            return value
        return value.replace(interval=value.interval.replace(low=0.0))

    monkeypatch.setattr(JudgedRun, "value", wide)
    figure = join(three_runs()).figures[THROUGHPUT]["axum"]
    assert 0 < figure.low < figure.estimate < figure.high


@pytest.mark.long
@pytest.mark.timeout(900)
def test_hardly_a_league_has_a_wrong_rank() -> None:
    close = {name: 50_000.0 * 1.03**place for place, name in enumerate(RATES)}
    order = sorted(close, key=close.__getitem__, reverse=True)
    wrong = 0
    for seed in range(0, 60, 3):
        runs = (run_of(part, seed=seed + n, rates=close) for n, part in enumerate(PARTS))
        ranks = ranks_of(join(judged(*runs)).ranking)
        wrong += any(
            not best <= order.index(name) + 1 <= worst for name, (best, worst) in ranks.items()
        )
    assert wrong <= 2


def test_equal_ones_of_different_runs_share_their_ranks() -> None:
    ranks = ranks_of(join(three_runs()).ranking)
    assert ranks["go-chi"] == ranks["go-nethttp"] == (3, 4)


def test_of_those_that_may_be_as_good_the_one_with_the_highest_estimate_comes_first() -> None:
    close = {name: 50_000.0 * 1.01**place for place, name in enumerate(RATES)}
    runs = (run_of(part, seed=seed, rates=close) for seed, part in enumerate(PARTS))
    joined = join(judged(*runs))
    ranks = joined.ranking.ranks
    assert any(rank.best != rank.worst for rank in ranks)
    places = [(rank.best, -joined.figures[THROUGHPUT][rank.variant].estimate) for rank in ranks]
    assert places == sorted(places)


def test_all_ranks_hold_together_as_often_as_is_said() -> None:
    assert join(three_runs()).confidence == pytest.approx(0.95)
    (alone,) = judged(run_of(FIRST, together=1))
    assert join([alone]).confidence == pytest.approx(0.95)


def test_one_run_is_its_own_ranking() -> None:
    (alone,) = judged(run_of(FIRST, together=1))
    assert ranks_of(join([alone]).ranking) == ranks_of(alone.ranking)


def test_the_newest_result_of_a_stack_counts() -> None:
    old = run_of(FIRST, seed=1)
    slower = RATES | {"actix-web": 20_000.0}
    new = run_of(FIRST, seed=2, rates=slower)
    joined = join(judged(new, old))
    assert len(joined.runs) == 1
    assert ranks_of(joined.ranking)["actix-web"] == (3, 3)


def test_runs_without_a_shared_stack_say_nothing_of_each_other() -> None:
    joined = join(judged(run_of(("axum", "bun", "express")), run_of(FIRST[:3], seed=2)))
    apart = {(pair.a, pair.b): pair for pair in joined.ranking.pairs}
    pair = apart["axum", "actix-web"]
    assert pair.verdict is Verdict.INCONCLUSIVE
    assert pair.why == APART


def test_runs_that_contradict_each_other_leave_pairs_open() -> None:
    turned = RATES | {"go-chi": 20_000.0, "fastify": 70_000.0}
    joined = join(judged(run_of(SECOND, seed=2, rates=turned), run_of(FIRST, seed=1)))
    by_pair = {(pair.a, pair.b): pair for pair in joined.ranking.pairs}
    assert by_pair["axum", "express"].why == CONTRADICTED
    assert by_pair["axum", "express"].verdict is Verdict.INCONCLUSIVE


def test_both_ways_round_say_the_same() -> None:
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    by_pair = {(pair.a, pair.b): pair.verdict for pair in join(three_runs()).ranking.pairs}
    for a, b in combinations(RATES, 2):
        assert by_pair[a, b] is opposite.get(by_pair[b, a], by_pair[b, a])


def test_runs_of_which_all_stacks_have_newer_results_dont_count() -> None:
    runs = judged(run_of(FIRST, seed=2), run_of(FIRST[:3], seed=1))
    assert current_runs(runs) == runs[:1]


def test_a_stack_with_another_version_joins_nothing() -> None:
    new, old = run_of(SECOND, seed=2), run_of(FIRST, seed=1)
    versions = new.head.versions | {"go-chi": {"Go": "2.0"}, "fastify": {"node": "99"}}
    other = SimulatedRun(new.head.replace(versions=versions), new.records)
    by_pair = {(pair.a, pair.b): pair.why for pair in join(judged(other, old)).ranking.pairs}
    assert by_pair["axum", "express"] == APART


@pytest.mark.parametrize(("by_slot", "is_cold"), [(0.1, True), (0.005, False), (-0.05, False)])
def test_what_had_not_warmed_up_has_no_rank(by_slot: float, is_cold: bool) -> None:
    joined = join(judged(with_cold(run_of(FIRST), "express", by_slot)))
    assert ("express" in ranks_of(joined.ranking)) is not is_cold
    if is_cold:
        assert re.search(r"rose by [\d.]+% within a round", joined.ranking.out["express"])


@pytest.mark.parametrize("is_seen", [True, False])
def test_who_was_cold_in_a_run_is_compared_by_others(is_seen: bool) -> None:
    """It was seen in its slots, or shows in a later run that gave it a warm-up of its own."""
    stacks = ("bun", "go-chi", "fastify", "express")
    before = run_of(stacks, rates=RATES | {"express": 2_000.0}, seed=2)
    if is_seen:
        before = with_cold(before, "express", 0.1)
    now = run_of(FIRST) if is_seen else with_bursts(run_of(FIRST), "express", flat)
    joined = join(judged(now, before))
    (pair,) = (each for each in joined.ranking.pairs if (each.a, each.b) == ("bun", "express"))
    assert pair.ratio
    assert pair.ratio.estimate == pytest.approx(RATES["bun"] / RATES["express"], rel=0.1)


def test_a_run_gets_its_scale_from_runs_between_it_and_the_newest() -> None:
    """The second has no stack of the newest; the oldest has one of either."""
    parts = (("actix-web", "go-chi"), ("bun", "express"), ("go-chi", "bun", "fastify"))
    drifts = (1.0, 0.5, 1.4)
    joined = join(
        judged(
            *(
                run_of(part, seed=seed, drift=drift)
                for seed, (part, drift) in enumerate(zip(parts, drifts, strict=True))
            )
        )
    )
    for stack, rate in joined.figures[THROUGHPUT].items():
        assert rate.estimate == pytest.approx(RATES[stack], rel=0.08)


def flat(_round_number: int) -> list[float]:
    return [RATES["express"]] * 10


def test_a_stack_that_had_not_warmed_up_joins_nothing() -> None:
    cold = with_cold(run_of(SECOND, rates=RATES | {"fastify": 3_000.0}, seed=2), "fastify", 0.1)
    joined = join(judged(cold, run_of(FIRST)))
    right = join(judged(run_of(["go-chi", "axum", "bun"], seed=2), run_of(FIRST)))
    assert joined.figures[THROUGHPUT]["express"].estimate == pytest.approx(
        right.figures[THROUGHPUT]["express"].estimate, rel=0.05
    )
    verdicts = {(pair.a, pair.b): pair.verdict for pair in joined.ranking.pairs}
    assert verdicts["axum", "express"] is Verdict.FASTER
    assert joined.of_stack["fastify"] is joined.runs[1], "it was warm there"
