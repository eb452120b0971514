"""Which questions there are: by the key of an experiment that asks each, where its parts are.

Parts are named `module:name` and imported when they are first needed: who reads an experiment loads
what that one asks, and a question that another package adds is like all others.
"""

from collections.abc import Iterable
from importlib import import_module
from typing import Any, NamedTuple

MEASURE, READ, PREPARE, ALSO = "Compare and measure", "Read results", "Prepare", "Also"
"""What people want of commands."""


class CommandParts(NamedTuple):
    """A command, and how it is called: each as `module:name`."""

    name: str
    wanted: str
    """What people want of it."""
    does: str
    """What it does; the list of commands shows it, which imports none of them."""
    typed: str
    """Its function on the command line."""
    calls: tuple[str, ...] = ()
    """The functions of the Python API that do the same."""
    tool: str | None = None
    """What makes a tool for agents of it."""


class QuestionParts(NamedTuple):
    """Where the parts of a question are, each as `module:name`."""

    settings: str
    """Its keys in an experiment: a subclass of `QuestionSettings`."""
    decides: str
    """Whom to measure, how long, the answer: a subclass of `judge.questions.compare.Question`."""
    command: CommandParts | None = None
    """The one that asks it; several questions may be asked by one."""


def _own(settings: str, decides: str, command: CommandParts | None = None) -> QuestionParts:
    return QuestionParts(
        f"webdyno.model.questions.{settings}", f"webdyno.judge.questions.{decides}", command
    )


_API, _TOOLS = "webdyno.lab.api", "webdyno.mcp.tools"
_COMPARE = CommandParts(
    "compare",
    MEASURE,
    "Compare systems under the same load: a verdict for two, ranks for more.",
    "webdyno.cli.compare:compare",
    (f"{_API}:compare",),
    f"{_TOOLS}:compare_tool",
)
_CAPACITY = CommandParts(
    "capacity",
    MEASURE,
    "Find the highest load that systems carry while objectives hold.",
    "webdyno.cli.capacity:capacity",
    (f"{_API}:capacity",),
    f"{_TOOLS}:capacity_tool",
)
_TUNE = CommandParts(
    "tune",
    MEASURE,
    "Find better settings with equal effort, then compare default and tuned.",
    "webdyno.cli.tune:tune",
    (f"{_API}:tune",),
)
_GATE = CommandParts(
    "gate",
    MEASURE,
    "Fail if HEAD is slower than BASE by more than a limit.",
    "webdyno.cli.gate:gate",
    (f"{_API}:gate",),
    f"{_TOOLS}:gate_tool",
)
_EXPLAIN = CommandParts(
    "explain",
    READ,
    "Find the bottleneck of a run: measure each system again with less of one resource.",
    "webdyno.cli.explain:explain",
    (f"{_API}:explain", f"{_API}:try_advice"),
    f"{_TOOLS}:explain_tool",
)


COMPARE, ALONE = "compare", "alone"
_QUESTIONS = {
    COMPARE: _own("compare:CompareSettings", "compare:Question", _COMPARE),
    ALONE: _own("alone:AloneSettings", "capacity:AloneQuestion", _CAPACITY),
    "one_sided": _own("one_sided:OneSidedSettings", "compare:OneSidedQuestion"),
    "gate": _own("gate:GateSettings", "gate:GateQuestion", _GATE),
    "ranking": _own("races:RankingSettings", "races:RankingQuestion"),
    "halving": _own("races:HalvingSettings", "halving:HalvingQuestion", _TUNE),
    "limits": _own("limits:LimitsSettings", "interventions:LimitsQuestion", _EXPLAIN),
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


def question_commands() -> list[CommandParts]:
    """Return the commands that ask questions."""
    return [parts.command for parts in _QUESTIONS.values() if parts.command]


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
