"""What services of gRPC and their messages are: `.proto` files, which the load engine compiles."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from webdyno.core.errors import UserError
from webdyno.host.children import must, run_program
from webdyno.load.engine import find_loadgen

WITHIN_S = 60.0


class Call(NamedTuple):
    """What is called, and what it is sent."""

    path: str
    """`/helloworld.Greeter/SayHello`."""
    json: str | None
    """None where that is bytes, which can be anything."""


def compiled(file: Path, place: str) -> str:
    """Return the descriptors in a file and those that it imports; raise UserError with the line."""
    said = _ask(json.dumps({"file": str(file)}))
    if "error" in said:
        raise UserError(f"{place}: {said['error']}")
    return str(said["descriptors"])


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
