"""Ranks that follow from the comparisons of each two variants, whoever made these."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from webdyno.comparison.comparison import invert
from webdyno.core.judgement import Comparison, Rank, Verdict

OPPOSITE = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}

Pair = tuple[str, str]


@dataclass(frozen=True)
class Order:
    """What is known of each two of some variants."""

    variants: list[str]
    """Those that can have a rank."""
    pairs: dict[Pair, Comparison]
    """Of each two variants one comparison, either way round."""

    def against(self, variant: str, other: str) -> Comparison:
        """Return the comparison of two variants as one of the first of them with the second."""
        comparison = self.pairs.get((variant, other))
        return comparison if comparison is not None else swap_sides(self.pairs[other, variant])

    def rank(self, variant: str) -> Rank:
        """Return the ranks that a variant may have."""
        verdicts = [
            self.against(variant, other).verdict for other in self.variants if other != variant
        ]
        return Rank(
            variant=variant,
            best=1 + verdicts.count(Verdict.SLOWER),
            worst=len(self.variants) - verdicts.count(Verdict.FASTER),
        )

    def ranks(self, typical_gains: Mapping[str, float]) -> list[Rank]:
        """Return all ranks, the best first; those that are as good by typical gains (ln)."""
        return sorted(
            map(self.rank, self.variants),
            key=lambda rank: (rank.best + rank.worst, -typical_gains.get(rank.variant, 0.0)),
        )

    def both_ways(self) -> Iterator[Comparison]:
        """Yield the comparisons of each two variants, both ways round."""
        return (self.against(variant, other) for variant, other in permutations(self.variants, 2))


def swap_sides(comparison: Comparison) -> Comparison:
    """Return a comparison of b with a as one of a with b."""
    sampling_verdict = comparison.sampling_verdict
    return invert(comparison).replace(
        a=comparison.b,
        b=comparison.a,
        verdict=OPPOSITE.get(comparison.verdict, comparison.verdict),
        sampling_verdict=sampling_verdict and OPPOSITE.get(sampling_verdict, sampling_verdict),
    )
