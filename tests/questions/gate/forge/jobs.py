"""Whole jobs of the action, with webdyno itself; `scripts/try_action` runs them in an empty Debian.

    python3 -m forge.jobs WHEEL

Each gets a checkout of an example, the event that GitHub's runner gives it, and a stand-in for the
API. What should have come of it is demanded; what was commented is printed.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from questions.gate.forge import events
from questions.gate.forge.composite import Action
from questions.gate.forge.stand_in import Forge, forge_stand_in

HOME = Path(__file__).parents[4]
INSTALL, MEASURE, COMMENT, ANSWER = (
    "Install webdyno",
    "Measure",
    "Comment the pull request",
    "Answer",
)
BASE = "github.base_ref || github.event.repository.default_branch"
TIME = "3m"
FORK = "stranger/shop"


def demand(holds: object, what: str, reported: str = "") -> None:
    """Say what should be; where it isn't, end with what was reported."""
    print(f"{'ok' if holds else 'NOT SO'}: {what}", flush=True)  # noqa: T201
    if not holds:
        sys.exit(reported or 1)


@dataclass
class Runner:
    """One that has webdyno installed, and a checkout."""

    folder: Path
    wheel: Path
    installed: dict[str, str] = field(default_factory=dict)

    @property
    def checkout(self) -> Path:
        return self.folder / "shop"

    def install(self) -> None:
        """Have the action install webdyno."""
        action = self._action("install", {}, {})
        demand(action.run(MEASURE, COMMENT, ANSWER) == 0, "the wheel is installed", action.reported)
        self.installed = {"WEBDYNO": action.environment["WEBDYNO"]}

    def webdyno(self, *words: str) -> None:
        """Call what was installed in the checkout."""
        subprocess.run([self.installed["WEBDYNO"], *words], cwd=self.checkout, check=True)

    def git(self, *words: str) -> str:
        """Call Git in the checkout, as its developer."""
        who = ("-c", "user.name=developer", "-c", "user.email=developer@example.org")
        done = subprocess.run(
            ["git", "-C", self.checkout, *who, *words], check=True, stdout=subprocess.PIPE
        )
        return done.stdout.decode().strip()

    def job(
        self, name: str, revision: str, job: Mapping[str, str], inputs: Mapping[str, str]
    ) -> tuple[int, Action]:
        """Run the action's steps on a revision; give the exit code."""
        self.git("checkout", "--quiet", "--detach", revision)
        action = self._action(name, {"time": TIME, **inputs}, {**self.installed, **job})
        return action.run(INSTALL), action

    def comment_of_fork(self, results: Path, job: Mapping[str, str]) -> tuple[int, Action]:
        """Run the second action's steps on the artifact of a fork's job."""
        temp = self.folder / "comment"
        shutil.copytree(results, temp / "webdyno-gate", dirs_exist_ok=True)
        action = Action(
            HOME / "comment/action.yml",
            self.folder,
            temp,
            {"install": str(self.wheel)},
            {"github.token": "secret"},
            dict(job),
        )
        return action.run(), action

    def _action(self, name: str, inputs: Mapping[str, str], job: Mapping[str, str]) -> Action:
        return Action(
            HOME / "action.yml",
            self.checkout if self.checkout.exists() else self.folder,
            self.folder / name,
            {"install": str(self.wheel), **inputs},
            {BASE: "main", "github.token": "secret"},
            {"GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"), **job},
        )


def job_of(
    forge: Forge, folder: Path, event: dict[str, Any], name: str, run: int
) -> dict[str, str]:
    """Give what GitHub's runner sets."""
    file = folder / f"event-{run}.json"
    file.write_text(json.dumps(event), encoding="utf-8")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(file),
        "GITHUB_REPOSITORY": events.REPOSITORY,
        "GITHUB_API_URL": forge.address,
        "GITHUB_RUN_ID": str(run),
    }


