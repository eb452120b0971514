"""CONTRIBUTING's table of who imports whom is true."""

import re
from collections import defaultdict
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]


def imports_by_package() -> dict[str, set[str]]:
    """Which packages the modules of each package import."""
    graph = grimp.build_graph("webdyno")
    found: dict[str, set[str]] = defaultdict(set)
    for module in graph.modules - {"webdyno"}:
        package = module.split(".")[1]
        targets = {it.split(".")[1] for it in graph.find_modules_directly_imported_by(module)}
        found[package] |= targets - {package}
    return dict(found)


def test_the_table_is_true() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `src/webdyno/(\w+)/` \|.*\| ([^|]+) \|$", text, re.MULTILINE)
    table = {package: set(cell.split(", ")) - {"nobody"} for package, cell in rows}
    code = imports_by_package()
    assert table.pop("catalog") == {"–"}
    assert table.pop("cli") == {"everything; nobody imports it"}
    assert set(code.pop("cli")) <= set(code)
    assert table == code
