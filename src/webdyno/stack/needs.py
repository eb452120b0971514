"""Finds the programs and files that services and sites need on this machine."""

import os
import re
import stat
from collections.abc import Iterator, Mapping
from fnmatch import filter as matching
from pathlib import Path

from webdyno.model.mistake import Trouble
from webdyno.model.service import Need
from webdyno.stack.roles import Role

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where servers are installed; not on the PATH of ordinary users."""


def needs_of(role: Role) -> dict[str, Need]:
    """The needs of a role that count, given its knobs."""
    return {
        name: need
        for name, need in role.service.needs.items()
        if all(role.knobs.get(knob) == value for knob, value in need.when.items())
    }


def find(need: Need) -> str | None:
    """Give the path of what is needed, or None."""
    for name in need.command:
        if programs := sorted(_programs(name), key=_version_order):
            return programs[-1]
    for pattern in need.file:
        top, _, rest = pattern.lstrip("/").partition("/")
        if matches := sorted(map(str, Path("/", top).glob(rest)), key=_version_order):
            return matches[-1]
    return None


def missing(needs: Mapping[str, Need]) -> list[Need]:
    """Give the needs that nothing on this machine meets."""
    return _missing(needs, _looked_for(needs))


def found(title: str, needs: Mapping[str, Need]) -> dict[str, str | None]:
    """Give the path of everything that is needed; raise Trouble that names what is missing.

    What is optional and isn't there is None, and so is what doesn't count.
    """
    there = _looked_for(needs)
    if lacking := _missing(needs, there):
        raise Trouble(
            f"{title} isn't completely installed: there is no "
            f"{' and no '.join(map(describe, lacking))}; on Debian and Ubuntu: "
            f"apt-get install {' '.join(dict.fromkeys(need.apt for need in lacking))}"
        )
    return there


def _looked_for(needs: Mapping[str, Need]) -> dict[str, str | None]:
    return {name: find(need) for name, need in needs.items()}


def _missing(needs: Mapping[str, Need], there: Mapping[str, str | None]) -> list[Need]:
    return [need for name, need in needs.items() if not need.optional and there[name] is None]


def describe(need: Need) -> str:
    """Name what is needed, for people."""
    if need.command:
        return f"program {' or '.join(need.command)}"
    return f"file {' or '.join(need.file)}"


def _programs(name: str) -> Iterator[str]:
    folders = [*os.environ.get("PATH", "").split(":"), *SYSTEM_FOLDERS]
    for folder in dict.fromkeys(folder for folder in folders if folder):
        if "*" not in name:
            path = Path(folder, name)
            if _servers_may_run(path):
                yield str(path)
                return
        elif os.path.isdir(folder):  # noqa: PTH112 (Path would ask for the type of each entry)
            for entry in matching(os.listdir(folder), name):  # noqa: PTH208
                if _servers_may_run(Path(folder, entry)):
                    yield str(Path(folder, entry))


def _servers_may_run(path: Path) -> bool:
    """When we are root the servers' user is another one, who can't go into root's home."""
    if not os.access(path, os.X_OK) or not path.is_file():
        return False
    if os.geteuid() != 0:
        return True
    real = path.resolve()
    return all(p.stat().st_mode & stat.S_IXOTH for p in (real, *real.parents, *path.parents))


def _version_order(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]
