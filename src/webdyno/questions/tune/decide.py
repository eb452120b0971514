"""Halving, which tuning goes by: after each round the worse half leaves.

The baseline stays (Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML
2013).
"""

from functools import cached_property
from math import log
from statistics import fmean

from webdyno.comparison.race import RaceQuestion
from webdyno.core.metrics import METRICS
from webdyno.evidence.point_data import PointData, derived
from webdyno.validity import valid_for


class HalvingQuestion(RaceQuestion):
    """Which settings of one stack are better than its default, as tuning asks."""

    def next_variants(self, data: PointData) -> list[str]:
        """Return the baseline, and the others that were in the better half after each round."""
        return _better_halves(data)

    @property
    def piloted_variants(self) -> list[str]:
        """The baseline, which speaks for other settings of its stack."""
        return list(self.experiment.variants)[:1]

    def measured_alike(self, variant: str) -> list[str]:
        """Return all variants: they are settings of one stack."""
        return [variant, *(other for other in self.experiment.variants if other != variant)]

    @cached_property
    def fewest_rounds(self) -> int:
        """How many rounds it takes to the first look."""
        return 1

    def _over(self, data: PointData) -> str:
        over = data.rounds and len(self.next_variants(data)) <= 2
        return "no more than one variant is left besides the baseline" if over else ""


@derived
def _better_halves(data: PointData) -> list[str]:
    """Return the baseline, and of the others the half that is better after each round so far.

    All that was measured of a variant counts, against the baseline of the same rounds.
    """
    baseline, *others = data.experiment.variants
    failed = {incident.variant for incident in data.incidents}
    racing = [variant for variant in others if variant not in failed]
    for rounds in range(1, len(data.rounds) + 1):
        gains = gains_on_baseline(data.first(rounds))
        known = [variant for variant in racing if variant in gains]
        better = sorted(known, key=lambda variant: -fmean(gains[variant]))
        racing = better[: -(-len(racing) // 2)]
    return [
        variant for variant in data.experiment.variants if variant == baseline or variant in racing
    ]


def gains_on_baseline(data: PointData) -> dict[str, list[float]]:
    """Return by how much each variant was better than the baseline, in ln, in each round of both.

    Variants without such a round are excluded.
    """
    rule = METRICS[data.measure.decide_on]
    valid = valid_for(data, rule.name)
    sign = 1 if rule.metric.better == "higher" else -1
    baseline, *others = data.experiment.variants
    known = valid.values(baseline, rule)
    logs = {
        variant: [
            sign * log(value / known[round_number])
            for round_number, value in valid.values(variant, rule).items()
            if round_number in known and value > 0 and known[round_number] > 0
        ]
        for variant in others
    }
    return {variant: gains for variant, gains in logs.items() if gains}
