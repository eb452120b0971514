"""How a Compose file is merged into those before it (compose-spec.io, "Merge Compose files")."""

from collections.abc import Mapping
from typing import Any

from webdyno.model.mistake import Mistake

REPLACED = {"command", "entrypoint", "test"}
"""Lists that the later file says anew; others go on behind those of the earlier."""
TABLES = {"environment", "labels", "args", "depends_on", "sysctls", "extra_hosts"}
"""Keys that may be written as a list: of NAME=VALUE, or of names."""


def merged(earlier: Any, later: Any, where: str, key: str = "") -> Any:  # noqa: ANN401 (YAML)
    """Give both as one, the later before the earlier where they name the same."""
    if later is None or earlier is None:
        return earlier if later is None else later
    if key in TABLES:
        earlier, later = _table(earlier, key), _table(later, key)
    if key == "build" and isinstance(earlier, Mapping) != isinstance(later, Mapping):
        earlier, later = _build(earlier), _build(later)
    if isinstance(earlier, Mapping) and isinstance(later, Mapping):
        both = dict(earlier)
        for name, value in later.items():
            both[name] = merged(both[name], value, where, str(name)) if name in both else value
        return both
    if isinstance(earlier, list) and isinstance(later, list) and key not in REPLACED:
        return _one_after_the_other(earlier, later, key)
    if isinstance(earlier, Mapping | list) != isinstance(later, Mapping | list):
        if key in REPLACED:
            return later
        raise Mistake(f"{where}: {key} is of another form than in the file before it")
    return later


def _table(value: Any, key: str) -> Any:  # noqa: ANN401
    if not isinstance(value, list):
        return value
    if key == "depends_on":
        return {str(name): {"condition": "service_started"} for name in value}
    pairs = (str(it).partition("=") for it in value)
    return {name: text if equals else None for name, equals, text in pairs}


def _build(value: Any) -> Any:  # noqa: ANN401
    return {"context": value} if isinstance(value, str) else value


def _one_after_the_other(earlier: list[Any], later: list[Any], key: str) -> list[Any]:
    """Give both lists; of volumes at one place in the container the later."""
    if key == "volumes":
        places = {_place(it) for it in later}
        return [*(it for it in earlier if _place(it) not in places), *later]
    return [*earlier, *(it for it in later if it not in earlier)]


def _place(volume: Any) -> str:  # noqa: ANN401
    """Give where a volume is in the container."""
    if isinstance(volume, Mapping):
        return str(volume.get("target", ""))
    _, colon, rest = str(volume).partition(":")
    return rest.partition(":")[0] if colon else str(volume)
