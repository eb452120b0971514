"""YAML files of other people: read as version 1.2 has it, with limits, and of plain values only."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from webdyno.model.files import MIB, read_named, reading
from webdyno.model.mistake import Mistake

MOST_BYTES = MIB
MOST_VALUES = 100_000
"""With aliases counted as often as they stand for something."""
DEEPEST = 100
MOST_DIGITS = 18
TAG = "tag:yaml.org,2002:"
CONTAINERS = {f"{TAG}map", f"{TAG}seq"}
SCALARS = {
    f"{TAG}{name}": (re.compile(pattern), list(first))
    for name, pattern, first in (
        ("bool", r"^(?:true|false)$", "tf"),
        ("int", rf"^[-+]?[0-9]{{1,{MOST_DIGITS}}}$", "-+0123456789"),
        ("float", r"^[-+]?[0-9]+\.[0-9]*$", "-+0123456789"),
        ("null", r"^(?:~|null|)$", ["~", "n", ""]),
        ("merge", r"^<<$", "<"),
    )
}
"""By tag: how such a value is written, and the characters that it may begin with."""
STRING = f"{TAG}str"


class _Loader(yaml.SafeLoader):
    """YAML as Compose reads it, by version 1.2: `on` is a word, 22:22 no number, 08 is eight."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


for _tag, (_pattern, _first) in SCALARS.items():
    _Loader.add_implicit_resolver(_tag, _pattern, _first)


def _whole(_: _Loader, node: ScalarNode) -> int:
    return int(node.value)


_Loader.add_constructor(f"{TAG}int", _whole)


def read_yaml(file: Path, place: str) -> Any:  # noqa: ANN401 (YAML)
    """Read a file's only document; raise Mistake, with its line, where it can't be."""
    named = f"{place}: {file}"
    with reading(named):
        text = read_named(file, MOST_BYTES, place).decode()
    try:
        return _read(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or getattr(error, "reason", None)
        raise Mistake(
            f"{place}: {file}{line} is no YAML: {what or 'it is nested too deep'}"
        ) from None


def _read(text: str) -> Any:  # noqa: ANN401 (YAML)
    loader = _Loader(text)
    root = loader.get_single_node()
    if root is None:
        return None
    _check(root)
    return loader.construct_document(root)


def _check(root: Node) -> None:
    """Raise a YAML error for what is too much, and for what isn't a plain value."""
    sizes: dict[int, int] = {}

    def size(node: Node, depth: int) -> int:
        known = sizes.get(id(node))
        if known == 0:
            raise _wrong(node, "it contains itself")
        if known is not None:
            return known
        if depth > DEEPEST:
            raise _wrong(node, "it is nested too deep")
        sizes[id(node)] = 0
        if isinstance(node, ScalarNode):
            _check_scalar(node)
        elif node.tag not in CONTAINERS:
            raise _wrong(node, f"{_short(node.tag)} is no kind of value that is read here")
        total = 1
        for each in _children(node):
            total += size(each, depth + 1)
            if total > MOST_VALUES:
                raise _wrong(node, f"it has more than {MOST_VALUES} values")
        sizes[id(node)] = total
        return total

    size(root, 0)


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    elif isinstance(node, MappingNode):
        for pair in node.value:
            yield from pair


def _check_scalar(node: ScalarNode) -> None:
    shown = repr(node.value[:20])
    if "\0" in node.value or not _is_text(node.value):
        raise _wrong(node, f"{shown} has characters that no text has")
    if node.tag == STRING:
        return
    if node.tag not in SCALARS:
        raise _wrong(node, f"{_short(node.tag)} is no kind of value that is read here")
    if not SCALARS[node.tag][0].match(node.value):
        raise _wrong(node, f"{shown} is no {_short(node.tag)}")


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(tag: str) -> str:
    return tag.replace(TAG, "!!")


def _wrong(node: Node, what: str) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=what, problem_mark=node.start_mark)
