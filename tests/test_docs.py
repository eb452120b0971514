"""What the docs say people to type is understood; a site without dead links; schemas that hold."""

import importlib
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError
from jsonschema import Draft202012Validator

from webdyno.interfaces.cli import app, take_debug_file

HOME = Path(__file__).parent.parent
PAGES = [HOME / "README.md", HOME / "CONTRIBUTING.md", *sorted((HOME / "docs").rglob("*.md"))]
COMMAND = re.compile(
    r"^\s*(?:\$ )?(?:\S*/)?(?:webdyno|dyno) +"
    r"""(?P<words>[a-z](?:'[^'\n]*'|"[^"\n]*"|[^`'"\n])*?)(?: {2,}.*| #.*| [|>].*)?$""",
    re.MULTILINE,
)
"""Two spaces, a hash or a pipe outside of quotes end a command; an explanation or another program
follows."""
CODE = re.compile(
    r"^```(?P<language>[^\n]*)\n(?P<fenced>.*?)^```$|(?P<indented>(?:^ {4}\S[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
WHOLE = app()
MOST_WORDS = 42_000
"""Of README and docs, as `wc -w` counts them, marks of tables included."""
DATA = (HOME / "docs/validation/coverage.md").read_text(encoding="utf-8")
"""A page all of whose tables are files of data."""
OF_OTHERS = {"test", "load"}
"""`./dyno test` is the launcher's, which runs this; the engine reads `load`'s flags by itself."""
RUN_BY = {
    "audit": "e2e/test_audit.py",
    "capacity": "bench/test_capacity.py",
    "cluster": "e2e/test_cluster.py",
    "compare": "e2e/test_own.py",
    "diff": "interfaces/cli/test_diff.py",
    "doctor": "e2e/test_other_commands.py",
    "explain": "e2e/test_explain.py",
    "gate": "e2e/test_gate.py",
    "init": "e2e/test_examples.py",
    "league": "e2e/test_league.py",
    "list": "e2e/test_other_commands.py",
    "mcp": "e2e/test_mcp.py",
    "load": "e2e/test_other_commands.py",
    "report": "e2e/test_report_page.py",
    "resume": "e2e/test_resume.py",
    "run": "e2e/test_run.py",
    "traffic": "e2e/test_workload.py",
    "tune": "e2e/test_races.py",
    "ui": "e2e/test_ui.py",
    "up": "e2e/test_other_commands.py",
}
"""What runs each command of the docs. As they stand there they measure for minutes, with stacks of
their own: here they are only read, by the program itself, and there run on what takes seconds."""


def reported_commands() -> Iterator[tuple[str, str]]:
    """Each command in a code block of the docs, with the page that it is on."""
    for page in PAGES:
        for block in CODE.finditer(page.read_text()):
            if block["language"] not in {None, "", "sh"}:
                continue
            text = re.sub(r"\\\n\s*", "", block["fenced"] or block["indented"])
            for found in COMMAND.finditer(text):
                yield page.name, found["words"]


@pytest.mark.parametrize(("page", "words"), sorted(set(reported_commands())))
def test_what_people_are_reported_to_type_is_understood(page: str, words: str) -> None:
    typed, _ = take_debug_file(shlex.split(words))
    if typed[0] in OF_OTHERS:
        return
    try:
        WHOLE.parse_args(typed, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        pytest.fail(f"{page} tells people to type 'webdyno {words}': {error}")


@pytest.mark.parametrize(
    "command", sorted({words.split()[0] for _, words in reported_commands()} - {"test"})
)
def test_every_command_of_the_docs_is_run_somewhere(command: str) -> None:
    assert f'"{command}"' in (HOME / "tests" / RUN_BY[command]).read_text(encoding="utf-8")


LINK = re.compile(r"\]\((?!https?:|mailto:|#)(?P<target>[^)#\s]+)")
LINKING = [*HOME.glob("*.md"), HOME / "examples/README.md", HOME / "llms.txt"]
CITED = re.compile(r"(?<![\w/])docs/[\w/-]+\.(?:md|py|png)")
CITING = [
    *(HOME / "src").rglob("*.py"),
    *(HOME / "bench").glob("*.*"),
    *(HOME / "docs").glob("*.py"),
    *(HOME / "loadgen/src").rglob("*.rs"),
    *LINKING,
]


EXPERIMENTS = sorted((HOME / "src/webdyno/systems/catalog/experiments").glob("*.toml"))
IN_A_TABLE = {"environment", "front", "start", "files", "needs", "services"}
"""Keys at the top of blocks that show a part of a catalog, or the inside of a table."""


def written_in_toml() -> Iterator[tuple[str, str]]:
    """Each block of TOML in the docs that is an experiment or a webdyno.toml, or a part of one."""
    for page in PAGES:
        for block in CODE.finditer(page.read_text()):
            if (
                block["language"] == "toml"
                and not IN_A_TABLE & tomllib.loads(block["fenced"]).keys()
            ):
                yield page.name, block["fenced"]


@pytest.mark.parametrize("page", LINKING, ids=lambda page: page.name)
def test_links_of_pages_outside_of_the_site_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    dead = [it for it in LINK.findall(text) if not (page.parent / it).exists()]
    assert dead == []


def test_files_that_are_named_for_contributors_exist() -> None:
    text = (HOME / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w.]+/[\w./]+\.(?:py|md|toml|rs))`", text))
    assert len(named) > 20
    tops = (HOME, HOME / "src/webdyno")
    assert [name for name in sorted(named) if not any((top / name).exists() for top in tops)] == []


def test_pages_that_the_source_cites_exist() -> None:
    dead = {
        f"{file.relative_to(HOME)}: {cited}"
        for file in CITING
        for cited in CITED.findall(file.read_text(encoding="utf-8"))
        if not (HOME / cited).exists()
    }
    assert dead == set()


def test_the_docs_make_a_site_without_dead_links(tmp_path: Path) -> None:
    made = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "-q", "-b", "dirhtml", HOME / "docs", tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "install" / "index.html").exists()
    coverage = tmp_path / "validation" / "coverage" / "index.html"
    assert coverage.read_text().count("<table") == DATA.count("```{data-table}")


def test_the_published_schemas_are_what_the_models_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME / "docs")
    for file, text in importlib.import_module("make_schemas").schemas().items():
        assert file.read_text(encoding="utf-8") == text, "run .venv/bin/python docs/make_schemas.py"


