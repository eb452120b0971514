"""`webdyno gate`: is this revision worse than that one? For people, and for CI."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import ValidationError

from webdyno.cli.console import plain_console, tell
from webdyno.cli.experiment_flags import AS_SET_UP, SetupFlags
from webdyno.cli.flags import PLAIN_RUN, USUAL_TIME, BudgetFlag, CatalogDirs, Out, RunFlags
from webdyno.cli.progress import at_terminal
from webdyno.cli.result import GATE_EXITS, show_measured, show_result
from webdyno.definitions import Catalogue
from webdyno.definitions.validation import first_fault
from webdyno.lab.ending import Exit
from webdyno.lab.gate import ORIGIN, WORKING_TREE, AskedGate, asked_gate
from webdyno.lab.measure import measure_anew
from webdyno.model.errors import UserError
from webdyno.model.files import MIB, read_given, unreadable
from webdyno.model.gate import Baseline, GateJudgement
from webdyno.run.folder import RunFolder

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
    ] = ORIGIN,
    head: Annotated[
        str, Parameter(help="The revision that is asked about; the working tree unless given.")
    ] = WORKING_TREE,
    worse_than: Annotated[
        Sequence[str],
        Parameter(
            help="How much worse is tolerated: 5% (CPU time per request and throughput; the 99th "
            "percentile five times that), or of one metric: cpu=3%, throughput=10%, p99=20%, "
            "p99=off; may be given again."
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
    """Tell whether head is worse than the baseline by more than is tolerated.

    Three answers, each with an exit code: 0 pass (not worse), 4 fail (worse, 95% confidence), 5
    inconclusive in the time given. It stops as soon as the answer is known. Each is wrong in at
    most 5% of gates, however many endpoints and metrics there are (docs/how-to/ci.md).

    For example

        webdyno gate

        webdyno gate --base origin/main --worse-than 5%

        webdyno gate --base v1.2 --head v1.3 --path / --path /search --worse-than cpu=3%

        webdyno gate --requests shop.http

        webdyno gate --write results     # gate.md, junit.xml and others
    """
    from webdyno.report.gate import gate_document
    from webdyno.report.terminal import print_document

    asked = AskedGate(
        base=base,
        head=head,
        worse_than=worse_than,
        paths=path,
        site=site,
        traffic=setup.traffic.read().words,
        overrides=[*budget.overrides(), *setup.overrides()],
    )
    earlier = read_baseline(ci.baseline) if ci.baseline else None
    caller = at_terminal(run)
    found = asked_gate(asked, Catalogue.load(catalog), caller)
    if isinstance(found, GateJudgement):
        leave_behind(found, ci)
        print_document(plain_console(), gate_document(found))
        return GATE_EXITS[found.answer]

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

    return show_measured(measure_anew(*found, out, caller), show)


def leave_behind(answer: GateJudgement, ci: CiFlags) -> None:
    """Leave behind what was requested, and what GitHub's runner reads where it is one."""
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

    Raise UserError for what is no baseline.
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
        raise UserError(f"{path}: is no baseline that webdyno kept: {first_fault(error)}") from None
