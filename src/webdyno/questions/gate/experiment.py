"""The experiment of a gate.

Two revisions of a repository, and how much worse one of them may be.
"""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webdyno.config import Catalogue, CommandLine, Draft, Override
from webdyno.config.experiment import Source
from webdyno.config.reading import KeyPath, build, nearest
from webdyno.core.errors import UserError
from webdyno.core.limits import (
    BASELINE,
    BASELINE_AGAIN,
    HEAD,
    SHORT,
    GateAnswer,
    GateJudgement,
    Limit,
    read_limit,
)
from webdyno.core.metrics import CPU_TIME, METRICS
from webdyno.core.request import WrittenRequest, parts_of
from webdyno.core.run import CONFIRMATION_FOLDER
from webdyno.core.tables import as_list, is_table
from webdyno.history import check_history, check_rate
from webdyno.launch.arrangement import Arrangement, checked_with_own, common_site
from webdyno.launch.caller import Caller
from webdyno.launch.consent import refuse_own_systems
from webdyno.launch.sending import project_around
from webdyno.questions.gate.files import Files

if TYPE_CHECKING:
    from webdyno.launch.measure import MeasuredRun
    from webdyno.systems.project import Project

ORIGIN, WORKING_TREE = "origin/main", "."
REQUESTS = "requests"
BUDGET_S = 600.0
LEAST, MOST = 0.001, 2.0
"""Shares by which something may be worse."""
LONGEST_FLAG = 200
"""Longer ones are cut where messages show them: they would ask for something else."""
AGAIN = re.compile(r" (?=--(?:traffic|ignore) )")
"""Where a flag begins that was given again."""


@dataclass(frozen=True)
class AskedGate:
    """What is asked of two revisions, or other systems."""

    base: str = ORIGIN
    head: str = WORKING_TREE
    fail_if: Sequence[str] = ()
    """Limits, as `tolerances` reads them; the usual ones unless any is given."""
    paths: Sequence[str] = ()
    """Endpoints, each asked by itself; else what webdyno.toml says."""
    endpoints: Sequence[str] = ()
    """The requests of these names alone, of those that webdyno.toml or the flags give."""
    confirm: bool = False
    """Whether what fails has to fail once more."""
    fresh: bool = False
    """Whether revisions are built again, in other folders."""
    site: str | None = None
    """What stacks of the catalogue serve, if such are compared."""
    traffic: str = ""
    """The flags that give requests, if any do."""
    overrides: Sequence[Override] = ()
    history: Path | None = None


def asked_gate(
    asked: AskedGate, catalogue: Catalogue, caller: Caller
) -> Arrangement | GateJudgement:
    """Make the experiment of a gate; or its answer where no change is left to be measured."""
    from webdyno.systems.changes import nothing_to_measure
    from webdyno.systems.project import ProjectSource

    if asked.paths and asked.traffic:
        raise UserError(
            f"{caller.spelled('--path', asked.paths[0])}: --traffic says what is "
            "requested; leave it out"
        )
    tolerated = tolerances(asked.fail_if, caller)
    old, new = (
        _variant(name, caller.named(flag), catalogue, caller)
        for name, flag in ((asked.base, "--base"), (asked.head, "--head"))
    )
    if old.files and new.files:
        repository = old.files.repository
        changed = repository.changed_files(old.files.revision, new.files.revision)
        if why := nothing_to_measure(changed):
            if lacking := new.files.repository.excluded_from(new.asked):
                caller.notify(f"{new.flag} {new.asked} {lacking}")
            passed = GateAnswer.PASS
            return GateJudgement(answer=passed, headline=why, baseline=old.name, head=new.name)
    if asked.history is not None:
        check_history(asked.history, old.name, caller.named("--history"))
    served = asked.site or common_site(catalogue, new.stack, old.stack).name
    project = project_around(Path.cwd(), caller)
    endpoints = _endpoints(asked, None if asked.paths else project, caller)
    spoken = _experiment(old, new, asked, served, tolerated, project, endpoints)
    source: Source = ProjectSource(spoken, project) if project else spoken
    draft = Draft.of(_WithoutRequests(source) if asked.paths else source, asked.overrides)
    experiment, catalogue = checked_with_own(
        draft, catalogue, Path.cwd(), caller, fresh=asked.fresh
    )
    if asked.history is not None:
        check_rate(asked.history, experiment.load.offered_rps, caller.named("--history"))
    if asked.confirm:
        experiment = experiment.with_measure(budget_s=experiment.measure.budget_s / 2)
    return Arrangement("gate", experiment, catalogue)


