"""A gate whose failures are measured once more: what fails twice fails, what doesn't is open."""

import pytest

from builders import SimulatedRun, SimulatedVariant
from questions.gate.test_decide import gate_run, judged_whole
from webdyno.core.limits import GateAnswer, GateJudgement
from webdyno.evidence.point_data import RunData
from webdyno.questions.gate.comment import gate_markdown
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.gate.show import answer_words

SLOWER = SimulatedVariant(server_cpu_us=24.0)
EQUAL = SimulatedVariant()


def confirming(first: SimulatedVariant, second: SimulatedVariant | None) -> GateJudgement:
    run = gate_run(first)
    asked = run.head.experiment.replace(asks=GateSettings(confirm=True))
    head = run.head.model_copy(update={"experiment": asked})
    again = gate_run(second).whole if second else None
    return judged_whole(RunData(head, run.records, confirmation=again))


def test_what_fails_twice_fails_and_says_so() -> None:
    found = confirming(SLOWER, SLOWER)
    assert found.answer is GateAnswer.FAIL
    assert found.notes[0].startswith(
        "measured again from fresh builds: /hello.txt CPU per request +"
    )
    assert found.took_s == pytest.approx(2 * judged_whole(gate_run(SLOWER).whole).took_s)


def test_what_fails_once_is_inconclusive_and_no_claim_is_worse() -> None:
    found = confirming(SLOWER, EQUAL)
    assert found.answer is GateAnswer.INCONCLUSIVE
    assert found.headline.startswith("not confirmed: /hello.txt ")
    assert found.of("worse") == []
    (open_,) = found.of("inconclusive")
    assert open_.why.startswith("worse at first, ")
    assert open_.why.endswith("when measured again")
    assert answer_words(open_) == "? not confirmed"
    assert "| ⚪ not confirmed |" in gate_markdown(found)
    assert found.notes[0].startswith("measured again from fresh builds: 3 checks within limits")
    assert found.grew == []


def test_before_it_is_measured_again_nothing_fails() -> None:
    found = confirming(SLOWER, None)
    assert found.answer is GateAnswer.INCONCLUSIVE
    assert "isn't measured again yet" in found.notes[0]


@pytest.mark.parametrize("second", [None, SLOWER])
def test_what_passes_needs_no_second_measurement(second: SimulatedVariant | None) -> None:
    assert confirming(EQUAL, second).answer is GateAnswer.PASS


def test_a_second_measurement_that_is_invalid_confirms_nothing() -> None:
    found = confirming(SLOWER, SimulatedVariant(server_cpu_us=24.0, wrong_status=500))
    assert found.answer is GateAnswer.INCONCLUSIVE


def test_without_confirm_one_measurement_decides() -> None:
    run: SimulatedRun = gate_run(SLOWER)
    again = gate_run(EQUAL).whole
    assert (
        judged_whole(RunData(run.head, run.records, confirmation=again)).answer is GateAnswer.FAIL
    )
