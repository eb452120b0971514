"""Ranks, and who leaves the race."""

import re
from math import sqrt

import numpy as np
import pytest

from builders import SimulatedRun, SimulatedVariant, point_data, simulated_run
from simulations.ranking import WORLDS, play
from variants import further
from webdyno.comparison import decide, judge
from webdyno.comparison.sentences import ranking_headline
from webdyno.core.judgement import Rank, Ranking, Verdict
from webdyno.core.records import IncidentRecord, SlotRecord
from webdyno.core.run import RunHead
from webdyno.evidence.point_data import PointData
from webdyno.questions.ranking.decide import rounds_to_a_look, standings
from webdyno.questions.ranking.settings import RankingSettings

RATES = {"apache": 15_000.0, "caddy": 30_000.0, "lighttpd": 50_000.0, "nginx": 50_000.0}


def ranking_of(rates: dict[str, float], rounds: int = 12) -> SimulatedRun:
    run = simulated_run(
        {name: SimulatedVariant(stack=name, throughput_rps=rate) for name, rate in rates.items()},
        rounds=rounds,
    )
    return run.asking(RankingSettings())


def ranks_of(ranking: Ranking | None) -> dict[str, tuple[int, int]]:
    assert ranking is not None
    return {it.variant: (it.best, it.worst) for it in ranking.ranks}


def test_places_are_ranges_where_variants_cannot_be_reported_apart() -> None:
    run = ranking_of(RATES)
    found = judge(run.data)
    assert ranks_of(found.ranking) == {
        "nginx": (1, 2),
        "lighttpd": (1, 2),
        "caddy": (3, 3),
        "apache": (4, 4),
    }
    assert found.verdict is Verdict.INCONCLUSIVE
    assert re.fullmatch(
        r"1–2\. \w+, \w+ \(order open\) · 3\. caddy · 4\. apache, by throughput", found.headline
    )


def test_equal_ones_share_a_rank() -> None:
    found = judge(ranking_of({"nginx": 60_000.0, "lighttpd": 60_000.0}).data).ranking
    assert found
    alike = [pair.replace(verdict=Verdict.EQUIVALENT) for pair in found.pairs]
    said = ranking_headline(found.replace(pairs=alike), "throughput_rps")
    assert re.fullmatch(r"1–2\. \w+, \w+ \(equal\), by throughput", said)


def test_places_that_run_into_each_other_are_said_one_by_one() -> None:
    """The first is surely better than the last, though neither than the one between."""
    ranks = [Rank(variant=name, best=best, worst=best + 1) for name, best in (("a", 1), ("c", 2))]
    ranks.insert(1, Rank(variant="b", best=1, worst=3))
    said = ranking_headline(Ranking(ranks=ranks, looks=1), "throughput_rps")
    assert said == "1–2. a, 1–3. b, 2–3. c (order open), by throughput"


def test_the_first_is_what_the_others_are_compared_with() -> None:
    run = ranking_of(RATES | {"lighttpd": 70_000.0})
    found = judge(run.data)
    assert found.verdict is Verdict.FASTER
    assert ranks_of(found.ranking)["lighttpd"] == (1, 1)
    assert {it.b for it in found.comparisons} == {"lighttpd"}
    deciding = {it.a: it for it in found.comparisons if it.metric == "throughput_rps"}
    assert list(deciding) == ["nginx", "caddy", "apache"]
    ratio = deciding["apache"].ratio
    assert ratio
    assert ratio.low < 15 / 70 < ratio.high
    assert all(it.verdict is Verdict.SLOWER for it in deciding.values())


def test_equal_first_ones_are_called_so() -> None:
    rates = {"apache": 15_000.0, "caddy": 50_000.0, "nginx": 50_000.0}
    run = simulated_run(
        {name: SimulatedVariant(stack=name, throughput_rps=rate) for name, rate in rates.items()},
        rounds=24,
        restart_sd=0.002,
        slot_sd=0.002,
    )
    experiment = run.head.experiment.replace(asks=RankingSettings())
    found = judge(PointData.of(run.head.model_copy(update={"experiment": experiment}), run.records))
    assert found.verdict is Verdict.EQUIVALENT
    assert ranks_of(found.ranking)["apache"] == (3, 3)


def test_variants_whose_places_are_settled_leave_the_race_at_a_look() -> None:
    run = ranking_of(RATES)
    experiment = run.head.experiment
    look = rounds_to_a_look(experiment)
    assert 2.0 ** (1 - look) <= 0.05 / 2 / 6
    measured = run.data
    assert standings(measured.first(look - 1)).racing == list(RATES)
    assert standings(measured.first(look)).racing == ["lighttpd", "nginx"]


