"""The whole lab as a user's script runs it, and what came of each run, in a file that grows."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rig import machine
from rig.process import BenchError
from webdyno.comparison import judge
from webdyno.comparison.judgement import decisive
from webdyno.config.reading import written_value
from webdyno.core.base import Interval
from webdyno.core.judgement import Comparison, Judgement, Verdict
from webdyno.core.looks import Growth
from webdyno.host.children import input_of, words_of
from webdyno.measure.folder import RunFolder

WEBDYNO = Path(sys.executable).parent / "webdyno"
REPOSITORY = Path(__file__).parents[2]
RUN_WITHIN_S = 1800.0
TABLE_WIDTH = 100
"""Columns of the tables that stand in the docs."""

M = TypeVar("M", bound=BaseModel)
K = TypeVar("K", bound="Kept")
Seen = Callable[[Path, str], dict[str, object]]
"""Says what a run's folder holds of a kind of result, and what webdyno complained of."""


class Call(NamedTuple):
    """What webdyno is asked: a call of its Python API, in a process of its own."""

    name: str
    arguments: dict[str, Any]

    def having(self, **more: object) -> "Call":
        """Give it with more arguments, but for those that are None."""
        given = {key: value for key, value in more.items() if value is not None}
        return Call(self.name, self.arguments | given)

    def made(self, programs: Path | None = None, within_s: float = RUN_WITHIN_S) -> str:
        """Make it, with a folder of own programs on its PATH if given.

        Give what it complained of, if it failed.
        """
        try:
            with input_of(self.arguments, allow_commands=True) as given:
                done = subprocess.run(
                    words_of(self.name),
                    env=with_programs(programs),
                    stdin=given,
                    capture_output=True,
                    text=True,
                    timeout=within_s,
                    check=False,
                )
        except subprocess.TimeoutExpired:
            return f"webdyno had not ended after {within_s:g} s"
        return done.stderr.strip()[-500:] if done.returncode else ""


def settings_in(texts: Iterable[str]) -> dict[str, object]:
    """Read settings that are written `load.connections=16`."""
    pairs = (text.partition("=") for text in texts)
    return {key: written_value(value, key) for key, _, value in pairs}


class Kept(BaseModel):
    """What is kept of one call of webdyno, whatever it asked: a line of the file of results."""

    model_config = ConfigDict(frozen=True)

    case: str
    """Which question was asked."""
    at: datetime
    machine: str
    commit: str
    headline: str = ""
    rounds: int = 0
    took_s: float
    """From the call to its end, the start of its process and all it had to find out included."""
    problem: str = ""


class Begun(NamedTuple):
    """A case for which webdyno is being called."""

    case: str
    at: datetime
    began_s: float

    @classmethod
    def now(cls, case: str) -> "Begun":
        return cls(case, datetime.now(UTC), time.monotonic())

    @property
    def took_s(self) -> float:
        return time.monotonic() - self.began_s

    def kept(self, **found: object) -> dict[str, Any]:
        """Return the fields of what is kept, as if it ended now, with what was found."""
        return {
            "case": self.case,
            "at": self.at,
            "machine": machine.describe(),
            "commit": commit(),
            "took_s": self.took_s,
            **found,
        }


class Outcome(Kept):
    """One run of the lab."""

    verdict: Verdict | None = None
    """None when there was no judgement; `problem` says why."""
    metric: str = ""
    """The one that the verdict is about."""
    ratios: dict[str, Interval] = {}
    """By metric, of the second variant and the baseline: sampling CIs."""
    worst_case: dict[str, Interval] = {}
    """The worst-case CIs of the same; verdicts rest on these."""
    values: dict[str, Interval] = {}
    """By variant: the deciding metric itself."""
    warnings: list[str] = []
    growths: dict[str, Growth] = {}
    """By variant: memory that grew all through its long look."""

    @property
    def ratio(self) -> Interval | None:
        """The sampling CI of the deciding metric."""
        return self.ratios.get(self.metric)

    @property
    def decisive(self) -> Interval | None:
        """The one that the verdict rests on."""
        return self.worst_case.get(self.metric, self.ratio)


def run_lab(case: str, call: Call, programs: Path | None = None) -> Outcome:
    """Make a call, with a folder of own programs on its PATH if given; say what it found."""
    return run_as(Outcome, case, call, _seen, programs)


def run_as(kind: type[K], case: str, call: Call, seen: Seen, programs: Path | None = None) -> K:
    """Make a call that leaves a run, and keep what was seen of it as a kind of result."""
    begun = Begun.now(case)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        folder = Path(scratch) / "run"
        problem = call.having(output=folder).made(programs)
        kept = begun.kept()
        if (folder / "slots.jsonl").exists():
            values = seen(folder, problem)
        else:
            values = {"problem": problem or "webdyno left no run behind"}
    return kind.model_validate(kept | values)


def with_programs(folder: Path | None) -> dict[str, str]:
    """Give our environment, with a folder of own programs on its PATH if given."""
    path = os.environ.get("PATH", os.defpath)
    return {**os.environ, "PATH": f"{folder}:{path}" if folder else path}


def _seen(folder: Path, _: str) -> dict[str, object]:
    run = RunFolder.open(folder)
    judgement = judge(run.data().points[0])
    decide_on = run.head.experiment.measure.decide_on
    asked = decisive(judgement.comparisons, decide_on)
    return {
        "verdict": judgement.verdict,
        "metric": asked[0].metric if asked else decide_on,
        "ratios": {it.metric: it.ratio for it in _of_second_variant(judgement) if it.ratio},
        "worst_case": {
            it.metric: it.worst_case for it in _of_second_variant(judgement) if it.worst_case
        },
        "values": {
            it.variant: it.interval
            for it in judgement.variants
            if it.metric == decide_on and it.interval
        },
        "headline": judgement.headline,
        "warnings": [f"{it.rule} ({it.severity}): {it.what}" for it in judgement.warnings],
        "growths": {it.variant: it.growth for it in judgement.looks if it.growth},
        "rounds": judgement.rounds,
    }


def _of_second_variant(judgement: Judgement) -> list[Comparison]:
    first = judgement.comparisons[0].a if judgement.comparisons else None
    return [it for it in judgement.comparisons if it.a == first]


def commit() -> str:
    """Name the state of the repository."""
    command = ["git", "-C", str(REPOSITORY), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError):
        return "unknown"


def append(results: Path, outcome: BaseModel) -> None:
    """Add a line to the file of results."""
    results.parent.mkdir(parents=True, exist_ok=True)
    with results.open("a", encoding="utf-8") as file:
        file.write(outcome.model_dump_json() + "\n")


def read(results: Path) -> list[Outcome]:
    """Read all runs so far. Raises BenchError at a line that is none."""
    return read_as(results, Outcome)


def read_as(results: Path, kind: type[M]) -> list[M]:
    """Read all results of a kind so far. Raises BenchError at a line that is none."""
    if not results.exists():
        return []
    outcomes = []
    for number, line in enumerate(results.read_text(encoding="utf-8").splitlines(), 1):
        try:
            outcomes.append(kind.model_validate_json(line))
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise BenchError(
                f"{results}:{number}: no result: {problem}; remove the line or name another file "
                "with --results"
            ) from None
    return outcomes


def of_case(outcomes: Iterable[Outcome], case: str) -> list[Outcome]:
    """Keep those of a case."""
    return [it for it in outcomes if it.case == case]
