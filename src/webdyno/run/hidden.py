"""Keeps secrets out of a run's folder, where servers repeat what they are sent."""

import json
import os
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from webdyno.model.records import Record
from webdyno.model.secret import HIDDEN, hide

SAID_BY_OTHERS = frozenset(
    {"error", "headers", "body_start", "unlike", "failure_samples", "printed", "what", "log_tail"}
)
"""Keys of records under which stands what servers and load generators said."""


def line_of(record: Record, secrets: Collection[str]) -> bytes:
    """Give a record as a line of `slots.jsonl`, without secrets."""
    line = record.model_dump_json(by_alias=True)
    if secrets:
        line = json.dumps(_walked(json.loads(line), secrets), separators=(",", ":"))
    return line.encode() + b"\n"


def hide_in_files(folder: Path, secrets: Collection[str]) -> None:
    """Rewrite the files below a folder that show secrets, as a server's log may."""
    if not secrets:
        return
    for path in folder.rglob("*"):
        with suppress(OSError):  # a link, a socket, or gone
            _hide_in_file(path, [secret.encode() for secret in secrets])


def _hide_in_file(path: Path, secrets: Collection[bytes]) -> None:
    if path.is_symlink() or not path.is_file():
        return
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "r+b") as file:
        content = file.read()
        if any(secret in content for secret in secrets):
            for secret in secrets:
                content = content.replace(secret, HIDDEN.encode())
            file.seek(0)
            file.write(content)
            file.truncate()


def _walked(value: Any, secrets: Collection[str], *, said: bool = False) -> Any:  # noqa: ANN401
    """Hide secrets in what others said, in any nesting of lists and mappings."""
    if isinstance(value, str):
        return hide(value, secrets) if said else value
    if isinstance(value, list):
        return [_walked(inner, secrets, said=said) for inner in value]
    if isinstance(value, dict):
        return {
            key: _walked(inner, secrets, said=said or key in SAID_BY_OTHERS)
            for key, inner in value.items()
        }
    return value
