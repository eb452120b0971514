"""A question is one module: who measures, judges or shows doesn't ask what an experiment asks."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import grimp
import pytest

from reference.recorded import unpacked
from sources import tree_of
from webdyno.comparison import Stop, decide, judge, judge_sweep, next_variants, question_of
from webdyno.comparison.question import Question
from webdyno.config.reading import build
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Judgement
from webdyno.core.migration import UNUSED, migrated_experiment
from webdyno.core.question import Asking, QuestionSettings, settings_class
from webdyno.core.registry import _QUESTIONS, QuestionParts, add_question, question_keys
from webdyno.core.text import OneLine
from webdyno.evidence.point_data import PointData, RunData
from webdyno.questions.compare.settings import CompareSettings

SOURCE = Path(__file__).parents[1] / "src/webdyno"
OWN = (
    *(
        "questions/",
        "comparison/__init__.py",
        "comparison/capacity_rules.py",
        "comparison/question.py",
    ),
    *("statistics/verdict.py", "core/experiment.py", "core/question"),
)
"""Where questions are distinguished, and what they are made of."""
KINDS = {"experiment": {"asks_as", "capacity", "objectives", "profile"}}
"""What says which kind it is, by what has it."""
MOST = 8
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
                if isinstance(node, ast.expr) and _asks_which(node):
                    yield f"{name}:{node.lineno}: {ast.unparse(node)}"


def _asks_which(node: ast.expr) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in KINDS.get(_name(node.value), ())
    if isinstance(node, ast.Call):
        return _name(node.func) == "isinstance" and _name(node.args[0]) == "asks"
    return False


def _name(node: ast.expr) -> str:
    """Give what something is called, without what it is a part of."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class BriefSettings(QuestionSettings):
    """A question with a key of its own."""

    key: ClassVar[str] = "brief"
    usual_measure: ClassVar[Mapping[str, object]] = {"precision": 0.1}

    prefix: OneLine
    """What its answer begins with."""

    def check(self, experiment: Asking) -> None:
        super().check(experiment)
        if experiment.factors:
            raise ValueError("a brief question has one point")


class BriefQuestion(Question):
    """Which of the first two variants is better, as far as two rounds say."""

    def next_variants(self, data: PointData) -> list[str]:
        return list(self.experiment.variants)[:2]

    @property
    def long_look_s(self) -> float:
        return 0.0

    def stop(self, data: PointData, elapsed_s: float) -> Stop | None:
        return Stop("max-rounds", "two rounds are enough") if len(data.rounds) >= 2 else None

    def judge(self, data: PointData) -> Judgement:
        judged = super().judge(data)
        prefix = self.experiment.asks_as(BriefSettings).prefix
        return judged.replace(headline=f"{prefix}{judged.headline}")


BRIEF = QuestionParts(f"{__name__}:BriefSettings", f"{__name__}:BriefQuestion")


@pytest.fixture
def with_brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the question among all others, as a package that is installed next to webdyno may."""
    monkeypatch.setattr("webdyno.core.registry._QUESTIONS", {**_QUESTIONS})
    add_question("brief", BRIEF)


@pytest.mark.usefixtures("with_brief")
def test_a_new_question_is_added_from_outside(tmp_path: Path) -> None:
    run = unpacked("faster", tmp_path).data()
    (usual,) = run.points
    as_before = usual.experiment.replace(asks=CompareSettings())
    written = as_before.model_dump(exclude_unset=True) | {"brief": {"prefix": "in brief: "}}
    brief = Experiment.model_validate(written)
    asked = RunData(run.head.replace(experiment=brief), run.records)
    (data,) = asked.points
    as_usual = question_of(as_before).judge(data)

    assert isinstance(question_of(brief), BriefQuestion)
    assert type(question_of(usual.experiment)) is not BriefQuestion
    assert next_variants(data) == list(brief.variants)[:2]
    assert decide(data.first(1), 10.0) is None
    assert decide(data.first(2), 10.0) == Stop("max-rounds", "two rounds are enough")
    found = judge(data)
    assert found.headline == f"in brief: {as_usual.headline}"
    assert found.comparisons == as_usual.comparisons
    assert [it.judgement for it in judge_sweep(asked).points] == [found]


VARIANTS = {name: {"stack": name} for name in ("nginx", "caddy")}
WRITTEN = {"title": "t", "question": "q?", "site": "static", "variants": VARIANTS}


@pytest.mark.usefixtures("with_brief")
def test_its_keys_are_read_checked_and_written_like_others() -> None:
    asked = {**WRITTEN, "brief": {"prefix": "so: "}}
    experiment = Experiment.model_validate(asked)
    assert experiment.asks == BriefSettings(prefix="so: ")
    assert experiment.measure.precision == 0.1
    assert experiment.toml().endswith('[brief]\nprefix = "so: "\n')
    assert Experiment.model_validate_json(experiment.model_dump_json()) == experiment
    for wrong, message in (
        ({"brief": {}}, "^here: brief.prefix is missing$"),
        ({"brief": {"prefix": "a", "suffix": "b"}}, "^here: unknown key brief.suffix; .* prefix$"),
        ({"factors": {"load.connections": [1, 2]}}, "a brief question has one point"),
        ({"gate": {}}, r"\[gate\] and \[brief\] are two questions: leave one out"),
    ):
        with pytest.raises(UserError, match=message):
            build(Experiment, asked | wrong, lambda _: "here")


@pytest.mark.usefixtures("with_brief")
def test_no_question_takes_the_key_of_another_one() -> None:
    add_question("brief", BRIEF)
    for key in ("gate", *Experiment.model_fields):
        with pytest.raises(ValueError, match="can't be the key of a question"):
            add_question(key, BRIEF)


@pytest.mark.parametrize("key", question_keys())
def test_settings_know_their_key_and_import_core_only(key: str) -> None:
    settings = settings_class(key)
    assert settings.key == key
    imported = grimp.build_graph("webdyno").find_upstream_modules(settings.__module__)
    assert {module.split(".")[1] for module in imported if "." in module} <= {"core", "questions"}


@pytest.mark.parametrize(
    ("once", "now"),
    [
        ({"race": "ranking"}, {"ranking": {}}),
        ({"race": "halving"}, {"halving": {}}),
        ({"measure": {"question": "faster"}}, {"one_sided": {"claim": "faster"}, "measure": {}}),
        (
            {"interventions": {"b": {"resource": "workers", "share": 0.5}}},
            {"limits": {"interventions": {"b": {"resource": "workers", "share": 0.5}}}},
        ),
        (
            {"advice": {"b": {"setting": "workers"}}},
            {"advice": {"tried": {"b": {"setting": "workers"}}}},
        ),
        ({"advice": {"tried": {"b": {}}}}, {"advice": {"tried": {"b": {}}}}),
        ({"gate": {}, "measure": {"question": None}}, {"gate": {}, "measure": {}}),
        (UNUSED, {}),
    ],
)
def test_earlier_keys_are_read(once: dict[str, object], now: dict[str, object]) -> None:
    assert migrated_experiment(once) == now


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
