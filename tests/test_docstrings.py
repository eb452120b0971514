"""Whatever is called from elsewhere says what it does, unless its name and one statement do."""

import ast
from collections.abc import Iterator

from sources import MODULES, SOURCE, tree_of

BY_PROTOCOL = {
    "measure/local_backend.py",
    "cluster/ray_hosts.py",
    "cluster/backend.py",
    "cluster/role_agent.py",
}
"""What these do is said by the protocols that they implement."""
RULES = {"rule", "also"}
"""Decorators that say why."""


def test_what_is_longer_than_a_statement_says_what_it_does() -> None:
    silent = [
        f"{file.relative_to(SOURCE)}: {function.name}"
        for file in MODULES
        if str(file.relative_to(SOURCE)) not in BY_PROTOCOL
        for function in public_functions(tree_of(file))
        if len(function.body) > 1 and ast.get_docstring(function) is None
        if not any(_name_of(decorator) in RULES for decorator in function.decorator_list)
    ]
    assert not silent, f"each of these needs a docstring: {silent}"


def public_functions(
    parent: ast.Module | ast.ClassDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give the functions and methods that others may call."""
    for node in parent.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if node.name.startswith("_"):
                continue
            if isinstance(node, ast.ClassDef):
                yield from public_functions(node)
            else:
                yield node


def _name_of(decorator: ast.expr) -> str:
    return ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
