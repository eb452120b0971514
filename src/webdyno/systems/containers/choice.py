"""Which engine runs containers: the one that was named, or has the image, or can be used here."""

import functools
import os
import shutil

from webdyno.core.errors import OperationError, UserError
from webdyno.systems.containers.docker import Docker, NoDockerError, daemon_listens, docker
from webdyno.systems.containers.engine import Engine, run
from webdyno.systems.containers.podman import podman
from webdyno.systems.target import CONTAINERS, Notify, TargetSpec

OF_CALLER = "WEBDYNO_CONTAINERS"
"""The variable that names an engine where nothing else does."""


def engine_for(spec: TargetSpec, image: str | None = None) -> Engine:
    """Return the engine for containers; of images, by name, the one that has them comes first.

    Docker comes before Podman, which takes root. Raise OperationError where neither can be used,
    UserError for one that isn't known.
    """
    wanted = spec.keys.containers or _named_by_variable()
    daemon = None if wanted == "podman" else _docker_or_none(wanted, spec.notify)
    if daemon and (wanted or not _is_for_podman(spec, image, daemon)):
        return daemon
    return podman(spec.provide, spec.notify)


def engine_here() -> str:
    """Return what runs containers here, for people; raise OperationError where nothing can."""
    wanted = _named_by_variable()
    daemon = None if wanted == "podman" else _docker_or_none(wanted, lambda _: None)
    return f"{daemon.title} {daemon.version}" if daemon else "Podman"


def engine_answers() -> bool:
    """Whether containers can be run here, as far as that is seen without starting anything."""
    wanted = _named_by_variable()
    if os.geteuid() == 0 and wanted != "docker" and shutil.which("podman"):
        return True
    return wanted != "podman" and bool(shutil.which("docker")) and daemon_listens()


def _named_by_variable() -> str | None:
    wanted = os.environ.get(OF_CALLER) or None
    if wanted not in {None, *CONTAINERS}:
        raise UserError(f"{OF_CALLER}={wanted} is no engine; there are {' and '.join(CONTAINERS)}")
    return wanted


def _docker_or_none(wanted: str | None, notify: Notify) -> Docker | None:
    """Return Docker; None where it can't be used and Podman may be; else raise OperationError."""
    try:
        return docker()
    except NoDockerError as fault:
        if os.geteuid() == 0 and not wanted:
            if shutil.which("docker"):
                _report(notify, f"containers are run by Podman: {fault}")
            return None
        more = "" if wanted else "; or call webdyno by sudo, so that Podman can run containers"
        raise OperationError(f"{fault}{more}") from None


@functools.cache
def _report(notify: Notify, text: str) -> None:
    """Say it once, however many variants it holds for."""
    notify(text)


def _is_for_podman(spec: TargetSpec, image: str | None, daemon: Docker) -> bool:
    """Whether Podman can do what Docker can't, or has an image that Docker hasn't."""
    if os.geteuid() != 0:
        return False
    if spec.keys.services:
        return True
    if image is None or daemon.inspect(image) or shutil.which("podman") is None:
        return False
    return run(["podman", "image", "exists", image]).returncode == 0
