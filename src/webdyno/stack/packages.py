"""Which packages of the distribution stacks lack, and their installation."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence

from webdyno.host.processes import run_program
from webdyno.model.format import last_lines
from webdyno.model.mistake import Trouble
from webdyno.model.service import Need
from webdyno.model.stack import Site, Stack
from webdyno.stack.needs import missing, needs_of
from webdyno.stack.roles import resolve_services, resolve_stack

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


def missing_packages(stacks: Iterable[Stack], sites: Iterable[Site] = ()) -> list[str]:
    """Name the packages (of Debian and Ubuntu) that stacks and sites need and are not there."""
    return sorted({need.apt for needs in _all_needs(stacks, sites) for need in missing(needs)})


def packages_of(stack: Stack) -> list[str]:
    """Name all packages that a stack is made of, there or not."""
    return sorted({need.apt for needs in _all_needs([stack], []) for need in needs.values()})


def _all_needs(stacks: Iterable[Stack], sites: Iterable[Site]) -> Iterator[dict[str, Need]]:
    for stack in stacks:
        for role in resolve_stack(stack, None, {}, server_cpus=1).roles:
            yield needs_of(role)
    for site in sites:
        yield site.requires
        for role in resolve_services(site.services, server_cpus=1):
            yield needs_of(role)


def install_packages(names: Sequence[str], ask: Callable[[str], bool]) -> None:
    """Install packages by apt, as root or by sudo, after `ask` agreed to the question it is given.

    The servers in them aren't started. Raise Trouble when that isn't possible or wasn't wanted.
    """
    if not names:
        return
    wanted = " ".join(names)
    if shutil.which("apt-get") is None:
        raise Trouble(f"missing, by the names that Debian gives them: {wanted}; please install")
    become_root = [] if os.geteuid() == 0 else ["sudo"]
    if become_root and shutil.which("sudo") is None:
        raise Trouble(f"missing: {wanted}; as root: apt-get install {wanted}")
    if not ask(f"install {wanted} by apt-get?"):
        command = [*become_root, "apt-get", "install", "--no-install-recommends", *names]
        raise Trouble(
            f"missing: {wanted}; nothing was installed. Add --yes to have that done, or run\n"
            f"    {' '.join(command)}"
        )
    done = run_program([*become_root, "sh", "-c", INSTALL, "install", *names], within_s=None)
    if done.returncode:
        end = last_lines(done.stdout + done.stderr, SHOWN_LINES)
        raise Trouble(f"apt-get could not install {wanted}:\n{end}")
