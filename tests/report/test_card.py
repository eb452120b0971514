"""The card of a page's headline: what it means, how sure it is, how far it reaches; its tiles."""

from dataclasses import replace

import pytest

from builders import SimulatedVariant, simulated_run
from report import comparisons, questions, runs, sweeps
from webdyno.core.judgement import Verdict
from webdyno.report.card import (
    card,
    confidence,
    in_practice,
    not_certain,
    tiles,
)
from webdyno.report.show import PointView


def point_of(make: runs.Make) -> PointView:
    return runs.seen(make()).points[0]


def costing(a_us: float, b_us: float) -> PointView:
    variants = {
        "nginx": SimulatedVariant(server_cpu_us=a_us),
        "apache": SimulatedVariant(server_cpu_us=b_us, throughput_rps=30_000),
    }
    return runs.seen(simulated_run(variants, rounds=8)).points[0]


@pytest.mark.parametrize(
    ("a_us", "b_us", "said"),
    [
        (10, 40, "By CPU time, one CPU of nginx does the work of about four CPUs of apache"),
        (40, 10, "By CPU time, one CPU of apache does the work of about four CPUs of nginx"),
        (10, 16, "By CPU time, one CPU of nginx does the work of about 1.6 CPUs of apache"),
        (10, 150, "By CPU time, one CPU of nginx does the work of about 15 CPUs of apache"),
        (10, 11, "apache needs about 10% more server CPU than nginx"),
    ],
)
def test_a_difference_in_cpu_time_is_reported_as_a_number_of_cpus(
    a_us: float, b_us: float, said: str
) -> None:
    (reported,) = in_practice(costing(a_us, b_us))
    assert reported == f"{said} for this request."


def test_a_difference_in_capacity_is_reported_as_a_number_of_servers() -> None:
    (reported,) = in_practice(point_of(questions.capacities))
    assert reported == (
        "One nginx takes the load of at least 3.3 apache-event within p99<50ms and failures<0.1%."
    )


@pytest.mark.parametrize(
    "make", [comparisons.inconclusive, comparisons.several_variants, questions.ranking]
)
def test_in_practice_is_about_two_variants_that_are_decided(make: runs.Make) -> None:
    assert not [*in_practice(point_of(make))]


def test_confidence_is_high_where_nothing_speaks_against_the_verdict() -> None:
    (said,) = confidence(point_of(comparisons.decided))
    assert said.startswith("High: nginx ahead in all 8 restarts (single ones 1.")
    assert said.endswith("×); no interference seen; nothing excluded.")


def test_interference_that_can_have_mattered_makes_it_moderate() -> None:
    (said,) = confidence(point_of(comparisons.interference))
    assert said.startswith("Moderate in how much: nginx ahead in all 8 restarts")
    assert "included in the CI" in said


def test_two_doubts_make_it_low() -> None:
    point = point_of(comparisons.interference)
    machine = point.data.head.machine
    shared = machine.replace(split=machine.split.replace(shared=True))
    head = point.data.head.replace(machine=shared)
    (said,) = confidence(replace(point, data=replace(point.data, head=head)))
    assert said.startswith("Low in how much: ")
    assert "servers and client shared CPUs" in said


def test_what_is_inconclusive_has_low_confidence() -> None:
    (said,) = confidence(point_of(comparisons.inconclusive))
    assert said.startswith("Low: not decided, 6 single restarts gave ")


def test_systems_that_ran_before_are_not_said_to_be_restarted() -> None:
    point = point_of(comparisons.decided)
    before = tuple(each.replace(ran_before=["nginx"]) for each in point.data.preflights)
    (said,) = confidence(replace(point, data=replace(point.data, preflights=before)))
    assert said.startswith("High: nginx ahead in all 8 rounds (single ones 1.")


def test_of_several_variants_it_is_said_who_shares_a_word() -> None:
    (said,) = confidence(point_of(comparisons.several_variants))
    assert said.startswith("Low: ")


@pytest.mark.parametrize("make", [comparisons.invalid, comparisons.no_round])
def test_without_figures_there_is_nothing_to_be_sure_of(make: runs.Make) -> None:
    assert not [*confidence(point_of(make))]


@pytest.mark.parametrize("make", [*runs.ALL, *sweeps.SWEEPS], ids=lambda make: make.__name__)
def test_every_run_says_how_far_it_reaches(make: runs.Make) -> None:
    view = runs.seen(make())
    facts, nothing = dict(card(view)), {Verdict.INVALID, Verdict.INCOMPLETE}
    answers = [view.whole.headline] if view.whole else view.answers
    is_without = {it.tone for it in answers} | set(view.counts) <= nothing
    term = "What was asked" if is_without else "What it holds for"
    assert facts[term].endswith("Says nothing about other loads, applications or machines.")
    if view.answers and all(it.tone is Verdict.INVALID for it in view.answers):
        assert [*facts] == ["What was asked"]


def test_the_scope_names_load_loop_network_and_cpus() -> None:
    said = dict(card(runs.seen(comparisons.decided())))["What it holds for"]
    assert said.startswith(
        "GET /hello.txt · 64 keep-alive connections · full speed (closed loop) · "
        "client and servers on one machine · 2 server CPUs · servers not saturated ("
    )


def test_the_three_figures_that_matter_most_have_tiles() -> None:
    shown = tiles(runs.seen(comparisons.decided()))
    assert [tile.about for tile in shown] == ["throughput", "CPU per request", "p99 latency"]
    assert {tile.word for tile in shown} == {"▲ better"}


@pytest.mark.parametrize(
    "make",
    [comparisons.several_variants, questions.ranking, sweeps.two_factors, comparisons.no_round],
)
def test_tiles_are_about_two_variants_at_one_point(make: runs.Make) -> None:
    assert not tiles(runs.seen(make()))


def test_a_metric_that_is_open_is_said_to_be() -> None:
    (said,) = not_certain(point_of(comparisons.inconclusive))
    assert said.startswith("Whether the variants differ in CPU per request (0.")
    assert not [*not_certain(point_of(comparisons.decided))]
