"""Nothing is imported from the current folder, whose files somebody else may have written."""

import ast
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

import webdyno
from e2e.commands import QUICK, WEBDYNO, environment
from e2e.own import CMD, SERVER
from e2e.test_mcp import answered, with_client
from report import comparisons
from variants import further
from waiting import wait_until
from webdyno.core.registry import commands
from webdyno.host.children import from_no_folder, python_file, python_module, words_of
from webdyno.interfaces.ui.app import make_app  # noqa: F401 (what pages import is known then)

SOURCES = Path(webdyno.__file__).parent
HOME = SOURCES.parents[1]
STARTS_PYTHON = SOURCES / "host/children.py"
IN_SOMEBODY_S_FOLDER = ("dyno", "action.yml", "comment/action.yml", "ci/gitlab.yml")
"""Scripts that run in a folder of other people's."""
TRAP = 'open({mark!r}, "a").write(__name__ + "\\n")\nraise ImportError("from the current folder")\n'


def names() -> set[str]:
    """Give the first parts of all modules that may ever be imported."""
    imported = {name.partition(".")[0] for name in sys.modules}
    packages = {module.name for module in pkgutil.iter_modules()}
    return {*imported, *packages, *sys.stdlib_module_names, "webdyno", "sitecustomize"}


@pytest.fixture
def trap(tmp_path: Path) -> Iterator[Path]:
    """A folder with a module of each name, of which none may be imported."""
    mark = tmp_path / "imported"
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in names():
        if name.isidentifier() and name != "__main__":
            (folder / f"{name}.py").write_text(TRAP.format(mark=str(mark)))
    (folder / "server.py").write_text(SERVER)
    yield folder
    assert not mark.exists(), mark.read_text()


def ran(words: list[str], folder: Path) -> str:
    done = subprocess.run(
        words, cwd=folder, env=environment(folder), capture_output=True, text=True, check=False
    )
    assert done.returncode in {0, 2, 4, 5}, done.stderr
    return done.stdout + done.stderr


def test_the_trap_closes(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(TRAP.format(mark=str(tmp_path / "imported")))
    subprocess.run([sys.executable, "-m", "webdyno.interfaces.python"], cwd=tmp_path, check=False)
    assert (tmp_path / "imported").read_text() == "json\n"


@pytest.mark.parametrize("command", ["--version", "list", *map(further, sorted(commands()))])
def test_commands(trap: Path, command: str) -> None:
    assert ran([str(WEBDYNO), command, *(["--help"] if command in commands() else [])], trap)


def test_a_comparison_with_all_that_it_starts(trap: Path) -> None:
    command = CMD.replace(sys.executable, f"{sys.executable} -P")
    words = ["compare", f"a={command}", f"b={command}", "--path=/", *QUICK, "-c", "2"]
    assert "round" in ran([str(WEBDYNO), *words], trap)
    comparisons.decided().stored(trap / "kept")
    ran([str(WEBDYNO), "report", "kept", "--format", "md,csv,html"], trap)


def test_a_comparison_that_a_page_begins(trap: Path) -> None:
    words = [str(WEBDYNO), "ui"]
    with subprocess.Popen(
        words, cwd=trap, env=environment(trap), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().strip())
            with closing(HTTPConnection(address.netloc)) as connection:
                origin = f"http://{address.netloc}"
                nobody = "url:http://127.0.0.1:9"
                asked = {"stack": nobody, "baseline": nobody, "time": "20s"}
                form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}
                connection.request("POST", f"{address.path}begin", urlencode(asked), form)
                assert connection.getresponse().status == 303
            (log,) = (trap / "runs").glob(".*.log")
            wait_until(lambda: "127.0.0.1:9" in log.read_text())
        finally:
            process.terminate()
            process.wait()


def test_tools_of_an_agent(trap: Path) -> None:
    comparisons.decided().stored(trap / "kept")

    async def use(client: "Client") -> None:  # type: ignore[name-defined] # noqa: F821
        assert answered(await client.call_tool("report", {"run": "kept"}))["answer"] == "faster"
        wrong = await client.call_tool("compare", {"system": "ngins", "baseline": "nginx"})
        assert "did you mean nginx" in str(wrong.content)

    with_client(trap, use)


@pytest.mark.parametrize(
    "words",
    [
        words_of("resume"),
        [*python_module("webdyno.cluster.node")],
        [*python_module("webdyno.cluster.role_agent"), "99"],
        [*python_module("ray.scripts.scripts"), "--version"],
        [*python_file(str(SOURCES / "systems/containers/container_names.py"))],
        [*python_file(str(SOURCES / "host/netns_agent.py"))],
        [*python_file(str(SOURCES / "host/warden.py"))],
    ],
    ids=lambda words: Path(words[min(3, len(words) - 1)]).stem,
)
def test_processes_that_webdyno_starts(trap: Path, words: list[str]) -> None:
    subprocess.run(words, cwd=trap, stdin=subprocess.DEVNULL, capture_output=True, check=False)


POOL = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from webdyno.host.children import from_no_folder

if __name__ == "__main__":
    with from_no_folder(), ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        print(pool.submit(abs, -1).result())
"""


def test_processes_that_python_starts_by_itself(trap: Path, tmp_path: Path) -> None:
    script = tmp_path / "pool.py"
    script.write_text(POOL)
    done = subprocess.run(
        [sys.executable, script], cwd=trap, capture_output=True, text=True, check=False
    )
    assert done.stdout == "1\n", done.stderr


def test_what_users_start_has_their_environment() -> None:
    with from_no_folder():
        assert os.environ["PYTHONSAFEPATH"] == "1"
    assert "PYTHONSAFEPATH" not in os.environ


def test_one_place_says_how_python_starts_python() -> None:
    """Elsewhere `sys.executable` stands in what people read alone."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple | ast.Call) and path != STARTS_PYTHON:
                inside = [*getattr(node, "elts", []), *getattr(node, "args", [])]
                assert not any(map(is_our_python, inside)), f"{path}:{node.lineno}"


def is_our_python(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.executable"


@pytest.mark.parametrize("name", IN_SOMEBODY_S_FOLDER)
def test_scripts_in_folders_of_others_start_python_without_them(name: str) -> None:
    for line in (HOME / name).read_text(encoding="utf-8").splitlines():
        if re.search(r"python3?\"? .*-(m|c)\b|candidate\" .*-c\b", line):
            assert " -I -" in line, f"{name}: {line}"
