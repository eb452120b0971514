"""Reads what `webdyno workload` writes: a load and its requests, as parts of an experiment."""

from pathlib import Path
from typing import Any

from webdyno.definitions.toml_file import TomlFile
from webdyno.model.mistake import Mistake

PARTS = ("load", "requests", "workload")


def read_workload_file(path: Path) -> dict[str, Any]:
    """Give `load`, `requests` and `workload`, as they are there; raise Mistake for anything else.

    What they hold is checked with the experiment that they become a part of.
    """
    file = TomlFile(path)
    for key in file.data:
        if key not in PARTS:
            raise Mistake(
                f"{file.place((key,))}: {key} is no part of a file of traffic, which has "
                f"{', '.join(PARTS)}; `webdyno run {path}` runs whole experiments"
            )
    requests = file.data.get("requests")
    if not isinstance(requests, list) or not requests:
        raise Mistake(f"{path}: there is no [[requests]] in it")
    for number, entry in enumerate(requests):
        if not isinstance(entry, dict):
            raise Mistake(f"{file.place(('requests', number))}: should be a table, [[requests]]")
    load = file.data.get("load", {})
    if not isinstance(load, dict):
        raise Mistake(f"{file.place(('load',))}: load should be a table, [load]")
    if isinstance(replay := load.get("replay_file"), str):
        # Named from where this file lies, wherever the experiment does.
        load = {**load, "replay_file": str(path.parent.resolve() / replay)}
    return {**file.data, "load": load}
