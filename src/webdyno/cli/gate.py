"""`webdyno gate`: is this revision worse than that one? For people, and for CI."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from pydantic import ValidationError

from webdyno.cli.console import plain_console, tell
from webdyno.cli.duel import common_site
from webdyno.cli.exits import Exit
from webdyno.cli.experiment_flags import AS_SET_UP, SetupFlags
from webdyno.cli.flags import PLAIN_RUN, USUAL_TIME, BudgetFlag, CatalogDirs, Out, RunFlags
from webdyno.cli.measure import measure
from webdyno.cli.own_systems import checked_with_own
from webdyno.cli.result import GATE_EXITS, show_result
from webdyno.definitions import Catalogue, CommandLine, Draft, Override
from webdyno.definitions.experiment import Source
from webdyno.definitions.toml_file import KeyPath
from webdyno.definitions.validation import build, first_fault
from webdyno.model.files import MIB, read_given, unreadable
from webdyno.model.gate import (
    BASE,
    BASE_AGAIN,
    DEFAULT_TOLERANCES,
    HEAD,
    Baseline,
    GateAnswer,
    GateJudgement,
)
from webdyno.model.metrics import METRICS
from webdyno.model.mistake import Mistake
from webdyno.model.quantities import SHARE
from webdyno.model.request import Request, endpoints_of
from webdyno.run.folder import RunFolder

if TYPE_CHECKING:
    from webdyno.own.project import Project
    from webdyno.revisions.repository import Repository, Revision

WORKING_TREE = "."
REQUESTS = "requests"
BUDGET_S = 600.0
SHORT = {
    "cpu": "server_cpu_us",
    "rate": "rate_rps",
    "p50": "response_p50_us",
    "p99": "response_p99_us",
    "memory": "memory_mib",
}
OFF = "off"
WITHOUT_NAME = "server_cpu_us"
"""What a share without a metric is meant for; the others keep their relation to it."""
FILES = ("gate.md", "gate.json", "junit.xml", "bencher.json", "load-performance.json")

MOST_BASELINE_BYTES = 4 * MIB


@Parameter(name="*")
@dataclass(frozen=True)
class CiFlags:
    """What is left behind for others to read."""

    write: Annotated[
        Path | None, Parameter(help=f"Folder for what CI reads: {', '.join(FILES)}.")
    ] = None
    baseline: Annotated[
        Path | None,
        Parameter(help="Figures of an earlier gate, told beside the answer; they never sway it."),
    ] = None
    keep_baseline: Annotated[
        Path | None, Parameter(help="Write head's figures into this file, for a later --baseline.")
    ] = None


NOTHING = CiFlags()


def gate(
    *,
    base: Annotated[
        str, Parameter(help="The revision that head is held against, or a stack (see duel).")
    ] = "origin/main",
    head: Annotated[
        str, Parameter(help="The revision that is asked about; the working tree unless given.")
    ] = WORKING_TREE,
    worse_than: Annotated[
        Sequence[str],
        Parameter(
            help="How much worse is tolerated: 5% (CPU time per request and rate; the 99th "
            "percentile five times that), or of one metric: cpu=3%, rate=10%, p99=20%, p99=off; "
            "may be given again."
        ),
    ] = (),
    path: Annotated[
        Sequence[str],
        Parameter(
            help="An endpoint, asked by itself; may be given again. Else what webdyno.toml says."
        ),
    ] = (),
    site: Annotated[
        str | None, Parameter(help="What stacks of the catalogue serve, if such are compared.")
    ] = None,
    budget: BudgetFlag = USUAL_TIME,
    setup: SetupFlags = AS_SET_UP,
    ci: CiFlags = NOTHING,
    out: Out = None,
    catalog: CatalogDirs = (),
    run: RunFlags = PLAIN_RUN,
) -> Exit:
    """Tell whether head is worse than base by more than is tolerated, and nothing else.

    Three answers, each with an exit code: 0 pass (surely not worse), 4 fail (surely worse), 5 can't
    tell in the time given. It stops as soon as the answer is known. Each is wrong in at most 5 % of
    gates, however many endpoints and metrics there are (docs/gate.md).

    For example

        webdyno gate

        webdyno gate --base origin/main --worse-than 5%

        webdyno gate --base v1.2 --head v1.3 --path / --path /search --worse-than cpu=3%

        webdyno gate --requests shop.http

        webdyno gate --write results     # gate.md, junit.xml and others
    """
    from webdyno.own.project import Project, ProjectSource
    from webdyno.report.gate import gate_document
    from webdyno.report.terminal import print_document

    if path and setup.traffic.given:
        raise Mistake(
            f"--path {path[0]}: --curl, --har and --requests say what is asked for; leave it out"
        )
    tolerated = tolerances(worse_than)
    earlier = read_baseline(ci.baseline) if ci.baseline else None
    catalogue = Catalogue.load(catalog)
    sides = [_side(name, flag, catalogue) for name, flag in ((base, "--base"), (head, "--head"))]
    old, new = sides
    if old.files and new.files and (why := _unmeasured(old.files, new.files)):
        if lacking := new.files.repository.left_out_of(new.asked):
            tell(f"--head {new.asked} {lacking}")
        answer = GateJudgement(answer=GateAnswer.PASS, headline=why, base=old.name, head=new.name)
        leave_behind(answer, ci)
        print_document(plain_console(), gate_document(answer))
        return GATE_EXITS[answer.answer]
    served = site or common_site(catalogue, new.stack, old.stack).name
    project = Project.around(Path.cwd())
    overrides = [*budget.overrides(), *setup.overrides()]
    endpoints = _endpoints(overrides, None if path else project)
    spoken = _experiment(old, new, path, served, tolerated, project, endpoints)
    source: Source = ProjectSource(spoken, project) if project else spoken
    draft = Draft.of(_WithoutRequests(source) if path else source, overrides)
    experiment, catalogue = checked_with_own(draft, catalogue, Path.cwd(), yes=run.yes)

    def show(folder: RunFolder) -> Exit:
        from webdyno.judge.questions.gate import since_baseline
        from webdyno.report.view import see

        seen = see(folder.data())
        code = show_result(folder, report=run.report, seen=seen)
        if answer := seen.view.gate:
            beside = since_baseline(earlier, answer) if earlier else []
            for said in beside:
                plain_console().print(said)
            leave_behind(answer.replace(notes=[*answer.notes, *beside]), ci)
        return code

    return measure("gate", experiment, catalogue, out, run, show=show)


@dataclass(frozen=True)
class _Side:
    """Base or head, as it was asked for."""

    flag: str
    stack: str
    """`rev:main`, or whatever else an arm can be."""
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


def _side(asked: str, flag: str, catalogue: Catalogue) -> _Side:
    """Find out what is asked for; raise Mistake for a revision that isn't there."""
    from webdyno.own.arms import is_own
    from webdyno.revisions.repository import Repository

    kind, _, text = asked.partition(":")
    if asked in catalogue.stacks or (is_own(asked) and kind != "rev"):
        return _Side(flag, asked, asked, None, asked)
    wanted = text if kind == "rev" else asked
    repository = Repository.around(Path.cwd(), flag)
    revision = repository.revision(wanted, flag)
    called = "the working tree" if wanted == WORKING_TREE else wanted
    return _Side(
        flag, f"rev:{wanted}", f"{called} ({revision.text})", Files(repository, revision), wanted
    )


