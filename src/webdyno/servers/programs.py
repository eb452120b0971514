"""Programs of services that have to be built: made once, kept by what they are made of.

They are built as the servers' user, where they are to stay: virtual environments know their own
path. What is kept is a copy that nobody but us can change. It lies where the servers' user can read
it, which he can't in root's home.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from webdyno.core.errors import OperationError
from webdyno.core.files import checked_files, digest_of, writing
from webdyno.core.format import duration
from webdyno.core.service import BuildSteps, Service
from webdyno.core.stack import Stack
from webdyno.host.building import DONE, KEPT_FOR_S, run_build
from webdyno.host.copies import let_everybody_read, take_back
from webdyno.host.machine import allowed_cpus
from webdyno.host.removal import remove_tree
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.users import OPEN, ServerUser, hand_over, home_of, make_private, server_user
from webdyno.host.workspace import home_folder, open_folder, open_lock
from webdyno.servers.needs import find, paths_of_needs
from webdyno.servers.render import Job, fill_in, without_empty

FORMAT = 1
"""Of a kept program; those of another format are made again."""
FILES, SCRATCH, THEIRS, LOG = "files", "scratch", "theirs", "build.log"
SYSTEM_CACHE = Path("/var/cache")
REGISTRIES = (
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "BUNDLE_MIRROR__ALL"),
    *("PIP_CERT", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"),
    *("NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE", "GOPROXY", "GOSUMDB", "GONOSUMDB"),
)
"""Variables that say how this machine reaches registries, in capitals; so do small letters."""


def built_program(service: Service) -> Path | None:
    """Give the folder of a service's program where it is built; None where it isn't.

    Raise OperationError where what it needs isn't there.
    """
    kept = _kept(service)
    return kept / FILES if (kept / DONE).is_file() else None


def folder_of_program(service: Service) -> Path:
    """Give the folder of a service's program, and note that it is used; raise OperationError.

    That is where it isn't built.
    """
    program = built_program(service)
    if program is None:
        raise OperationError(
            f"{service.title} isn't built here, or its sources or tools have changed since; "
            "webdyno doctor --install builds it"
        )
    os.utime(program.parent)
    return program


def unbuilt(stacks: Iterable[Stack]) -> list[Service]:
    """Give the services of stacks whose programs have to be built before they start."""
    services = {
        part.service.name: part.service
        for stack in stacks
        for part in stack.services.values()
        if part.service.build is not None
    }
    return [service for service in services.values() if not _is_built(service)]


def build_program(service: Service, notify: Callable[[str], None]) -> None:
    """Build a service's program, unless another run has just done it.

    Raise OperationError with the end of what its build said where that fails.
    """
    kept = _kept(service)
    with _locked(kept.name):
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
    _copy_sources(service, files)
    for folder in (files, scratch):
        hand_over(folder, user)
    kept.chmod(OPEN)
    _run_commands(service, files, scratch, kept / LOG)
    if user is not None:
        files.rename(kept / THEIRS)
        take_back(kept / THEIRS, make_private(files), user)
        remove_tree(kept / THEIRS)
    remove_tree(scratch)
    let_everybody_read(files)
    (kept / DONE).touch()


def _copy_sources(service: Service, files: Path) -> None:
    for name, path in _sources(service).items():
        if path.is_dir():
            (files / name).mkdir()
        else:
            shutil.copy(path, files / name)


def _run_commands(service: Service, files: Path, scratch: Path, log: Path) -> None:
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
    """Give the variables of a build: none of the caller's, but for those that name registries."""
    tools = dict.fromkeys(str(Path(path).parent) for path in needs.values() if path)
    registries = {name: value for name, value in os.environ.items() if name.upper() in REGISTRIES}
    path = ":".join([*tools, PLAIN_ENVIRONMENT["PATH"]])
    return {**PLAIN_ENVIRONMENT, **registries, "PATH": path, "HOME": str(scratch)}


def _kept(service: Service) -> Path:
    """Give where a program is kept, which services share that build the same one."""
    owner = service.path_of(_build(service).program).parent.name
    return _cache(server_user()) / f"{owner}-{_key(service)}"


def _key(service: Service) -> str:
    """Name a build by all that goes into it: sources, commands, and the tools' own files."""
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
    return {name: find(need) for name, need in always.items() if need.optional} | paths_of_needs(
        service.title, {name: need for name, need in always.items() if not need.optional}
    )


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
    """Give the folder of kept programs: the system's where root builds, else the user's."""
    said = os.environ.get("XDG_CACHE_HOME", "")
    home = Path(os.environ.get("HOME") or home_of(None))
    base = Path(said) if said.startswith("/") else home / ".cache"
    return (base if user is None else SYSTEM_CACHE) / "webdyno" / "programs"


@contextmanager
def _locked(name: str) -> Iterator[None]:
    lock = open_lock(open_folder(home_folder() / "builds") / f"{name}.lock")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be building the same
        yield
    finally:
        os.close(lock)


def _sweep(cache: Path) -> None:
    """Remove programs that nobody has started in a long time, and make room for another one."""
    with writing(cache):
        cache.parent.mkdir(parents=True, exist_ok=True)
        for folder in (cache.parent, cache):
            open_folder(folder)
        for kept in cache.glob("*/"):
            if time.time() - kept.stat().st_mtime > KEPT_FOR_S:
                remove_tree(kept)