def test_a_ranking_ends_when_all_ranks_are_settled() -> None:
    run = ranking_of(RATES | {"lighttpd": 70_000.0})
    few = [it for it in run.records if it.round is None or it.round < 8]
    assert decide(point_data(few, run.head.experiment), 10.0) is None
    looked_at = [it for it in run.records if it.round is None or it.round < 9]
    stop = decide(point_data(looked_at, run.head.experiment), 10.0)
    assert stop
    assert stop.why == "every rank is settled"


def test_a_round_that_does_not_count_is_made_up_for() -> None:
    """The exact test needs nine: a look at eight would distinguish no two, and be spent."""
    run = ranking_of(RATES | {"lighttpd": 70_000.0})
    records = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.variant == "nginx" and it.round == 3)
    ]

    def after(rounds: int) -> PointData:
        known = [it for it in records if it.round is None or it.round < rounds]
        return point_data(known, run.head.experiment)

    look = rounds_to_a_look(run.head.experiment)
    budget_s = run.head.experiment.measure.budget_s
    assert decide(after(look), 2 * budget_s) is None
    assert standings(after(look)).racing == list(RATES)
    over = decide(after(look), 10 * budget_s)
    assert over
    assert over.reason == "budget"
    stop = decide(after(look + 1), 2 * budget_s)
    assert stop
    assert stop.why == "every rank is settled"
    found = judge(after(look + 1))
    assert ranks_of(found.ranking)["lighttpd"] == (1, 1)


def test_a_ranking_ends_with_its_time() -> None:
    run = ranking_of(RATES)
    stop = decide(run.data, 1e6)
    assert stop
    assert stop.reason == "budget"


def test_a_variant_that_left_keeps_its_place_and_has_no_fault() -> None:
    run = ranking_of(RATES, rounds=16)
    look = rounds_to_a_look(run.head.experiment)
    records = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.variant == "apache" and it.round >= look)
    ]
    found = judge(PointData.of(run.head, records))
    assert ranks_of(found.ranking)["apache"] == (4, 4)
    assert not [it for it in found.warnings if it.severity == "invalid"]


def test_a_variant_whose_server_died_is_out_and_the_others_have_ranks() -> None:
    run = ranking_of(RATES)
    died = IncidentRecord(
        round=3, variant="nginx", happened_at=run.head.started_at, what="nginx died of signal 9"
    )
    records = [
        it
        for it in run.records
        if not (isinstance(it, SlotRecord) and it.variant == "nginx" and it.round >= 3)
    ]
    found = judge(PointData.of(run.head, [*records, died]))
    assert found.verdict is Verdict.FASTER
    assert set(ranks_of(found.ranking)) == {"lighttpd", "caddy", "apache"}
    assert found.ranking
    assert "signal 9" in found.ranking.out["nginx"]
    invalid = [it for it in found.comparisons if it.a == "nginx" and it.metric == "throughput_rps"]
    assert [it.verdict for it in invalid] == [Verdict.INVALID]


def test_a_ranking_that_was_interrupted_at_once_has_no_order() -> None:
    run = ranking_of(RATES, rounds=1)
    found = judge(run.data)
    assert set(ranks_of(found.ranking).values()) == {(1, 4)}
    assert found.verdict is Verdict.INCONCLUSIVE
    nothing: RunHead = run.head
    unmeasured = judge(PointData.of(nothing, []))
    assert unmeasured.verdict is Verdict.INCOMPLETE
    assert "no variant has a rank" in unmeasured.headline
    assert unmeasured.ranking
    assert not unmeasured.ranking.out


@pytest.mark.parametrize("world", [further("12 equal ones"), "8, each 3% from the next"])
def test_rankings_of_a_known_order_are_seldom_wrong(world: str) -> None:
    rankings = 12
    rng = np.random.default_rng(7)
    wrong = sum(play(WORLDS[world], rng).is_wrong for _ in range(rankings))
    assert wrong / rankings <= 0.05 + 2 * sqrt(0.05 * 0.95 / rankings)


def test_variants_that_leave_make_room_for_those_that_are_close() -> None:
    logs = [*(0.3 * rank for rank in range(11)), 3.01]
    raced = play(logs, np.random.default_rng(3))
    assert raced.rounds > 60
    assert play(logs, np.random.default_rng(3), race=False).rounds == 30
