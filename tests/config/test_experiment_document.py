"""docs/reference/experiment-file.md: every key, its default, and examples that hold."""

import importlib
import re
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from load.greeter import written
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.experiment import Experiment
from webdyno.core.load import Load
from webdyno.core.question import settings_class

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "reference/experiment-file.md").read_text(encoding="utf-8")
OTHERS = sorted((Path(__file__).parent / "examples").glob("*.toml"))
"""Of keys that the page explains without an example."""
EXAMPLES = [
    tomllib.loads(text)
    for text in (*re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL), *map(Path.read_text, OTHERS))
]
TWO_VARIANTS = {"first": {"stack": "nginx"}, "second": {"stack": "nginx"}}
BARE = {"title": "t", "question": "q?", "site": "static"}


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    """The script that makes the tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        return importlib.import_module("make_experiment")


def models_in(hint: Any) -> set[type[BaseModel]]:  # noqa: ANN401 (any annotation)
    """Every model that a field's annotation mentions."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        inner = (models_in(field.annotation) for field in hint.model_fields.values())
        return {hint}.union(*inner)
    return set().union(*map(models_in, get_args(hint)))


BY_VARIANT = {"variants", "testbed.services", "requests.capture", "values"}
FREE = {
    "factors",
    "load.headers",
    "load_with",
    "requests.headers",
    "requests.json",
    "requests.form",
    "login",
    "values.NAME.rows",
    "variants.NAME.settings",
    "variants.NAME.load",
    "variants.NAME.testbed",
    "gate.worse_than",
}
"""Tables whose keys are named elsewhere, or by nobody."""


def keys_of(data: dict[str, Any], table: str = "") -> set[str]:
    """Dotted keys of an example, variants by any name."""
    found = set()
    for name, value in data.items():
        key = f"{table}.{'NAME' if table in BY_VARIANT else name}".lstrip(".")
        found.add(key)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, dict) and key not in FREE:
                found |= keys_of(inner, key)
    return found


def test_the_tables_are_what_the_models_say(maker: ModuleType) -> None:
    assert maker.written(TEXT) == TEXT, "run .venv/bin/python docs/make_experiment.py"


def test_every_model_of_an_experiment_has_its_table(maker: ModuleType) -> None:
    people_write = (field.annotation for _, field in maker.fields("", Experiment))
    asked = {settings for key in maker.QUESTIONS if (settings := settings_class(key)).model_fields}
    whole = {Experiment}.union(asked, *map(models_in, people_write))
    assert set(maker.TABLES.values()) == whole


def test_what_webdyno_alone_writes_is_named(maker: ModuleType) -> None:
    assert all(f"`{name}`" in TEXT for name in maker.WRITTEN)


def test_every_key_stands_in_an_example_and_no_other(maker: ModuleType) -> None:
    by_variant = {f"{table}.NAME" for table in BY_VARIANT}
    shown = set().union(*map(keys_of, EXAMPLES)) - by_variant
    assert shown == set(maker.keys())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda it: " ".join(it))
def test_every_example_holds(
    example: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue = Catalogue.load()
    whole = {**BARE, **example}
    if "variants" not in example or len(example["variants"]) < 2:
        whole["variants"] = TWO_VARIANTS | example.get("variants", {})
    if "slow_readers" in example.get("load", {}):
        assert Load.model_validate(example["load"]).slow_readers
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text("name,password\nann,x\n")
    (tmp_path / "avatar.png").write_bytes(b"\x89PNG")
    (tmp_path / "traffic.replay").write_text("0 1\n0.5 2\n2 1\n")
    written(tmp_path)
    (tmp_path / "hello.json").write_text('{"name": "ann"}')
    experiment = read_experiment(CommandLine(whole, {}), [], catalogue)
    assert experiment.title
