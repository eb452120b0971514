"""Writes the lists of docs/reference/experiment-file.md: what the models say of each key.

    .venv/bin/python docs/make_experiment.py

A test runs it and finds nothing to change.
"""

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as bounds
from pydantic import BaseModel, JsonValue
from pydantic.fields import FieldInfo
from sentences import sentences

from webdyno.core.base import Quantity
from webdyno.core.experiment import Experiment, Level, State
from webdyno.core.load import Load, SlowReaders
from webdyno.core.measure import CapacitySettings, Measure
from webdyno.core.metrics import DecidingMetric
from webdyno.core.registry import question_keys
from webdyno.core.request import WrittenRequest
from webdyno.core.session import Capture, Values
from webdyno.core.setting import SettingValue
from webdyno.core.testbed import RoleHosts, ServiceHost, TestbedSettings
from webdyno.core.variant import Changes, Variant
from webdyno.questions.compare.settings import OneSidedSettings
from webdyno.questions.gate.settings import GateSettings
from webdyno.questions.ranking.settings import RankingSettings

DOCUMENT = Path(__file__).parent / "reference/experiment-file.md"

TABLES: dict[str, type[BaseModel]] = {
    "": Experiment,
    "load": Load,
    "load.slow_readers": SlowReaders,
    "requests": WrittenRequest,
    "requests.capture.NAME": Capture,
    "values.NAME": Values,
    "state": State,
    "variants.NAME": Variant,
    "measure": Measure,
    "testbed": TestbedSettings,
    "testbed.hosts": RoleHosts,
    "testbed.services.NAME": ServiceHost,
    "capacity": CapacitySettings,
    "ranking": RankingSettings,
    "one_sided": OneSidedSettings,
    "gate": GateSettings,
}
"""By the name of its table in TOML; the first stands at the top of the file."""

QUESTIONS = [key for key in question_keys() if key not in {"limits", "advice", "design"}]
"""Tables that ask something. What `webdyno explain` asks stands in runs' folders only."""

WRITTEN = (
    "workload",
    "tuning",
    "load.replay",
    "load.descriptors",
    "values.NAME.sha256",
    "gate.commits",
    "gate.rules_differ",
    "gate.repeat",
    "gate.endpoints",
)
"""Keys that webdyno alone writes, to say in a run's folder what it found; they have no row."""

QUANTITIES = {
    "seconds": "time",
    "bytes": "size",
    "bits per second": "link rate",
    "share of one": "share",
}
"""What the page calls the kinds of quantities, by the unit of a number without one."""

USUAL_TYPE = "text"
"""What a key without a type is."""

DEFAULTS = {("load", "paths"): "the site's first"}
"""What isn't in the model, since it depends on the site."""


def keys() -> Iterator[str]:
    """Yield every dotted key that people write."""
    yield from QUESTIONS
    for table, model in TABLES.items():
        yield from (_dotted(table, name, field) for name, field in fields(table, model))


def fields(table: str, model: type[BaseModel]) -> Iterator[tuple[str, FieldInfo]]:
    """Yield the fields of a table that people write."""
    for name, field in model.model_fields.items():
        if _dotted(table, name, field) not in {*WRITTEN, "asks"}:
            yield name, field


def _has_a_table(dotted: str) -> bool:
    """Whether a key is a table with a section of its own, which says more than a row could."""
    return dotted in {table.removesuffix(".NAME") for table in TABLES}


def _dotted(table: str, name: str, field: FieldInfo) -> str:
    return f"{table}.{field.alias or name}".lstrip(".")


def written(text: str) -> str:
    """Return the document with each of its lists made again."""
    for table, model in TABLES.items():
        begins, ends = f"<!-- keys of {table or 'the file'} -->", "<!-- end -->"
        made = "\n".join([begins, *_rows(table, model), ends])
        text, found = re.subn(
            f"{re.escape(begins)}.*?{ends}", lambda _, it=made: it, text, flags=re.DOTALL
        )
        if found != 1:
            raise SystemExit(f"{DOCUMENT}: there should be one place {begins} … {ends}")
    return text


def _rows(table: str, model: type[BaseModel]) -> Iterator[str]:
    """Yield a line for each key: its default and type, and what it means."""
    said, hints = sentences(model), get_type_hints(model, include_extras=True)
    for name, field in fields(table, model):
        if _has_a_table(_dotted(table, name, field)):
            continue
        default = DEFAULTS.get((table, name)) or _default(field)
        kind = _type(hints[name])
        shown = [it for it in (default, kind) if it and it != USUAL_TYPE]
        if default and kind.startswith(default):
            shown = [kind]
        brackets = f" ({'; '.join(shown)})" if shown else ""
        yield f"- `{field.alias or name}`{brackets}: {said[name]}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.default
    if default is None or isinstance(default, BaseModel) or default in ({}, []):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else repr(default)}`".replace(
        "'", '"'
    )


def _type(hint: Any) -> str:  # noqa: ANN401
    """Return in words what a field may be."""
    if hint == DecidingMetric:
        return "a [deciding metric](metrics.md)"
    if hint == JsonValue:
        return "anything"
    if hint == Changes:
        return "table of keys"
    if hint in (SettingValue, Level):
        return "number, word, switch" + (" or texts" if hint == Level else "")
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _bounded(_type(inner[0]), hint.__metadata__)
    if origin in {Union, types.UnionType}:
        return " or ".join(_type(each) for each in inner if each is not type(None))
    if origin is Literal:
        return ", ".join(f'`"{each}"`' for each in inner)
    if origin is list:
        if _is_model(inner[0]):
            return "list of tables"
        return "texts" if _type(inner[0]) == "text" else f"list of {_type(inner[0])}"
    if origin is dict:
        value = inner[1]
        return (
            "tables by name" if _is_model(value) or value == Changes else f"table of {_type(value)}"
        )
    if _is_model(hint):
        return "table"
    return {str: "text", int: "integer", float: "number", bool: "switch"}[hint]


def _is_model(hint: Any) -> bool:  # noqa: ANN401
    return isinstance(hint, type) and issubclass(hint, BaseModel)


def _bounded(word: str, metadata: tuple[Any, ...]) -> str:
    found = [
        each for it in metadata for each in (it.metadata if isinstance(it, FieldInfo) else [it])
    ]
    for it in found:
        if isinstance(it, Quantity):
            return _quantity(it)
    least = next((it.ge for it in found if isinstance(it, bounds.Ge)), None)
    most = next((it.le for it in found if isinstance(it, bounds.Le)), None)
    if any(isinstance(it, bounds.MultipleOf) for it in found):
        word = f"even {word}"
    if least is not None and most is not None:
        return f"{word}, {least:,}–{most:,}"
    if least is not None:
        return f"{word}, ≥ {least}"
    return word


def _quantity(it: Quantity) -> str:
    least, most = it.kind.words(it.least), it.kind.words(it.most)
    return f"{QUANTITIES[it.kind.base]}, {'> ' if it.above else ''}{least}–{most}"


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
