"""Keeps secrets out of a run's folder, where servers repeat what they are sent."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeVar, cast, get_args, get_origin

from pydantic import BaseModel

from webdyno.core.errors import OperationError
from webdyno.core.files import MIB, everything_below, folder_inside, new_file, replacing
from webdyno.core.hiding import MOST_ESCAPED, SECRETS, Span, hidden, parts_without
from webdyno.core.records import Record
from webdyno.core.request import endpoints_of, parts_of
from webdyno.core.run import RunHead
from webdyno.core.sweep import plan_points

PART_BYTES = MIB
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
M = TypeVar("M", bound=BaseModel)


def line_of(record: Record) -> bytes:
    """Return a record as a line of `slots.jsonl`."""
    return record.model_dump_json(by_alias=True).encode() + b"\n"


def names_in(head: RunHead) -> frozenset[str]:
    """Return the words that a run's head has in clear: names of variants, services, requests.

    Records name those by them, even where a secret is the same word, such as `postgres`.
    """
    names = set(_words(head.model_dump(mode="json")))
    for plan in plan_points(head.experiment):
        for variant in plan.experiment.variants:
            requests = plan.experiment.requests_of(variant)
            names.update(filter(None, (*endpoints_of(requests), *parts_of(requests))))
            for request in requests:
                names.update(request.replace(path=path).label for path in request.paths)
    return frozenset(names)


def _words(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for inner in value:
                yield from _words(inner)
        case dict():
            yield from value
            for inner in value.values():
                yield from _words(inner)


def without_secrets(record: M, names: frozenset[str]) -> M:
    """Return a record without secrets in any of its texts, but where a text is one of the names."""
    return cast("M", _clean(record, names)) if SECRETS.known else record


def _clean(value: Any, names: frozenset[str]) -> Any:  # noqa: ANN401
    match value:
        case Enum():
            return value
        case str():
            return value if value in names else hidden(value)
        case BaseModel():
            known = names | _literals(type(value))
            cleaned = {name: _clean(inner, known) for name, inner in value}
            changed = {name: its for name, its in cleaned.items() if its != getattr(value, name)}
            return value.model_copy(update=changed) if changed else value
        case dict():
            return _if_changed(
                value, {_clean(k, names): _clean(inner, names) for k, inner in value.items()}
            )
        case list() | tuple() if value and not isinstance(value[0], int | float):
            return _if_changed(value, type(value)(_clean(inner, names) for inner in value))
    return value


def _if_changed(value: Any, cleaned: Any) -> Any:  # noqa: ANN401
    return value if value == cleaned else cleaned


@cache
def _literals(model: type[BaseModel]) -> frozenset[str]:
    """Return the words from which a model's fields have theirs, such as `measure` for a phase."""
    words: set[str] = set()
    annotations: list[Any] = [field.annotation for field in model.model_fields.values()]
    while annotations:
        annotation = annotations.pop()
        if get_origin(annotation) is Literal:
            words.update(word for word in get_args(annotation) if isinstance(word, str))
        else:
            annotations += get_args(annotation)
    return frozenset(words)


def hide_in_files(folder: Path, run: Path) -> None:
    """Rewrite files below a folder of a run that show secrets, as a log may; raise OperationError.

    Others may read logs from then on. No link is followed from the run's folder on.
    """
    if not SECRETS.known:
        return
    for path in everything_below(folder):
        # A link, a socket, gone, or in what somebody exchanged for a link meanwhile.
        with (
            suppress(OSError),
            folder_inside(path.parent, run, makes=False) as inner,
            os.fdopen(os.open(path.name, READ, dir_fd=inner), "rb") as file,
        ):
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                continue
            if any(spans for _, spans in _parts(file)):
                file.seek(0)
                _rewrite(path, file, run)
            elif _is_closed_log(path, status):
                os.fchmod(file.fileno(), 0o644)


def _rewrite(path: Path, file: BinaryIO, run: Path) -> None:
    before = os.fstat(file.fileno())
    try:
        with replacing(path, run) as unfinished, new_file(unfinished) as written:
            os.fchown(written.fileno(), before.st_uid, before.st_gid)
            mode = 0o644 if _is_closed_log(path, before) else stat.S_IMODE(before.st_mode)
            os.fchmod(written.fileno(), mode)
            for part, spans in _parts(file):
                written.writelines(parts_without(part, spans))
    except OSError as error:
        raise OperationError(
            f"{path}: shows a secret that can't be hidden: {error.strerror}; remove that file"
        ) from error


def _is_closed_log(path: Path, status: os.stat_result) -> bool:
    """Whether it is a log as `host.users.open_log` makes it."""
    return path.suffix == ".log" and stat.S_IMODE(status.st_mode) == 0o600


def _parts(file: BinaryIO) -> Iterator[tuple[bytes, list[Span]]]:
    """Yield parts of a file that cut no secret in two, and where secrets are in them."""
    left = b""
    while True:
        part = file.read(PART_BYTES)
        left += part
        spans = SECRETS.spans(left)
        cut = len(left)
        if part:
            # Where a secret may begin whose end was not read yet; secrets are of one line.
            sure = len(left) - SECRETS.longest * MOST_ESCAPED
            cut = max(left.rfind(b"\n") + 1, sure, 0)
            cut = next((span.end for span in spans if span.start < cut < span.end), cut)
        yield left[:cut], [span for span in spans if span.end <= cut]
        if not part:
            return
        left = left[cut:]
