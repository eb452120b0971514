"""Finds in a text what can be audited: outputs, tables, commands and hints, in their order."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pydantic import TypeAdapter

from webdyno.audit.commands import find_command, is_another, prints_for, with_command
from webdyno.audit.prose import FIGURES, Hint, UnreadFinder, UnreadPart, hints
from webdyno.audit.tables import TableReader, TextTable
from webdyno.formats import Command, Output
from webdyno.formats.facts import Facts, Tool
from webdyno.formats.sheets import AnySheet, sheet_headed_by
from webdyno.formats.text import NumberedLine
from webdyno.formats.tools import after_all, opened_by, tools
from webdyno.formats.tools.classics import AB_LABELS, redis_quiet

MOST_JSON_CHARACTERS = 200_000
"""The longest of them, k6's with many metrics, has a tenth; what is longer is something else."""

_JSON_RESULT = re.compile(
    r'"[^"]{0,40}(?:latenc|rps|req(?:uest)?s?[/_ ]?per|req/s|throughput|p99|percentile)'
    r'[^"]{0,40}"\s*:',
    re.IGNORECASE,
)
"""A key that says that the object holds somebody's measurements."""

_OBJECT = re.compile(r'\{\s*(?:"|$)')
_ANY_OBJECT: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


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
        return bool(self._lines) or (line.text[:1] == "{" and _OBJECT.match(line.text) is not None)

    def take(self, line: NumberedLine) -> JsonObject | None:
        """Add a line; return the object when it was its last."""
        self._lines.append(line)
        self._size += len(line.text)
        self._depth += line.text.count("{") - line.text.count("}")
        one_line = len(self._lines) == 1 and line.text != "{"
        if self._depth > 0 and self._size < MOST_JSON_CHARACTERS and not one_line:
            return None
        return self.end()

    def end(self) -> JsonObject | None:
        """Return what there is of the object under way, complete or not."""
        lines = self._reset()
        if not lines:
            return None
        text = "\n".join(each.text for each in lines)
        try:
            parsed = _ANY_OBJECT.validate_python(json.loads(text))
        except (ValueError, RecursionError):  # braces that hold something else
            parsed = {}
        first, last = lines[0].number, lines[-1].number
        outputs = (tool.json_output(parsed, first, last) for tool in tools())
        output = next(filter(None, outputs), None)
        return JsonObject(lines, output, not output and _JSON_RESULT.search(text) is not None)

    def _reset(self) -> list[NumberedLine]:
        lines, self._lines, self._depth, self._size = self._lines, [], 0, 0
        return lines


Item = Output | TextTable | Command | Hint | UnreadPart
Kind = TypeVar("Kind")

MOST_KEPT = 2000
"""Outputs, tables and so on that are compared with each other: a text of any length is read, and
each output in it is judged by itself, but the memory that this takes is bounded."""
_LETTER = re.compile(r"[A-Za-z]")
FEWEST_OF_A_CUT_OUTPUT = 2
"""Figures that show that something was an output, though too few to judge it: a single label may
stand in any prose."""
PATIENCE_LINES = 40
"""Lines of something else after which an output is over."""
INTERRUPT = "^C"
NEAR_LINES = 5
COMMAND_WITHIN_LINES = 60
"""A command belongs to an output that begins at most so many lines below it."""
_SHAPES = {
    "text": re.compile(rf"(?!(?:{'|'.join(AB_LABELS)}):)\S.*[^:]$"),
    "count": re.compile(r"\d{1,18}$"),
    "bytes": re.compile(r"\d{1,18} bytes$"),
    "seconds": re.compile(r"\d{1,9}(?:\.\d{1,9})? seconds$"),
    "[#/sec]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[#/sec\]"),
    "[ms]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[ms\]"),
    "[Kbytes/sec]": re.compile(r"\d{1,12}(?:\.\d{1,9})? \[Kbytes/sec\]"),
    "percent": re.compile(r"\d{1,12}(?: \(longest request\))?$"),
}
_PERCENT = re.compile(r"\d{2,3}%$")


