"""Flags that several commands have, each described once."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.quantities import parse_duration_s
from webdyno.definitions import Override
from webdyno.model.mistake import Mistake

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
KnobSettings = Annotated[
    Sequence[str], Parameter(name="--set", help="KNOB=VALUE: turn a knob; may be given again.")
]
Out = Annotated[
    Path | None,
    Parameter(name="--out", help="Folder of the run, new or empty; else one under runs/."),
]

Cluster = Annotated[
    str | None, Parameter(help="The cluster's head, such as 10.0.0.1:6379; else RAY_ADDRESS.")
]
Settings = Annotated[
    Sequence[str],
    Parameter(
        name="--set", help="KEY=VALUE: change a setting of the experiment; may be given again."
    ),
]
FailOn = Annotated[
    Sequence[str],
    Parameter(
        name="--fail-on",
        help="'ARM.METRIC > +5%': exit code 4 if that arm surely has that much more of a metric "
        "than the baseline, 5 if it can't be told; may be given again.",
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
    Parameter(name="--why", help="Afterwards find what limits each side, as `webdyno why` does."),
]
Ignore = Annotated[
    Sequence[str],
    Parameter(
        help="What may differ between the sides' answers: a regular expression, or a place in "
        "JSON such as '$.items[*].id'; may be given again."
    ),
]


SameBodies = Annotated[
    bool,
    Parameter(
        help="Refuse to compare revisions whose answers have other bodies; else that is reported."
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
            raise Mistake("--quiet and --verbose: leave one of them out")


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
        """How long; None where it isn't given. Raise Mistake for what is no time."""
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
