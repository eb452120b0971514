"""What tools answer: the verdict as a word, its interval, and what it says nothing about."""

from collections.abc import Callable
from pathlib import Path

import pytest

from builders import SimulatedRun
from report import comparisons, questions
from webdyno.core.judgement import Verdict
from webdyno.core.limits import GateAnswer
from webdyno.interfaces.mcp import MAY_SAY, answer_of
from webdyno.interfaces.python.result import result_in
from webdyno.measure.folder import RunFolder

KINDS: list[tuple[Callable[[], SimulatedRun], str]] = [
    (comparisons.decided, "faster"),
    (comparisons.inconclusive, "inconclusive"),
    (comparisons.invalid, "invalid"),
    (questions.gated, "fail"),
]


@pytest.mark.parametrize(("kind", "word"), KINDS, ids=[word for _, word in KINDS])
def test_an_answer_has_the_verdict_and_what_may_be_said_of_it(
    kind: Callable[[], SimulatedRun], word: str, tmp_path: Path
) -> None:
    kind().stored(tmp_path / "run")
    answer = answer_of(result_in(RunFolder.open(tmp_path / "run")))
    assert answer.answer == word
    assert answer.headline
    assert answer.may_say
    assert "Says nothing about other loads" in answer.not_tested
    assert answer.run == str(tmp_path / "run")
    assert answer.report == ""
    assert answer.text.strip()
    assert bool(answer.warnings) or word != "invalid"


def test_every_answer_says_what_it_supports() -> None:
    for answer in [*Verdict, *GateAnswer]:
        assert MAY_SAY.get(answer) or MAY_SAY[Verdict(str(answer))]
