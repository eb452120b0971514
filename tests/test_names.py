"""Variables say what they hold, and a module defines a name once."""

import ast
from collections import Counter
from collections.abc import Iterator

from sources import MODULES, SOURCE, tree_of

SAY_NOTHING = {"found", "told", "it", "at"}
"""Names of variables that say of none what it holds."""


def test_variables_are_called_by_what_they_hold() -> None:
    said = [
        f"{file.relative_to(SOURCE)}:{line}: {name}"
        for file in MODULES
        for name, line in _variables(ast.parse(file.read_text()))
        if name in SAY_NOTHING
    ]
    assert said == []


def _variables(module: ast.Module) -> Iterator[tuple[str, int]]:
    """Give arguments and variables with their lines; fields of classes may be somebody's keys."""
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    yield node.arg, node.lineno
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id, node.lineno


def test_no_module_defines_a_name_twice() -> None:
    """The second value would hold for both, as where files were joined, and no checker says so."""
    for file in MODULES:
        names = Counter(_defined(tree_of(file)))
        twice = [name for name, times in names.items() if times > 1]
        assert not twice, f"{file.relative_to(SOURCE)} defines {', '.join(twice)} twice"


def _defined(module: ast.Module) -> Iterator[str]:
    """Give the names that statements at a module's top define, each as often as they do."""
    for statement in module.body:
        match statement:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield statement.name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets):
                parts = (part for target in targets for part in ast.walk(target))
                yield from (part.id for part in parts if isinstance(part, ast.Name))
