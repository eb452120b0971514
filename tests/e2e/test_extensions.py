"""A package that is installed next to webdyno adds to it what its entry points name."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from e2e.commands import QUICK, environment
from test_adding import SLOTH
from variants import further
from webdyno.config.catalogue import BUILT_IN
from webdyno.host.children import python_module

PACKAGE = f"""{SLOTH}

from pathlib import Path

CATALOG = Path(__file__).parent / "catalog"
NUMBER = 1

from typing import ClassVar

from webdyno.comparison.question import Question
from webdyno.core.question import QuestionSettings
from webdyno.core.registry import QuestionParts


class SlowestSettings(QuestionSettings):
    key: ClassVar[str] = "slowest"
    begins: str


class SlowestQuestion(Question):
    def judge(self, data):
        judged = super().judge(data)
        begins = self.experiment.asks_as(SlowestSettings).begins
        return judged.replace(headline=f"{{begins}} {{judged.headline}}")


QUESTION = QuestionParts("webdyno_sloth:SlowestSettings", "webdyno_sloth:SlowestQuestion")
"""
METADATA = "Metadata-Version: 2.1\nName: webdyno-sloth\nVersion: 1.0\n"
ENTRY_POINTS = """[webdyno.stacks]
sloth = webdyno_sloth:CATALOG
[webdyno.generators]
sloth = webdyno_sloth:PROGRAM
[webdyno.questions]
slowest = webdyno_sloth:QUESTION
[webdyno.audit_formats]
sloth = webdyno_sloth:SLOTH
"""
EXPERIMENT = """
title = "Two stacks"
question = "Which one is slower?"
site = "static"
generator = "sloth"
variants.a.stack = "nginx"
variants.b.stack = "slow-nginx"
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of packages, as `pip` leaves it."""
    folder = tmp_path / "packages"
    package = folder / "webdyno_sloth"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(PACKAGE)
    shutil.copytree(BUILT_IN / "stacks/nginx", package / "catalog/stacks/slow-nginx")
    shutil.copytree(BUILT_IN / "stacks/apache-event", package / "catalog/stacks/nginx")
    install(folder, ENTRY_POINTS)
    program = folder / "sloth"
    program.write_text("#!/bin/sh\necho sloth 1.0\n")
    program.chmod(0o755)
    return folder


def install(folder: Path, entry_points: str) -> None:
    about = folder / "webdyno_sloth-1.0.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(METADATA)
    (about / "entry_points.txt").write_text(entry_points)


def ran(*words: str, packages: Path) -> subprocess.CompletedProcess[str]:
    """Run a command by a Python of its own, which imports those packages as well."""
    return subprocess.run(
        [*python_module("webdyno.interfaces.cli"), *words],
        cwd=packages.parent,
        env=environment(packages.parent)
        | {"PYTHONPATH": str(packages), "PATH": f"{packages}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_stacks_and_a_load_generator_are_compared(packages: Path) -> None:
    done = ran(
        *("compare", "nginx", "slow-nginx", "--path", "/hello.txt", "--generator", "sloth"),
        *("--yes", "--no-report", "-o", "run", *QUICK),
        packages=packages,
    )
    run = packages.parent / "run"
    assert (run / "catalog/stacks/slow-nginx/stack.toml").is_file(), done.stderr
    assert "sloth 1.0" in (run / "run.json").read_text()
    assert '"throughput_rps":1.0' in (run / "slots.jsonl").read_text()
    nginx = "stacks/nginx/stack.toml"  # webdyno's names stay its own
    assert (run / "catalog" / nginx).read_bytes() == (BUILT_IN / nginx).read_bytes()


@pytest.mark.long
def test_a_question_is_asked_by_its_table(packages: Path) -> None:
    file = packages.parent / "slowest.toml"
    file.write_text(f'{EXPERIMENT}[slowest]\nbegins = "Well:"\n')
    done = ran(
        *("run", "slowest.toml", "--yes", "--no-report", "-o", "run", *QUICK), packages=packages
    )
    assert done.returncode == 0, done.stderr
    ran("report", "run", "--format", "json", packages=packages)
    assert '"headline": "Well: ' in (packages.parent / "run/report.json").read_text()


@pytest.mark.parametrize("key", ["gate", *map(further, ("load", "no-name"))])
def test_a_question_takes_no_key_that_there_is(packages: Path, key: str) -> None:
    install(packages, f"[webdyno.questions]\n{key} = webdyno_sloth:QUESTION\n")
    (packages.parent / "any.toml").write_text(EXPERIMENT)
    done = ran("run", "any.toml", packages=packages)
    assert done.returncode == 2
    assert f"webdyno.questions: {key} of webdyno-sloth 1.0: '{key}' can't be" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_is_audited(packages: Path) -> None:
    (packages.parent / "output.txt").write_text("sloth: 12 in 3.0 at 4.0\n")
    assert "sloth" in ran("audit", "output.txt", packages=packages).stdout
    shutil.rmtree(packages)
    assert "sloth" not in ran("audit", "output.txt", packages=packages).stdout


@pytest.mark.parametrize(
    ("entry_point", "why"),
    [
        ("webdyno_sloth:MISSING", "can't be loaded: AttributeError"),
        further("nowhere:CATALOG", "can't be loaded: ModuleNotFoundError"),
        further("webdyno_sloth:NUMBER", "webdyno_sloth:NUMBER should be a Path, and is a int"),
        ("webdyno_sloth:__path__", "should be a Path, and is a list"),
    ],
)
def test_what_is_none_is_named_with_its_package(packages: Path, entry_point: str, why: str) -> None:
    install(packages, f"[webdyno.stacks]\nsloth = {entry_point}\n")
    done = ran("list", "stacks", packages=packages)
    assert done.returncode == 2
    assert "webdyno.stacks: sloth of webdyno-sloth 1.0" in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_folder_that_is_no_catalog_is_named(packages: Path) -> None:
    shutil.rmtree(packages / "webdyno_sloth/catalog")
    done = ran("list", "stacks", packages=packages)
    assert done.returncode == 2
    assert "sloth of webdyno-sloth 1.0: there is no such folder" in done.stderr