def measured_gate(
    asked: AskedGate, catalogue: Catalogue, output: Path, caller: Caller
) -> GateJudgement:
    """Ask a gate and give its answer; raise KeyboardInterrupt where it was interrupted."""
    from webdyno.interfaces.python.result import GateRun
    from webdyno.launch.measure import measure_or_go_on

    arranged = asked_gate(asked, catalogue, caller)
    if isinstance(arranged, GateJudgement):
        return arranged
    measured = measure_or_go_on(*arranged, output, caller)
    if not measured.interrupted:
        measured = measure_confirmation(measured, asked, catalogue, caller)
    if measured.interrupted:
        raise KeyboardInterrupt
    return GateRun(measured.folder).gate.judgement


def measure_confirmation(
    first: "MeasuredRun", asked: AskedGate, catalogue: Catalogue, caller: Caller
) -> "MeasuredRun":
    """Measure what failed once more, in the folder of the first measurement, where that is due."""
    from webdyno.launch.measure import measure_or_go_on
    from webdyno.questions.gate.decide import GateQuestion, failing
    from webdyno.validity import spent_s

    run = first.folder
    if first.end != "finished" or not asked.confirm:
        return first
    data = run.data()
    answer = GateQuestion.of_run(data).judge_once(data)
    names = list(failing(data, answer.claims))
    if answer.answer is not GateAnswer.FAIL:
        return first
    again = replace(asked, confirm=False, fresh=True, history=None)
    if run.head.experiment.requests:
        again = replace(again, endpoints=names if run.head.experiment.factors else ())
    else:
        again = replace(again, paths=names if asked.paths else ())
    arranged = asked_gate(again, catalogue, caller)
    assert isinstance(arranged, Arrangement)  # noqa: S101 (there was a change)
    left_s = 2 * run.head.experiment.measure.budget_s - spent_s(data)
    experiment = arranged.experiment.with_measure(budget_s=left_s, seed=None)
    caller.notify(f"fails: {answer.headline}\nmeasuring that again, from fresh builds")
    path = run.path / CONFIRMATION_FOLDER
    second = measure_or_go_on("confirmation", experiment, arranged.catalogue, path, caller)
    return first._replace(end=second.end)


def tolerances(texts: Sequence[str], caller: Caller) -> dict[str, float]:
    """Read limits such as `cpu > +3%`; raise UserError with the flag for anything else."""
    limits: dict[str, float] = {}
    for text in texts:
        flag = caller.spelled("--fail-if", text)
        try:
            limit = read_limit(text)
        except ValueError as error:
            raise UserError(f"{flag}: {error}") from None
        if fault := _fault(limit):
            raise UserError(f"{flag}: {fault}")
        if limit.metric in limits:
            raise UserError(f"{flag}: was said twice; say it once")
        limits[limit.metric] = abs(limit.share)
    return limits


def _fault(limit: Limit) -> str | None:
    if limit.variant:
        return f"a gate asks about head alone; omit {limit.variant}"
    rule = METRICS[limit.metric]
    if not rule.decides:
        able = ", ".join(name for name, full in SHORT.items() if METRICS[full].decides)
        return f"a gate can't be decided by {limit.metric}; there are {able}"
    worse_above = rule.metric.better == "lower"
    if limit.above is not worse_above or (limit.share > 0) is not worse_above:
        name = limit.text.partition(">")[0].partition("<")[0].strip()
        wanted = f"'{name} > +5%'" if worse_above else f"'{name} < -5%'"
        return f"that would be better, and a gate fails on what is worse, such as {wanted}"
    if not LEAST <= abs(limit.share) <= MOST:
        return f"should be from {LEAST:.1%} to {MOST:.0%}"
    return None


@dataclass(frozen=True)
class _Variant:
    flag: str
    stack: str
    """`rev:main`, or whatever else a variant can be."""
    name: str
    """For people: `main (1a2b3c4)`."""
    files: Files | None
    asked: str
    """What stands behind the flag."""

    @property
    def again(self) -> str | None:
        """What asks for exactly this later on; None for a working tree with changes."""
        if self.files is None:
            return self.asked
        revision = self.files.revision
        return None if revision.has_changes else revision.text

    def commits_to(self, head: "_Variant") -> str:
        """Return the commits between both; empty where these aren't revisions."""
        if self.files is None or head.files is None:
            return ""
        return self.files.repository.commits_between(self.files.revision, head.files.revision)


