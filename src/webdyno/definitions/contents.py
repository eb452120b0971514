"""Reads the files that an experiment names, so that a run keeps their content."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

from webdyno.definitions.toml_file import KeyPath
from webdyno.model.files import MIB, read_named, reading
from webdyno.model.load import Replay
from webdyno.model.mistake import Mistake

MOST_BODY_BYTES = 16 * MIB


def with_contents(
    data: dict[str, Any], folder: Path, place: Callable[[KeyPath], str]
) -> dict[str, Any]:
    """Give an experiment's data with the content of each file in its place."""
    return _with_replay(_with_bodies(data, folder, place), folder, place)


def _with_replay(
    data: dict[str, Any], folder: Path, place: Callable[[KeyPath], str]
) -> dict[str, Any]:
    load = data.get("load")
    if not isinstance(load, dict) or not isinstance(load.get("replay_file"), str):
        return data
    where, path = place(("load", "replay_file")), folder / load["replay_file"]
    try:
        with reading(f"{where}: {path}"):
            packed = Replay.read(path).packed()
    except ValueError as error:
        raise Mistake(f"{where}: {path}: {error}") from None
    others = {key: value for key, value in load.items() if key != "replay_file"}
    return {**data, "load": {**others, "replay": packed}}


def _with_bodies(
    data: dict[str, Any], folder: Path, place: Callable[[KeyPath], str]
) -> dict[str, Any]:
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
    content = read_named(folder / request["body_file"], MOST_BODY_BYTES, place)
    try:
        return {**others, "body": content.decode()}
    except UnicodeDecodeError:
        return {**others, "body_base64": base64.b64encode(content).decode()}
