"""The experiment of a gate.

Two revisions of a repository, and how much worse one of them may be.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdyno.definitions import Catalogue, CommandLine, Draft, Override
from webdyno.definitions.experiment import Source
from webdyno.definitions.toml_file import KeyPath
from webdyno.definitions.validation import build
from webdyno.lab.caller import Caller
from webdyno.lab.systems import Arranged, checked_with_own, common_site
from webdyno.model.errors import UserError
from webdyno.model.gate import (
    BASELINE,
    BASELINE_AGAIN,
    DEFAULT_TOLERANCES,
    HEAD,
    GateAnswer,
    GateJudgement,
)
from webdyno.model.metrics import METRICS
from webdyno.model.quantities import SHARE
from webdyno.model.request import Request, endpoints_of

if TYPE_CHECKING:
    from webdyno.own.project import Project
    from webdyno.revisions.repository import Repository, Revision

ORIGIN, WORKING_TREE = "origin/main", "."
REQUESTS = "requests"
BUDGET_S = 600.0
SHORT = {
    "cpu": "server_cpu_us",
    "throughput": "throughput_rps",
    "p50": "latency_p50_us",
    "p99": "latency_p99_us",
    "memory": "memory_mib",
}
OFF = "off"
WITHOUT_NAME = "server_cpu_us"
"""What a share without a metric is meant for; the others keep their relation to it."""


@dataclass(frozen=True)
class AskedGate:
    """What is asked of two revisions, or other systems."""

    base: str = ORIGIN
    head: str = WORKING_TREE
    worse_than: Sequence[str] = ()
    """How much worse is tolerated, as `tolerances` reads it."""
    paths: Sequence[str] = ()
    """Endpoints, each asked by itself; else what webdyno.toml says."""
    site: str | None = None
    """What stacks of the catalogue serve, if such are compared."""
    traffic: str = ""
    """The flags that give requests, if any do."""
    overrides: Sequence[Override] = ()


def asked_gate(asked: AskedGate, catalogue: Catalogue, caller: Caller) -> Arranged | GateJudgement:
    """Make the experiment of a gate; or its answer where no change is left to be measured."""
    from webdyno.own.project import Project, ProjectSource

    if asked.paths and asked.traffic:
        raise UserError(
            f"{caller.spelled('--path', asked.paths[0])}: --curl, --har and --requests say what is "
            "requested; leave it out"
        )
    tolerated = tolerances(asked.worse_than, caller)
    old, new = (
        _variant(name, caller.named(flag), catalogue)
        for name, flag in ((asked.base, "--base"), (asked.head, "--head"))
    )
    if old.files and new.files and (why := _unmeasured(old.files, new.files)):
        if lacking := new.files.repository.excluded_from(new.asked):
            caller.tell(f"{new.flag} {new.asked} {lacking}")
        return GateJudgement(answer=GateAnswer.PASS, headline=why, baseline=old.name, head=new.name)
    served = asked.site or common_site(catalogue, new.stack, old.stack).name
    project = Project.around(Path.cwd())
    endpoints = _endpoints(asked.overrides, None if asked.paths else project)
    spoken = _experiment(old, new, asked.paths, served, tolerated, project, endpoints)
    source: Source = ProjectSource(spoken, project) if project else spoken
    draft = Draft.of(_WithoutRequests(source) if asked.paths else source, asked.overrides)
    experiment, catalogue = checked_with_own(draft, catalogue, Path.cwd(), caller)
    return Arranged("gate", experiment, catalogue)


def tolerances(texts: Sequence[str], caller: Caller) -> dict[str, float]:
    """Read `5%` and `p99=20%`; raise UserError, naming the flag, for anything else."""
    found: dict[str, float] = dict(DEFAULT_TOLERANCES)
    seen: set[str] = set()
    for text in sorted(texts, key=lambda it: "=" in it):  # a single metric's own counts before all
        name, equals, amount = text.rpartition("=")
        flag = caller.spelled("--worse-than", text)
        metric = _metric(name, flag) if equals else ""
        if metric in seen:
            raise UserError(f"{flag}: was said twice; say it once")
        seen.add(metric)
        if equals and amount.strip().lower() == OFF:
            found.pop(metric, None)
        elif equals:
            found[metric] = _share(amount, flag)
        else:
            scale = _share(amount, flag) / DEFAULT_TOLERANCES[WITHOUT_NAME]
            found = {key: share * scale for key, share in DEFAULT_TOLERANCES.items()}
    if not found:
        flag = caller.named("--worse-than")
        raise UserError(f"{flag}: all metrics are off, so there is nothing to ask")
    return found


def _metric(name: str, flag: str) -> str:
    metric = SHORT.get(name.strip(), name.strip())
    if metric not in METRICS or not METRICS[metric].decides:
        able = ", ".join([*SHORT, *(it for it, rule in METRICS.items() if rule.decides)])
        raise UserError(f"{flag}: there is no metric {name!r} to ask about; there are {able}")
    return metric


def _share(amount: str, flag: str) -> float:
    share = SHARE.read(amount)
    if share is None or not 0.001 <= share <= 2:
        raise UserError(f"{flag}: should be a share from 0.1% to 200%, such as 5% or p99=20%")
    return share


@dataclass(frozen=True)
class _Variant:
    """Baseline or head, as it was asked for."""

    flag: str
    stack: str
    """`rev:main`, or whatever else a variant can be."""
    name: str
    """For people: `main (1a2b3c4)`."""
    files: "Files | None"
    asked: str
    """What stands behind the flag."""


@dataclass(frozen=True)
class Files:
    """What a revision consists of."""

    repository: "Repository"
    revision: "Revision"


def _variant(asked: str, flag: str, catalogue: Catalogue) -> _Variant:
    """Find out what is requested; raise UserError for a revision that isn't there."""
    from webdyno.own.variants import is_own
    from webdyno.revisions.repository import Repository

    kind, _, text = asked.partition(":")
    if asked in catalogue.stacks or (is_own(asked) and kind != "rev"):
        return _Variant(flag, asked, asked, None, asked)
    wanted = text if kind == "rev" else asked
    repository = Repository.around(Path.cwd(), flag)
    revision = repository.revision(wanted, flag)
    called = "the working tree" if wanted == WORKING_TREE else wanted
    return _Variant(
        flag, f"rev:{wanted}", f"{called} ({revision.text})", Files(repository, revision), wanted
    )


