"""What services and sites need here: packages that are found or installed, programs built.

Programs are made once, and kept by what they are made of. They are built as the servers' user,
where they are to stay: virtual environments know their own path. What is kept is a copy that
nobody but us can change. It lies where the servers' user can read it, which he can't in root's
home.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import filter as matching
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.core.files import checked_files, digest_of, writing
from webdyno.core.format import duration, last_lines
from webdyno.core.service import BuildSteps, Need, Service
from webdyno.core.stack import Site, Stack
from webdyno.core.text import ACCOUNT
from webdyno.host.children import run_program
from webdyno.host.copies import let_everybody_read, take_back
from webdyno.host.machine import allowed_cpus
from webdyno.host.server_process import CERTIFICATES, PLAIN_ENVIRONMENT
from webdyno.host.this_machine import DONE, KEPT_FOR_S, Testbed, run_build
from webdyno.host.users import (
    ServerUser,
    hand_over,
    home_of,
    make_closed,
    make_private,
    open_to_servers,
    refuse_shared,
    server_user,
)
from webdyno.host.warden import remove_tree
from webdyno.host.workspace import home_folder, lock_held, open_folder
from webdyno.servers.service_graph import Role, resolve_services, resolve_stack
from webdyno.servers.templates import Job, without_empty

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
FORMAT = 1
"""Of a kept program; those of another format are made again."""
FILES, SCRATCH, THEIRS, LOG = "files", "scratch", "theirs", "build.log"
SYSTEM_CACHE = Path("/var/cache")
REGISTRIES = (
    *CERTIFICATES,
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "BUNDLE_MIRROR__ALL"),
    *("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    *("NPM_CONFIG_REGISTRY", "GOPROXY", "GOSUMDB", "GONOSUMDB"),
)
"""Variables that say how this machine reaches registries, in capitals; so do small letters."""


def needs_of(role: Role) -> dict[str, Need]:
    return {
        name: need
        for name, need in role.service.needs.items()
        if all(role.settings.get(setting) == value for setting, value in need.when.items())
    }


def find(need: Need) -> str | None:
    """Return the path of what is needed, or None."""
    for name in need.command:
        if programs := sorted(_programs(name), key=_version_order):
            return programs[-1]
    for pattern in need.file:
        top, _, rest = pattern.lstrip("/").partition("/")
        if matches := sorted(map(str, Path("/", top).glob(rest)), key=_version_order):
            return matches[-1]
    return None


def paths_of_needs(title: str, needs: Mapping[str, Need]) -> dict[str, str | None]:
    """Return the path of each need, None of an optional one; raise OperationError for others."""
    there = {name: find(need) for name, need in needs.items()}
    lacking = [need for name, need in needs.items() if not need.optional and there[name] is None]
    if lacking:
        raise OperationError(
            f"{title} isn't completely installed: there is no {_what_and_whence(lacking)}"
        )
    return there


def _what_and_whence(lacking: Sequence[Need]) -> str:
    packages = " ".join(dict.fromkeys(need.apt for need in lacking))
    how = f"on Debian and Ubuntu: apt-get install {packages}"
    others = filter(None, (need.elsewhere for need in lacking))
    return f"{' and no '.join(map(describe, lacking))}; {', '.join([how, *others])}"


def describe(need: Need) -> str:
    """Return what is needed in words for people."""
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
    """Return the packages (of Debian and Ubuntu) that stacks and sites need and lack.

    Raise OperationError for one that neither of them has.
    """
    lacking = _lacking(stacks, sites)
    if others := [need for need in lacking if need.elsewhere]:
        raise OperationError(f"there is no {_what_and_whence(others)}")
    return sorted({need.apt for need in lacking})


def _lacking(stacks: Iterable[Stack], sites: Iterable[Site]) -> list[Need]:
    needs = (need for needs in _all_needs(stacks, sites) for need in needs.values())
    return [need for need in needs if not need.optional and find(need) is None]


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


def built_program(service: Service) -> Path | None:
    """Return the folder of a service's built program, or None; raise OperationError."""
    kept = _kept(service)
    return kept / FILES if (kept / DONE).is_file() else None


def folder_of_program(service: Service) -> Path:
    """Return the folder of a program in use; raise OperationError if it isn't built."""
    program = built_program(service)
    if program is None:
        raise OperationError(
            f"{service.title} isn't built here, or its sources or tools have changed since; "
            "webdyno doctor --install builds it"
        )
    refuse_shared(program.parents[1], server_user())
    os.utime(program.parent)
    open_to_servers(program.parent, server_user())
    return program


def unbuilt(stacks: Iterable[Stack]) -> list[Service]:
    """Return the services of stacks whose programs have to be built before they start."""
    services = {
        part.service.name: part.service
        for stack in stacks
        for part in stack.services.values()
        if part.service.build is not None
    }
    return [service for service in services.values() if not _is_built(service)]


def is_installed(stack: Stack) -> bool:
    """Whether a stack could start as it is."""
    return not _lacking([stack], []) and not unbuilt([stack])


