"""Finds what services and sites need on this machine; names and installs the packages they lack."""

import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import filter as matching
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.core.format import last_lines
from webdyno.core.service import Need
from webdyno.core.stack import Site, Stack
from webdyno.host.children import run_program
from webdyno.servers.service_graph import Role, resolve_services, resolve_stack

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where servers are installed; not on the PATH of ordinary users."""
INSTALL = r"""
set -eu
trap 'exit 130' INT TERM
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    # Debian starts a server once it is installed, on a public port. Forbid that as long as this
    # script lives: should it be killed, the file that it leaves allows everything again.
    printf '#!/bin/sh\nkill -0 %s 2>/dev/null && exit 101\nexit 0\n' $$ >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 -- "$@"
"""
"""Run by a shell as root; arguments are packages."""
SHOWN_LINES = 15


def needs_of(role: Role) -> dict[str, Need]:
    return {
        name: need
        for name, need in role.service.needs.items()
        if all(role.settings.get(setting) == value for setting, value in need.when.items())
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
    return _missing(needs, _looked_for(needs))


def paths_of_needs(title: str, needs: Mapping[str, Need]) -> dict[str, str | None]:
    """Give the path of everything that is needed; raise OperationError that names what is missing.

    What is optional and isn't there is None, and so is what doesn't count.
    """
    there = _looked_for(needs)
    if lacking := _missing(needs, there):
        raise OperationError(
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


def missing_packages(stacks: Iterable[Stack], sites: Iterable[Site] = ()) -> list[str]:
    """Name the packages (of Debian and Ubuntu) that stacks and sites need and are not there."""
    return sorted({need.apt for needs in _all_needs(stacks, sites) for need in missing(needs)})


def packages_of(stack: Stack) -> list[str]:
    return sorted({need.apt for needs in _all_needs([stack], []) for need in needs.values()})


def _all_needs(stacks: Iterable[Stack], sites: Iterable[Site]) -> Iterator[dict[str, Need]]:
    for stack in stacks:
        for role in resolve_stack(stack, None, {}, server_cpus=1).roles:
            yield needs_of(role)
    for site in sites:
        yield site.requires
        for role in resolve_services(site.services, server_cpus=1):
            yield needs_of(role)


def install_packages(names: Sequence[str], ask: Callable[[str], bool], and_more: str = "") -> None:
    """Install packages by apt, as root or by sudo, after `ask` agreed to the question it is given.

    The servers in them aren't started. `and_more` is what else that question asks for. Raise
    OperationError when that isn't possible or wasn't wanted.
    """
    if not names:
        return
    wanted = " ".join(names)
    if shutil.which("apt-get") is None:
        raise OperationError(
            f"missing, by the names that Debian gives them: {wanted}; please install"
        )
    become_root = [] if os.geteuid() == 0 else ["sudo"]
    if become_root and shutil.which("sudo") is None:
        raise OperationError(f"missing: {wanted}; as root: apt-get install {wanted}")
    if not ask(f"install {wanted} by apt-get{and_more}?"):
        command = [*become_root, "apt-get", "install", "--no-install-recommends", *names]
        raise OperationError(
            f"missing: {wanted}; nothing was installed. Add --yes to have that done, or run\n"
            f"    {' '.join(command)}"
        )
    done = run_program([*become_root, "sh", "-c", INSTALL, "install", *names], within_s=None)
    if done.returncode:
        end = last_lines(done.stdout + done.stderr, SHOWN_LINES)
        raise OperationError(f"apt-get could not install {wanted}:\n{end}")
