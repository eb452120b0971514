"""Installs the distribution's packages that tests need: servers, a browser, peers, containers.

With --full also what builds the catalog's programs, which only long tests do.
"""

import shutil
import sys
from pathlib import Path

from webdyno.config import Catalogue
from webdyno.config.checks import PROTOCOL
from webdyno.core.errors import OperationError
from webdyno.servers.needs import find, install_packages, missing_packages

TOOLS = {
    "chromium": "chromium",
    "wrk": "wrk",
    "ab": "apache2-utils",
    "httperf": "httperf",
    "vmstat": "procps",
    "curl": "curl",
    "h2load": "nghttp2-client",
    "openssl": "openssl",
    "ip": "iproute2",
    "/usr/sbin/sshd": "openssh-server",
    "podman": "podman",
    "runc": "runc",
    "dockerd": "docker.io",
    "gcc": "gcc",
    "/usr/bin/python3": "python3",
    "puma": "puma",
    "pgbouncer": "pgbouncer",
    "/usr/share/rubygems-integration/*/specifications/sinatra-*": "ruby-sinatra",
    "/usr/lib/ruby/vendor_ruby/pg.rb": "ruby-pg",
}
"""Program or file, and the package that has it. The Python is for servers, which may not use
root's; runc is for machines on which Podman's usual runtime refuses to work, and for Docker."""
NOT_EVERYWHERE = {"valkey-server", "valkey-tools", "mongodb-org-server"}
"""Debian has them from 13 on, or not at all; without them no test starts that service."""

FULL = "--full" in sys.argv


def main() -> int:
    """Install what is missing; give the process's exit code."""
    catalogue = Catalogue.load()
    services = [it for it in catalogue.services.values() if FULL or it.build is None]
    names = {it.name for it in services}
    stacks = [
        stack
        for stack in catalogue.stacks.values()
        if names.issuperset(part.service.name for part in stack.services.values())
    ]
    missing = missing_packages(stacks, catalogue.sites.values())
    missing += [package for program, package in TOOLS.items() if not _is_here(program)]
    # Those that no stack has, and those of some settings alone, which tests have.
    needs = [need for it in services for need in it.needs.values()]
    settings = {PROTOCOL, "gzip"}
    wanted = [it for it in needs if not it.optional and (not it.when or settings & it.when.keys())]
    packages = dict.fromkeys(it.apt for it in wanted if find(it) is None)
    missing += [package for package in packages if package not in NOT_EVERYWHERE]
    if not missing:
        return 0
    print("installing", *missing, flush=True)  # noqa: T201
    try:
        install_packages(missing, ask=lambda _: True)
    except OperationError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 3
    return 0


def _is_here(program: str) -> bool:
    if program.startswith("/"):
        return any(Path("/").glob(program[1:]))
    return shutil.which(program) is not None


if __name__ == "__main__":
    sys.exit(main())
