"""CONTRIBUTING's tables of who imports whom are true."""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PERIPHERY = ("audit", "cluster", "interfaces", "questions", "studies", "traffic")
ENTRIES = (
    *("audit.rules.", "formats.", "probes.status", "questions."),
    *("systems.containers.docker", "systems.containers.podman"),
)
"""One file for each kind of thing, wherever they are listed."""
PROGRAMS = {"cluster.node", "host.netns_agent", "host.warden", "systems.containers.container_names"}
"""Each runs in a process of its own."""
MOST_WITH_ONE_READER = 42


def imports_by_package() -> dict[str, set[str]]:
    """Which packages the modules of each package import."""
    graph = grimp.build_graph("webdyno")
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"webdyno"}:
        package = module.split(".")[1]
        targets = {it.split(".")[1] for it in graph.find_modules_directly_imported_by(module)}
        found[package] |= targets - {package}
    return dict(found)


def test_the_tables_are_true() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `src/webdyno/(\w+)/` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    table = {package: set(cell.split(", ")) - {"nobody"} for package, cell in rows}
    code = imports_by_package()
    assert table == code


def test_what_is_only_read_together_is_one_file() -> None:
    """Each of these is opened with the one file that imports it: join them while that is short."""
    alone = sorted(_with_one_reader())
    assert len(alone) <= MOST_WITH_ONE_READER, "\n".join(alone)


def _with_one_reader() -> Iterator[str]:
    """Name files that one other file alone imports, but for what a package lists or passes on."""
    graph = grimp.build_graph("webdyno")
    packages = {module for module in graph.modules if graph.find_children(module)}
    for module in graph.modules - packages:
        name = module.removeprefix("webdyno.")
        readers = graph.find_modules_that_directly_import(module)
        is_listed = name.startswith(ENTRIES) or name in PROGRAMS or readers <= packages
        if len(readers) == 1 and not is_listed:
            yield f"{name} <- {readers.pop().removeprefix('webdyno.')}"


def loaded_by(*modules: str) -> set[str]:
    """Give all modules that these import."""
    imports = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", imports], capture_output=True, check=True)
    return set(done.stdout.decode().split())


def test_a_run_loads_nothing_of_the_periphery() -> None:
    loaded = loaded_by("webdyno.launch.measure", "webdyno.measure.session")
    packages = {module.split(".")[1] for module in loaded if module.startswith("webdyno.")}
    assert "comparison" in packages
    assert not packages.intersection(PERIPHERY)


def test_who_looks_for_own_systems_loads_none_of_their_kinds() -> None:
    """What reads configurations of five servers, and images, took half of that start."""
    loaded = loaded_by("webdyno.systems.variants")
    own = ("conf.configuration", "conf.nginx", "conf.apache", "conf.caddy", "containers.image")
    kinds = (*own, "project", "url", "layouts")
    assert not loaded.intersection(f"webdyno.systems.{kind}" for kind in kinds)


def test_arguments_are_checked_without_heavy_packages() -> None:
    """They take longer to load than all that is needed to say that a stack's name is wrong."""
    asks = (
        "import sys; from webdyno.interfaces.cli import run_command_line; "
        "code = run_command_line(['compare', 'nginx', 'nonsense']); print(code, *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", asks], capture_output=True, check=True)
    code, *loaded = done.stdout.decode().split()
    assert code == "2"
    heavy = {"altair", "jinja2", "numpy", "ray", "scipy", "textual", "uvicorn", "vl_convert"}
    assert not heavy.intersection(loaded)
