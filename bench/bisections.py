"""Does a bisection find the commit? Repositories of eight commits, one of which is slower.

webdyno runs as a user runs it, `webdyno gate --bisect good..HEAD`, with its defaults. Each commit
changes the program that starts a server of dialed cost; one of them makes each request cost 10%
more CPU time, in another place each time. Each bisection adds a line to the file of results; the
table is made of all lines.
"""

import os
import re
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rig import lab, machine
from rig.script import Script, progress
from truth import own_program

EXAMPLES = """\
  each place once (some two minutes each)
    .venv/bin/python bench/bisections.py
  only the table of what is there
    .venv/bin/python bench/bisections.py --rounds 0
"""

RESULTS = Path("bench/results/bisections.jsonl")
COMMITS = 8
PLACES = (1, 3, 4, 6, 8)
COST_US, SLOWER_US = 100, 110
WITHIN_S = 3600.0
PROJECT = """\
[app]
start = "sh serve.sh"

[[requests]]
path = "/"

[load]
connections = 16
"""
FOUND = re.compile(r"the first commit that is worse than good is (?P<commit>[0-9a-f]+) ")
GATE = re.compile(r"^(?:webdyno: )?gate \d+: ", re.MULTILINE)


class Bisected(lab.Kept):
    """One bisection."""

    planted: int
    """The slower commit's place among the eight, 1 being the first."""
    found: int | None
    """None where none was found."""
    gates: int


def script() -> Script:
    """Describe the command line."""
    made = Script(__doc__, EXAMPLES)
    made.add_choice("--places", [str(place) for place in PLACES])
    made.add_growing(RESULTS)
    return made


def work(options: Namespace, console: Console) -> None:
    """Run what was requested, then show all that is known."""
    if options.rounds:
        with own_program() as program:
            for _ in range(options.rounds):
                for place in options.places:
                    found = run(int(place), program)
                    lab.append(options.results, found)
                    progress.print(found.headline or found.problem, markup=False)
    console.print(table(lab.read_as(options.results, Bisected)))


def run(planted: int, program: Path, flags: Sequence[str] = ()) -> Bisected:
    """Make a repository and bisect it; `flags` are further ones of the gate."""
    begun = lab.Begun.now(f"commit {planted} of {COMMITS}")
    with tempfile.TemporaryDirectory(prefix="webdyno-bench-") as scratch:
        # Servers run as an ordinary user where we are root.
        Path(scratch).chmod(0o755)
        repository = Path(scratch) / "repository"
        commits = repository_of(repository, planted, program)
        bisect = ["gate", "--bisect", f"good..{commits[-1]}", "--yes", "--no-report", *flags]
        done = subprocess.run(
            [str(lab.WEBDYNO), *bisect, "--output", str(Path(scratch) / "runs")],
            cwd=repository,
            env={**os.environ, "XDG_CACHE_HOME": str(Path(scratch) / "cache")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )
    said = " ".join(done.stdout.split())
    named = FOUND.search(said)
    return Bisected(
        **begun.kept(),
        headline=named[0].strip() if named else "",
        problem="" if named else (done.stderr.strip() or said)[-500:],
        planted=planted,
        found=place_of(named["commit"], commits) if named else None,
        gates=len(GATE.findall(done.stderr)),
    )


def repository_of(folder: Path, planted: int, program: Path) -> list[str]:
    """Make a repository with a good commit and eight later ones; give the hashes of these."""
    new_repository(folder)
    commit_server(folder, program, COST_US, "good")
    return [
        commit_server(
            folder, program, SLOWER_US if place >= planted else COST_US, f"change-{place}"
        )
        for place in range(1, COMMITS + 1)
    ]


def new_repository(folder: Path) -> None:
    """Make a repository whose commits serve a page."""
    git(folder.parent, "init", "--quiet", "--initial-branch=main", str(folder))
    (folder / "webdyno.toml").write_text(PROJECT, encoding="utf-8")


def commit_server(folder: Path, program: Path, cost_us: float, name: str) -> str:
    """Commit a program that serves at such a cost, and tag it; give the commit's hash."""
    served = f'exec {program} --listen "127.0.0.1:$PORT" --cost-us {cost_us:g}'
    (folder / "serve.sh").write_text(f"# {name}\n{served}\n", encoding="utf-8")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", name)
    git(folder, "tag", name)
    return git(folder, "rev-parse", "HEAD").strip()


def place_of(commit: str, commits: Sequence[str]) -> int | None:
    """Give the place of a commit by the beginning of its hash."""
    return next((n for n, it in enumerate(commits, 1) if it.startswith(commit)), None)


def git(folder: Path, *words: str) -> str:
    """Call Git as somebody, and give what it prints."""
    who: Mapping[str, str] = {
        f"GIT_{role}_{what}": "bench@localhost"
        for role in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "commit.gpgsign=false", *words],
        env={**os.environ, **who},
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def table(found: Sequence[Bisected]) -> Table:
    """Show each bisection, and how many found the commit."""
    right = sum(it.found == it.planted for it in found)
    made = Table(
        title=f"the slower commit was found in {right} of {len(found)} bisections",
        caption=machine.describe(),
        width=lab.TABLE_WIDTH,
    )
    for heading in ("commit", "planted", "found", "gates", "s"):
        made.add_column(heading, justify="right")
    for it in found:
        named = "–" if it.found is None else str(it.found)
        made.add_row(it.commit, str(it.planted), named, str(it.gates), f"{it.took_s:.0f}")
    return made


if __name__ == "__main__":
    sys.exit(script().run(work))
