"""A TOML file that knows on which line each of its keys stands."""

import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tree_sitter
import tree_sitter_toml

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, read_named

KeyPath = tuple[str | int, ...]
PlaceOf = Callable[[KeyPath], str]
"""Says where a key was written: `file.toml:12` or `--set KEY`."""

MOST_BYTES = 4 * MIB
"""No file of settings is larger."""


class TomlFile:
    """The data of a TOML file, and where to point at when something in it is wrong."""

    def __init__(self, path: Path) -> None:
        """Read a file; raise UserError when it can't be read or isn't TOML."""
        self.path = path
        self._text = _read(path)
        try:
            self.data: dict[str, Any] = tomllib.loads(self._text)
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UserError(f"{path}: is not valid TOML: {why}") from None

    @property
    def folder(self) -> Path:
        return self.path.parent

    def place(self, where: KeyPath) -> str:
        """Name file and line of a key, or of the nearest table around it that is in the file."""
        lines = _lines(self._text)
        while where and where not in lines:
            where = where[:-1]
        return f"{self.path}:{lines[where]}" if where else f"{self.path}:1"


def _read(path: Path) -> str:
    content = read_named(path, MOST_BYTES)
    try:
        return content.decode("utf-8-sig")  # some editors begin with a byte-order mark
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{path}:{line}: is not UTF-8; save the file in that encoding") from None


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