def _unmeasured(old: Files, new: Files) -> str | None:
    from webdyno.revisions.repository import nothing_to_measure

    return nothing_to_measure(old.repository.changed_files(old.revision, new.revision))


@dataclass(frozen=True)
class _WithoutRequests:
    """Flags and webdyno.toml together, but for its requests: the flags name what is asked for."""

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
    old: _Side,
    new: _Side,
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
        "arms": {
            BASE: {"stack": old.stack},
            BASE_AGAIN: {"stack": old.stack},
            HEAD: {"stack": new.stack},
        },
        "gate": {"worse_than": worse_than, "base": old.name, "head": new.name},
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
        ("arms", BASE): f"{old.flag} {old.stack}",
        ("arms", BASE_AGAIN): f"{old.flag} {old.stack}",
        ("arms", HEAD): f"{new.flag} {new.stack}",
        ("gate",): "--worse-than",
    }
    return CommandLine(data, flags)


def _endpoints(asked: Sequence[Override], project: "Project | None") -> list[str]:
    """Name what the flags ask for, or else what `[[requests]]` of webdyno.toml does.

    Raise Mistake, with the flag or the line, where that isn't right.
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


def tolerances(texts: Sequence[str]) -> dict[str, float]:
    """Read `5%` and `p99=20%`, `rate=off`; raise Mistake, naming the flag, for anything else."""
    found: dict[str, float] = dict(DEFAULT_TOLERANCES)
    seen: set[str] = set()
    for text in sorted(texts, key=lambda it: "=" in it):  # a single metric's own counts before all
        name, equals, amount = text.rpartition("=")
        flag = f"--worse-than {text}"
        metric = _metric(name, flag) if equals else ""
        if metric in seen:
            raise Mistake(f"{flag}: was said twice; say it once")
        seen.add(metric)
        if equals and amount.strip().lower() == OFF:
            found.pop(metric, None)
        elif equals:
            found[metric] = _share(amount, flag)
        else:
            scale = _share(amount, flag) / DEFAULT_TOLERANCES[WITHOUT_NAME]
            found = {key: share * scale for key, share in DEFAULT_TOLERANCES.items()}
    if not found:
        raise Mistake("--worse-than: all metrics are off, so there is nothing to ask")
    return found


def _metric(name: str, flag: str) -> str:
    metric = SHORT.get(name.strip(), name.strip())
    if metric not in METRICS or not METRICS[metric].decides:
        able = ", ".join([*SHORT, *(it for it, rule in METRICS.items() if rule.decides)])
        raise Mistake(f"{flag}: there is no metric {name!r} to ask about; there are {able}")
    return metric


def _share(amount: str, flag: str) -> float:
    share = SHARE.read(amount)
    if share is None or not 0.001 <= share <= 2:
        raise Mistake(f"{flag}: should be a share from 0.1% to 200%, such as 5% or p99=20%")
    return share


def leave_behind(answer: GateJudgement, ci: CiFlags) -> None:
    """Leave behind what was asked for, and what GitHub's runner reads where it is one."""
    from webdyno.judge.questions.gate import baseline_of
    from webdyno.report.gate import (
        annotations,
        as_json,
        bencher,
        gate_markdown,
        gitlab_load_performance,
        junit,
    )

    if ci.write:
        formats = (gate_markdown, as_json, junit, bencher, gitlab_load_performance)
        if not ci.write.exists():
            ci.write.mkdir(parents=True)
            # Else what is left here would be a change of the working tree to the next gate.
            (ci.write / ".gitignore").write_text("*\n", encoding="utf-8")
        for name, made in zip(FILES, formats, strict=True):
            (ci.write / name).write_text(made(answer), encoding="utf-8")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(gate_markdown(answer))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(annotations(answer))
    if ci.keep_baseline and (kept := baseline_of(answer, datetime.now(UTC))):
        ci.keep_baseline.parent.mkdir(parents=True, exist_ok=True)
        ci.keep_baseline.write_text(kept.model_dump_json(indent=2) + "\n", encoding="utf-8")


def read_baseline(path: Path) -> Baseline | None:
    """Read a baseline; None, which is told, where none was kept yet, as at the first time.

    Raise Mistake for what is no baseline.
    """
    try:
        content = read_given(path, MOST_BASELINE_BYTES, follow=True)
    except FileNotFoundError:
        tell(
            f"--baseline {path}: there is no such file yet (--keep-baseline writes one), so that "
            "nothing is told beside the answer"
        )
        return None
    except OSError as error:
        raise unreadable(f"--baseline {path}", error) from None
    try:
        return Baseline.model_validate_json(content)
    except ValidationError as error:
        raise Mistake(f"{path}: is no baseline that webdyno kept: {first_fault(error)}") from None
