"""Questions and commands there are, and what packages add that are installed next to webdyno.

Parts are named `module:name` and imported when they are first needed: who reads an experiment loads
what that one asks, and a question that another package adds is like all others.
"""

import os
import re
import shlex
import shutil
import sys
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from webdyno.core.errors import UserError

EVERYDAY, PREPARE, ADVANCED = "Everyday", "Prepare", "Advanced"
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
_MCP = "webdyno.interfaces.mcp"


def _own(
    folder: str, settings: str, decides: str, command: CommandParts | None = None, **parts: str
) -> QuestionParts:
    """Return the parts of a question of webdyno's own, each in a file of its folder."""
    place = f"{_OWN}.{folder}"
    return QuestionParts(
        f"{place}.settings:{settings}", f"{place}.decide:{decides}", command, **parts
    )


def _asking(
    name: str, wanted: str, does: str, *further_calls: str, has_tool: bool = True
) -> CommandParts:
    """Return the command that asks a question, of the folder of its name."""
    place = f"{_OWN}.{name}"
    calls = tuple(f"{place}.call:{call}" for call in (name, *further_calls))
    tool = f"{_MCP}:{name}" if has_tool else None
    return CommandParts(name, wanted, does, f"{place}.command:{name}", calls, tool)


_COMPARE = _asking(
    "compare",
    EVERYDAY,
    "Compare systems under the same load: a verdict for two, ranks for more.",
)
_CAPACITY = _asking(
    "capacity", EVERYDAY, "Find the highest load that systems carry while objectives hold."
)
_TUNE = _asking(
    "tune",
    ADVANCED,
    "Find better settings with equal effort, then compare default and tuned.",
    has_tool=False,
)
_GATE = _asking("gate", EVERYDAY, "Fail if HEAD is slower than BASE by more than a limit.")
_EXPLAIN = _asking(
    "explain",
    EVERYDAY,
    "Find the bottleneck of a run: measure each system again with less of one resource.",
    "try_advice",
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
EXPERIMENT_KEYS = frozenset(
    (
        *("title", "question", "site", "generator", "load", "requests", "login", "values"),
        *("endpoint", "ignore", "same_bodies", "load_with", "measure", "testbed", "state"),
        *("variants", "factors", "workload", "tuning", "profile", "capacity", "asks"),
    )
)
"""Keys of experiments, which no question can have."""
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
    if not key.isidentifier() or key in EXPERIMENT_KEYS or _QUESTIONS.get(key, parts) != parts:
        raise ValueError(f"{key!r} can't be the key of a question: it is taken, or is no name")
    _QUESTIONS[key] = parts


@cache
def _add_installed() -> None:
    for each in load_extensions(QUESTIONS, QuestionParts):
        try:
            add_question(each.name, each.value)
        except ValueError as error:
            raise UserError(f"{each.place}: {error}") from None


def question_keys() -> list[str]:
    """Return the keys that ask something else than is asked without one."""
    _add_installed()
    return [key for key in _QUESTIONS if key not in WITHOUT_KEY]


def key_without(variants: int) -> str:
    """Return the name of what is asked of so many variants where no key says what."""
    return ALONE if variants == 1 else COMPARE


def question_parts(key: str) -> QuestionParts:
    """Return where a question's parts are."""
    _add_installed()
    return _QUESTIONS[key]


def import_part(part: str) -> Any:  # noqa: ANN401
    """Return what `module:name` names."""
    module, _, name = part.partition(":")
    return getattr(import_module(module), name)


NAME = "webdyno"
DEBUG = "--debug"
"""The flag that all commands have."""


def _other(
    name: str, wanted: str, does: str, typed: str, *calls: str, tool: str | None = None
) -> CommandParts:
    """Return a command that asks no question of its own."""
    api = "webdyno.interfaces.python.api"
    in_python = tuple(f"{api}:{call}" for call in calls)
    return CommandParts(name, wanted, does, f"webdyno.interfaces.cli.{typed}", in_python, tool)


_OTHERS = (
    _other(
        "run",
        ADVANCED,
        "Run an experiment from its file or the catalog, or repeat a study.",
        "run:run",
        "run_experiment",
    ),
    _other(
        "league",
        ADVANCED,
        "Rank many stacks at many tasks, a sitting at a time, and write the pages that show it.",
        "league:league",
    ),
    _other(
        "report",
        EVERYDAY,
        "Judge runs again and write reports; nothing is measured.",
        "report:report",
        tool=f"{_MCP}:report",
    ),
    _other(
        "diff",
        ADVANCED,
        "Show what changed between two runs of the same experiment; nothing is measured.",
        "report:diff",
    ),
    _other(
        "resume",
        ADVANCED,
        "Continue a run after Ctrl-C, a crash or a full disk.",
        "run:resume",
        "resume",
    ),
    _other("ui", EVERYDAY, "Show the runs of a folder on a local web page.", "serving:ui"),
    _other(
        "init",
        PREPARE,
        "Write a webdyno.toml that says how the application in a folder starts.",
        "init:init",
    ),
    _other(
        "traffic",
        PREPARE,
        "Make a load of the traffic in an access log or HAR file.",
        "traffic:traffic",
    ),
    _other(
        "list",
        PREPARE,
        "List stacks, sites, experiments, studies; a stack's settings; or a site's stacks.",
        "listing:list_known",
    ),
    _other(
        "doctor",
        PREPARE,
        "Look at this machine: cores, limits, packages, and what they mean for results.",
        "doctor:doctor",
    ),
    _other(
        "cluster",
        ADVANCED,
        "Start, check and stop a Ray cluster of load and server hosts.",
        "cluster:cluster",
    ),
    _other(
        "up",
        ADVANCED,
        "Start one system, print its URL, and keep it up until Ctrl-C.",
        "serving:up",
    ),
    _other("load", ADVANCED, "Put load on a URL and print what was measured.", "load:load"),
    _other(
        "audit",
        ADVANCED,
        "Find what can't be believed in a benchmark's output, and why.",
        "audit:audit",
    ),
    _other(
        "mcp",
        ADVANCED,
        "Offer compare, gate, capacity, explain and report as tools to an agent.",
        "serving:mcp",
    ),
)


def commands() -> dict[str, CommandParts]:
    """Return all commands by name, as their list shows them: by what people want."""
    all_of_them = (*(parts.command for parts in _QUESTIONS.values() if parts.command), *_OTHERS)
    return {
        each.name: each
        for wanted in (EVERYDAY, PREPARE, ADVANCED)
        for each in all_of_them
        if each.wanted == wanted
    }


def python_calls() -> dict[str, str]:
    """Return the functions of the Python API that are a command's, by name, as `module:name`."""
    return {call.partition(":")[2]: call for each in commands().values() for call in each.calls}


def command(*words: str | Path) -> str:
    """Return a command line of webdyno, quoted where a shell needs it."""
    return shlex.join([called_as(), *map(str, words)])


def as_called(text: str) -> str:
    """Return a text with its commands of webdyno as they can be called from here.

    For what is printed; what is stored says `webdyno`, wherever it will be read.
    """
    called, names = shlex.quote(called_as()), "|".join(commands())
    return re.sub(rf"(?<![\w./-]){NAME}(?= (?:{names})\b)", lambda _: called, text)


def keyword_of(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def spell_flag(flag: str, value: object = True, *, by_keyword: bool) -> str:
    """Return a flag with its value, or the keyword of Python in its place."""
    if by_keyword:
        return f"{keyword_of(flag)}={value!r}"
    return flag if value is True else f"{flag} {value}"


def called_as() -> str:
    """Return the name by which this webdyno can be called again from the same folder.

    `./dyno` reports it in WEBDYNO_CALLED_AS. Else it is the plain name where the PATH leads to it,
    or the path by which it was called.
    """
    if name := os.environ.get("WEBDYNO_CALLED_AS"):
        return name
    called = sys.argv[0]
    return called if Path(called).name == NAME and shutil.which(NAME) is None else NAME


T = TypeVar("T")
AUDIT_FORMATS = "webdyno.audit_formats"
GENERATORS = "webdyno.generators"
QUESTIONS = "webdyno.questions"
STACKS = "webdyno.stacks"


class Extension(NamedTuple, Generic[T]):
    """What an entry point of an installed package leads to."""

    name: str
    value: T
    place: str
    """Group, name and package, for messages."""


def load_extensions(group: str, kind: type[T]) -> list[Extension[T]]:
    """Load what packages have in a group, in the order of names.

    Raise UserError for what can't be loaded, and for what is of another kind.
    """
    extensions = []
    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
        place = f"{group}: {entry.name} of {package}"
        try:
            value: object = entry.load()
        except Exception as error:  # what others wrote may raise anything
            raise UserError(
                f"{place} can't be loaded: {type(error).__name__}: {error}; update its package, "
                "or uninstall it"
            ) from error
        if not isinstance(value, kind):
            raise UserError(
                f"{place}: {entry.value} should be a {kind.__name__}, and is a "
                f"{type(value).__name__}"
            )
        extensions.append(Extension(entry.name, value, place))
    return extensions
