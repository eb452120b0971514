"""`webdyno gate`: is this revision worse than that one? For people, and for CI."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from pydantic import ValidationError

from webdyno.cli.duel import common_site
from webdyno.cli.exits import Exit
from webdyno.cli.flags import THIS_BENCH, BenchFlags, Budget, CatalogDirs, Out, Yes
from webdyno.cli.measure import measure
from webdyno.cli.result import show_gate, show_result
from webdyno.cli.revisions import WORKING_TREE, Repository, nothing_to_measure
from webdyno.cli.tolerances import tolerances
from webdyno.definitions import Catalogue, CommandLine, Override, read_experiment, settings
from webdyno.definitions.refusal import first_fault
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.baseline import Baseline
from webdyno.model.gate import BASE, BASE_AGAIN, HEAD, GateAnswer, GateJudgement
from webdyno.model.mistake import Mistake
from webdyno.run.folder import RunFolder

BUDGET_S = 600.0
FILES = ("gate.md", "gate.json", "junit.xml", "bencher.json", "load-performance.json")


@Parameter(name="*")
@dataclass(frozen=True)
class CiFlags:
    """What is left behind for others to read."""

    write: Annotated[
        Path | None,
        Parameter(help=f"Folder for what CI reads: {', '.join(FILES)}."),
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
            "may be given again.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    path: Annotated[
        Sequence[str],
        Parameter(
            help="An endpoint, asked by itself; may be given again. Else what webdyno.toml says.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    site: Annotated[
        str | None, Parameter(help="What stacks of the catalogue serve, if such are compared.")
    ] = None,
    budget: Budget = None,
    set_: Annotated[
        Sequence[str],
        Parameter(
            name="--set",
            help="KEY=VALUE: change a setting of the experiment; may be given again.",
            negative=(),
            show_default=False,
        ),
    ] = (),
    bench: BenchFlags = THIS_BENCH,
    ci: CiFlags = NOTHING,
    out: Out = None,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Tell whether head is worse than base by more than is tolerated, and nothing else.

    Three answers, each with an exit code: 0 pass (surely not worse), 4 fail (surely worse), 5 can't
    tell in the time given. It stops as soon as the answer is known. Each is wrong in at most 5 % of
    gates, however many endpoints and metrics there are (docs/gate.md).

    For example

        webdyno gate

        webdyno gate --base origin/main --worse-than 5%

        webdyno gate --base v1.2 --head v1.3 --path / --path /search --worse-than cpu=3%

        webdyno gate --write results     # gate.md, junit.xml and others
    """
    tolerated = tolerances(worse_than)
    earlier = _read_baseline(ci.baseline) if ci.baseline else None
    names = (base, head)
    if not any(map(_is_no_revision, names)):
        repository = Repository(Path.cwd())
        names = (repository.describe(base, "--base"), repository.describe(head, "--head"))
        if why := nothing_to_measure(repository.changed(base, head)):
            answer = GateJudgement(
                answer=GateAnswer.PASS, headline=why, base=names[0], head=names[1]
            )
            _tell_ci(answer, ci)
            return show_gate(answer)
    catalogue = Catalogue.load(catalog)
    served = site or common_site(catalogue, head, base).name
    spoken = _experiment(base, head, names, path, served, tolerated)
    overrides = [*_budget(budget), *bench.overrides(), *settings(set_)]
    experiment = read_experiment(spoken, overrides, catalogue)

    def show(folder: RunFolder) -> Exit:
        from webdyno.judge.baseline import since_baseline
        from webdyno.judge.gate import judge_gate

        code = show_result(folder)
        answer = judge_gate(folder.head, folder.records())
        beside = since_baseline(earlier, answer) if earlier else []
        for said in beside:
            print(said)  # noqa: T201
        _tell_ci(answer.model_copy(update={"notes": [*answer.notes, *beside]}), ci)
        return code

    return measure("gate", experiment, catalogue, out, yes=yes, show=show)


def _is_no_revision(name: str) -> bool:
    """Whether an arm is none of a Git repository: `cmd:…`, `url:…`, a stack of the catalogue."""
    kind, colon, _ = name.partition(":")
    return (bool(colon) and kind != "rev") or name in Catalogue.load(()).stacks


def _stack(name: str) -> str:
    return name if _is_no_revision(name) or name.startswith("rev:") else f"rev:{name}"


def _budget(budget: str | None) -> list[Override]:
    if budget is None:
        return []
    return [Override(("measure", "budget_s"), budget, f"--budget {budget}")]


def _experiment(
    base: str,
    head: str,
    names: tuple[str, str],
    paths: Sequence[str],
    site: str,
    worse_than: dict[str, float],
) -> CommandLine:
    old, new = names
    data: dict[str, Any] = {
        "title": f"{new} against {old}",
        "site": site,
        "question": f"Is {new} worse than {old} by more than is tolerated?",
        "measure": {"decide_on": next(iter(worse_than)), "budget_s": BUDGET_S},
        "arms": {
            BASE: {"stack": _stack(base)},
            BASE_AGAIN: {"stack": _stack(base)},
            HEAD: {"stack": _stack(head)},
        },
        "gate": {"worse_than": worse_than, "base": old, "head": new},
    }
    if len(paths) > 1:
        data["factors"] = {"load.paths": [[each] for each in paths]}
    elif paths:
        data["load"] = {"paths": list(paths)}
    flags: dict[KeyPath, str] = {
        ("site",): f"--site {site}",
        ("load", "paths"): f"--path {' --path '.join(paths)}",
        ("factors",): f"--path {' --path '.join(paths)}",
        ("arms", BASE): f"--base {base}",
        ("arms", BASE_AGAIN): f"--base {base}",
        ("arms", HEAD): f"--head {head}",
        ("gate",): "--worse-than",
    }
    return CommandLine(data, flags)


def _tell_ci(answer: GateJudgement, ci: CiFlags) -> None:
    """Leave behind what was asked for, and what GitHub's runner reads where it is one."""
    from webdyno.judge.baseline import baseline_of
    from webdyno.report.ci import (
        annotations,
        as_json,
        bencher,
        gitlab_load_performance,
        junit,
        markdown,
    )

    if ci.write:
        formats = (markdown, as_json, junit, bencher, gitlab_load_performance)
        ci.write.mkdir(parents=True, exist_ok=True)
        for name, made in zip(FILES, formats, strict=True):
            (ci.write / name).write_text(made(answer), encoding="utf-8")
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(markdown(answer))
    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stdout.write(annotations(answer))
    if ci.keep_baseline and (kept := baseline_of(answer, datetime.now(UTC))):
        ci.keep_baseline.parent.mkdir(parents=True, exist_ok=True)
        ci.keep_baseline.write_text(kept.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _read_baseline(path: Path) -> Baseline | None:
    """Read a baseline; None where none was kept yet. Raise Mistake for what is no baseline."""
    try:
        return Baseline.model_validate_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (ValidationError, UnicodeDecodeError) as error:
        why = first_fault(error) if isinstance(error, ValidationError) else "it isn't UTF-8"
        raise Mistake(f"{path}: is no baseline that webdyno kept: {why}") from None
