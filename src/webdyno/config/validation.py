"""Data that people wrote becomes model types; what is wrong with it becomes one message.

The message names place and fix, shows the value, and says which names come near.
"""

import tomllib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from webdyno.config.toml_file import KeyPath, PlaceOf
from webdyno.core.errors import UserError
from webdyno.core.format import scalar

NEAR_SHOWN = 3
ALL_SHOWN = 12
LONGEST_COMPARED = 100
"""Characters of a name that are compared; finding what is near takes longer than in proportion."""
LONGEST_SHOWN = 60
M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")
FAULTS_SHOWN = 3
"""How many mistakes one message names."""
LONGEST_KEY = 100
WISHES = {
    "bool_type": "be true or false",
    "string_type": "be text",
    "list_type": "be a list",
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "be a table"),
    **dict.fromkeys(("int_type", "int_from_float"), "be a whole number"),
    "int_parsing_size": "be a number of sensible size",
    "float_type": "be a number",
    "finite_number": "be a finite number",
    "greater_than": "be more than {gt}",
    "greater_than_equal": "be {ge} or more",
    "less_than": "be less than {lt}",
    "less_than_equal": "be {le} or less",
    "multiple_of": "be a multiple of {multiple_of}",
    "literal_error": "be {expected}",
    "too_short": "have {min_length} or more entries",
    "too_long": "have {max_length} entries or fewer",
}
"""What is requested, by pydantic's name of the fault, in words that follow "should"."""


def nearest(wrong: str, valid: Iterable[str]) -> str:
    """Say which valid names come closest, or which there are at all."""
    names = sorted(valid)
    if not names:
        return "there is none to choose from"
    close = get_close_matches(wrong[:LONGEST_COMPARED].lower(), names, n=NEAR_SHOWN, cutoff=0.6)
    if close:
        return f"did you mean {' or '.join(close)}?"
    shown = ", ".join(names[:ALL_SHOWN])
    return f"choose from {shown}{' …' if len(names) > ALL_SHOWN else ''}"


def written_value(text: str, flag: str) -> object:
    """Read the value of a flag as TOML has it: number, true, list; anything else is text.

    Raise UserError for what is more than one value: tables, line breaks.
    """
    if not text.isprintable():
        raise UserError(f"{flag!r:.{LONGEST_SHOWN}}: has a line break or another control character")
    try:
        # In brackets of a list nothing but one value can stand: no comment, no second key.
        table = tomllib.loads(f"values = [{text}]")
    except (ValueError, RecursionError):  # ValueError: also an integer of thousands of digits
        return text
    values = table["values"]
    if len(table) > 1 or len(values) != 1 or text.rstrip().endswith(","):
        return text
    (value,) = values
    if isinstance(value, dict):
        raise UserError(f"{flag}: sets one value; name the key inside the table, KEY.NAME=VALUE")
    return value if isinstance(value, bool | int | float | str | list) else text


def shown_value(value: object) -> str:
    """Write a value for a message: as in TOML, and not too long."""
    if isinstance(value, bool):
        return scalar(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list) and not value:
        return "an empty list"
    try:
        shown = repr(value)
    except RecursionError:
        return "something nested deeply"
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]} …"


def build(model: type[M], data: dict[str, Any], place: PlaceOf) -> M:
    """Make a model of data; raise UserError that names the places of the first mistakes."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        faults = error.errors()
    by_place: dict[KeyPath, list[Any]] = {}
    for fault in faults:
        where = _in_data(fault["loc"], data, keep_last=fault["type"] == "missing")
        by_place.setdefault(where, []).append(fault)
    messages = [
        f"{place(where)}: {_message(where, at_place, model)}"
        for where, at_place in list(by_place.items())[:FAULTS_SHOWN]
    ]
    raise UserError("\n".join(messages))


def read_value(kind: TypeAdapter[T], value: object, flag: str) -> T:
    """Read a flag's value as a type; raise UserError that names the flag."""
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        fault: Any = error.errors()[0]
    raise UserError(f"{flag} {value}: {_wish('it', [fault])}")


def first_fault(error: ValidationError) -> str:
    """Say in one line what is wrong first with data that nobody wrote by hand.

    Such as `load.rate_rps should be …`. A line of its own could be a command to GitHub's runner.
    """
    fault: Any = error.errors()[0]
    key = ".".join(str(part) for part in fault["loc"])[:LONGEST_KEY] or "it"
    key = key if key.isprintable() else ascii(key)
    return f"{key} is missing" if fault["type"] == "missing" else _wish(key, [fault])


def _message(where: KeyPath, faults: list[Any], model: type[BaseModel]) -> str:
    key = ".".join(str(part) for part in where)[:LONGEST_KEY] or model.__name__.lower()
    fault = faults[0]
    if fault["type"] == "extra_forbidden":
        key = key if key.isprintable() else ascii(key)
        return f"unknown key {key}; {nearest(str(where[-1]), _siblings(fault['loc'], model))}"
    if fault["type"] == "missing":
        return f"{key} is missing"
    return _wish(key, faults)


def _wish(key: str, faults: list[dict[str, Any]]) -> str:
    fault = faults[0]
    if fault["type"] == "value_error":
        return str(fault["ctx"]["error"])
    wishes = [_in_words(each).removeprefix("be ") for each in faults]
    be = "be " if _in_words(fault).startswith("be ") else ""
    return (
        f"{key} should {be}{' or '.join(dict.fromkeys(wishes))}, not {shown_value(fault['input'])}"
    )


def _in_words(fault: dict[str, Any]) -> str:
    words = WISHES.get(fault["type"])
    if words is None:
        return str(fault["msg"]).removeprefix("Input should ").rstrip(".")
    limits = {name: _plain(limit) for name, limit in fault.get("ctx", {}).items()}
    return words.format(**limits)


def _plain(limit: object) -> object:
    """Write a whole limit without decimals: 100000000, not 100000000.0."""
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


def _in_data(loc: KeyPath, data: object, *, keep_last: bool) -> KeyPath:
    """Exclude of a path what pydantic adds to it: the tags of unions."""
    path: list[str | int] = []
    for depth, part in enumerate(loc):
        inner = _look_up(data, part)
        if inner is not None:
            data = inner
        if inner is not None or (keep_last and depth == len(loc) - 1):
            path.append(part)
    return tuple(path)


def _look_up(data: object, part: str | int) -> object:
    """Give what stands under a key or number, None if there is nothing; TOML has no null."""
    if isinstance(data, dict):
        return data.get(part)
    if isinstance(data, list) and isinstance(part, int) and part < len(data):
        return data[part]
    return None


def _siblings(loc: KeyPath, model: type[BaseModel]) -> list[str]:
    """Keys that the table around an unknown key may have, found by walking the JSON schema."""
    schema = model.model_json_schema()
    node: dict[str, Any] = schema
    for part in loc[:-1]:
        node = _child(_resolve(node, schema), part, schema)
    return list(_resolve(node, schema).get("properties", {}))


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node or "anyOf" in node:
        if "anyOf" in node:  # a table that may be omitted
            node = next((each for each in node["anyOf"] if "$ref" in each), {})
        else:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    return node


def _child(node: dict[str, Any], part: str | int, schema: dict[str, Any]) -> dict[str, Any]:
    if isinstance(part, int):
        return dict(node.get("items", {}))
    properties = node.get("properties", {})
    if part in properties:
        return dict(properties[part])
    mapping = node.get("discriminator", {}).get("mapping", {})
    if part in mapping:
        return _resolve({"$ref": mapping[part]}, schema)
    extra = node.get("additionalProperties")
    return dict(extra) if isinstance(extra, dict) else {}
