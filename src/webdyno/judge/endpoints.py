"""Which request of a mix the arms differ at: each endpoint's response times, judged together."""

from collections.abc import Sequence
from dataclasses import replace

from webdyno.judge.comparison import arm_value, compare_family
from webdyno.judge.point_data import PointData
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import EndpointFigures, EndpointJudgement
from webdyno.model.load_result import EndpointResult
from webdyno.model.metrics import MetricRule, metric_rule
from webdyno.model.records import SlotRecord
from webdyno.model.request import endpoints_of

JUDGED_BY = "response_p50_us"
"""In a closed loop the mix sets the endpoints' rates, and a server's CPU time can't be
distinguished: what is an endpoint's own is how long it takes. The median needs the fewest
answers."""


def together(experiment: Experiment) -> int:
    """Count the comparisons that a run is to tell together: each arm, at each of the requests.

    Paths of a load alone are too often many and alike to measure longer for each of them.
    """
    endpoints = set(endpoints_of(experiment.asked))
    return max(len(experiment.arms) - 1, 1) * max(len(endpoints), 1)


def judge_endpoints(data: PointData) -> list[EndpointJudgement]:
    """Compare the arms at each endpoint that all of them were asked for; empty where none has one.

    `measured` holds valid slots only. All endpoints and arms are one family for Holm's correction:
    the chance that any of them comes out different without being so is 5%.
    """
    baseline, *others = data.experiment.arms
    by_arm = [_names(data.of_arm(arm)) for arm in data.experiment.arms]
    names = [name for name in by_arm[0] if all(name in each for each in by_arm[1:])]
    rules = {name: _rule(name) for name in names}
    asked = [(arm, baseline, rules[name]) for name in names for arm in others]
    compared = compare_family(data, asked, data.measure)
    return [
        EndpointJudgement(
            endpoint=name,
            metric=rules[name].metric,
            figures=[_figures(data.of_arm(arm), arm, name) for arm in data.experiment.arms],
            arms=[arm_value(data, arm, rules[name]) for arm in data.experiment.arms],
            comparisons=compared[at * len(others) : (at + 1) * len(others)],
        )
        for at, name in enumerate(names)
    ]


def _names(slots: Sequence[SlotRecord]) -> list[str]:
    return list(dict.fromkeys(it.endpoint for slot in slots for it in slot.load.endpoints))


def _of(slots: Sequence[SlotRecord], name: str) -> list[EndpointResult]:
    return [it for slot in slots for it in slot.load.endpoints if it.endpoint == name]


def _rule(name: str) -> MetricRule:
    """Make the metric "median response time of an endpoint"."""

    def block_value(slots: Sequence[SlotRecord]) -> float | None:
        from webdyno.model.histogram import merge_encoded  # numpy takes a while to import

        times = merge_encoded(it.response_time_us.histogram for it in _of(slots, name))
        return times.quantile(0.5)

    known = metric_rule(JUDGED_BY)
    metric = known.metric.replace(label=f"median response time of {name}")
    return replace(known, metric=metric, block_value=block_value, quantile=None)


def _figures(slots: Sequence[SlotRecord], arm: str, name: str) -> EndpointFigures:
    from webdyno.model.histogram import merge_encoded

    found = _of(slots, name)
    times = merge_encoded(it.response_time_us.histogram for it in found)
    completed = sum(it.completed for it in found)
    counted_s = sum(it.completed / it.rate_rps for it in found if it.rate_rps)
    return EndpointFigures(
        arm=arm,
        completed=completed,
        failed=sum(it.failed for it in found),
        rate_rps=completed / counted_s if counted_s else 0.0,
        p50_us=times.quantile(0.5),
        p99_us=times.quantile(0.99),
    )