def prepare(runner: Runner) -> None:
    """Make the example: main with a webdyno.toml, and a branch for each of its later revisions."""
    subprocess.run(
        ["sh", HOME / "examples/flask.sh", runner.checkout], check=True, stdout=subprocess.DEVNULL
    )
    runner.git("checkout", "--quiet", "-b", "measured", "start")
    runner.webdyno("init", "--no-try", "--yes", "--path", "/search")
    runner.git("add", "--all")
    runner.git("commit", "--quiet", "--message", "What webdyno measures")
    runner.git("update-ref", "refs/remotes/origin/main", "HEAD")
    for branch, tag in (("ranked", "slower"), ("words", "documentation")):
        runner.git("checkout", "--quiet", "-b", branch, "measured")
        runner.git("cherry-pick", tag)


def show(forge: Forge) -> None:
    """Print what was commented."""
    for comment in forge.comments:
        print("", "─" * 80, comment["body"].rstrip(), "─" * 80, "", sep="\n")  # noqa: T201


def own_branches(runner: Runner, forge: Forge) -> None:
    """Go through a push, a pull request, its job once more, and a later push to it."""

    def given(event: dict[str, Any], name: str, run: int) -> dict[str, str]:
        return job_of(forge, runner.folder, event, name, run)

    code, action = runner.job("push", "measured", given(events.push(), "push", 1), {})
    demand(code == 0 and not forge.asked, "a push to main passes, no comment", action.reported)
    demand("nothing changed" in action.reported, "as nothing changed")

    pull = events.pull_request()
    code, action = runner.job("pull", "ranked", given(pull, "pull_request", 2), {})
    show(forge)
    demand(code == 4, f"a pull request that is slower ends with 4 ({code})", action.reported)
    demand(
        "::error title=/search is worse::" in action.reported, "an annotation names the endpoint"
    )
    first = forge.comments[0]["body"]
    demand("✗ FAIL" in first and "/search" in first, "so does the comment")
    results = Path(action.outputs["steps.gate.outputs.results"])
    kept = {it.name for it in results.iterdir()}
    demand({"report.html", "gate.md", "gate.json", "junit.xml"} <= kept, "the report is kept")

    code, action = runner.job("again", "ranked", given(pull, "pull_request", 3), {"fail": "never"})
    demand(code == 0, "a job that runs again with fail: never ends with 0", action.reported)
    demand(len(forge.comments) == 1, "there is one comment")
    demand("actions/runs/3)" in forge.comments[0]["body"], "it has the figures of the second job")

    code, action = runner.job("words", "words", given(pull, "pull_request", 4), {})
    show(forge)
    demand(code == 0, "a pull request of documentation alone ends with 0", action.reported)
    demand(len(forge.comments) == 1, "there is one comment")
    demand("✓ PASS: only documentation changed" in forge.comments[0]["body"], "which says so")


def from_a_fork(runner: Runner, forge: Forge) -> None:
    """Go through a fork's pull request, and the workflow that posts its comment."""
    event = events.pull_request(13, FORK)
    job = job_of(forge, runner.folder, event, "pull_request", 5)
    code, action = runner.job("fork", "ranked", job, {})
    demand(code == 4, f"a fork's pull request that is slower ends with 4 ({code})", action.reported)
    demand(not forge.asked, "its job asks nothing of the API")
    demand("from a fork" in action.reported, "and says why")

    head = "a" * 40
    forge.pulls = [{"number": 13, "head": {"sha": head}}]
    results = Path(action.outputs["steps.gate.outputs.results"])
    for run in (6, 7):
        after = job_of(forge, runner.folder, events.workflow_run(sha=head), "workflow_run", run)
        code, action = runner.comment_of_fork(results, after)
        demand(code == 0, "the workflow after it ends with 0", action.reported)
        demand(len(forge.comments) == 1, "there is one comment")
    show(forge)
    demand(f"POST /repos/{events.REPOSITORY}/issues/13/comments" in forge.asked, "in the fork's")


def main() -> None:
    """Run all jobs; end with 1 at the first that isn't as it should be."""
    wheel = Path(sys.argv[1]).resolve()
    os.environ["GIT_CONFIG_GLOBAL"] = os.devnull
    with tempfile.TemporaryDirectory(prefix="webdyno-jobs-") as folder:
        Path(folder).chmod(0o755)
        runner = Runner(Path(folder), wheel)
        runner.install()
        prepare(runner)
        with forge_stand_in() as forge:
            own_branches(runner, forge)
        with forge_stand_in() as forge:
            from_a_fork(runner, forge)


if __name__ == "__main__":
    main()
