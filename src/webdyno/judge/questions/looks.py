"""After how many rounds the ranks of a race are looked at.

Each look is a chance to be wrong, so there are few, each after twice as many rounds as the one
before.
"""

from webdyno.judge.comparison import ALPHA, fewest_rounds
from webdyno.judge.point_data import PointData, derived
from webdyno.judge.validity import valid_for
from webdyno.model.experiment import Experiment
from webdyno.model.metrics import METRICS, MetricRule

MOST_FURTHER = 3
"""Rounds by which the first look waits for those that don't count."""


def rounds_to_a_look(experiment: Experiment) -> int:
    """Give how many rounds it takes until the exact test can tell each two variants apart."""
    variants = len(experiment.variants)
    return fewest_rounds(experiment.measure, variants * (variants - 1) // 2, ALPHA / 2)


@derived
def first_look(data: PointData) -> int:
    """Return after how many rounds the ranks are looked at first.

    Then each variant has as many that count as the exact test needs: a look before that is spent
    in vain. It waits for a few at most, as slots may go on not to count.
    """
    fewest, rule = rounds_to_a_look(data.experiment), METRICS[data.measure.decide_on]
    failed = {incident.variant for incident in data.incidents}
    racing = [variant for variant in data.experiment.variants if variant not in failed]
    for rounds in range(fewest, min(fewest + MOST_FURTHER, len(data.rounds) + 1)):
        valid = valid_until(data, rounds, rule)
        known = [len(valid.values(variant, rule)) for variant in racing]
        if all(many >= fewest for many in known if many):
            return rounds
    return min(fewest + MOST_FURTHER, max(fewest, len(data.rounds) + 1))


def is_look(data: PointData) -> bool:
    """Whether the ranks are looked at after the last round; between looks nobody leaves."""
    rounds = len(data.rounds)
    return rounds in looks_until(rounds, first_look(data), to_the_end=False)


def looks_until(rounds: int, first: int, *, to_the_end: bool) -> list[int]:
    """Give after how many rounds the ranks were looked at."""
    looks, due = [], first
    while due <= rounds:
        looks.append(due)
        due *= 2
    if to_the_end and (not looks or rounds > looks[-1]):
        looks.append(rounds)
    return looks


def valid_until(data: PointData, rounds: int, rule: MetricRule) -> PointData:
    """Return what counts for a metric of the first rounds."""
    first_rounds = data.first(rounds)
    return valid_for(first_rounds, rule.name)
