"""Machines that are too noisy for a gate's limits, known after its first rounds."""

from dataclasses import replace
from math import inf, log
from pathlib import Path

import numpy as np
import pytest

from builders import SimulatedVariant
from questions.gate.test_decide import NEARLY_WORSE_US, gate_run, judged_whole
from webdyno.comparison import question_of
from webdyno.core.limits import GateAnswer, GateJudgement
from webdyno.core.measure import Measure
from webdyno.core.metrics import METRICS
from webdyno.questions.gate.claims import JudgedClaim, MeasuredClaim, answer_claims
from webdyno.questions.gate.forecast import (
    Forecast,
    forecast,
    needed_rounds,
    noisy_words,
    slowest_to_decide,
)
from webdyno.questions.gate.show import GateWhole
from webdyno.statistics.bounds import Bound

MEASURE = Measure()


def claim(
    sd: float, metric: str = "server_cpu_us", rounds: int = 200, **more: object
) -> MeasuredClaim:
    """A claim of no change; `sd` is that of one variant in a round."""
    rng = np.random.default_rng(1)
    baseline, again, head = rng.normal(0, sd, (3, rounds))
    d = head - (baseline + again) / 2
    return MeasuredClaim("/", METRICS[metric], 0.05, d=d, again=again - baseline, **more)  # type: ignore[arg-type]


def test_more_noise_takes_more_rounds() -> None:
    rounds = [needed_rounds([claim(sd)], MEASURE, 30)[0].rounds for sd in (0.008, 0.05, 0.2)]
    assert rounds[0] == MEASURE.min_rounds
    assert rounds == sorted(rounds)
    assert rounds[2] > 5 * rounds[1]


def test_the_rounds_foreseen_are_those_after_which_a_gate_passes() -> None:
    """With three rounds seen, half of the gates would pass with a few rounds more or less."""
    (needed,) = needed_rounds([claim(0.05)], MEASURE, 30)
    assert 6 < needed.rounds < 40
    long = claim(0.05, rounds=int(2 * needed.rounds))
    answer = long.ask(MEASURE.replace(max_rounds=int(2 * needed.rounds)), 0.05, 1)
    assert answer
    assert answer.answer == "yes"


def test_interference_that_outweighs_the_limit_takes_no_time_away() -> None:
    (needed,) = needed_rounds([claim(0.01, bound=Bound("all", down=0.1, up=0.1))], MEASURE, 30)
    assert needed.rounds == inf
    assert "no time is enough for ±5% here" in (noisy_words([needed], 5.0, 30) or "")
    (hopeless,) = needed_rounds([claim(0.01, bound=Bound("all", down=3, up=3))], MEASURE, 30)
    assert (noisy_words([hopeless], 5.0, 30) or "").endswith(
        "; 30 rounds (3 minutes) show no change"
    )


def test_what_no_time_decides_is_an_answer_as_well() -> None:
    """At a rate of 400/s and a load of 20 it was a defect instead of a judgement."""
    gate = GateJudgement(
        answer=GateAnswer.INCONCLUSIVE, headline="", baseline="a", head="b", claims=[], needs_s=inf
    )
    assert gate.needs_s == inf


def found(change: float, sd: float, rounds: int = 10, round_s: float = 5.0) -> Forecast | None:
    """Return what is foreseen of a claim whose estimate is that change."""
    noise = claim(sd, rounds=rounds)
    measured = replace(noise, d=noise.d - noise.d.mean() + log(1 + change))
    (answered,) = answer_claims([measured], MEASURE, 1)
    both = [(measured, JudgedClaim(answered, None).reported(1))]
    needed = needed_rounds([measured], MEASURE, rounds)
    return forecast(needed, slowest_to_decide(both, MEASURE), round_s, rounds)


def test_near_its_limit_no_time_is_promised() -> None:
    """A run at +4.8% of +5% was promised an answer in 8 minutes."""
    for sd, noisy in ((0.06, "this machine is noisy: "), (0.02, "")):
        near = found(0.049, sd)
        assert near == Forecast(
            f"{noisy}if CPU per request of / stays at +4.9% (limit +5%), more time would hardly "
            "decide; 10 rounds (1 minute) were measured",
            inf,
        )


def test_a_change_that_can_be_decided_says_how_long_that_takes() -> None:
    no_change, half_way = found(0.0, 0.06), found(0.03, 0.06)
    assert no_change
    assert half_way
    assert no_change.words.startswith("this machine is noisy: ±5% would take about ")
    assert "if CPU per request of / stays at +3.0% (limit +5%), an answer takes about " in (
        half_way.words
    )
    assert no_change.needs_s < half_way.needs_s < inf


def test_what_no_time_decides_is_no_next_step() -> None:
    run = gate_run(SimulatedVariant(server_cpu_us=NEARLY_WORSE_US), restart_sd=0.03)
    gate = judged_whole(run.whole)
    assert gate.answer is GateAnswer.INCONCLUSIVE
    assert any("if CPU per request of /hello.txt stays at +" in note for note in gate.notes)
    assert GateWhole(gate, MEASURE.max_rounds).next_steps(Path("run"))
    hopeless = gate.replace(needs_s=inf)
    assert GateWhole(hopeless, MEASURE.max_rounds).next_steps(Path("run")) == []


def test_the_endpoint_that_takes_most_counts_and_metrics_of_a_limited_client_do_not() -> None:
    found = needed_rounds(
        [claim(0.01), claim(0.1), claim(0.3, "throughput_rps", limited=True)], MEASURE, 30
    )
    assert [it.metric for it in found] == ["server_cpu_us"]
    assert found[0].rounds > 20


def test_one_round_foresees_nothing() -> None:
    assert needed_rounds([claim(0.1, rounds=1)], MEASURE, 30) == []
    assert noisy_words([], 5.0, 30) is None


def test_what_time_there_is_for_is_said_in_one_sentence() -> None:
    needed = needed_rounds([claim(0.03), claim(0.15, "throughput_rps")], MEASURE, 30)
    said = noisy_words(needed, 6.0, 30)
    assert said
    assert said.startswith("this machine is noisy: ±5% would take about "), said
    assert "here, CPU per request alone about " in said
    assert "; 30 rounds (3 minutes) show ±" in said
    assert "in CPU per request and ±" in said


def test_however_short_the_time_the_fewest_rounds_are_measured() -> None:
    run = gate_run(SimulatedVariant(), restart_sd=0.25, budget_s=1.0)
    said = question_of(run.head.experiment).outlook([run.data.first(3)], 10.0)
    assert said
    assert f"; {MEASURE.min_rounds} rounds (" in said
    assert "(0 minutes)" not in said


@pytest.mark.parametrize(("restart_sd", "is_noisy"), [(0.008, False), (0.25, True)])
def test_it_is_reported_after_three_rounds(restart_sd: float, is_noisy: bool) -> None:
    run = gate_run(SimulatedVariant(), restart_sd=restart_sd)
    question = question_of(run.head.experiment)
    assert question.outlook([run.data.first(1)], 100.0) is None
    assert question.outlook([run.data.first(2)], 10.0) is None
    said = question.outlook([run.data.first(3)], 10.0)
    assert said is not None
    assert bool(said) is is_noisy, said
