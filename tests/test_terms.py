"""docs/reference/terms.md: each name is where it says, and no second one for the same thing."""

import ast
import csv
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

import pytest
from pydantic import BaseModel

from sources import MODULES, SOURCE, identifiers_of, tree_of
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.load_result import LoadResult
from webdyno.core.records import SlotRecord
from webdyno.core.registry import question_keys
from webdyno.interfaces.cli.experiment_flags import ExperimentFlags, TestbedFlags, TrafficFlags
from webdyno.interfaces.cli.flags import Sets
from webdyno.interfaces.cli.load import LoadFlags
from webdyno.load.interface import LoadOrder
from webdyno.questions.compare.command import CostFlags, PaceFlags

HOME = Path(__file__).parent.parent
TABLES = sorted((HOME / "docs/reference/data").glob("terms-*.csv"))
SCHEMAS = HOME / "loadgen/schema"
CLASSES = {"LoadOrder": LoadOrder, "Load": Load, "LoadResult": LoadResult}
OF_COMMAND = {"--fail-if"}
"""Flags of `load` that aren't the load's."""
OF_OTHERS = {"interfaces/cli/__init__.py", "config/traffic.py", "core/migration.py"}
"""Modules that have names of others: flags of curl, what older runs say."""
FIELDS_OF_OTHERS = re.compile(r"upgrade-insecure-requests")
"""Names of HTTP's fields that standards list."""


class Row(NamedTuple):
    """A thing, and the names it has and must not have."""

    term: str
    unit: str
    meaning: str
    experiment: list[str]
    command_line: list[str]
    python: list[str]
    contract: list[str]
    records: list[str]
    never: list[str]


def rows() -> Iterator[Row]:
    for table in TABLES:
        _, *lines = csv.reader(table.read_text(encoding="utf-8").splitlines())
        for term, unit, meaning, *cells in lines:
            yield Row(term, unit, meaning, *(re.findall("`([^`]+)`", cell) for cell in cells))


ROWS = list(rows())
NEVER = {name: row.term for row in ROWS for name in row.never}
each_term = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.term)


def has_field(model: type[BaseModel], path: str) -> bool:
    """Whether a dotted name leads to a field, through tables, lists and what may be absent."""
    name, _, rest = path.partition(".")
    if name not in model.model_fields:
        return False
    below = models_in(model.model_fields[name].annotation)
    return not rest or any(has_field(it, rest) for it in below)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from models_in(part)


def has_key(schema: Mapping[str, Any], node: Mapping[str, Any], path: str) -> bool:
    """Whether a dotted name leads to a key of a JSON schema."""
    if "$ref" in node:
        return has_key(schema, schema["$defs"][node["$ref"].rpartition("/")[2]], path)
    one_of = [*node.get("anyOf", []), *node.get("oneOf", [])]
    if any(has_key(schema, part, path) for part in one_of):
        return True
    if "items" in node:
        return has_key(schema, node["items"], path)
    name, _, rest = path.partition(".")
    below = node.get("properties", {}).get(name)
    return below is not None and (not rest or has_key(schema, below, rest))


def contract(half: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((SCHEMAS / f"{half}.v2.schema.json").read_text())
    return read


def test_there_are_terms() -> None:
    assert len(ROWS) > 30
    assert len({row.term for row in ROWS}) == len(ROWS)
    assert all(row.meaning for row in ROWS)


@each_term
def test_names_are_where_the_table_says(row: Row) -> None:
    flags = {f"--{name.replace('_', '-')}" for name in LoadFlags.__annotations__} | OF_COMMAND
    assert [name for name in row.experiment if not has_field(Experiment, name)] == []
    assert [name for name in row.command_line if name not in flags] == []
    assert [name for name in row.records if not has_field(SlotRecord, name)] == []
    for name in row.python:
        of, _, field = name.partition(".")
        assert field in CLASSES[of].__annotations__, name
    for name in row.contract:
        half, _, path = name.partition(".")
        schema = contract(half)
        assert has_key(schema, schema, path), name


ASKING = (CostFlags, ExperimentFlags, PaceFlags, TestbedFlags, TrafficFlags)
"""Flags of commands that ask for an experiment."""


@pytest.mark.parametrize("flags", ASKING)
def test_flags_are_called_alike_in_all_commands(flags: type) -> None:
    names = {key: row.command_line for row in ROWS for key in row.experiment if row.command_line}
    for field, hint in get_type_hints(flags, include_extras=True).items():
        for sets in getattr(hint, "__metadata__", ()):
            if isinstance(sets, Sets):
                flag = f"--{field.replace('_', '-')}"
                assert flag in names.get(sets.key, [flag])
                is_key = has_field(Experiment, sets.key)
                assert is_key or sets.key.partition(".")[0] in question_keys(), sets.key


def names_in(tree: ast.AST) -> Iterator[str]:
    """Identifiers of a module, and texts that are one word: keys, flags."""
    yield from identifiers_of(tree)
    for node in ast.walk(tree):
        match node:
            case ast.Constant(value=str(text)) if " " not in text:
                yield text.strip("-").replace("-", "_")


@pytest.mark.parametrize("package", sorted({it.parent for it in MODULES}), ids=lambda it: it.name)
def test_modules_have_no_second_name(package: Path) -> None:
    if {"formats", "audit"} & set(package.relative_to(SOURCE).parts):
        return  # names of other tools
    found = {
        f"{module.name}: {name} ({NEVER[name]})"
        for module in package.glob("*.py")
        if module.relative_to(SOURCE).as_posix() not in OF_OTHERS
        for name in names_in(tree_of(module))
        if name in NEVER
    }
    assert found == set()


ENGINE = [*(HOME / "loadgen/src").rglob("*.rs"), *SCHEMAS.glob("*.json")]
PAGES = [
    *(page for folder in ("docs", "examples", "skills") for page in (HOME / folder).rglob("*.md")),
    *(HOME / name for name in ("README.md", "CONTRIBUTING.md", "AGENTS.md", "llms.txt")),
    *(HOME / f"{name}/action.yml" for name in (".", "comment")),
]


@pytest.mark.parametrize(
    "file", sorted({*ENGINE, *PAGES}), ids=lambda it: str(it.relative_to(HOME))
)
def test_engine_and_docs_have_no_second_name(file: Path) -> None:
    text = file.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    words = set(re.findall(r"[A-Za-z_]+|--[a-z-]+", FIELDS_OF_OTHERS.sub("", text)))
    written = {word.strip("-").replace("-", "_") for word in words}
    assert {f"{name} ({NEVER[name]})" for name in written & NEVER.keys()} == set()
