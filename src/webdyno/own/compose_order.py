"""In which order the services of Compose files start, and what is waited for."""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from webdyno.model.errors import UserError

Awaits = Literal["", "healthy", "ended"]
Awaited = Mapping[str, Awaits]
"""By service: what those behind it wait for."""
CONDITIONS: Mapping[str, Awaits] = {
    "service_started": "",
    "service_healthy": "healthy",
    "service_completed_successfully": "ended",
}


def in_order(services: Mapping[str, Any], where: str) -> list[str]:
    """Give the names so that each comes behind those that it depends on."""
    done: dict[str, None] = {}

    def add(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise UserError(f"{where}: {' and '.join(dict.fromkeys(above))} depend on each other")
        for other in services[name].get("depends_on") or ():
            if other in services:
                add(str(other), (*above, name))
        done[name] = None

    for name in services:
        add(name, ())
    return list(done)


def awaits(services: Mapping[str, Any], front: str, where: str) -> dict[str, Awaits]:
    """Give what is waited for of each service; raise UserError for a condition that isn't known.

    The service that is asked starts last, so nobody waits for it.
    """
    causes: dict[str, Awaits] = {}
    for name, service in services.items():
        depends = service.get("depends_on")
        for other, how in depends.items() if isinstance(depends, dict) else ():
            condition = how.get("condition", "service_started")
            if not isinstance(condition, str) or condition not in CONDITIONS:
                raise UserError(
                    f"{where}: services.{name}.depends_on.{other}: {condition} is no condition; "
                    f"there are {', '.join(CONDITIONS)}"
                )
            if other in services and other != front and CONDITIONS[condition]:
                causes[str(other)] = CONDITIONS[condition]
    return causes


def health_command(service: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """Give the words that a service's `healthcheck` runs in its container; none where it has none.

    Raise UserError where it isn't written as Compose has it.
    """
    check = service.get("healthcheck") or {}
    test = check.get("test")
    if test is None or check.get("disable") is True:
        return ()
    if isinstance(test, str):
        return health_words(["CMD-SHELL", test])
    if isinstance(test, list) and all(isinstance(word, str) for word in test):
        return health_words(test)
    raise UserError(f"{where}.healthcheck.test: {json.dumps(test)} is no command")


def health_words(test: list[str]) -> tuple[str, ...]:
    """Give the words of a health check as images and Compose files have it."""
    kind, *words = test or ["NONE"]
    if kind == "CMD-SHELL":
        return ("/bin/sh", "-c", shlex.join(words) if len(words) > 1 else "".join(words))
    return tuple(words) if kind == "CMD" else ()
