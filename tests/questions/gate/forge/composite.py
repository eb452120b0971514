"""Runs the shell steps of an action, or of a job, as GitHub's runner does: as far as ours need it.

https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax has the rules.
"""

import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
ALWAYS = "always()"
CONDITION = re.compile(r"inputs\.(?P<name>[\w-]+) (?P<sign>[!=])= '(?P<value>[^']*)'")


@dataclass
class Action:
    """An action on its way through its steps."""

    file: Path
    folder: Path
    """The checkout that the job works in."""
    temp: Path
    inputs: Mapping[str, str]
    contexts: Mapping[str, str]
    """Values of `github.…` that the action reads."""
    environment: dict[str, str]
    outputs: dict[str, str] = field(default_factory=dict)
    reported: str = ""

    def run(self, *skipped: str) -> int:
        """Run its shell steps but those of these names; give the first exit code that isn't 0."""
        self.temp.mkdir(exist_ok=True)
        for step in self.steps():
            if "run" not in step or step.get("name") in skipped:
                continue
            if code := self._run(step):
                return code
        return 0

    def steps(self) -> Iterator[dict[str, Any]]:
        """Give the steps whose condition holds."""
        for step in self._steps:
            condition = CONDITION.fullmatch(step.get("if", ""))
            if condition is None:
                assert step.get("if", ALWAYS) == ALWAYS, step["if"]
                yield step
            elif (self._input(condition["name"]) == condition["value"]) is (
                condition["sign"] == "="
            ):
                yield step

    @property
    def _data(self) -> dict[Any, Any]:
        """Give what the file says; YAML 1.1 takes the key `on` for true."""
        data: dict[Any, Any] = yaml.safe_load(self.file.read_text(encoding="utf-8"))
        return data

    @property
    def _steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self._data["runs"]["steps"]
        return steps

    @property
    def _inputs(self) -> dict[str, dict[str, str]]:
        inputs: dict[str, dict[str, str]] = self._data["inputs"]
        return inputs

    def _run(self, step: Mapping[str, Any]) -> int:
        files = {name: self.temp / name for name in ("GITHUB_OUTPUT", "GITHUB_ENV")}
        for file in files.values():
            file.write_text("")
        paths = {name: str(file) for name, file in files.items()}
        given = {name: self._filled(value) for name, value in step.get("env", {}).items()}
        where = self.folder / self._filled(step.get("working-directory", "."))
        done = subprocess.run(
            # What the runner takes for `shell: bash`.
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=where,
            env={**os.environ, **self.environment, **given, **paths},
            capture_output=True,
            text=True,
            check=False,
        )
        self.reported += done.stdout + done.stderr
        read = {name: dict(_lines(file)) for name, file in files.items()}
        self.environment |= read["GITHUB_ENV"]
        if "id" in step:
            self.outputs |= {
                f"steps.{step['id']}.outputs.{k}": v for k, v in read["GITHUB_OUTPUT"].items()
            }
        return done.returncode

    def _filled(self, text: str) -> str:
        return EXPRESSION.sub(lambda found: self._value(found[1]), text)

    def _value(self, expression: str) -> str:
        if expression.startswith("inputs."):
            return self._input(expression.removeprefix("inputs."))
        if expression == "runner.temp":
            return str(self.temp)
        if expression == "github.action_path":
            return str(self.file.parent)
        return {**self.contexts, **self.outputs}.get(expression, "")

    def _input(self, name: str) -> str:
        return self.inputs.get(name, self._filled(self._inputs[name]["default"]))


@dataclass
class Job(Action):
    """A job of a workflow that is started by hand, on its way through its steps."""

    name: str = ""

    @property
    def _steps(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = self._data["jobs"][self.name]["steps"]
        return steps

    @property
    def _inputs(self) -> dict[str, dict[str, str]]:
        started: dict[str, dict[str, dict[str, str]]] = self._data[True]["workflow_dispatch"]
        return started["inputs"]


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    for line in file.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        yield name, value
