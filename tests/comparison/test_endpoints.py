"""Which of several requests the variants differ at."""

from dataclasses import replace
from random import Random

import pytest

from builders import SimulatedRun, SimulatedVariant, latencies, run_head, simulated_run
from webdyno.comparison import judge, judge_sweep
from webdyno.comparison.comparison import fewest_rounds
from webdyno.comparison.judgement import together
from webdyno.core.judgement import Judgement, Verdict
from webdyno.core.load_result import EndpointResult
from webdyno.core.records import SlotRecord
from webdyno.core.request import WrittenRequest
from webdyno.report.exports import summary_csv
from webdyno.report.view import run_view

RESPONSES = 500


def with_endpoints(
    run: SimulatedRun, medians_us: dict[str, dict[str, float]], seed: int = 1
) -> SimulatedRun:
    """Give a run in which each variant's requests are distinguished.

    Medians by variant, by endpoint.
    """
    random = Random(seed)

    def reported(record: SlotRecord) -> SlotRecord:
        endpoints = [
            EndpointResult(
                endpoint=name,
                completed=RESPONSES,
                failed=1,
                throughput_rps=1_000.0,
                latency_us=latencies(RESPONSES, round(us * random.uniform(0.98, 1.02), 1)),
            )
            for name, us in medians_us[record.variant].items()
        ]
        load = record.load.model_copy(update={"endpoints": endpoints})
        return record.model_copy(update={"load": load})

    records = [reported(it) if isinstance(it, SlotRecord) else it for it in run.records]
    return replace(run, records=records)


def judged(rounds: int, medians_us: dict[str, dict[str, float]], seed: int = 1) -> Judgement:
    run = simulated_run(
        {variant: SimulatedVariant() for variant in medians_us}, rounds=rounds, seed=seed
    )
    run = with_endpoints(run, medians_us, seed)
    return judge(run.data)


def test_the_endpoint_that_got_slower_is_named_and_no_other() -> None:
    before = {"/": 1_000.0, "/search": 2_000.0, "POST /order": 3_000.0}
    found = judged(12, {"before": before, "after": before | {"/search": 2_600.0}}).endpoints
    verdicts = {it.endpoint: it.comparisons[0].verdict for it in found}
    assert list(verdicts) == list(before)
    assert verdicts["/search"] is Verdict.SLOWER
    assert Verdict.SLOWER not in {verdicts["/"], verdicts["POST /order"]}
    (ratio,) = (it.comparisons[0].ratio for it in found if it.endpoint == "/search")
    assert ratio is not None
    assert ratio.low < 1.3 < ratio.high
    assert ratio.confidence == pytest.approx(1 - 0.05 / 3)
    figures = found[0].figures[0]
    slots = figures.completed // RESPONSES
    assert figures.failed == slots
    assert figures.throughput_rps == pytest.approx(1_000)


@pytest.mark.long
def test_twenty_alike_endpoints_hardly_ever_look_different_anywhere() -> None:
    names = {f"/{n}": 1_000.0 + n for n in range(20)}
    wrong = 0
    for seed in range(8):
        found = judged(10, {"a": names, "b": names}, seed).endpoints
        verdicts = {it.comparisons[0].verdict for it in found}
        wrong += bool(verdicts & {Verdict.FASTER, Verdict.SLOWER})
    assert wrong <= 2


def test_what_only_one_variant_was_asked_for_is_not_compared() -> None:
    found = judged(6, {"a": {"/": 1.0, "/x": 1.0}, "b": {"/": 1.0}}).endpoints
    assert [it.endpoint for it in found] == ["/"]
    assert judged(6, {"a": {}, "b": {}}).endpoints == []


def test_they_stand_in_the_csv() -> None:
    names = {"/": 1_000.0, "/x": 2_000.0}
    run = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=6)
    run = with_endpoints(run, {"a": names, "b": names})
    view = run_view(run.whole, judge_sweep(run.whole))
    lines = [line.split(",") for line in summary_csv(view).splitlines()]
    at = lines[0].index("endpoint")
    assert {line[at] for line in lines[1:]} == {"", "/", "/x"}


@pytest.mark.parametrize(("requests", "rounds"), [(0, 6), (1, 6), (2, 7), (3, 7), (50, 11)])
def test_a_run_goes_on_until_each_request_can_be_reported(requests: int, rounds: int) -> None:
    experiment = run_head({"a": "nginx", "b": "nginx"}).experiment
    asked = experiment.model_copy(
        update={"requests": [WrittenRequest(path=f"/{n}") for n in range(requests)]}
    )
    assert fewest_rounds(asked.measure, together(asked)) == rounds
