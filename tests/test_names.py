"""A name means one thing: no public class or function is defined in two modules of webdyno."""

import ast
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src/webdyno"

# What each module has that is one of several of a kind, to be called by the kind's name.
PROTOCOLS = {
    "main": "of a program",
    "make": "of a kind of arm that users name",
    "relocate": "of a server's configurations",
    "passed_on": "by a server's configurations to other machines",
    "probe": "of what is read before and after each slot",
}

# Two meanings of one name, from before this was looked at. The list only shrinks.
TWICE = ""


def test_no_name_is_defined_twice() -> None:
    places = public_definitions()
    twice = {name for name, modules in places.items() if len(modules) > 1}
    known = {*PROTOCOLS, *TWICE.split()}
    new = {name: places[name] for name in sorted(twice - known)}
    assert not new, f"each of these names means two things; give one of them another: {new}"
    once = sorted(known - twice)
    assert not once, f"these mean one thing by now; take them out of the list: {once}"


def public_definitions() -> dict[str, list[str]]:
    """Give the modules that define each public class or function at their top."""
    found = defaultdict[str, list[str]](list)
    for file in sorted(SOURCE.rglob("*.py")):
        kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        names = {it.name for it in ast.parse(file.read_text()).body if isinstance(it, kinds)}
        for name in names:
            if not name.startswith("_"):
                found[name].append(str(file.relative_to(SOURCE)))
    return found
