"""Which questions there are: by the key of an experiment that asks each, where its parts are.

Parts are named `module:name` and imported when they are first needed: who reads an experiment loads
what that one asks, and a question that another package adds is like all others.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple


class QuestionParts(NamedTuple):
    """Where the parts of a question are, each as `module:name`."""

    settings: str
    """Its keys in an experiment: a subclass of `QuestionSettings`."""
    decides: str
    """Whom to measure, how long, the answer: a subclass of `judge.questions.compare.Question`."""


def _own(settings: str, decides: str) -> QuestionParts:
    return QuestionParts(
        f"webdyno.model.questions.{settings}", f"webdyno.judge.questions.{decides}"
    )


COMPARE, ALONE = "compare", "alone"
_QUESTIONS = {
    COMPARE: _own("compare:CompareSettings", "compare:Question"),
    ALONE: _own("alone:AloneSettings", "capacity:AloneQuestion"),
    "one_sided": _own("one_sided:OneSidedSettings", "compare:OneSidedQuestion"),
    "gate": _own("gate:GateSettings", "gate:GateQuestion"),
    "ranking": _own("races:RankingSettings", "races:RankingQuestion"),
    "halving": _own("races:HalvingSettings", "races:HalvingQuestion"),
    "limits": _own("limits:LimitsSettings", "interventions:LimitsQuestion"),
    "advice": _own("advice:AdviceSettings", "interventions:AdviceQuestion"),
    "design": _own("design:DesignSettings", "interventions:SettingsQuestion"),
}
WITHOUT_KEY = (COMPARE, ALONE)
"""What is asked where no key says what: they have no settings, and are not written."""


def add_question(key: str, parts: QuestionParts) -> None:
    """Add a question, which experiments ask by a table of this name."""
    if not key.isidentifier() or _QUESTIONS.get(key, parts) != parts:
        raise ValueError(f"{key!r} can't be the key of a question: it is taken, or is no name")
    _QUESTIONS[key] = parts


def question_keys() -> Iterable[str]:
    """Return the keys that ask something else than is asked without one."""
    return [key for key in _QUESTIONS if key not in WITHOUT_KEY]


def key_without(variants: int) -> str:
    """Return the name of what is asked of so many variants where no key says what."""
    return ALONE if variants == 1 else COMPARE


def question_parts(key: str) -> QuestionParts:
    """Return where a question's parts are."""
    return _QUESTIONS[key]


def imported(part: str) -> Any:  # noqa: ANN401
    """Return what `module:name` names."""
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)
