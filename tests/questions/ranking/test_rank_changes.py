"""Two rankings of the same systems: which pairs swapped."""

from builders import SimulatedRun, SimulatedVariant, simulated_run
from webdyno.comparison.runs import compare_runs
from webdyno.core.sweep import RankChanges
from webdyno.questions.ranking.settings import RankingSettings

RATES = {"axum": 60_000.0, "bun": 40_000.0, "deno": 40_000.0, "express": 10_000.0}


def ranking_of(rates: dict[str, float], seed: int) -> SimulatedRun:
    variants = {
        name: SimulatedVariant(stack=name, throughput_rps=rate) for name, rate in rates.items()
    }
    run = simulated_run(variants, rounds=12, seed=seed)
    return run.asking(RankingSettings())


def changes(before: SimulatedRun, after: SimulatedRun) -> RankChanges:
    compared = compare_runs(before.data, after.data)
    assert compared.rank_changes is not None
    return compared.rank_changes


def test_a_machine_that_is_slower_swaps_no_pair() -> None:
    slower = {name: rate * 0.9 for name, rate in RATES.items()}
    ranks = changes(ranking_of(RATES, seed=1), ranking_of(slower, seed=2))
    assert ranks.swaps == []
    assert (ranks.same, ranks.open) == (5, 1)
    first = ranks.ranks[0]
    assert (first.variant, first.before.best, first.after.best) == ("axum", 1, 1)


def test_a_pair_that_swaps_is_named_with_both_ratios() -> None:
    other = RATES | {"axum": 40_000.0, "bun": 60_000.0}
    ranks = changes(ranking_of(RATES, seed=1), ranking_of(other, seed=2))
    swapped = {(swap.ahead, swap.behind): swap for swap in ranks.swaps}
    assert ("axum", "bun") in swapped
    before, after = swapped["axum", "bun"].before, swapped["axum", "bun"].after
    assert before
    assert after
    assert before.low > 1 > after.high


def test_only_what_both_have_counts_and_only_rankings() -> None:
    fewer = {name: rate for name, rate in RATES.items() if name != "deno"}
    ranks = changes(ranking_of(RATES, seed=1), ranking_of(fewer, seed=2))
    assert (ranks.same, ranks.open) == (3, 0)
    variants = {"nginx": SimulatedVariant(), "apache": SimulatedVariant(throughput_rps=10_000)}
    plain = simulated_run(variants, rounds=8)
    assert compare_runs(plain.data, plain.data).rank_changes is None
