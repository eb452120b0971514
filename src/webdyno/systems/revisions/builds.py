"""Builds of revisions: made once, kept by what they were made of, swept away when long unused."""

import fcntl
import hashlib
import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import duration, listed_to
from webdyno.core.hiding import hidden
from webdyno.core.text import with_secrets
from webdyno.host.children import must
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import DONE, KEPT_FOR_S, Testbed, run_build
from webdyno.host.users import ServerUser, home_of
from webdyno.host.workspace import home_folder, open_folder, open_lock
from webdyno.systems.app import PROJECT_FILE
from webdyno.systems.revisions.repository import Repository, Revision, run_as

logger = logging.getLogger(__name__)

FORMAT = 1
"""Of a kept build; those of another format are made again."""
SHOWN_IGNORED, SHOWN_WRITTEN, SHOWN_NAMES = 8, 3, 8
CACHES = ("/__pycache__/", "/.cache/", "/cache/", ".log", ".pid")
"""Parts of names of files that no response should depend on."""
OF_TOOLS = {
    *("RUSTUP_HOME", "CARGO_HOME", "GOPATH", "GOROOT", "JAVA_HOME", "GEM_HOME", "DOTNET_ROOT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "SSL_CERT_FILE", "PIP_INDEX_URL"),
    *("NODE_EXTRA_CA_CERTS", "NPM_CONFIG_REGISTRY", "GOPROXY", "SSH_AUTH_SOCK"),
}
"""Without these, tools may not find themselves, or the network."""
REPOSITORY = "REPOSITORY"
"""The variable that reports a build where the user's own working tree is."""


@dataclass(frozen=True)
class Recipe:
    """How a revision is built."""

    build: str | None
    """A line of shell; None where there is nothing to do."""
    folder: Path
    """Where it runs: relative to the revision's files."""
    environment: Mapping[str, str]
    """Its variables. A build is kept by the names of secrets in them, not by their values."""
    inherited: Sequence[str] = ()
    """Names of variables of who calls webdyno that it gets as well; no others."""
    again: bool = False
    """Whether it is built once more, in a second folder, whatever was built before."""


def built(
    repository: Repository,
    revision: Revision,
    recipe: Recipe,
    name: str,
    notify: Callable[[str], None],
) -> Path:
    """Give the folder of a revision's files, built; another run may have built them before.

    Raise OperationError with the log's end when the build fails.
    """
    kept = _cache(repository.user) / _key(repository, revision, recipe)
    locks = open_folder(home_folder() / "builds")
    lock = open_lock(locks / f"{kept.name}.lock")
    logger.debug("waits for the lock of the build %s", kept)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be building the same
        _sweep(repository)
        if recipe.again or not (kept / DONE).is_file():
            _build(repository, revision, recipe, kept, name, notify)
        elif written := _written_since(repository.user, kept):
            notify(
                f"{name}: earlier runs wrote into its build: {written}. Its next start finds "
                f"that; prepare or [state] before_round can put it back, and rm -rf {kept} has it "
                "built again"
            )
        run_as(repository.user, ["touch", kept])
    finally:
        os.close(lock)
    return kept / "files"


def _build(
    repository: Repository,
    revision: Revision,
    recipe: Recipe,
    kept: Path,
    name: str,
    notify: Callable[[str], None],
) -> None:
    user = repository.user
    must(run_as(user, ["rm", "-rf", kept]), f"{kept} can't be removed")
    must(run_as(user, ["mkdir", "-p", kept]), f"{kept} can't be made")
    for submodule in repository.submodules(revision.commit):
        if not submodule.is_here:
            notify(
                f"{name} is built without its submodule {submodule.path}, of which there is no "
                f"clone here; git submodule update --init {submodule.path} makes one"
            )
    repository.check_out(revision, kept / "files")
    folder = kept / "files" / recipe.folder
    if not folder.is_dir():
        raise UserError(
            f"{name} ({revision.text}) has no folder {recipe.folder}, where it is to run"
        )
    if recipe.build:
        notify(f"building {name} ({revision.text}): {recipe.build}")
        began = time.monotonic()
        _run(recipe, folder, repository, kept, f"{name} ({revision.text})")
        notify(f"built {name} in {duration(time.monotonic() - began)}")
    must(run_as(user, ["touch", kept / DONE]), f"{kept} can't be written")


def _written_since(user: ServerUser | None, kept: Path) -> str | None:
    """Name some of the files in a build that are newer than itself; caches and logs aside."""
    files = kept / "files"
    newer = ("find", files, "-type", "f", "-newer", kept / DONE, "-printf", "/%P\\0")
    inside = filter(None, run_as(user, newer).stdout.split("\0"))
    names = sorted(path[1:] for path in inside if not any(part in path for part in CACHES))
    names = [name if name.isprintable() else ascii(name) for name in names]
    return listed_to(SHOWN_WRITTEN, names) or None


def _run(recipe: Recipe, folder: Path, repository: Repository, kept: Path, name: str) -> None:
    user = repository.user
    variables = recipe.environment
    inherited = {name: os.environ[name] for name in recipe.inherited if name in os.environ}
    command = recipe.build or ":"
    end = run_build(
        ["/bin/sh", "-c", command],
        Testbed().with_user(user),
        folder=folder,
        environment={
            **PLAIN_ENVIRONMENT,
            **inherited,
            REPOSITORY: str(repository.top),
            **{name: with_secrets(variable, os.environ) for name, variable in variables.items()},
        },
    )
    end = replace(end, said=hidden(end.said))
    log = kept / "build.log"
    run_as(user, ["/bin/sh", "-c", 'cat >"$1"', "sh", log], given=end.said)
    if end.code != 0:
        without = _variables_without(recipe, f"{command}\n{end.said}")
        raise OperationError(f"{end.failure(name, command, log)}{_lacking(repository)}{without}")


def _lacking(repository: Repository) -> str:
    """Say what Git ignores in the working tree: perhaps it fails for want of that."""
    ignored = repository.ignored()
    if not ignored:
        return ""
    return (
        f"\nrevisions lack what Git ignores in {repository.top}: "
        f"{listed_to(SHOWN_IGNORED, ignored)}. If it needs that, build has to make it or to "
        f'copy it, such as cp "${REPOSITORY}/{ignored[0].rstrip("/")}" .'
    )


def _variables_without(recipe: Recipe, said: str) -> str:
    """Say which variables of the caller a failed build names, or its tools look for, in vain."""
    given = {*recipe.environment, *recipe.inherited}
    lacking = sorted(
        name
        for name in set(os.environ) - given
        if name in OF_TOOLS or ("_" in name and re.search(rf"\b{re.escape(name)}\b", said))
    )
    if not lacking:
        return ""
    names = ", ".join(f'"{name}"' for name in lacking[:SHOWN_NAMES])
    return (
        f"\na build has no variables of your shell but PATH; if it lacks one, build_variables = "
        f"[{names}] under [app] of {PROJECT_FILE} passes it on"
    )


def _cache(user: ServerUser | None) -> Path:
    """Give the folder of kept builds: XDG Base Directory Specification."""
    said = os.environ.get("XDG_CACHE_HOME", "") if user is None else ""
    base = Path(said) if said.startswith("/") else home_of(user) / ".cache"
    return base / "webdyno" / "revisions"


def _key(repository: Repository, revision: Revision, recipe: Recipe) -> str:
    """Name a build by all that it reads."""
    what = [
        *(FORMAT, str(repository.top), revision.built_from, recipe.build, str(recipe.folder)),
        sorted(recipe.environment.items()),
        [
            (submodule.path, submodule.is_here)
            for submodule in repository.submodules(revision.commit)
        ],
    ]
    what += ["again"] if recipe.again else []
    what += [f"inherits {name}" for name in recipe.inherited]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:20]


def _sweep(repository: Repository) -> None:
    """Remove builds that nobody has requested in a long time."""
    old = [
        path
        for path in _cache(repository.user).glob("*/")
        if time.time() - path.stat().st_mtime > KEPT_FOR_S
    ]
    if old:
        run_as(repository.user, ["rm", "-rf", *old])
        repository.forget_removed()
