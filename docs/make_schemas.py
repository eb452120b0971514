"""Writes docs/schema, as JSON Schema (draft 2020-12): files that webdyno writes, or people do.

    .venv/bin/python docs/make_schemas.py

A test runs it and finds nothing to change.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode, JsonSchemaValue
from pydantic_core import core_schema
from sentences import sentences

from webdyno.core.experiment import Experiment
from webdyno.core.limits import GateJudgement
from webdyno.core.records import RECORD
from webdyno.core.run import RunHead
from webdyno.core.sweep import SweepJudgement
from webdyno.history import PastGate
from webdyno.systems.project import App
from webdyno.systems.target import OwnKeys

FOLDER = Path(__file__).with_name("schema")

FILES: dict[str, TypeAdapter[Any]] = {
    "result": TypeAdapter(SweepJudgement),
    "gate": TypeAdapter(GateJudgement),
    "run": TypeAdapter(RunHead),
    "slots": RECORD,
    "history": TypeAdapter(PastGate),
}
"""`report --format json`, a gate's gate.json, run.json, a line of slots.jsonl and of a history."""


FILES_NAMED = {"Load": "replay_file", "WrittenRequest": "body_file"}
"""By definition: keys that are replaced by what a file holds, before an experiment is checked."""
NAMED = "A file that holds it, relative to this one."
EXPERIMENT, PROJECT = TypeAdapter(Experiment), TypeAdapter(App)


class _WithSentences(GenerateJsonSchema):
    """Adds to each field what the source says of it."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        for name, sentence in sentences(schema["cls"]).items():
            if name in made.get("properties", {}):
                made["properties"][name].setdefault("description", sentence)
        return made


def schemas() -> dict[Path, str]:
    """Give the text of every schema by its file."""
    made = {name: _schema(adapter, "serialization") for name, adapter in FILES.items()}
    made["experiment"], made["webdyno"] = _experiment(), _project()
    return {
        FOLDER / f"{name}.schema.json": json.dumps(schema, indent=1) + "\n"
        for name, schema in made.items()
    }


def _experiment() -> JsonSchemaValue:
    """Describe an experiment's file: variants have the keys of users' own systems as well."""
    schema = _schema(EXPERIMENT, "validation")
    own = _schema(TypeAdapter(OwnKeys), "validation")
    schema["$defs"] |= own.get("$defs", {})
    schema["$defs"]["Variant"]["properties"] |= own["properties"]
    for place, key in FILES_NAMED.items():
        schema["$defs"][place]["properties"][key] = {"type": "string", "description": NAMED}
    return schema


def _project() -> JsonSchemaValue:
    """Describe a webdyno.toml: `[app]`, and whatever an experiment has, none of which it must."""
    schema, app = _experiment(), _schema(PROJECT, "validation")
    schema["$defs"] |= {**app.pop("$defs", {}), "App": app}
    del app["$schema"]
    schema["properties"] = {"app": {"$ref": "#/$defs/App"}, **schema["properties"]}
    return {**schema, "title": "webdyno.toml", "required": ["app"]}


def _schema(adapter: TypeAdapter[Any], mode: JsonSchemaMode) -> JsonSchemaValue:
    schema = adapter.json_schema(mode=mode, schema_generator=_WithSentences)
    return {"$schema": _WithSentences.schema_dialect, **schema}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in schemas().items():
        file.write_text(text, encoding="utf-8")
