"""Which request of a mix the variants differ at.

Each endpoint's latency, judged together.
"""

from collections.abc import Sequence
from dataclasses import replace

from webdyno.comparison.comparison import compare_family, variant_value
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import EndpointFigures, EndpointJudgement
from webdyno.core.load_result import EndpointResult
from webdyno.core.metrics import METRICS, MetricRule
from webdyno.core.records import SlotRecord
from webdyno.core.request import endpoints_of
from webdyno.evidence.point_data import PointData

JUDGED_BY = "latency_p50_us"
"""In a closed loop the mix sets the endpoints' throughputs, and a server's CPU time can't be
distinguished: what is an endpoint's own is how long it takes. The median needs the fewest
answers."""


def together(experiment: Experiment) -> int:
    """Count the comparisons that a run is to say together: each variant, at each of the requests.

    Paths of a load alone are too often many and alike to measure longer for each of them.
    """
    endpoints = set(endpoints_of(experiment.requested))
    return max(len(experiment.variants) - 1, 1) * max(len(endpoints), 1)


def judge_endpoints(data: PointData) -> list[EndpointJudgement]:
    """Compare the variants at each endpoint that all were requested; empty where none has one.

    `measured` holds valid slots only. All endpoints and variants are one family for Holm's
    correction: the chance that any of them comes out different without being so is 5%.
    """
    baseline, *others = data.experiment.variants
    by_variant = [_names(data.of_variant(variant)) for variant in data.experiment.variants]
    names = [name for name in by_variant[0] if all(name in each for each in by_variant[1:])]
    rules = {name: _rule(name) for name in names}
    questions = [(variant, baseline, rules[name]) for name in names for variant in others]
    compared = compare_family(data, questions, data.measure)
    return [
        EndpointJudgement(
            endpoint=name,
            metric=rules[name].metric,
            figures=[
                _figures(data.of_variant(variant), variant, name)
                for variant in data.experiment.variants
            ],
            variants=[
                variant_value(data, variant, rules[name]) for variant in data.experiment.variants
            ],
            comparisons=compared[index * len(others) : (index + 1) * len(others)],
        )
        for index, name in enumerate(names)
    ]


def _names(slots: Sequence[SlotRecord]) -> list[str]:
    return list(
        dict.fromkeys(endpoint.endpoint for slot in slots for endpoint in slot.load.endpoints)
    )


def _of(slots: Sequence[SlotRecord], name: str) -> list[EndpointResult]:
    return [
        endpoint for slot in slots for endpoint in slot.load.endpoints if endpoint.endpoint == name
    ]


def _rule(name: str) -> MetricRule:
    """Make the metric "median latency of an endpoint"."""

    def round_value(slots: Sequence[SlotRecord]) -> float | None:
        from webdyno.core.histogram import merge_encoded  # numpy takes a while to import

        times = merge_encoded(request.latency_us.histogram for request in _of(slots, name))
        return times.quantile(0.5)

    known = METRICS[JUDGED_BY]
    metric = known.metric.replace(label=f"median latency of {name}")
    return replace(known, metric=metric, round_value=round_value, quantile=None)


def _figures(slots: Sequence[SlotRecord], variant: str, name: str) -> EndpointFigures:
    from webdyno.core.histogram import merge_encoded

    requests = _of(slots, name)
    times = merge_encoded(request.latency_us.histogram for request in requests)
    completed = sum(request.completed for request in requests)
    counted_s = sum(
        request.completed / request.throughput_rps for request in requests if request.throughput_rps
    )
    return EndpointFigures(
        variant=variant,
        completed=completed,
        failed=sum(request.failed for request in requests),
        throughput_rps=completed / counted_s if counted_s else 0.0,
        p50_us=times.quantile(0.5),
        p99_us=times.quantile(0.99),
    )
