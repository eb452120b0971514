"""Names of other machines in a configuration: a server that can't resolve one doesn't start."""

import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

from webdyno.model.mistake import Mistake
from webdyno.model.origin import Origin

WITHIN_S = 15.0
AT_ONCE = 16
MOST_NAMES = 200


def demand_known(names: Mapping[str, Origin | None], file: Path) -> None:
    """Raise Mistake, naming all of them, where this machine doesn't know some names."""
    unknown = _unknown(list(names)[:MOST_NAMES])
    if not unknown:
        return
    places = ", ".join(f"{name} ({names[name] or file})" for name in unknown)
    raise Mistake(
        f"hosts aren't known on this machine: {places}. Its server starts only where each of them "
        "is: add them to /etc/hosts, or measure it together with the containers it names "
        "(image:compose.yaml#SERVICE)"
    )


def _unknown(names: Iterable[str]) -> list[str]:
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        asked = {name: pool.submit(_is_known, name) for name in names}
        wait(asked.values(), timeout=WITHIN_S)
        return [name for name, it in asked.items() if it.done() and not it.result()]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_known(name: str) -> bool:
    try:
        return bool(socket.getaddrinfo(name, None))
    except (OSError, UnicodeError):
        return False
