"""Flags that several commands have, each described once, and how their values are read."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import TypeAdapter

from webdyno.definitions import Override
from webdyno.definitions.validation import read_value, written_value
from webdyno.model.errors import UserError
from webdyno.model.load import Connections
from webdyno.model.quantities import Budget, Size

_BUDGET: TypeAdapter[float] = TypeAdapter(Budget)
_SIZE: TypeAdapter[int] = TypeAdapter(Size)
_CONNECTIONS: TypeAdapter[int] = TypeAdapter(Connections)

CatalogDirs = Annotated[
    Sequence[Path],
    Parameter(
        name="--catalog", help="A folder with services, stacks, sites or experiments of your own."
    ),
]
Yes = Annotated[
    bool,
    Parameter(
        name="--yes",
        help="Agree to all that would be asked: missing packages, catalogues of other people.",
    ),
]
LoadsOtherMachines = Annotated[
    bool,
    Parameter(
        help="Measure configurations (conf:) that pass requests on to other machines, which then "
        "are loaded, too; --yes doesn't agree to that.",
    ),
]
StackSettings = Annotated[
    Sequence[str],
    Parameter(name="--set", help="SETTING=VALUE: change a setting; may be given again."),
]
Out = Annotated[
    Path | None,
    Parameter(name="--out", help="Folder of the run, new or empty; else one under runs/."),
]

Cluster = Annotated[
    str | None, Parameter(help="The cluster's head, such as 10.0.0.1:6379; else RAY_ADDRESS.")
]
Overrides = Annotated[
    Sequence[str],
    Parameter(
        name="--set", help="KEY=VALUE: change a setting of the experiment; may be given again."
    ),
]
FailOn = Annotated[
    Sequence[str],
    Parameter(
        name="--fail-on",
        help="'VARIANT.METRIC > +5%': exit code 4 if that variant has that much more of a metric "
        "than the baseline (95% confidence), 5 if inconclusive; may be given again.",
    ),
]


Report = Annotated[
    bool,
    Parameter(
        name="--report",
        negative="--no-report",
        help="Draw the report; without, `webdyno report` draws it later.",
    ),
]
Json = Annotated[bool, Parameter(name="--json", help="Print everything as JSON.")]
Why = Annotated[
    bool,
    Parameter(
        name="--why", help="Afterwards find what limits each variant, as `webdyno why` does."
    ),
]
Ignore = Annotated[
    Sequence[str],
    Parameter(
        help="What may differ between the variants' responses: a regular expression, or a place in "
        "JSON such as '$.items[*].id'; may be given again."
    ),
]


SameBodies = Annotated[
    bool,
    Parameter(
        help="Refuse to compare revisions whose responses have other bodies; else that is reported."
    ),
]


def compared_bodies(patterns: Sequence[str], *, same: bool) -> list[Override]:
    """Give how bodies are compared as settings of the experiment: what may differ, and how much."""
    said = " ".join(f"--ignore {each}" for each in patterns)
    return [
        *([Override(("ignore",), list(patterns), said)] if patterns else []),
        *([Override(("same_bodies",), True, "--same-bodies")] if same else []),
    ]


@Parameter(name="*")
@dataclass(frozen=True)
class Telling:
    """How much is told while a run goes on."""

    quiet: Annotated[bool, Parameter(help="Tell nothing but the answer, and what goes wrong.")] = (
        False
    )
    verbose: Annotated[bool, Parameter(help="Tell of each slot as well.")] = False

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        if self.quiet and self.verbose:
            raise UserError("--quiet and --verbose: leave one of them out")


AS_USUAL = Telling()


@Parameter(name="*")
@dataclass(frozen=True)
class BudgetFlag:
    """How long is measured: what it is for, and how long without it, each command says."""

    given: Annotated[
        str | None, Parameter(name="--budget", help="Time for measuring, such as 90s or 5m.")
    ] = None

    @property
    def seconds(self) -> float | None:
        """How long; None where it isn't given. Raise UserError for what is no time."""
        return None if self.given is None else parse_duration_s(self.given, "--budget")

    def overrides(self) -> list[Override]:
        """Give it as a setting of the experiment."""
        if self.given is None:
            return []
        return [Override(("measure", "budget_s"), self.given, f"--budget {self.given}")]


USUAL_TIME = BudgetFlag()


@Parameter(name="*")
@dataclass(frozen=True)
class RunFlags:
    """How a run goes on and ends, whatever it measures."""

    yes: Yes = False
    loads_other_machines: LoadsOtherMachines = False
    report: Report = True
    cluster: Cluster = None
    telling: Telling = AS_USUAL


PLAIN_RUN = RunFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class NewRunFlags:
    """Where the parts of a run that begins are, on what it fails, and how it goes on."""

    catalog: CatalogDirs = ()
    fail_on: FailOn = ()
    how: RunFlags = PLAIN_RUN


PLAIN_NEW_RUN = NewRunFlags()


@Parameter(name="*")
@dataclass(frozen=True)
class OwnFlags:
    """What is said of systems of the user's own: of both, if both are."""

    dir: Annotated[
        Path | None, Parameter(help="Where the commands of a system of your own run; else here.")
    ] = None
    env: Annotated[
        Sequence[str],
        Parameter(help="NAME=VALUE: a variable for its commands; may be given again."),
    ] = ()
    service: Annotated[
        Sequence[str],
        Parameter(
            help="ROLE=NAME, such as db=mariadb: a service of the catalogue behind a command or "
            "revision, which finds it by $DB_HOST, $DB_PORT and so on; may be given again."
        ),
    ] = ()
    prepare: Annotated[
        str | None, Parameter(help="A line of shell that fills those services before each start.")
    ] = None
    ready: Annotated[
        str | None, Parameter(help="The path that it answers with 2xx or 3xx once it is ready.")
    ] = None
    ready_within: Annotated[
        str | None, Parameter(help="How long it has until then, such as 60s; 20s unless given.")
    ] = None
    root: Annotated[
        Path | None, Parameter(help="With conf: the document root, instead of the file's.")
    ] = None

    host: Annotated[
        str | None,
        Parameter(help="The host that is requested, such as example.com (Host header, TLS's SNI)."),
    ] = None

    @property
    def load(self) -> dict[str, object]:
        """What they say of the load."""
        return {"headers": {"Host": self.host}} if self.host else {}

    def keys(self) -> dict[str, object]:
        """Give the flags as keys of a variant."""
        keys = {
            "dir": self.dir and str(self.dir),
            "environment": dict(_pair("--env", "NAME=VALUE", text) for text in self.env),
            "services": dict(_pair("--service", "ROLE=NAME", text) for text in self.service),
            "prepare": self.prepare,
            "ready": self.ready,
            "ready_within": self.ready_within,
            "root": self.root and str(self.root),
        }
        return {key: value for key, value in keys.items() if value}


NOTHING_OF_OWN = OwnFlags()


def _pair(flag: str, form: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"{flag} {text}: should look like {form}")
    return name, value


def parse_duration_s(text: str, flag: str) -> float:
    """Read `90s`, `1.5m`, `2h` or a bare number of seconds; raise UserError naming the flag."""
    return read_value(_BUDGET, text, flag)


def parse_size(text: str, flag: str) -> int:
    """Read `512MB`, `1GiB` or a bare number of bytes; raise UserError naming the flag."""
    return read_value(_SIZE, text, flag)


def parse_connections(text: str, flag: str) -> int:
    """Read how many connections; raise UserError naming the flag."""
    return read_value(_CONNECTIONS, written_value(text, f"{flag} {text}"), flag)
