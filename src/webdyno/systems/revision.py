"""`rev:REVISION`: built once, in a worktree of its own, and started as its `webdyno.toml` says."""

import fcntl
import hashlib
import json
import logging
import os
import re
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.format import duration, listed_to
from webdyno.core.hiding import hidden
from webdyno.core.text import SECRET, in_shell, secret_values, with_secrets
from webdyno.host.children import must
from webdyno.host.server_process import CERTIFICATES, PLAIN_ENVIRONMENT
from webdyno.host.this_machine import DONE, KEPT_FOR_S, Testbed, run_build
from webdyno.host.users import (
    PRIVATE,
    ServerUser,
    home_of,
    refuse_shared,
    server_user,
    share_with_group,
)
from webdyno.host.workspace import home_folder, open_folder, open_lock
from webdyno.systems.command import IMAGE, check_services, is_image, needs_of_services
from webdyno.systems.containers.image import check_containers, refuse_containers_of_others
from webdyno.systems.kinds import KIND_OF_APP, KINDS
from webdyno.systems.project import APP, LEAST, Project
from webdyno.systems.repository import Repository, Revision, run_as
from webdyno.systems.target import (
    PROJECT_FILE,
    GeneratedService,
    TargetSpec,
    declared_settings,
    users_environment,
)

logger = logging.getLogger(__name__)


def make(spec: TargetSpec) -> GeneratedService:
    """Build a revision, unless that was done before, and have it started."""
    repository = Repository.around(spec.folder, spec.place)
    project = Project.around(spec.folder)
    if project is None:
        raise UserError(
            f"{spec.place}: no {PROJECT_FILE} from {spec.folder} up to {repository.top} says how "
            "to build and start it; `webdyno init` there writes one. It needs at least\n\n"
            f"{LEAST}"
        )
    app = project.app()
    check_services(
        app.services, spec.services, lambda where: project.file.place(("app", "services", *where))
    )
    behind = {**app.services, **spec.keys.services}
    spec.provide(needs_of_services(behind.values(), spec.services))
    revision = repository.revision(spec.text, spec.place)
    if lacking := repository.excluded_from(spec.text):
        spec.notify(f"{spec.written} {lacking}")
    within = Path(os.path.relpath(project.folder, repository.top)) / app.dir
    variables = {**app.environment, **spec.keys.environment}
    secret_values(variables.values(), os.environ)
    environment = users_environment(repository.top, variables)
    recipe = Recipe(app.build, within, environment, app.build_variables, spec.fresh)
    way, text = app.way
    place = project.file.place(("app",))
    of_images = list(filter(is_image, behind.values()))
    if way == "image" or of_images or any(map(is_image, app.backends.values())):
        refuse_containers_of_others(repository, place)
    top = build_revision(repository, revision, recipe, spec.written, spec.notify).resolve()
    folder = folder_inside_of(top, within, project.file.place((APP, "dir")))
    owner = 0 if repository.user is None else repository.user.uid
    keys = spec.keys.replace(
        environment=variables,
        root=app.root,
        backends={**app.backends, **spec.keys.backends},
        services=behind,
        setup=spec.keys.setup or app.setup,
        prepare=spec.keys.prepare or app.prepare,
        ready=spec.keys.ready or app.ready,
        ready_within=spec.keys.ready_within or app.ready_within,
    )
    declared = declared_settings(
        app.settings, lambda where: project.file.place(("app", "settings", *where))
    )
    user = repository.user
    containers = [name.removeprefix(IMAGE) for name in of_images]
    for container in [*containers, *([text] if way == "image" else [])]:
        check_containers(container, folder, top, place)
    if way == "conf" and keys.services:
        raise UserError(f"{place}: services are for an app that `start` or `image` starts")
    if way != "start" and (keys.setup or keys.prepare):
        raise UserError(f"{place}: setup and prepare are for an app that `start` starts")
    if way != "conf" and keys.backends:
        raise UserError(
            f"{spec.place}: backends are for a configuration, and {project.file.place(('app',))} "
            f"has {way}"
        )
    reader = let_reader_in(way, user, top)
    if reader and (closed := reader.kept_out_by(folder)):
        spec.notify(
            f"{spec.written}: {reader.name}, as whom its server runs, may not enter {closed}: "
            "pages of the revision can't be read there; XDG_CACHE_HOME says where else revisions "
            "are kept"
        )
    settings = {**declared, **spec.settings}
    in_revision = replace(spec, text=text, keys=keys, folder=folder, settings=settings)
    made = KINDS[KIND_OF_APP[way]].make(replace(in_revision, owner=owner, within=top))
    return replace(made, service={**made.service, "version": revision.text})


