"""Questions and commands there are, and what packages add that are installed next to webdyno.

Parts are named `module:name` and imported when they are first needed: who reads an experiment loads
what that one asks, and a question that another package adds is like all others.
"""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from webdyno.core.errors import UserError

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


NAME = "webdyno"
DEBUG = "--debug"
"""The flag that all commands have."""

_API = "webdyno.interfaces.python.api"
_OTHERS = (
    CommandParts(
        "run",
        MEASURE,
        "Run an experiment from its file or the catalog, or repeat a study.",
        "webdyno.interfaces.cli.run:run",
        (f"{_API}:run_experiment",),
    ),
    CommandParts(
        "report",
        READ,
        "Judge runs again and write reports; nothing is measured.",
        "webdyno.interfaces.cli.report:report",
        tool="webdyno.interfaces.mcp:report",
    ),
    CommandParts(
        "diff",
        READ,
        "Show what changed between two runs of the same experiment; nothing is measured.",
        "webdyno.interfaces.cli.report:diff",
    ),
    CommandParts(
        "resume",
        READ,
        "Continue a run after Ctrl-C, a crash or a full disk.",
        "webdyno.interfaces.cli.run:resume",
        (f"{_API}:resume",),
    ),
    CommandParts(
        "ui",
        READ,
        "Show the runs of a folder on a local web page.",
        "webdyno.interfaces.cli.serving:ui",
    ),
    CommandParts(
        "init",
        PREPARE,
        "Write a webdyno.toml that says how the application in a folder starts.",
        "webdyno.interfaces.cli.init:init",
    ),
    CommandParts(
        "traffic",
        PREPARE,
        "Make a load of the traffic in an access log or HAR file.",
        "webdyno.interfaces.cli.traffic:traffic",
    ),
    CommandParts(
        "list",
        PREPARE,
        "List stacks, sites, experiments or studies; or show a stack with its settings.",
        "webdyno.interfaces.cli.listing:list_known",
    ),
    CommandParts(
        "doctor",
        PREPARE,
        "Look at this machine: cores, limits, packages, and what they mean for results.",
        "webdyno.interfaces.cli.doctor:doctor",
    ),
    CommandParts(
        "cluster",
        PREPARE,
        "Start, check and stop a Ray cluster of load and server hosts.",
        "webdyno.interfaces.cli.cluster:cluster",
    ),
    CommandParts(
        "up",
        ALSO,
        "Start one system, print its URL, and keep it up until Ctrl-C.",
        "webdyno.interfaces.cli.serving:up",
    ),
    CommandParts(
        "load",
        ALSO,
        "Put load on a URL and print what was measured.",
        "webdyno.interfaces.cli.load:load",
    ),
    CommandParts(
        "audit",
        ALSO,
        "Find what can't be believed in a benchmark's output, and why.",
        "webdyno.interfaces.cli.audit:audit",
    ),
    CommandParts(
        "mcp",
        ALSO,
        "Offer compare, gate, capacity, explain and report as tools to an agent.",
        "webdyno.interfaces.cli.serving:mcp",
    ),
)
"""Commands that ask no question of their own."""


def commands() -> dict[str, CommandParts]:
    """Return all commands by name, as their list shows them: by what people want."""
    all_of_them = (*question_commands(), *_OTHERS)
    return {
        each.name: each
        for wanted in (MEASURE, READ, PREPARE, ALSO)
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


def spelled(flag: str, value: object = True, *, by_keyword: bool) -> str:
    """Spell a flag with its value, or the keyword of Python in its place."""
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
STACKS = "webdyno.stacks"


def installed(group: str, kind: type[T]) -> dict[str, T]:
    """Return what packages have in a group, by what names it in messages.

    Raise UserError for what can't be loaded, and for what is of another kind.
    """
    entries = sorted(entry_points(group=group), key=lambda entry: entry.name)
    return {_name_of(entry): _load(entry, kind) for entry in entries}


def _load(entry: EntryPoint, kind: type[T]) -> T:
    try:
        value: object = entry.load()
    except Exception as error:  # what others wrote may raise anything
        raise UserError(
            f"{_name_of(entry)} can't be loaded: {type(error).__name__}: {error}; update its "
            "package, or uninstall it"
        ) from error
    if not isinstance(value, kind):
        raise UserError(
            f"{_name_of(entry)}: {entry.value} should be a {kind.__name__}, and is a "
            f"{type(value).__name__}"
        )
    return value


def _name_of(entry: EntryPoint) -> str:
    package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else "a package"
    return f"{entry.group}: {entry.name} of {package}"
