"""Flags that several commands have, each described once. Nothing heavy is imported for `--help`.

A description begins with what is wanted, in capitals: `DURATION: time to measure`. What the flag
sets of an experiment stands next to it. `interfaces/cli/help.py` has the group that a flag stands
in which several commands have.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_type_hints

from cyclopts import Group, Parameter

from webdyno.core.errors import UserError

if TYPE_CHECKING:  # pydantic takes a while to import
    from webdyno.config import Override

RARE = Group("Rare")


def flag(does: str, *names: str, rare: bool = False) -> Parameter:
    """Describe a flag or argument; its name is that of the field unless others are given.

    `rare`: whether only `--help-all` shows it, where it is a command's own.
    """
    return Parameter(help=does, name=names or None, group=RARE if rare else None)


@dataclass(frozen=True)
class Sets:
    """What a flag sets of an experiment: `Annotated[str | None, flag("…"), Sets("load.burst")]`."""

    key: str
    """Dotted, as in `--set`."""
    value: object = True
    """What a flag sets that takes no value."""
    as_in_toml: bool = False
    """Whether a value is read as TOML has it, as a number; else it is a text."""
    form: str = ""
    """Of each value of a flag that sets a table, such as `NAME=VALUE`."""
    name: str = ""
    """How messages call the flag, where that isn't the name of its field."""
    check: Callable[[str], None] | None = None
    """Raises UserError for a value that can't be."""

    def override(self, field: str, given: object) -> "Override":
        """Return the setting that a flag's value is; raise UserError for what can't be."""
        from webdyno.config import Override
        from webdyno.config.reading import written_value

        name, key = self.name or f"--{field.replace('_', '-')}", tuple(self.key.split("."))
        if given is True:
            return Override(key, self.value, name)
        if isinstance(given, str | Path):
            words = f"{name} {given}"
            if self.check:
                self.check(str(given))
            value = written_value(str(given), words) if self.as_in_toml else str(given)
            return Override(key, value, words)
        texts = list(given) if isinstance(given, Sequence) else []
        words = " ".join(f"{name} {text}" for text in texts)
        return Override(key, read_pairs(name, self.form, texts) if self.form else texts, words)


def settings_of(flags: object) -> "Iterator[Override]":
    """Yield what flags that were given set of an experiment; raise UserError for what can't be."""
    for field, hint in get_type_hints(type(flags), include_extras=True).items():
        given = getattr(flags, field)
        for sets in getattr(hint, "__metadata__", ()):
            if isinstance(sets, Sets) and (given or given == ""):
                yield sets.override(field, given)


CatalogDirs = Annotated[
    Sequence[Path], flag("DIR: your own services, stacks, sites, experiments.", "--catalog")
]
Yes = Annotated[bool, flag("Answer yes to all prompts (packages, catalogs).", "--yes")]
LoadsOtherMachines = Annotated[
    bool, flag("Allow configurations that load other machines.", "--loads-other-machines")
]
TargetIsMine = Annotated[
    bool, flag("Vouch for other machines that url: names.", "--target-is-mine")
]
Overrides = Annotated[
    Sequence[str], flag("KEY=VALUE: a setting: nginx.workers=2, load.timeout_s=1.", "--set")
]
Output = Annotated[
    Path | None, flag("DIR: folder of the run [default: one in runs/]", "-o", "--output")
]
Cluster = Annotated[
    str | None, flag("HOST:PORT: head of the cluster [default: $RAY_ADDRESS]", "--cluster")
]
FailIf = Annotated[
    Sequence[str], flag("LIMIT: such as 'p99 > +5%': exit 4, or 5 if inconclusive.", "--fail-if")
]
Report = Annotated[
    bool, Parameter(name="--report", negative="--no-report", help="Write report.html at the end.")
]
Format = Annotated[str, flag("FORMAT: text or json", "--format")]
ExplainToo = Annotated[bool, flag("Find the bottleneck of each afterwards.", "--explain")]
Paths = Annotated[
    Sequence[str], flag("PATH: what is requested [default: first of site, or /]", "--path")
]
Variables = Annotated[
    Sequence[str], flag("NAME=VALUE: a variable for commands and conf: templates.", "--env")
]
VARIABLE = "NAME=VALUE"
LAST = Path("last")
"""In the place of a run's folder: the newest one in runs/."""
TEXT, JSON = "text", "json"
FEWEST_BARE_S = 10
"""Below it, a time without a unit is hardly one of seconds."""
STUDY = "study:"
"""How the name of a study begins, where it stands for an experiment."""


def run_folder(named: Path) -> Path:
    """Return the folder of a run that is named; raise UserError where there is no last one."""
    if named != LAST or named.exists():
        return named
    from webdyno.core.run import RUNS_FOLDER
    from webdyno.measure.folder import newest_run

    newest = newest_run(RUNS_FOLDER)
    if newest is None:
        raise UserError("there is no last run: runs/ is empty here; name the folder of a run")
    return newest


def is_json(format_: str) -> bool:
    """Whether JSON is requested; raise UserError for what is neither that nor text."""
    if format_ not in {TEXT, JSON}:
        raise UserError(f"--format {format_}: should be {TEXT} or {JSON}")
    return format_ == JSON