def folder_inside_of(top: Path, within: Path, place: str) -> Path:
    """Return a folder of a revision; raise UserError where a link has it lead out of that."""
    folder = (top / within).resolve()
    if not folder.is_relative_to(top):
        raise UserError(f"{place}: leads out of the repository, to {folder}")
    return folder


BUILD_FORMAT = 1
"""Of a kept build; those of another format are made again."""
SHOWN_IGNORED, SHOWN_WRITTEN, SHOWN_NAMES = 8, 3, 8
CACHES = ("/__pycache__/", "/.cache/", "/cache/", ".log", ".pid")
"""Parts of names of files that no response should depend on."""
OF_TOOLS = {
    *("RUSTUP_HOME", "CARGO_HOME", "GOPATH", "GOROOT", "JAVA_HOME", "GEM_HOME", "DOTNET_ROOT"),
    "SSH_AUTH_SOCK",
}
"""Without these, tools may not find themselves."""
OF_NETWORK = {
    *("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"),
    *("PIP_INDEX_URL", "NPM_CONFIG_REGISTRY", "GOPROXY"),
}
"""Without these, tools may not find the network."""
LACKS_NETWORK = re.compile(
    r"(?i)certificate|\bssl\b|\btls\b|ENOTFOUND|EAI_AGAIN|resolve|connect|proxy|timed out|network"
)
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


def build_revision(
    repository: Repository,
    revision: Revision,
    recipe: Recipe,
    name: str,
    notify: Callable[[str], None],
) -> Path:
    """Build a revision, unless another run has done so, and return the folder of its files.

    Raise OperationError with the log's end when the build fails.
    """
    cache = _cache(repository.user)
    must(run_as(repository.user, ["mkdir", "-p", cache]), f"{cache} can't be made")
    refuse_shared(cache, repository.user)
    kept = cache / _build_key(repository, revision, recipe)
    locks = open_folder(home_folder() / "builds")
    lock = open_lock(locks / f"{kept.name}.lock")
    logger.debug("waits for the lock of the build %s", kept)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another run may be building the same
        _sweep(repository)
        if recipe.again or not (kept / DONE).is_file():
            _build(repository, revision, recipe, kept, name, notify)
        elif written := _newer_files(repository.user, kept):
            notify(
                f"{name}: earlier runs wrote into its build: {written}. Its next start finds "
                "that; prepare or [state] before_round can put it back, and rm -rf "
                f"{in_shell(kept)} has it built again"
            )
        run_as(repository.user, ["touch", kept])
        refuse_shared(kept, repository.user)
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
    # Files that are closed in the repository aren't in the build: Git keeps no such modes.
    must(run_as(user, ["mkdir", "-p", "-m", "700", kept]), f"{kept} can't be made")
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
        _run_build(recipe, folder, repository, kept, f"{name} ({revision.text})")
        notify(f"built {name} in {duration(time.monotonic() - began)}")
    must(run_as(user, ["touch", kept / DONE]), f"{kept} can't be written")


def let_reader_in(way: str, user: ServerUser | None, top: Path) -> ServerUser | None:
    """Return as whom a configuration's server reads a build, and let that user read one of root's.

    `user` is whose build it is, None where it is ours.
    """
    reader, kept = user or server_user() if way == "conf" else None, top.parent
    if reader and user is None and stat.S_IMODE(kept.stat().st_mode) == PRIVATE:
        share_with_group(kept, reader.gid)
    return reader


