"""A name means one thing: no public class or function is defined in two modules of webdyno."""

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator

from sources import MODULES, SOURCE, tree_of

# What each module has that is one of several of a kind, to be called by the kind's name.
PROTOCOLS = {
    "main": "of a program",
    "make": "of a kind of variant that users name",
    "find_in": "of a layout of applications",
    "relocate": "of a server's configurations",
    "passed_on": "by a server's configurations to other machines",
    **dict.fromkeys(
        ("capacity", "compare", "explain", "gate", "report", "resume", "tune"),
        "of what is asked: a command, a call from Python, a tool for agents",
    ),
}


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


def test_no_name_is_defined_twice() -> None:
    places = public_definitions()
    twice = {name: modules for name, modules in places.items() if len(modules) > 1}
    new = {name: twice[name] for name in sorted(twice.keys() - PROTOCOLS.keys())}
    assert not new, f"each of these names means two things; give one of them another: {new}"


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


def public_definitions() -> dict[str, list[str]]:
    """Give the modules that define each public class or function at their top."""
    found = defaultdict[str, list[str]](list)
    for file in MODULES:
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        names = {it.name for it in tree_of(file).body if isinstance(it, kinds)}
        for name in names:
            if not name.startswith("_"):
                found[name].append(str(file.relative_to(SOURCE)))
    return found
