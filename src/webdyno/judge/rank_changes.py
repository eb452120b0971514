"""Two rankings of the same variants: which pairs kept their order, and which swapped it."""

from itertools import combinations

from webdyno.model.judgement import Comparison, Ranking, Verdict
from webdyno.model.several_runs import RankChange, RankChanges, Swap

SURE = {Verdict.FASTER, Verdict.SLOWER}


def rank_changes(before: Ranking, after: Ranking) -> RankChanges:
    """Compare the order of each two variants that have a rank in both.

    A pair has swapped where both runs are sure of its order, and don't agree. All pairs of a run
    hold jointly at 95%, so of two runs of unchanged systems one in ten shows a swap, at most.
    """
    ranks = [
        RankChange(variant=was.variant, before=was, after=now)
        for was in before.ranks
        for now in after.ranks
        if was.variant == now.variant
    ]
    first, second = _by_pair(before), _by_pair(after)
    pairs = [(a.variant, b.variant) for a, b in combinations(ranks, 2)]
    sure = [pair for pair in pairs if {first[pair].verdict, second[pair].verdict} <= SURE]
    swaps = [
        Swap(ahead=a, behind=b, before=first[a, b].decisive, after=second[a, b].decisive)
        for a, b in sure
        if first[a, b].verdict is not second[a, b].verdict
    ]
    return RankChanges(
        ranks=ranks, same=len(sure) - len(swaps), open=len(pairs) - len(sure), swaps=swaps
    )


def _by_pair(ranking: Ranking) -> dict[tuple[str, str], Comparison]:
    return {(pair.a, pair.b): pair for pair in ranking.pairs}