def build_program(service: Service, notify: Callable[[str], None]) -> None:
    """Build a program unless another run just did; raise OperationError where that fails."""
    kept = _kept(service)
    lock = open_folder(home_folder() / "builds") / f"{kept.name}.lock"
    with lock_held(lock):  # another run may be building the same
        _sweep(kept.parent)
        if not (kept / DONE).is_file():
            notify(f"building {service.title} …")
            began = time.monotonic()
            with writing(kept):
                _make(service, kept)
            notify(f"built {service.title} in {duration(time.monotonic() - began)}")


def _is_built(service: Service) -> bool:
    try:
        return built_program(service) is not None
    except OperationError:
        return False


def _make(service: Service, kept: Path) -> None:
    user = server_user()
    remove_tree(kept)
    make_private(kept)
    files, scratch = make_private(kept / FILES), make_private(kept / SCRATCH)
    for name, path in _sources(service).items():
        if path.is_dir():
            (files / name).mkdir()
        else:
            shutil.copy(path, files / name)
    for folder in (files, scratch):
        hand_over(folder, user)
    open_to_servers(kept, user)
    _run_commands(service, files, scratch, kept / LOG)
    if user is not None:
        files.rename(kept / THEIRS)
        take_back(kept / THEIRS, make_private(files), user)
        remove_tree(kept / THEIRS)
    remove_tree(scratch)
    let_everybody_read(files)
    (kept / DONE).touch()


def _run_commands(service: Service, files: Path, scratch: Path, log: Path) -> None:
    from webdyno.servers.render import fill_in  # Jinja2 takes a while to import

    testbed, needs = Testbed(), _needs(service)
    context = {
        "needs": needs,
        "build": {"folder": str(files), "scratch": str(scratch)},
        "cpus": len(allowed_cpus()),
    }
    texts = {"commands": _build(service).commands}
    (filled,) = fill_in([Job(texts, Path(service.where), context)], testbed.user)
    environment = _environment(needs, scratch)
    for command in filled.texts["commands"]:
        words = without_empty(command)
        if "/" in words[0]:
            words[0] = str(files / words[0])
        end = run_build(words, testbed, folder=files, environment=environment)
        with log.open("a") as file:
            file.write(end.said)
        if end.code != 0:
            raise end.failure(service.title, " ".join(words), log)


def _environment(needs: Mapping[str, str | None], scratch: Path) -> dict[str, str]:
    """None of the caller's variables, but for those that name registries.

    Accounts of root's there are nobody else's, as whom it builds.
    """
    tools = dict.fromkeys(str(Path(path).parent) for path in needs.values() if path)
    registries = {name: value for name, value in os.environ.items() if name.upper() in REGISTRIES}
    if server_user() is not None:
        registries = {name: ACCOUNT.sub("", value) for name, value in registries.items()}
    path = ":".join([*tools, PLAIN_ENVIRONMENT["PATH"]])
    return {**PLAIN_ENVIRONMENT, **registries, "PATH": path, "HOME": str(scratch)}


def _kept(service: Service) -> Path:
    """Services that build the same program share the folder."""
    owner = service.path_of(_build(service).program).parent.name
    return _cache(server_user()) / f"{owner}-{_key(service)}"


def _key(service: Service) -> str:
    """A build's name by all that goes into it: sources, commands, and the tools' own files."""
    build = _build(service)
    digest = hashlib.sha256(json.dumps([FORMAT, platform.machine(), build.commands]).encode())
    for name, path in _sources(service).items():
        if path.is_file():
            digest.update(f"{name}\0{os.access(path, os.X_OK)}\0".encode())
            digest.update(digest_of(path))
    for name, found_at in sorted(_needs(service).items()):
        if found_at is not None:
            tool = Path(found_at).resolve()
            changed = tool.stat().st_mtime_ns
            digest.update(f"{name} {tool} {changed}\0".encode())
    return digest.hexdigest()[:16]


def _needs(service: Service) -> dict[str, str | None]:
    always = {name: need for name, need in service.needs.items() if not need.when}
    return paths_of_needs(service.title, always)


def _sources(service: Service) -> dict[str, Path]:
    folder = service.path_of(_build(service).program)
    if not folder.is_dir():
        raise OperationError(f"{service.where}: build.program: there is no folder {folder}")
    return checked_files(folder)


def _build(service: Service) -> BuildSteps:
    if service.build is None:
        raise ValueError(f"{service.name} has nothing to build")
    return service.build


def _cache(user: ServerUser | None) -> Path:
    """The system's where root builds, else the user's."""
    said = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(os.environ.get("HOME") or home_of(None))
    base = Path(said) if said.startswith("/") else home / ".cache"
    return (base if user is None else SYSTEM_CACHE) / "webdyno" / "programs"


def _sweep(cache: Path) -> None:
    """Remove programs that nobody has started in a long time."""
    with writing(cache):
        make_closed(cache.parent.parent)
        for folder in (cache.parent, cache):
            open_folder(folder)
        refuse_shared(cache, server_user())
        for kept in cache.glob("*/"):
            if time.time() - kept.stat().st_mtime > KEPT_FOR_S:
                remove_tree(kept)
