"""Reads the files that `[[requests]]` name for their bodies, so that a run keeps their content."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webdyno.definitions.toml_file import KeyPath
from webdyno.model.mistake import Mistake

MOST_BODY_BYTES = 16 * 2**20


def with_bodies(
    data: dict[str, Any], folder: Path, place: Callable[[KeyPath], str]
) -> dict[str, Any]:
    """Give an experiment's data with the content of each `body_file` in its place."""
    requests = data.get("requests")
    if not isinstance(requests, list):
        return data
    return {
        **data,
        "requests": [
            _with_body(request, folder, place(("requests", number, "body_file")))
            if isinstance(request, dict) and isinstance(request.get("body_file"), str)
            else request
            for number, request in enumerate(requests)
        ],
    }


def _with_body(request: dict[str, Any], folder: Path, place: str) -> dict[str, Any]:
    if "body" in request or "body_base64" in request:
        return request  # two bodies: that is told with all that is wrong
    others = {key: value for key, value in request.items() if key != "body_file"}
    content = read_body(folder / request["body_file"], place)
    try:
        return {**others, "body": content.decode()}
    except UnicodeDecodeError:
        return {**others, "body_base64": base64.b64encode(content).decode()}


def read_body(path: Path, place: str) -> bytes:
    """Read a file to be sent; raise Mistake, with the place that names it, where that fails."""
    try:
        if not path.is_file():
            raise Mistake(f"{place}: there is no file {path} to send")
        with path.open("rb") as file:
            content = file.read(MOST_BODY_BYTES + 1)
    except (OSError, ValueError) as error:
        raise Mistake(f"{place}: {path} can't be read: {error}") from None
    if len(content) > MOST_BODY_BYTES:
        raise Mistake(f"{place}: {path} is larger than {MOST_BODY_BYTES // 2**20} MiB")
    return content
