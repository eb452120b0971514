"""A question is one module: who measures, judges or shows doesn't ask what an experiment asks."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference.recorded import unpacked
from sources import tree_of
from webdyno.judge import Stop, decide, judge, next_variants, question_of
from webdyno.judge.point_data import PointData, RunData
from webdyno.judge.questions import QUESTIONS
from webdyno.judge.questions.compare import Question
from webdyno.judge.sweep import judge_sweep
from webdyno.model.experiment import Experiment
from webdyno.model.judgement import Judgement

SOURCE = Path(__file__).parents[1] / "src/webdyno"
OWN = ("judge/questions/", "judge/one_sided.py", "model/experiment.py")
"""Where questions are told apart, and what they are made of."""
KINDS = {
    "experiment": {
        *("gate", "race", "capacity", "objectives", "interventions", "advice", "design"),
        "profile",
    },
    "measure": {"question"},
}
"""What says which kind it is, by what has it."""
MOST = 10
"""Places elsewhere that ask which kind an experiment is. It only shrinks."""


def test_few_places_ask_which_kind_an_experiment_is() -> None:
    places = list(_asking())
    assert len(places) <= MOST, "\n".join(places)
    assert len(places) == MOST, f"fewer ask by now, {len(places)}: let MOST say so"


def _asking() -> Iterator[str]:
    for file in sorted(SOURCE.rglob("*.py")):
        name = str(file.relative_to(SOURCE))
        if not name.startswith(OWN):
            for node in ast.walk(tree_of(file)):
                if isinstance(node, ast.Attribute) and node.attr in KINDS.get(
                    _name(node.value), ()
                ):
                    yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _name(node: ast.expr) -> str:
    """Give what something is called, without what it is a part of."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class BriefQuestion(Question):
    """Which of the first two variants is better, as far as two rounds tell."""

    @classmethod
    def is_asked(cls, experiment: Experiment) -> bool:
        return experiment.title.startswith("brief: ")

    def next_variants(self, data: PointData) -> list[str]:
        return list(self.experiment.variants)[:2]

    @property
    def long_look_s(self) -> float:
        return 0.0

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        return Stop("max-rounds", "two rounds are enough") if len(data.rounds) >= 2 else None

    def judge(self, data: PointData) -> Judgement:
        judged = super().judge(data)
        return judged.replace(headline=f"in brief: {judged.headline}")


def test_a_new_question_is_one_class_that_is_entered_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = unpacked("faster", tmp_path).data()
    (usual,) = run.points
    brief = run.head.experiment.replace(title="brief: which is faster?")
    asked = RunData(run.head.replace(experiment=brief), run.records)
    (data,) = asked.points
    as_usual = question_of(brief).judge(data)
    monkeypatch.setattr("webdyno.judge.questions.QUESTIONS", [BriefQuestion, *QUESTIONS])

    assert isinstance(question_of(brief), BriefQuestion)
    assert type(question_of(usual.experiment)) is not BriefQuestion
    assert next_variants(data) == list(brief.variants)[:2]
    assert decide(data.first(1), 10.0) is None
    assert decide(data.first(2), 10.0) == Stop("max-rounds", "two rounds are enough")
    found = judge(data)
    assert found.headline == f"in brief: {as_usual.headline}"
    assert found.comparisons == as_usual.comparisons
    assert [it.judgement for it in judge_sweep(asked).points] == [found]


def test_each_question_of_a_recorded_run_is_found(tmp_path: Path) -> None:
    asked = {
        name: type(question_of(unpacked(name, tmp_path).head.experiment)).__name__
        for name in ("machine-1", "gate-same", "ranking", "faster", "capacity-alone-interrupted")
    }
    assert asked == {
        "machine-1": "Question",
        "gate-same": "GateQuestion",
        "ranking": "RankingQuestion",
        "faster": "OneSidedQuestion",
        "capacity-alone-interrupted": "AloneQuestion",
    }
