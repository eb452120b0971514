"""What a gate leaves behind for continuous integration, and baselines kept across runs."""

import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import ValidationError

from webdyno.cli.console import tell
from webdyno.definitions.validation import first_fault
from webdyno.judge.baseline import Baseline
from webdyno.model.files import MIB, read_given, unreadable
from webdyno.model.gate import GateJudgement
from webdyno.model.mistake import Mistake

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


def leave_behind(answer: GateJudgement, ci: CiFlags) -> None:
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
        if not ci.write.exists():
            ci.write.mkdir(parents=True)
            # Else what is left here would be a change of the working tree to the next gate.
            (ci.write / ".gitignore").write_text("*\n", encoding="utf-8")
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