@Parameter(name="*")
@dataclass(frozen=True)
class Verbosity:
    """How much is printed during a run."""

    quiet: Annotated[bool, flag("Print only the result and errors.")] = False
    verbose: Annotated[bool, flag("Also print each measurement.")] = False

    def __post_init__(self) -> None:
        if self.quiet and self.verbose:
            raise UserError("--quiet and --verbose: leave one of them out")


AS_USUAL = Verbosity()


@Parameter(name="*")
@dataclass(frozen=True)
class TimeFlag:
    """The longest to measure; what it is for, and the default, is each command's."""

    given: Annotated[
        str | None, flag("DURATION: the longest to measure, in total, such as 90s or 5m.", "--time")
    ] = None

    def __post_init__(self) -> None:
        if self.given and self.given.isdecimal() and 0 < int(self.given) < FEWEST_BARE_S:
            raise UserError(
                f"--time {self.given}: seconds or minutes? Write {self.given}s, which is short, or "
                f"{self.given}m"
            )

    @property
    def seconds(self) -> float | None:
        return None if self.given is None else parse_duration_s(self.given, "--time")

    def overrides(self) -> "list[Override]":
        """Return it as a setting of the experiment."""
        from webdyno.config import time_limit

        return [] if self.given is None else time_limit(self.given, f"--time {self.given}")


USUAL_TIME = TimeFlag()


@Parameter(name="*")
@dataclass(frozen=True)
class RunFlags:
    """How a run is made, whatever it measures."""

    yes: Yes = False
    loads_other_machines: LoadsOtherMachines = False
    target_is_mine: TargetIsMine = False
    report: Report = True
    cluster: Cluster = None
    verbosity: Verbosity = AS_USUAL


PLAIN_RUN = RunFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class NewRunFlags:
    """What a new run is made of, on what it fails, and how it is made."""

    catalog: CatalogDirs = ()
    fail_if: FailIf = ()
    how: RunFlags = PLAIN_RUN


PLAIN_NEW_RUN = NewRunFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class OwnFlags:
    """What holds for all systems of the user's own."""

    dir: Annotated[Path | None, flag("DIR: where commands of your own run."), Sets("dir")] = None
    env: Annotated[Variables, Sets("environment", form=VARIABLE)] = ()
    service: Annotated[
        Sequence[str],
        flag("ROLE=NAME: a service behind it: db=postgresql ($DATABASE_URL, …)."),
        Sets("services", form="ROLE=NAME"),
    ] = ()
    setup: Annotated[
        str | None,
        flag("COMMAND: fills those services once; starts get copies."),
        Sets("setup"),
    ] = None
    prepare: Annotated[
        str | None, flag("COMMAND: fills those services before each start."), Sets("prepare")
    ] = None
    ready: Annotated[
        str | None, flag("PATH: answers 2xx or 3xx once the system is ready."), Sets("ready")
    ] = None
    ready_within: Annotated[
        str | None, flag("DURATION: how long that may take [default: 20s]"), Sets("ready_within")
    ] = None
    containers: Annotated[
        str | None,
        flag("ENGINE: docker or podman, which runs image: [default: Docker if it answers]"),
        Sets("containers"),
    ] = None
    root: Annotated[
        Path | None, flag("DIR: document root of conf:, instead of the file's."), Sets("root")
    ] = None
    backend: Annotated[
        Sequence[str],
        flag("HOST=SYSTEM: answers for a host of conf:, as app=cmd:COMMAND."),
        Sets("backends", form="HOST=SYSTEM"),
    ] = ()
    host: Annotated[str | None, flag("NAME: the Host header (and TLS's SNI) of requests.")] = None

    @property
    def load(self) -> dict[str, object]:
        return {"headers": {"Host": self.host}} if self.host else {}

    def keys(self) -> dict[str, object]:
        """Return the flags as keys of a variant."""
        return {str(each.key[0]): each.value for each in settings_of(self) if each.value}


NOTHING_OF_OWN = OwnFlags()


def read_pairs(flag: str, form: str, texts: Sequence[str]) -> dict[str, str]:
    """Read `NAME=VALUE` and the like; raise UserError, naming the flag, for what has no `=`."""
    pairs = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise UserError(f"{flag} {text}: should look like {form}")
        pairs[name] = value
    return pairs


def parse_duration_s(text: str, flag: str) -> float:
    """Read `90s`, `1.5m`, `2h` or a bare number of seconds; raise UserError naming the flag."""
    from pydantic import TypeAdapter

    from webdyno.config.reading import read_value
    from webdyno.core.base import Budget

    budget: TypeAdapter[float] = TypeAdapter(Budget)
    return read_value(budget, text, flag)


def parse_size(text: str, flag: str) -> int:
    """Read `512MB`, `1GiB` or a bare number of bytes; raise UserError naming the flag."""
    from pydantic import TypeAdapter

    from webdyno.config.reading import read_value
    from webdyno.core.base import Size

    size: TypeAdapter[int] = TypeAdapter(Size)
    return read_value(size, text, flag)


def parse_connections(text: str, flag: str) -> int:
    """Read how many connections; raise UserError naming the flag."""
    from pydantic import TypeAdapter

    from webdyno.config.reading import read_value, written_value
    from webdyno.core.load import Connections

    connections: TypeAdapter[int] = TypeAdapter(Connections)
    return read_value(connections, written_value(text, f"{flag} {text}"), flag)
