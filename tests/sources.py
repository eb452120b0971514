"""The modules of webdyno; programs of its catalogue are none of them."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/webdyno"
MODULES = sorted(set(SOURCE.rglob("*.py")) - set((SOURCE / "systems/catalog").rglob("*")))


@cache
def tree_of(module: Path) -> ast.Module:
    """Parse a module, once for all who look at the same ones."""
    return ast.parse(module.read_text(encoding="utf-8"))


def identifiers_of(tree: ast.AST) -> Iterator[str]:
    """Names that a module gives, and those that it uses."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name) | ast.Attribute(attr=name):
                yield name
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.keyword(arg=str(name)):
                yield name
