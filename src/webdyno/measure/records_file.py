"""The file of a run's records, `slots.jsonl`: read line by line, and repaired where it is torn."""

import io
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from webdyno.config.reading import first_fault
from webdyno.core.errors import UserError
from webdyno.core.files import MIB, given_lines, open_given, open_given_inside
from webdyno.core.migration import migrated_record
from webdyno.core.records import RECORD, Record

RECORDS_FILE = "slots.jsonl"
MOST_RECORDS_BYTES = 48 * MIB
"""6,000 to 9,800 slots. Reporting 35 MiB (7,200 slots) took 427 MB of memory."""
MOST_LINE_BYTES = 8 * MIB
MOST_OBJECTS = 50_000
"""Most objects in a line: parts of long looks have some thousands of samples."""
MOST_HELD_BYTES = 200_000_000
"""Most memory for records: twice what our own of that length take."""
BLANK = b" \t\r\n\0"

Known = dict[frozenset[str], set[str]]


class RecordLine(NamedTuple):
    """A line with something in it."""

    number: int
    ends_at: int
    """In the file, in bytes, without the blanks at its end."""
    text: bytes


def records_of(file: Path, below: Path | None = None) -> Iterator[Record]:
    """Return the records in a file, one after the other; raise UserError at a line that is none.

    None of the folders `below` which it lies may be a link: raise OSError for one.
    Blank lines are passed over, and a last line that was torn by a kill or a power cut is excluded.
    """
    known: Known = {}
    before = _memory_bytes()
    opened = open_given_inside(file, below) if below else open_given(file)
    for line in whole_lines(opened, file):
        place = f"{file}:{line.number}"
        if len(line.text) > MOST_LINE_BYTES or line.text.count(b"{") > MOST_OBJECTS:
            raise UserError(f"{place}: no record of a run: none of webdyno's has so much in it")
        try:
            record = RECORD.validate_json(migrated_record(line.text))
        except ValidationError as error:
            raise UserError(
                f"{place}: not a record of a run: {first_fault(error)}. The file was "
                "changed or damaged; restore it from a copy, or remove this line if it can be "
                "spared."
            ) from error
        _share_names(record, known)
        if _memory_bytes() - before > MOST_HELD_BYTES:
            raise UserError(
                f"{place}: the records up to here take more than {MOST_HELD_BYTES // 1_000_000} MB "
                "of memory, the most that is held of a run: none of webdyno's needs as much"
            )
        yield record


def whole_lines(given: io.FileIO, file: Path) -> Iterator[RecordLine]:
    """Exclude of a file what is blank, and what ends it without being JSON: a torn line.

    A power cut can leave zero bytes in the place of what was not on the disk yet.
    """
    last: RecordLine | None = None
    begins_at = 0
    for number, text in enumerate(given_lines(given, file, MOST_RECORDS_BYTES), 1):
        if kept := text.strip(BLANK):
            if last:
                yield last
            last = RecordLine(number, begins_at + len(text.rstrip(BLANK)), kept)
        begins_at += len(text)
    if last and _is_json(last.text):
        yield last


def _memory_bytes() -> int:
    """Return what this process holds of memory, its programs' files included."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _share_names(value: object, known: Known) -> None:
    """Have models that name the same fields share that set of names: half of what they take."""
    match value:
        case BaseModel():
            names = value.__pydantic_fields_set__
            shared = known.setdefault(frozenset(names), names)
            object.__setattr__(value, "__pydantic_fields_set__", shared)
            _share_names(value.__dict__, known)
        case dict():
            for inner in value.values():
                _share_names(inner, known)
        case list() if value and not isinstance(value[0], str | int | float):
            for inner in value:
                _share_names(inner, known)


def _is_json(text: bytes) -> bool:
    try:
        from_json(text)
    except ValueError:
        return False
    return True
