"""Finds the JSON that oha prints, over one line or many."""

import json
from dataclasses import dataclass, field

from webdyno.readers.lines import Line
from webdyno.readers.oha import oha_json
from webdyno.readers.output import Output

MOST_CHARACTERS = 200_000
"""oha's JSON has a few thousand; what is longer is something else."""


@dataclass
class JsonReader:
    """Collects the lines of an object until its braces are closed."""

    _lines: list[Line] = field(default_factory=list)
    _depth: int = 0
    _size: int = 0

    def wants(self, line: Line) -> bool:
        """Whether a line belongs to the object under way, or begins one."""
        if len(self._lines) == 1 and self._lines[0].text == "{" and not line.text.startswith('"'):
            self._reset()  # a block of some program
        return bool(self._lines) or line.text == "{" or line.text.startswith('{"summary"')

    def take(self, line: Line) -> Output | None:
        """Add a line; gives the output when it was the last of oha's JSON."""
        self._lines.append(line)
        self._size += len(line.text)
        self._depth += line.text.count("{") - line.text.count("}")
        if self._depth > 0 and self._size < MOST_CHARACTERS:
            return None
        lines = self._reset()
        try:
            found = json.loads("\n".join(each.text for each in lines))
        except (ValueError, RecursionError):  # braces that hold something else
            return None
        return oha_json(found, lines[0].number, line.number) if isinstance(found, dict) else None

    def _reset(self) -> list[Line]:
        lines, self._lines, self._depth, self._size = self._lines, [], 0, 0
        return lines
