"""Finds the JSON that load generators print, over one line or many."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from webdyno.readers.lines import NumberedLine
from webdyno.readers.output import Output
from webdyno.readers.tools import TOOLS

MOST_CHARACTERS = 200_000
"""The longest of them, k6's with many metrics, has a tenth; what is longer is something else."""

_RESULT = re.compile(
    r'"[^"]{0,40}(?:latenc|rps|req(?:uest)?s?[/_ ]?per|req/s|throughput|p99|percentile)'
    r'[^"]{0,40}"\s*:',
    re.IGNORECASE,
)
"""A key that says that the object holds somebody's measurements."""

_STARTS = re.compile(r'\{\s*(?:"|$)')


@dataclass(frozen=True)
class JsonObject:
    """An object whose braces are closed, or that grew too long."""

    lines: list[NumberedLine]
    output: Output | None
    """None where it isn't the JSON of a known tool: siege's is read line by line."""
    unread_result: bool
    """Whether nothing of it was understood although it looks like measurements."""


@dataclass
class JsonReader:
    """Collects the lines of an object until its braces are closed."""

    _lines: list[NumberedLine] = field(default_factory=list)
    _depth: int = 0
    _size: int = 0

    def wants(self, line: NumberedLine) -> bool:
        """Whether a line belongs to the object under way, or begins one.

        An object over several lines begins with its brace alone.
        """
        if len(self._lines) == 1 and self._lines[0].text == "{" and not line.text.startswith('"'):
            self._reset()  # a block of some program
        return bool(self._lines) or (line.text[:1] == "{" and _STARTS.match(line.text) is not None)

    def take(self, line: NumberedLine) -> JsonObject | None:
        """Add a line; gives the object when it was its last."""
        self._lines.append(line)
        self._size += len(line.text)
        self._depth += line.text.count("{") - line.text.count("}")
        one_line = len(self._lines) == 1 and line.text != "{"
        if self._depth > 0 and self._size < MOST_CHARACTERS and not one_line:
            return None
        return self.end()

    def end(self) -> JsonObject | None:
        """Give what there is of the object under way, complete or not."""
        lines = self._reset()
        if not lines:
            return None
        text = "\n".join(each.text for each in lines)
        output = _output(_parsed(text), lines[0].number, lines[-1].number)
        return JsonObject(lines, output, not output and _RESULT.search(text) is not None)

    def _reset(self) -> list[NumberedLine]:
        lines, self._lines, self._depth, self._size = self._lines, [], 0, 0
        return lines


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # braces that hold something else
        return {}
    return found if isinstance(found, dict) else {}


def _output(parsed: Mapping[str, Any], first_line: int, last_line: int) -> Output | None:
    read = (tool.json_output(parsed, first_line, last_line) for tool in TOOLS)
    return next(filter(None, read), None)
