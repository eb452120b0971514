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
    """What an agent calls: a function of `interfaces.mcp.Measuring` and the agent's arguments."""


class QuestionParts(NamedTuple):
    """Where the parts of a question are, each as `module:name`."""

    settings: str
    """Its keys in an experiment: a subclass of `QuestionSettings`."""
    decides: str
    """Whom to measure, how long, the answer: a subclass of `comparison.question.Question`."""
    command: CommandParts | None = None
    """The one that asks it; several questions may be asked by one."""
    whole: str = ""
    """How its one answer for all points is shown: a `report.show.WholeAnswer`."""
    result: str = ""
    """What came of it, for Python: a subclass of `Result`."""


_OWN = "webdyno.questions"


def _own(
    folder: str, settings: str, decides: str, command: CommandParts | None = None, **parts: str
) -> QuestionParts:
    """Return the parts of a question of webdyno's own, each in a file of its folder."""
    place = f"{_OWN}.{folder}"
    return QuestionParts(
        f"{place}.settings:{settings}", f"{place}.decide:{decides}", command, **parts
    )


_TOOLS = "webdyno.interfaces.mcp"
_COMPARE = CommandParts(
    "compare",
    MEASURE,
    "Compare systems under the same load: a verdict for two, ranks for more.",
    "webdyno.questions.compare.command:compare",
    ("webdyno.questions.compare.call:compare",),
    f"{_TOOLS}:compare",
)
_CAPACITY = CommandParts(
    "capacity",
    MEASURE,
    "Find the highest load that systems carry while objectives hold.",
    "webdyno.questions.capacity.command:capacity",
    ("webdyno.questions.capacity.call:capacity",),
    f"{_TOOLS}:capacity",
)
_TUNE = CommandParts(
    "tune",
    MEASURE,
    "Find better settings with equal effort, then compare default and tuned.",
    "webdyno.questions.tune.command:tune",
    ("webdyno.questions.tune.call:tune",),
)
_GATE = CommandParts(
    "gate",
    MEASURE,
    "Fail if HEAD is slower than BASE by more than a limit.",
    "webdyno.questions.gate.command:gate",
    ("webdyno.questions.gate.call:gate",),
    f"{_TOOLS}:gate",
)
_EXPLAIN = CommandParts(
    "explain",
    READ,
    "Find the bottleneck of a run: measure each system again with less of one resource.",
    "webdyno.questions.explain.command:explain",
    ("webdyno.questions.explain.call:explain", "webdyno.questions.explain.call:try_advice"),
    f"{_TOOLS}:explain",
)


COMPARE, ALONE = "compare", "alone"
_QUESTIONS = {
    COMPARE: _own("compare", "CompareSettings", "Question", _COMPARE),
    ALONE: _own("capacity", "AloneSettings", "AloneQuestion", _CAPACITY),
    "one_sided": _own("compare", "OneSidedSettings", "OneSidedQuestion"),
    "gate": _own(
        "gate",
        "GateSettings",
        "GateQuestion",
        _GATE,
        whole=f"{_OWN}.gate.show:GateWhole",
        result="webdyno.interfaces.python.result:GateRun",
    ),
    "ranking": _own("ranking", "RankingSettings", "RankingQuestion"),
    "halving": _own("tune", "HalvingSettings", "HalvingQuestion", _TUNE),
    "limits": _own("explain", "LimitsSettings", "LimitsQuestion", _EXPLAIN),
    "advice": _own("explain", "AdviceSettings", "AdviceQuestion"),
    "design": _own("explain", "DesignSettings", "SettingsQuestion"),
}
WITHOUT_KEY = (COMPARE, ALONE)
"""What is asked where no key says what: they have no settings, and are not written."""
SHOWS = (
    f"{_OWN}.ranking.show:RankingShow",
    f"{_OWN}.capacity.show:CapacityShow",
    f"{_OWN}.explain.show:ExplainShow",
    f"{_OWN}.tune.show:TuningShow",
)
"""What questions add to how runs are shown, in the order in which that is read."""
COMMENT = f"{_OWN}.gate.comment:gate_comment_in"
"""What a run's folder has for a pull request."""
EXPLAIN_AFTERWARDS = f"{_OWN}.explain.command:explain_afterwards"
"""What `--explain` asks of a run that came to its end."""


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
