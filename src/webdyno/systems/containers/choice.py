"""Which engine runs containers: the one that was named, or has the image, or can be used here."""

import os
import shutil

from webdyno.core.errors import OperationError, UserError
from webdyno.systems.containers.docker import Docker, NoDockerError, docker
from webdyno.systems.containers.engine import Engine, run
from webdyno.systems.containers.podman import podman
from webdyno.systems.target import CONTAINERS, TargetSpec

OF_CALLER = "WEBDYNO_CONTAINERS"
"""The variable that names an engine where nothing else does."""


def engine_for(spec: TargetSpec, image: str | None = None) -> Engine:
    """Return the engine for containers; of images, by name, the one that has them comes first.

    Docker comes before Podman, which takes root. Raise OperationError where neither can be used,
    UserError for one that isn't known.
    """
    wanted = spec.keys.containers or os.environ.get(OF_CALLER)
    if wanted not in {None, "", *CONTAINERS}:
        raise UserError(f"{OF_CALLER}={wanted} is no engine; there are {' and '.join(CONTAINERS)}")
    if wanted == "podman":
        return podman(spec.provide, spec.notify)
    try:
        found = docker()
    except NoDockerError as fault:
        if wanted == "docker":
            raise
        if os.geteuid() == 0:
            return podman(spec.provide, spec.notify)
        raise OperationError(
            f"{fault}; or call webdyno by sudo, so that Podman can be used"
        ) from None
    if wanted != "docker" and _is_for_podman(spec, image, found):
        return podman(spec.provide, spec.notify)
    return found


def _is_for_podman(spec: TargetSpec, image: str | None, found: Docker) -> bool:
    """Whether Podman can do what Docker can't, or has an image that Docker hasn't."""
    if os.geteuid() != 0 or spec.testbed == "netns":
        return False
    if spec.keys.services:
        return True
    if image is None or found.inspect(image) is not None or shutil.which("podman") is None:
        return False
    return run(["podman", "image", "exists", "--", image]).returncode == 0