class AuditedText:
    """The beginning of a text: as much of it as can be compared."""

    def __init__(self) -> None:
        self.excluded = 0
        """Outputs, tables and commands that are not kept."""
        self._items = defaultdict[type, list[Item]](list)

    def keep(self, item: Item) -> None:
        """Keep an item, as long as there is room."""
        kept = self._items[type(item)]
        if len(kept) < MOST_KEPT:
            kept.append(item)
        elif isinstance(item, Output | TextTable | Command):
            self.excluded += 1

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [item for item in self._items[kind] if isinstance(item, kind)]

    @property
    def web_outputs(self) -> Iterator[Output]:
        return (each for each in self.of(Output) if each.tool != "redis-benchmark")


def read_items(lines: Iterable[NumberedLine]) -> Iterator[Item]:
    """Read a text in one pass, in memory that doesn't grow with it."""
    reader = _Reader()
    for line in _join_lonely_labels(lines):
        yield from reader.take(line)
    yield from reader.end()


@dataclass
class _Reader:
    tool: Tool | None = None
    facts: Facts = field(default_factory=lambda: Facts(0, 0))
    sheet: AnySheet | None = None
    command: Command | None = None
    """The last one seen, for the output that follows it."""
    its_command: Command | None = None
    """That of the output under way."""
    interrupted_in: int | None = None
    """The last line with somebody's `^C`."""
    tables: TableReader = field(default_factory=TableReader)
    json: JsonReader = field(default_factory=JsonReader)
    unread: UnreadFinder = field(default_factory=UnreadFinder)

    def take(self, line: NumberedLine) -> Iterable[Item]:
        """Return the items that a line ends or is."""
        if self.json.wants(line):
            return self._json(self.json.take(line))
        return self._text(line)

    def _text(self, line: NumberedLine) -> Iterable[Item]:
        if line.text.startswith(INTERRUPT):
            self.interrupted_in = line.number
            line = NumberedLine(line.number, line.text.removeprefix(INTERRUPT).lstrip())
        if self.tool and self._continues(self.tool, line):
            return ()
        if not (self.tool or self.sheet or _LETTER.search(line.text)):
            return self.tables.take(line)
        return self._other(line)

    def _json(self, parsed: JsonObject | None) -> Iterator[Item]:
        """Return the output that an object is; braces that hold something else are text."""
        if parsed is None:
            return
        first, last = parsed.lines[0].number, parsed.lines[-1].number
        if parsed.output:
            yield from self._end_output()
            yield from self._of_sheet([parsed.output])
            return
        if parsed.unread_result:
            yield UnreadPart(FIGURES, first, last, rates=1)
        for line in parsed.lines:
            yield from self._text(line)

    def _other(self, line: NumberedLine) -> Iterator[Item]:
        """Look at a line that doesn't belong to the output under way."""
        if self.sheet and (rows := self.sheet.row(line)) is not None:
            yield from self._of_sheet(rows)
            return
        yield from self._end_sheet()
        self.sheet = sheet_headed_by(line)
        if tool := opened_by(line.text):
            yield from self._end_output()
            yield from self._command_in(line)
            self._claim_command(tool.name, line.number)
            self.tool, self.facts = tool, Facts(line.number, line.number)
            if not self._continues(tool, line):
                yield from self._figures_in(line)
            return
        if self.sheet or (self.tool and line.number - self.facts.last_line > PATIENCE_LINES):
            yield from self._end_output()
        if not self.sheet:
            yield from self._prose(line)

    def _of_sheet(self, outputs: Iterable[Output]) -> Iterator[Output]:
        for output in outputs:
            self._claim_command(output.tool, output.first_line)
            yield self._with_command(output)

    def _end_sheet(self) -> Iterator[Output]:
        sheet, self.sheet = self.sheet, None
        if sheet:
            yield from self._of_sheet(sheet.end())

    def end(self) -> Iterator[Item]:
        yield from self._json(self.json.end())
        yield from self._end_output()
        yield from self._end_sheet()
        yield from self.tables.end()
        yield from self.unread.end()
        if self.command:
            yield self.command

    def _continues(self, tool: Tool, line: NumberedLine) -> bool:
        """Add a line to the output under way, unless it begins the same tool's next output."""
        texts = tool.read(line.text)
        if texts is None:
            tool = after_all(tool, line.text)
            if tool is self.tool:
                return False
            self.tool, texts = tool, tool.read(line.text) or {}
            self._claim_command(tool.name, self.facts.first_line)
        said_before = bool(self.facts.texts.keys() & texts.keys())
        if said_before or tool.only_first:
            opener = opened_by(line.text)
            if opener is tool and tool.begins_next(self.facts, line.text, texts):
                return False
            if said_before and opener and opener is not tool:
                return False
        self.facts.add(line, texts, replace=tool.repeats)
        return True

    def _end_output(self) -> Iterator[Item]:
        tool, self.tool = self.tool, None
        if not tool:
            return
        if output := tool.output_of(self.facts):
            yield self._with_command(output)
        elif len(self.facts.texts) >= FEWEST_OF_A_CUT_OUTPUT:
            yield UnreadPart(tool.name, self.facts.first_line, self.facts.last_line)

    def _claim_command(self, tool: str, first_line: int) -> None:
        """Take the last command for the output that begins here, if it can be its own."""
        self.its_command = None
        if (
            self.command
            and prints_for(tool) == prints_for(self.command.tool)
            and first_line - self.command.line <= COMMAND_WITHIN_LINES
        ):
            self.its_command, self.command = self.command, None

    def _with_command(self, output: Output) -> Output:
        command = self.its_command
        since = command.line if command else output.first_line - NEAR_LINES
        if self.interrupted_in and since < self.interrupted_in <= output.last_line:
            output = replace(output, interrupted=True)
        if not command:
            return output
        if is_another(command, output):
            return replace(output, other_command=command)
        return with_command(output, command)

    def _prose(self, line: NumberedLine) -> Iterator[Item]:
        quiet = list(redis_quiet(line)) if "requests per second" in line.text else []
        if quiet:
            yield from self._of_sheet(quiet)
            return
        yield from self._figures_in(line)
        yield from self._command_in(line)

    def _figures_in(self, line: NumberedLine) -> Iterator[Item]:
        yield from self.tables.take(line)
        yield from self.unread.take(line)
        yield from hints(line)

    def _command_in(self, line: NumberedLine) -> Iterator[Item]:
        """Keep a command for the output that follows; return the one that none followed."""
        if command := find_command(line):
            if self.command:
                yield self.command
            self.command = command


def _join_lonely_labels(lines: Iterable[NumberedLine]) -> Iterator[NumberedLine]:
    """Join a label that stands alone with the value right below it, or else right above it."""
    label: NumberedLine | None = None
    value: NumberedLine | None = None
    for line in lines:
        text = line.text
        if not text:
            yield line
            continue
        shape = _shape(text)
        if shape:
            if value and shape not in {"text", "percent"} and _SHAPES[shape].match(value.text):
                yield NumberedLine(line.number, f"{text} {value.text}")
                label, value = None, None
            else:
                label, value = line, None
        elif label and _SHAPES[_shape(label.text) or "text"].match(text):
            yield NumberedLine(label.number, f"{label.text} {text}")
            label, value = None, None
        else:
            label = None
            value = line if text[0].isdigit() and len(text) < 60 else None
            yield line


def _shape(text: str) -> str | None:
    """Return what kind of value a label lacks; None for a line that is no lonely label."""
    if text[-1] == ":":
        return AB_LABELS.get(text[:-1])
    return "percent" if text[-1] == "%" and _PERCENT.match(text) else None
