"""What services of gRPC and their messages are: `.proto` files, which the load engine compiles.

It opens none: who wrote a file must not have it name any file of the caller's as an import.
"""

import json
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.errors import UserError
from webdyno.core.files import MIB, read_given, read_named, reading
from webdyno.core.whose import opened
from webdyno.host.children import must, run_program
from webdyno.load.engine import find_loadgen

WITHIN_S = 60.0


class Call(NamedTuple):
    """What is called, and what it is sent."""

    path: str
    """`/helloworld.Greeter/SayHello`."""
    json: str | None
    """None where that is bytes, which can be anything."""


IMPORT = re.compile(r"""\bimport\s+(?:(?:public|weak|option)\s+)?(?:"([^"\n]*)"|'([^'\n]*)')""")
PROTOBUFS_OWN = "google/protobuf/"
"""How imports begin which every compiler knows."""
MOST_FILES = 500
MOST_FILE_BYTES = MIB


def compiled(file: Path, top: Path, place: str) -> str:
    """Return the descriptors in a file and those that it imports; raise UserError with the line.

    `top` is where that file is named: imports lie in its folder, or one around it up to there.
    """
    sources = {name: text for name, _, text in _sources(file, top, place)}
    said = _ask(json.dumps({"file": file.name, "sources": sources}))
    if "error" in said:
        fault = str(said["error"])
        where = file.parent / fault if fault.startswith(f"{file.name}:") else f"{file}: {fault}"
        raise UserError(f"{place}: {where}")
    return str(said["descriptors"])


def imported(file: Path, top: Path, place: str) -> list[Path]:
    """Return the files that a `.proto` file imports, directly or not, as `compiled` has it."""
    return [path for _, path, _ in _sources(file, top, place)][1:]


def _sources(file: Path, top: Path, place: str) -> Iterator[tuple[str, Path, str]]:
    """Read a file and all that it imports: name, path and text of each."""
    inside = [each for each in file.parents if each.is_relative_to(top)]
    folders = inside or [file.parent]
    text = _text(read_named(file, MOST_FILE_BYTES, place), file, place)
    known, texts = {file.name}, [(file.name, file, text)]
    while texts:
        yield (read := texts.pop())
        for name in map("".join, IMPORT.findall(read[2])):
            if name in known or name.startswith(PROTOBUFS_OWN):
                continue
            known.add(name)
            if len(known) > MOST_FILES:
                raise UserError(f"{place}: {file}: imports more than {MOST_FILES} files")
            if (read_import := _read_import(name, folders, place)) is not None:
                texts.append((name, *read_import))


def _read_import(name: str, folders: Sequence[Path], place: str) -> tuple[Path, str] | None:
    """Read an import from the first folder that has it; None where none has, as in a comment.

    Raise UserError where links lead there, out of the folder perhaps, or others may change it.
    """
    parts = Path(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        return None
    for folder in folders:
        path = folder / name
        if not os.path.lexists(path):
            continue
        with reading(f"{place}: {path}"):
            content = read_given(path, MOST_FILE_BYTES, below=folder)
            with opened(path) as end:
                if end.others:
                    raise UserError(
                        f"{place}: others may change {end.others}, and {name} is imported: put it "
                        "where only you can write"
                    )
        return path, _text(content, path, place)
    return None


def _text(content: bytes, path: Path, place: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise UserError(f"{place}: {path}: is not UTF-8 text") from None


@lru_cache(maxsize=8)
def call_fault(descriptors: str, calls: Sequence[Call]) -> tuple[int | None, str] | None:
    """Return what is wrong with the first call that isn't one of a service, and its number."""
    asked = [
        {"path": call.path, "json": None if call.json is None else json.loads(call.json)}
        for call in calls
    ]
    said = _ask(json.dumps({"descriptors": descriptors, "calls": asked}))
    return (said.get("call"), str(said["error"])) if "error" in said else None


def _ask(question: str) -> dict[str, Any]:
    program = find_loadgen()
    done = run_program([program, "proto"], given=question, within_s=WITHIN_S)
    said: dict[str, Any] = json.loads(must(done, f"{program} proto"))
    return said