def _unmeasured(old: Files, new: Files) -> str | None:
    from webdyno.revisions.repository import nothing_to_measure

    return nothing_to_measure(old.repository.changed_files(old.revision, new.revision))


@dataclass(frozen=True)
class _WithoutRequests:
    """Flags and webdyno.toml together, but for its requests: the flags name what is requested."""

    source: Source

    @property
    def data(self) -> dict[str, Any]:
        """Give the experiment as TOML has it."""
        return {key: value for key, value in self.source.data.items() if key != REQUESTS}

    @property
    def folder(self) -> Path:
        """Where the files lie that the experiment names."""
        return self.source.folder

    def place(self, where: KeyPath) -> str:
        """Name the flag, or file and line."""
        return self.source.place(where)


def _experiment(
    old: _Variant,
    new: _Variant,
    paths: Sequence[str],
    site: str,
    worse_than: dict[str, float],
    project: "Project | None",
    endpoints: Sequence[str],
) -> CommandLine:
    decided = {"decide_on": next(iter(worse_than)), "budget_s": BUDGET_S}
    measured = project.file.data.get("measure", {}) if project else {}
    data: dict[str, Any] = {
        "title": f"{new.name} against {old.name}",
        "question": f"Is {new.name} worse than {old.name} by more than is tolerated?",
        "site": site,
        "variants": {
            BASELINE: {"stack": old.stack},
            BASELINE_AGAIN: {"stack": old.stack},
            HEAD: {"stack": new.stack},
        },
        "gate": {"worse_than": worse_than, "baseline": old.name, "head": new.name},
        "same_bodies": False,
        "measure": {key: value for key, value in decided.items() if key not in measured},
    }
    if len(endpoints) > 1:
        data["factors"] = {"endpoint": list(endpoints)}
    elif len(paths) > 1:
        data["factors"] = {"load.paths": [[each] for each in dict.fromkeys(paths)]}
    elif paths:
        data["load"] = {"paths": list(paths)}
    said = f"--path {' --path '.join(paths)}"
    flags: dict[KeyPath, str] = {
        ("load", "paths"): said,
        ("factors",): said,
        ("variants", BASELINE): f"{old.flag} {old.stack}",
        ("variants", BASELINE_AGAIN): f"{old.flag} {old.stack}",
        ("variants", HEAD): f"{new.flag} {new.stack}",
        ("gate",): "--worse-than",
    }
    return CommandLine(data, flags)


def _endpoints(asked: Sequence[Override], project: "Project | None") -> list[str]:
    """Name what the flags ask for, or else what `[[requests]]` of webdyno.toml does.

    Raise UserError, with the flag or the line, where that isn't right.
    """
    given = next((it for it in asked if it.key == (REQUESTS,)), None)
    if given is not None:
        return _names(given.value, lambda _: given.flag)
    if project is None:
        return []
    file = project.file
    return _names(file.data.get(REQUESTS, []), lambda where: file.place((REQUESTS, *where)))


def _names(written: object, place: Callable[[KeyPath], str]) -> list[str]:
    requests = [
        build(Request, table, lambda where, number=number: place((number, *where)))  # type: ignore[misc]
        for number, table in enumerate(written if isinstance(written, list) else [])
        if isinstance(table, dict)  # else whoever checks the experiment says so
    ]
    return list(dict.fromkeys(filter(None, endpoints_of(requests))))
