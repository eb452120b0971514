"""Where a line of a moved configuration comes from: the user's file, and the line in it."""

from collections.abc import Iterable
from typing import NamedTuple

from webdyno.core.base import Model

ORIGINS = "origins.json"
"""Next to a moved configuration in the catalogue."""


class Origin(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Line(NamedTuple):
    """A line of a configuration."""

    text: str
    origin: Origin | None
    """None where webdyno wrote it."""


class Origins(Model):
    """The origin of each line of a moved configuration."""

    name: str
    """Of the moved configuration's file."""
    files: list[str]
    lines: list[tuple[int, int]]
    """By moved line: the number of its file, from 0, and the line in it; (-1, 0) without one."""

    @classmethod
    def of(cls, name: str, origins: Iterable[Origin | None]) -> "Origins":
        """Keep what is known of each line, from the first one on."""
        numbers: dict[str, int] = {}
        lines = [
            (numbers.setdefault(origin.file, len(numbers)), origin.line) if origin else (-1, 0)
            for origin in origins
        ]
        return cls(name=name, files=list(numbers), lines=lines)

    def at(self, line: int) -> Origin | None:
        """Give the origin of a line, whose number counts from 1; None where there is none."""
        if not 1 <= line <= len(self.lines):
            return None
        file, number = self.lines[line - 1]
        return Origin(self.files[file], number) if 0 <= file < len(self.files) else None