def schema(name: str) -> dict[str, Any]:
    file = HOME / f"docs/schema/{name}.schema.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["experiment", "webdyno"])
def test_schemas_of_what_people_write_are_schemas(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))


@pytest.mark.parametrize("file", EXPERIMENTS, ids=lambda file: file.stem)
def test_the_schema_of_experiments_holds_for_the_catalogs(file: Path) -> None:
    Draft202012Validator(schema("experiment")).validate(tomllib.loads(file.read_text()))


@pytest.mark.parametrize(("page", "text"), sorted(set(written_in_toml())))
def test_the_schema_of_projects_holds_for_what_the_docs_show(page: str, text: str) -> None:
    assert page
    Draft202012Validator({**schema("webdyno"), "required": []}).validate(tomllib.loads(text))


def test_the_schema_of_projects_finds_what_is_wrong() -> None:
    wrong = 'app = {start = "./run", buidl = "make"}\nmeasure = {budget_s = [1]}'
    faults = [*Draft202012Validator(schema("webdyno")).iter_errors(tomllib.loads(wrong))]
    assert sorted(fault.json_path for fault in faults) == ["$.app", "$.measure.budget_s"]


def test_the_page_of_commands_is_what_they_print(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME / "docs")
    page = (HOME / "docs/reference/cli.md").read_text(encoding="utf-8")
    made = importlib.import_module("make_cli").written()
    assert page == made, "run .venv/bin/python docs/make_cli.py"


def test_outputs_in_pages_are_those_that_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(HOME / "docs")
    maker = importlib.import_module("make_outputs")
    pages = {page: page.read_text(encoding="utf-8") for page in maker.PAGES}
    assert sum(len(maker.PLACE.findall(text)) for text in pages.values()) >= 9
    for page, text in pages.items():
        assert maker.with_outputs(text) == text, f"{page}: .venv/bin/python docs/make_outputs.py"


def test_the_docs_stay_short() -> None:
    pages = [HOME / "README.md", *(HOME / "docs").rglob("*.md")]
    words = sum(len(page.read_text(encoding="utf-8").split()) for page in pages)
    assert words <= MOST_WORDS, "shorten what is said twice"
