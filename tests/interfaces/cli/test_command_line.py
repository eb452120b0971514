"""Which commands there are, what is said of them, what a start reads, and what isn't understood."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.commands import webdyno_here
from webdyno.core.errors import MEANINGS, Exit
from webdyno.core.registry import CommandParts, commands, import_part

HEAVY = {
    *("numpy", "scipy", "jinja2", "altair", "rich.console", "pydantic.main", "tree_sitter"),
    *("crossplane", "regex", "optuna", "ray", "starlette", "duckdb", "psutil"),
    *(
        "webdyno.config",
        "webdyno.comparison",
        "webdyno.report",
        "webdyno.measure",
        "webdyno.systems",
    ),
    *("webdyno.host", "webdyno.servers", "webdyno.core.experiment"),
}
"""What takes long to import, which a page of help has no need of."""
PRINTING = {"audit", "cluster", "init"}
"""Commands that print all over."""
EXIT_CODES = Path(__file__).parents[3] / "docs/reference/exit-codes.md"


@pytest.mark.parametrize("command", commands().values(), ids=lambda it: it.name)
def test_the_list_says_of_a_command_what_its_own_help_says(command: CommandParts) -> None:
    said = import_part(command.typed).__doc__
    assert " ".join(said.partition("\n\n")[0].split()) == command.does


HELPS = """
import os, sys
from webdyno.interfaces.cli import run_command_line
for name in sys.argv[1:]:
    if os.fork() == 0:
        run_command_line([name, "--help"] if name else ["--help"])
        print("\\nimported:", *sys.modules, "\\nend", flush=True)
        os._exit(0)
    os.wait()
"""
"""One process shows them all, as a start takes half a second; its children import by themselves."""


@pytest.fixture(scope="module")
def helps() -> dict[str, tuple[str, set[str]]]:
    """By command: its help, and all modules that were imported for it."""
    names = ("", *commands())
    done = subprocess.run(
        [sys.executable, "-c", HELPS, *names], check=True, capture_output=True, text=True
    )
    parts = (part.rpartition("\nimported:") for part in done.stdout.split("\nend\n")[:-1])
    return {
        name: (listing, set(modules.split()))
        for name, (listing, _, modules) in zip(names, parts, strict=True)
    }


@pytest.mark.parametrize("name", ["", *commands()])
def test_help_imports_the_command_that_is_called_and_nothing_heavy(
    helps: dict[str, tuple[str, set[str]]], name: str
) -> None:
    listing, modules = helps[name]
    assert name or all(each in listing for each in commands())
    modules_of = {each: it.typed.partition(":")[0] for each, it in commands().items()}
    loaded = modules & {*modules_of.values()}
    assert loaded == ({modules_of[name]} if name else set())
    printing = {"rich.console", "webdyno.report"} if name in PRINTING else set()
    assert not HEAVY.intersection(modules) - printing


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["rnu"], "there is no command 'rnu'; did you mean run?"),
        (["compare", "--precison", "2%"], "no flag --precison; did you mean --precision?"),
        (["compare", "nginx", "--time"], "--time lacks its value: the longest to measure"),
        (["diff"], "diff lacks RUN: folder of the earlier run"),
        (["capacity", "nginx", "--time", "5", "minutes", "--slo"], "--slo lacks its value"),
        (["up", "nginx", "--port", "x"], "--port x can't be read; wanted is port on 127.0.0.1"),
        (["run", "mine.toml", "other.toml"], "run has no use for 'other.toml'"),
        (["ui", "--port=1", "--port=2"], "--port: is given twice"),
    ],
)
def test_what_is_not_understood_is_said_in_words(
    words: list[str], said: str, tmp_path: Path
) -> None:
    done = webdyno_here(*words, folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert said in done.stderr
    assert done.stdout == ""


def test_the_documented_exit_codes_are_those_that_there_are() -> None:
    rows = re.findall(r"^\| (\d+) \| ([^|]+?) \|", EXIT_CODES.read_text(), re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == {
        code.value: meaning for code, meaning in MEANINGS.items()
    }
