"""The modules of webdyno; programs of its catalogue are none of them."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/webdyno"
MODULES = sorted(set(SOURCE.rglob("*.py")) - set((SOURCE / "systems/catalog").rglob("*")))


@cache
def tree_of(module: Path) -> ast.Module:
    """Parse a module, once for all who look at the same ones."""
    return ast.parse(module.read_text(encoding="utf-8"))
