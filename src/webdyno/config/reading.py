"""TOML and other data that people wrote become model types; what is wrong becomes one message.

The message names file, line and fix, shows the value, and says which names come near.
"""

import tomllib
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import tree_sitter
import tree_sitter_toml
from pydantic import BaseModel, TypeAdapter, ValidationError

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, read_named
from webdyno.core.format import scalar
from webdyno.core.tables import as_table, is_table, toml_data

KeyPath = tuple[str | int, ...]
PlaceOf = Callable[[KeyPath], str]
"""Says where a key was written: `file.toml:12` or `--set KEY`."""

MOST_BYTES = 4 * MIB
"""No file of settings is larger."""


class TomlFile:
    """The data of a TOML file, and where to point at when something in it is wrong."""

    def __init__(self, path: Path, content: bytes | None = None) -> None:
        """Read a file, unless that was done; raise UserError if it can't be or isn't TOML."""
        self.path = path
        content = read_named(path, MOST_BYTES) if content is None else content
        try:
            self._text = content.decode("utf-8-sig")  # some editors begin with a byte-order mark
            self.data: dict[str, Any] = toml_data(self._text)
        except UnicodeDecodeError as error:
            line = content.count(b"\n", 0, error.start) + 1
            raise UserError(
                f"{path}:{line}: is not UTF-8; save the file in that encoding"
            ) from None
        except ValueError as error:
            raise UserError(f"{path}: is not valid TOML: {error}") from None

    @property
    def folder(self) -> Path:
        return self.path.parent

    def place(self, where: KeyPath) -> str:
        """Return file and line of a key, or of the nearest table around it that is in the file."""
        lines = _lines(self._text)
        while where and where not in lines:
            where = where[:-1]
        return f"{self.path}:{lines[where]}" if where else f"{self.path}:1"


def _lines(text: str) -> dict[KeyPath, int]:
    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_toml.language()))
    lines: dict[KeyPath, int] = {}
    array_counts: dict[KeyPath, int] = {}
    for node in parser.parse(text.encode()).root_node.named_children:
        if node.type == "pair":
            _add_pair(node, (), lines)
        elif node.type in {"table", "table_array_element"}:
            key, *pairs = node.named_children
            table: KeyPath = _keys(key)
            if node.type == "table_array_element":
                number = array_counts.get(table, 0)
                array_counts[table] = number + 1
                table = (*table, number)
            _add_key(table, (), key, lines)
            for pair in pairs:
                _add_pair(pair, table, lines)
    return lines


def _add_pair(pair: tree_sitter.Node, inside: KeyPath, lines: dict[KeyPath, int]) -> None:
    if pair.type != "pair":  # a comment
        return
    key, value = pair.named_children[:2]
    where = (*inside, *_keys(key))
    _add_key(where, inside, key, lines)
    _add_value(value, where, lines)


def _add_value(value: tree_sitter.Node, where: KeyPath, lines: dict[KeyPath, int]) -> None:
    if value.type == "inline_table":
        for pair in value.named_children:
            _add_pair(pair, where, lines)
    elif value.type == "array":
        elements = [child for child in value.named_children if child.type != "comment"]
        for number, element in enumerate(elements):
            lines[*where, number] = element.start_point.row + 1
            _add_value(element, (*where, number), lines)


def _add_key(
    where: KeyPath, inside: KeyPath, key: tree_sitter.Node, lines: dict[KeyPath, int]
) -> None:
    """Note the line for the key and for the tables that it opens by the way (`a.b.c = 1`)."""
    for depth in range(len(inside) + 1, len(where) + 1):
        lines.setdefault(where[:depth], key.start_point.row + 1)


def _keys(key: tree_sitter.Node) -> tuple[str, ...]:
    if key.type == "dotted_key":
        return tuple(part for child in key.named_children for part in _keys(child))
    word = (key.text or b"").decode()
    return (str(tomllib.loads(f"key = {word}")["key"]) if key.type == "quoted_key" else word,)


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
    """Return words for the valid names that come closest, or else for those there are."""
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
    if is_table(value):
        raise UserError(f"{flag}: sets one value; name the key inside the table, KEY.NAME=VALUE")
    return value if isinstance(value, bool | int | float | str | list) else text


def shown_value(value: object) -> str:
    """Write a value for a message: as in TOML, and not too long."""
    if isinstance(value, bool):
        return scalar(value)
    if is_table(value):
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
        where = _path_in(data, fault["loc"], keep_last=fault["type"] == "missing")
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
    """Return what is wrong first with data that nobody wrote by hand: `load.count should be …`.

    It is one line: one of its own could be a command to GitHub's runner.
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
    limits = {
        name: int(limit) if isinstance(limit, float) and limit.is_integer() else limit
        for name, limit in fault.get("ctx", {}).items()
    }  # 100000000, not 100000000.0
    return words.format(**limits)


def _path_in(data: object, loc: KeyPath, *, keep_last: bool) -> KeyPath:
    """Exclude of a path what pydantic adds to it: the tags of unions."""
    path: KeyPath = ()
    for depth, part in enumerate(loc):
        there = look_up(data, (*path, part)) is not None
        if there or (keep_last and depth == len(loc) - 1):
            path = (*path, part)
    return path


def look_up(data: object, key: KeyPath) -> object:
    """Return what stands under a key, None if there is nothing; TOML has no null."""
    for part in key:
        if isinstance(data, dict):
            data = data.get(part)
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


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
    return as_table(extra)
