"""How often a gate is right where it is used: gates of two revisions, on GitHub's hosted runners.

`.github/workflows/hosted-gates.yml` calls it there; it runs anywhere. webdyno runs as a user runs
it, `webdyno gate --base base --head head` with its defaults, in a repository of two commits. Head
costs as much CPU time per request as base (100 µs), or 3%, 5% or 10% more. Each gate adds a line to
the file of results; the table is made of all lines. What is there already isn't measured again.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from math import ceil, inf, sqrt
from pathlib import Path
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from bisections import commit_server, new_repository
from rig import lab
from rig.options import count
from rig.script import Script, progress
from rig.shares import share_words
from truth import own_program
from webdyno.core.base import ENDLESS
from webdyno.core.limits import GATE_FILE, SHORT, GateAnswer, GateClaim, GateJudgement
from webdyno.questions.gate.settings import DEFAULT_TOLERANCES

EXAMPLES = """\
  all that is missing of 20 of equal revisions, and 10 of each other kind
    .venv/bin/python bench/hosted.py
  one of each, in some minutes
    .venv/bin/python bench/hosted.py --gates 1 --time 30s
  the table and the page of what several jobs measured
    .venv/bin/python bench/hosted.py --table --results gates/*.jsonl --page gates.md
"""

RESULTS = Path("bench/results/hosted.jsonl")
COST_US = 100.0
WITHIN_S = 3600.0
RUN = "run"
HEADINGS = (
    *("kind", "gates", "wrong (95% CI)", "pass", "fail", "inconclusive", "invalid", "no answer"),
    *("median time, s", "median half-width of 95% CIs"),
)
ANSWERS = (GateAnswer.PASS, GateAnswer.FAIL, GateAnswer.INCONCLUSIVE, GateAnswer.INVALID)
PAGE = """\
# Gates on hosted runners

`webdyno gate` with its defaults (limits: 5% CPU per request, 5% throughput, 25% p99), between two
revisions whose cost is known. Wrong: fail for equal revisions and +3%, pass for +10%; +5% is the
limit itself, where neither is. No answer: webdyno ended with an error.

{table}

{machines}
"""


class Kind(NamedTuple):
    """Gates between revisions of known cost."""

    name: str
    more: float
    """CPU time by which head costs more, as a share."""
    gates: int

    @property
    def wrong(self) -> GateAnswer | None:
        """The answer that is wrong; None at the limit itself."""
        limit = DEFAULT_TOLERANCES["server_cpu_us"]
        if self.more == limit:
            return None
        return GateAnswer.PASS if self.more > limit else GateAnswer.FAIL


KINDS = (
    Kind("equal", 0.0, 20),
    Kind("+3% CPU", 0.03, 10),
    Kind("+5% CPU", 0.05, 10),
    Kind("+10% CPU", 0.1, 10),
)


class Answered(lab.Kept):
    """One gate."""

    answer: GateAnswer | None
    """None where there was none; `problem` says why."""
    half_widths: dict[str, float] = {}
    """By metric: half of its change's 95% CI, as a share."""


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_argument("--gates", type=count, help="of each kind (20 of equal revisions, 10 others)")
    made.add_argument(
        "--jobs", type=count, default=1, help="this is one of so many, which share the gates (1)"
    )
    made.add_argument("--time", help="webdyno's --time (its own default)")
    made.add_argument("--table", action="store_true", help="run nothing")
    made.add_argument(
        "--results",
        type=Path,
        nargs="+",
        default=[RESULTS],
        help=f"files of results; the first one grows ({RESULTS})",
    )
    made.add_argument("--runs", type=Path, help="a folder that keeps each gate's run")
    made.add_argument("--page", type=Path, help="a file that gets the table in Markdown")
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what is missing, a gate of each kind in turns; then show all that is known."""
    if not options.table:
        left = {kind: lacking(kind, options) for kind in KINDS}
        with own_program() as program:
            for turn in range(max(left.values())):
                for kind in (kind for kind in KINDS if turn < left[kind]):
                    found = run(kind, program, options.time, options.runs)
                    lab.append(options.results[0], found)
                    said = found.headline or found.problem
                    progress.print(f"{kind.name}: {found.answer}, {said}", markup=False)
    found_all = known(options)
    console.print(table(found_all))
    if options.page:
        options.page.write_text(page(found_all), encoding="utf-8")


def known(options: Namespace) -> list[Answered]:
    """Give the gates of all files of results."""
    return [found for file in options.results for found in lab.read_as(file, Answered)]


def lacking(kind: Kind, options: Namespace) -> int:
    """Count the gates of a kind that this job has yet to measure."""
    wanted: int = ceil((options.gates or kind.gates) / options.jobs)
    return max(wanted - sum(it.case == kind.name for it in known(options)), 0)


def run(kind: Kind, program: Path, time_each: str | None, runs: Path | None) -> Answered:
    """Make a repository and have webdyno answer a gate in it; `runs` keeps the gate's folder."""
    begun = lab.Begun.now(kind.name)
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        # Servers run as an ordinary user where we are root.
        Path(scratch).chmod(0o755)
        repository_of(Path(scratch) / "repository", kind.more, program)
        problem = ask(Path(scratch), time_each)
        kept, left = begun.kept(answer=None), Path(scratch) / RUN
        answered = left / GATE_FILE
        seen = seen_in(answered.read_text(encoding="utf-8")) if answered.exists() else {}
        if runs is not None and left.exists():
            name = f"{kind.name.replace(' ', '-')}-{begun.at:%Y-%m-%dT%H%M%S}"
            shutil.copytree(left, runs / name)
    return Answered.model_validate(kept | (seen or {"problem": problem}))


def ask(scratch: Path, time_each: str | None) -> str:
    """Have webdyno answer, in a folder with the repository; give what it complained of."""
    words = [str(lab.WEBDYNO), "gate", "--base", "base", "--head", "head", "--yes", "--no-report"]
    try:
        done = subprocess.run(
            [*words, "--output", str(scratch / RUN), *(["--time", time_each] if time_each else [])],
            cwd=scratch / "repository",
            env=environment(scratch / "cache"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"webdyno had not ended after {WITHIN_S:g} s"
    return done.stderr.strip()[-500:] or "webdyno left no answer behind"


def repository_of(folder: Path, more: float, program: Path) -> None:
    """Make a repository with the tags `base` and `head`, each a server of its cost."""
    new_repository(folder)
    for name, cost_us in (("base", COST_US), ("head", COST_US * (1 + more))):
        commit_server(folder, program, cost_us, name)


def environment(cache: Path) -> dict[str, str]:
    """Give ours with a cache of its own, without what has webdyno write into a job's summary."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return {**kept, "XDG_CACHE_HOME": str(cache)}


def seen_in(text: str) -> dict[str, object]:
    """Give what a gate's answer says."""
    judged = GateJudgement.model_validate_json(text)
    widths = {claim.metric: half_width(claim) for claim in judged.claims}
    return {
        "answer": judged.answer,
        "headline": judged.headline,
        "rounds": max((claim.rounds for claim in judged.claims), default=0),
        "half_widths": {metric: width for metric, width in widths.items() if width is not None},
    }


def half_width(claim: GateClaim) -> float | None:
    """Give half of a change's CI, as a share; None where nothing bounds it."""
    if claim.worse is None or claim.worse.low <= 1 / ENDLESS or claim.worse.high >= ENDLESS:
        return None
    return sqrt(claim.worse.high / claim.worse.low) - 1


def table(found: Sequence[Answered]) -> Table:
    """Show what came of all gates, kind by kind."""
    made = Table(title="gates between revisions of known cost", caption=machines_of(found))
    for place, heading in enumerate(HEADINGS):
        made.add_column(heading, justify="right" if 0 < place < len(HEADINGS) - 1 else "left")
    for row in rows(found):
        made.add_row(*row)
    return made


def rows(found: Sequence[Answered]) -> list[list[str]]:
    """Give a row for each kind that was measured."""
    by_kind = {kind: [it for it in found if it.case == kind.name] for kind in KINDS}
    return [_row(kind, mine) for kind, mine in by_kind.items() if mine]


def _row(kind: Kind, mine: Sequence[Answered]) -> list[str]:
    answers = Counter(it.answer for it in mine)
    return [
        kind.name,
        str(len(mine)),
        share_words(answers[kind.wrong], len(mine)) if kind.wrong else "–",
        *(str(answers[answer]) for answer in ANSWERS),
        str(answers[None]),
        f"{median(it.took_s for it in mine):.0f}",
        _widths(mine),
    ]


def _widths(mine: Sequence[Answered]) -> str:
    """Give medians; a CI without a bound, or none, is wider than any other."""
    short = {full: name for name, full in SHORT.items()}
    answered = [it.half_widths for it in mine if it.answer]
    medians = {
        metric: median(widths.get(metric, inf) for widths in answered)
        for metric in DEFAULT_TOLERANCES
        if answered
    }
    return ", ".join(
        f"{short[metric]} ±{width:.1%}" if width < inf else f"{short[metric]} unknown"
        for metric, width in medians.items()
    )


def page(found: Sequence[Answered]) -> str:
    """Give the table in Markdown, with what a reader needs to know."""
    lines = [HEADINGS, ["---"] * len(HEADINGS), *rows(found)]
    shown = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return PAGE.format(table=shown, machines=machines_of(found))


def machines_of(found: Sequence[Answered]) -> str:
    """Say on what, and with which revisions of webdyno, gates were measured."""
    machines = Counter(it.machine.partition(", load average")[0] for it in found)
    commits = sorted({it.commit for it in found})
    on = "; ".join(f"{machine} ({gates} gates)" for machine, gates in machines.most_common())
    return f"{on or 'no gates yet'}. webdyno {', '.join(commits) or '–'}."


if __name__ == "__main__":
    sys.exit(script().run(work))