def _variant(asked: str, flag: str, catalogue: Catalogue, caller: Caller) -> _Variant:
    from webdyno.systems.kinds import is_own
    from webdyno.systems.repository import Repository

    kind, _, text = asked.partition(":")
    if asked in catalogue.stacks or (is_own(asked) and kind != "rev"):
        return _Variant(flag, asked, asked, None, asked)
    wanted = text if kind == "rev" else asked
    # Before Git runs, which runs what the settings of its repository name.
    refuse_own_systems({"variants": {"stack": f"rev:{wanted}"}}, caller)
    repository = Repository.around(Path.cwd(), flag)
    revision = repository.revision(wanted, flag)
    called = "the working tree" if wanted == WORKING_TREE else wanted
    name, files = f"{called} ({revision.text})", Files(repository, revision)
    return _Variant(flag, f"rev:{wanted}", name, files, wanted)


@dataclass(frozen=True)
class _WithoutRequests:
    """Flags and webdyno.toml together, but for its requests: the flags name what is requested."""

    source: Source

    @property
    def data(self) -> dict[str, Any]:
        return {key: value for key, value in self.source.data.items() if key != REQUESTS}

    @property
    def folder(self) -> Path:
        return self.source.folder

    def place(self, where: KeyPath) -> str:
        return self.source.place(where)


def _experiment(
    old: _Variant,
    new: _Variant,
    asked: AskedGate,
    site: str,
    worse_than: dict[str, float],
    project: "Project | None",
    endpoints: Sequence[str],
) -> CommandLine:
    paths = asked.paths
    decided = {"decide_on": next(iter(worse_than), CPU_TIME), "budget_s": BUDGET_S}
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
        "gate": {
            **({"worse_than": worse_than} if worse_than else {}),
            "baseline": old.name,
            "head": new.name,
            "confirm": asked.confirm,
            "commits": old.commits_to(new),
            "rules_differ": bool(project and old.files and old.files.rules_differ(project)),
            "repeat": repeat_command(
                [("--base", old.again), ("--head", new.again)],
                asked.fail_if,
                asked.site,
                asked.overrides,
            ),
        },
        "same_bodies": False,
        "measure": {key: value for key, value in decided.items() if key not in measured},
    }
    if len(endpoints) > 1 or asked.endpoints:
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
        ("gate",): "--fail-if",
    }
    return CommandLine(data, flags)


def repeat_command(
    named: Sequence[tuple[str, str | None]],
    limits: Sequence[str],
    site: str | None,
    overrides: Sequence[Override],
) -> str:
    """Return the command that asks the same of the same revisions, but for endpoints.

    `named`: flags and what they name. Empty where that can't be known in one line: of keywords, of
    long flags, and of curl commands, which may hold secrets.
    """
    flags = [part for override in overrides for part in AGAIN.split(override.flag)]
    if not all(
        flag.startswith("-") and "…" not in flag and len(flag) < LONGEST_FLAG for flag in flags
    ):
        return ""
    words = ["webdyno", "gate"]
    words += [word for flag, value in named if value for word in (flag, value)]
    words += [f"--fail-if={limit}" for limit in limits]
    words += ["--site", site] if site else []
    words += [word for flag in dict.fromkeys(flags) for word in flag.split(" ", 1)]
    said = shlex.join(words)
    return said if said.isprintable() else ""


def _endpoints(asked: AskedGate, project: "Project | None", caller: Caller) -> list[str]:
    """Return those that flags choose of all there are; raise UserError where that isn't right."""
    known = _all_endpoints(asked.overrides, project)
    for name in asked.endpoints:
        if name not in known:
            flag = caller.spelled("--endpoint", name)
            raise UserError(f"{flag}: no request is called so; {nearest(name, known)}")
    return list(dict.fromkeys(asked.endpoints)) or known


def _all_endpoints(asked: Sequence[Override], project: "Project | None") -> list[str]:
    given = next((setting for setting in asked if setting.key == (REQUESTS,)), None)
    if given is not None:
        return _names(given.value, lambda _: given.flag)
    if project is None:
        return []
    file = project.file
    return _names(file.data.get(REQUESTS, []), lambda where: file.place((REQUESTS, *where)))


def _names(written: object, place: Callable[[KeyPath], str]) -> list[str]:
    requests = [
        build(WrittenRequest, table, lambda where, number=number: place((number, *where)))  # type: ignore[misc]
        for number, table in enumerate(as_list(written))
        if is_table(table)  # else whoever checks the experiment says so
    ]
    return list(dict.fromkeys(filter(None, parts_of(requests))))