def _newer_files(user: ServerUser | None, kept: Path) -> str | None:
    """Return names of files in a build that are newer than itself; caches and logs aside."""
    files = kept / "files"
    newer = ("find", files, "-type", "f", "-newer", kept / DONE, "-printf", "/%P\\0")
    inside = filter(None, run_as(user, newer).stdout.split("\0"))
    names = sorted(path[1:] for path in inside if not any(part in path for part in CACHES))
    names = [name if name.isprintable() else ascii(name) for name in names]
    return listed_to(SHOWN_WRITTEN, names) or None


def _run_build(recipe: Recipe, folder: Path, repository: Repository, kept: Path, name: str) -> None:
    user = repository.user
    inherited = {name: os.environ[name] for name in recipe.inherited if name in os.environ}
    filled_in = [each for text in recipe.environment.values() for each in SECRET.findall(text)]
    ours = dict.fromkeys([*inherited, *filled_in])
    stranger = user if user and not user.called_sudo else None
    if ours and stranger:
        raise UserError(
            f"the build of {name} runs as {stranger.name}, and would get variables of yours: "
            f"{', '.join(ours)}; call webdyno as {stranger.name}"
        )
    # Others may not be able to read them.
    trusted = () if stranger else CERTIFICATES
    inherited |= {name: os.environ[name] for name in trusted if name in os.environ}
    own = {name: with_secrets(text, os.environ) for name, text in recipe.environment.items()}
    command = recipe.build or ":"
    end = run_build(
        ["/bin/sh", "-c", command],
        Testbed().with_user(user),
        folder=folder,
        environment={**PLAIN_ENVIRONMENT, **inherited, REPOSITORY: str(repository.top), **own},
    )
    end = replace(end, said=hidden(end.said))
    log = kept / "build.log"
    run_as(user, ["/bin/sh", "-c", 'cat >"$1"', "sh", log], given=end.said)
    if end.code != 0:
        variables_hint = _hint_at_variables(recipe, f"{command}\n{end.said}")
        hints = f"{_hint_at_ignored_files(repository)}{variables_hint}"
        raise OperationError(f"{end.failure(name, command, log)}{hints}")


def _hint_at_ignored_files(repository: Repository) -> str:
    ignored = repository.ignored_files()
    if not ignored:
        return ""
    return (
        f"\nrevisions lack what Git ignores in {repository.top}: "
        f"{listed_to(SHOWN_IGNORED, ignored)}. If it needs that, build has to make it or to "
        f'copy it, such as cp "${REPOSITORY}/{ignored[0].rstrip("/")}" .'
    )


def _hint_at_variables(recipe: Recipe, said: str) -> str:
    """Return a hint at variables of the caller that a failed build, or its tools, look for."""
    given = {*recipe.environment, *recipe.inherited, *CERTIFICATES}
    usual = OF_TOOLS | (OF_NETWORK if LACKS_NETWORK.search(said) else set())
    lacking = sorted(
        name
        for name in set(os.environ) - given
        if name in usual or ("_" in name and re.search(rf"\b{re.escape(name)}\b", said))
    )
    if not lacking:
        return ""
    names = ", ".join(f'"{name}"' for name in lacking[:SHOWN_NAMES])
    return (
        f"\na build has no variables of your shell but PATH; if it lacks one, build_variables = "
        f"[{names}] under [app] of {PROJECT_FILE} passes it on"
    )


def _cache(user: ServerUser | None) -> Path:
    """Return the folder of kept builds, by the XDG Base Directory Specification."""
    said = os.environ.get("XDG_CACHE_HOME", "") if user is None else ""
    base = Path(said) if said.startswith("/") else home_of(user) / ".cache"
    return base / "webdyno" / "revisions"


def _build_key(repository: Repository, revision: Revision, recipe: Recipe) -> str:
    what = [
        *(BUILD_FORMAT, str(repository.top), revision.built_from, recipe.build, str(recipe.folder)),
        sorted(recipe.environment.items()),
        [(module.path, module.is_here) for module in repository.submodules(revision.commit)],
    ]
    what += ["again"] if recipe.again else []
    what += [f"inherits {name}" for name in recipe.inherited]
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()[:20]


def _sweep(repository: Repository) -> None:
    before = time.time() - KEPT_FOR_S
    old = [path for path in _cache(repository.user).glob("*/") if path.stat().st_mtime < before]
    if old:
        run_as(repository.user, ["rm", "-rf", *old])
        repository.forget_removed()
