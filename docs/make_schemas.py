"""Writes docs/schema: what webdyno's JSON files hold, as JSON Schema (draft 2020-12).

    .venv/bin/python docs/make_schemas.py

A test runs it and finds nothing to change.
"""

import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema
from sentences import sentences

from webdyno.model.gate import GateJudgement
from webdyno.model.point import SweepJudgement
from webdyno.model.records import RECORD
from webdyno.model.run import RunHead

FOLDER = Path(__file__).with_name("schema")

FILES: dict[str, TypeAdapter[Any]] = {
    "result": TypeAdapter(SweepJudgement),
    "gate": TypeAdapter(GateJudgement),
    "run": TypeAdapter(RunHead),
    "slots": RECORD,
}
"""`report --format json`, a gate's gate.json, run.json, and a line of slots.jsonl."""


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
    made = {}
    for name, adapter in FILES.items():
        schema = adapter.json_schema(mode="serialization", schema_generator=_WithSentences)
        told = {"$schema": _WithSentences.schema_dialect, **schema}
        made[FOLDER / f"{name}.schema.json"] = json.dumps(told, indent=1) + "\n"
    return made


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, text in schemas().items():
        file.write_text(text, encoding="utf-8")
