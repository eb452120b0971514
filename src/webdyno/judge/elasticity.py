"""What limits an arm, by experiment: it is given less of one thing at a time.

The elasticity of a rate with respect to a resource is d ln rate / d ln resource; here it is the
ratio of finite differences, ln of the ratio of rates over ln of the share that was left, with the
interval of the ratio. Where one thing alone limits a closed loop it is 1 for that and 0 for all
others; where requests wait for two in turns, their elasticities are the shares of the time that
each takes, and add up to 1 (as the operational laws have it: Denning and Buzen, ACM Computing
Surveys 1978).
"""

from collections.abc import Iterator, Sequence
from math import log

from webdyno.model.experiment import Experiment
from webdyno.model.interval import Interval
from webdyno.model.intervention import Elasticity
from webdyno.model.judgement import Comparison
from webdyno.model.metrics import RATE


def elasticities(experiment: Experiment, comparisons: Sequence[Comparison]) -> Iterator[Elasticity]:
    """Give what each intervention told, where the arm and its baseline have a ratio of rates."""
    for comparison in comparisons:
        intervention = experiment.interventions.get(comparison.a)
        if intervention is None or comparison.metric != RATE or comparison.ratio is None:
            continue
        dose, ratio = log(intervention.share), comparison.ratio
        yield Elasticity(
            arm=comparison.b,
            resource=intervention.resource,
            knob=intervention.knob,
            share=intervention.share,
            found=_divided(ratio, dose),
        )


def _divided(ratio: Interval, dose: float) -> Interval:
    """Give ln(ratio) over the dose, which is below 0 where something was taken."""
    ends = sorted((log(ratio.low) / dose, log(ratio.high) / dose))
    return Interval(
        low=ends[0],
        estimate=log(ratio.estimate) / dose,
        high=ends[1],
        confidence=ratio.confidence,
    )
