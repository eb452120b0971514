"""Docker: its daemon on this machine, the images that it has or can get, and its containers.

Whoever may use its socket may use it here, without being root, and has the images and the build
cache that are there. Its daemon starts the containers, which are no processes of ours: the start
command waits next to them and passes on what they print, and another one removes them at the end,
however webdyno ends. What that one was kept from is removed by the next webdyno.
"""

import functools
import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from webdyno.core.errors import OperationError, UserError
from webdyno.core.service import Need
from webdyno.core.testbed import ADDRESSES_EACH
from webdyno.host.children import run_program
from webdyno.host.users import name_of
from webdyno.host.workspace import sweep
from webdyno.systems.containers.engine import (
    NAMED_VOLUME,
    SCRIPT,
    Container,
    Engine,
    Image,
    StartFiles,
    end_of,
    named_volumes,
    run,
    shell_part,
    start_lines,
    variables_file,
)
from webdyno.systems.target import Notify

ANSWERS_WITHIN_S = 20.0
LOCAL = "unix://"
END_SCRIPT = "end.sh"
SERVER = "{{ server.folder }}"
FRONT = 2
"""Of the addresses of a variant that of the container that is asked."""
MOST_CONTAINERS = ADDRESSES_EACH - 4
"""The other addresses are the network's, its bridge's, that of nobody, and everybody's."""
KINDS = ("container", "network", "volume")
"""What the daemon keeps for us, in the order in which it can be removed."""
USUAL = "/var/run/docker.sock"
PID_FILES = ("/var/run/docker.pid", "/run/snap.docker/docker.pid")
"""Of a daemon that is up and listens there."""
PODMANS_STORE = "/containers/storage"


class NoDockerError(OperationError):
    """Why Docker can't be used here, and what to do about it."""


@dataclass(frozen=True)
class Docker(Engine):
    """Docker's daemon on this machine, by the client of its command line."""

    title = "Docker"
    needs = {"docker": Need(command=["docker"], apt="docker.io")}
    network = "its own, by a bridge of Docker's"
    endpoint: str
    """`unix:///var/run/docker.sock`."""
    version: str
    takes_groups: bool
    """Whether containers can be in the control groups of their service."""

    def words(self) -> list[str]:
        return ["docker", "--host", self.endpoint]

    def build_variables(self, folder: Path) -> Mapping[str, str]:  # noqa: ARG002 (as the others')
        """Return what has the daemon's own builder build: images of others aren't in its store."""
        return {"BUILDX_BUILDER": "default"}

    def find(self, name: str, notify: Notify) -> Image:
        """Find an image at Docker or a registry; raise OperationError without."""
        if image := self.inspect(name):
            return image
        notify(f"fetching {name} …")
        done = run([*self.words(), "pull", "--quiet", "--", name])
        if done.returncode or not (image := self.inspect(name)):
            raise OperationError(
                f"there is no image {name}: Docker hasn't got it, and its registry didn't give it; "
                f"build it first (docker build --tag {shlex.quote(name)} .), or see its name. "
                f"Docker said:\n{end_of(done)}"
            )
        return image

    def start_files(
        self, written: str, containers: Sequence[Container], *, inside: bool
    ) -> StartFiles:
        """Return what has the daemon start containers, and what removes them."""
        if inside:
            raise UserError(
                f"{written}: services of the catalog can't stand behind containers of Docker: name "
                "the database in its Compose file, or have Podman run them as root, by "
                "--containers podman"
            )
        if len(containers) > MOST_CONTAINERS:
            raise UserError(f"{written} has more than {MOST_CONTAINERS} containers")
        names, volumes = [each.name for each in containers], named_volumes(containers)
        lasting = [each.name for each in containers if each.awaits != "ended"]
        settings = '--config "$here/settings"'
        docker = f"docker {settings} {shlex.join(self.words()[1:])}"
        group = '--cgroup-parent "/webdyno-$(basename "$workspace")/$(basename "$here")"'
        head = shell_part(
            "docker.sh",
            written=written.replace("\n", " "),
            docker=docker,
            addresses=str(ADDRESSES_EACH),
            prefix=str(32 - (ADDRESSES_EACH - 1).bit_length()),
            group=group if self.takes_groups else "",
        )
        *before, front = start_lines(containers, lambda each: _words(each, containers))
        script = "\n".join([head, *before, f"list {shlex.join(lasting)} &", front])
        end = shell_part(
            "docker_end.sh",
            written=written.replace("\n", " "),
            docker=docker,
            containers=shlex.join(f"-{name}" for name in names),
            volumes=shlex.join(f"-{name}" for name in volumes),
        )
        return StartFiles(
            {SCRIPT: script, END_SCRIPT: end},
            ["/bin/sh", f"{SERVER}/{SCRIPT}"],
            {
                "removed_by": ["/bin/sh", f"{SERVER}/{END_SCRIPT}"],
                "groups_elsewhere": not self.takes_groups,
            },
        )


def _words(container: Container, containers: Sequence[Container]) -> str:
    """Return the words of shell behind those that run a container."""
    *others, front = containers
    # Docker gives addresses from the lowest on, and that of the front has been promised.
    number = 0 if container is front else others.index(container) + 1
    entry, rest = [], []
    if container.entrypoint is not None:
        first, *rest = container.entrypoint or ("",)
        entry = [f"--entrypoint={first}"]
    options = [_option(option) for option in container.options]
    known = [f"--network-alias={name}" for name in container.names]
    plain = [*known, "--env-file", variables_file(container.name), *entry]
    behind = [container.image.id, *rest, *container.command]
    address = f'--ip "$network.$((first + {FRONT + number}))"'
    return " ".join([address, *options, shlex.join(plain), shlex.join(behind)])


def _option(option: str) -> str:
    """Return an option as a word of shell; named volumes have the start's name before their own."""
    if NAMED_VOLUME.match(option):
        return f'--volume="$start"-{shlex.quote(option.removeprefix("--volume="))}'
    return shlex.quote(option)


def docker() -> Docker:
    """Return Docker as it works here; raise NoDockerError where it doesn't."""
    if shutil.which("docker") is None:
        raise NoDockerError("Docker isn't installed")
    context = _answer("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    if context.returncode:
        raise NoDockerError("the program docker here isn't Docker's own, or too old")
    endpoint = context.stdout.strip()
    if not endpoint.startswith(LOCAL):
        raise NoDockerError(
            f"Docker's daemon is at {endpoint}, and containers are measured on their own machine: "
            f"call webdyno there, or export DOCKER_HOST={LOCAL}{USUAL}"
        )
    return _reached(endpoint)


def daemon_listens() -> bool:
    """Whether a daemon runs on this machine that who calls may use; it isn't asked.

    Where systemd listens in its place, a question would start it.
    """
    endpoint = os.environ.get("DOCKER_HOST") or LOCAL + USUAL
    path = endpoint.removeprefix(LOCAL)
    if not endpoint.startswith(LOCAL) or not os.access(path, os.W_OK):
        return False
    return path != USUAL or any(Path(file).is_file() for file in PID_FILES)


def _answer(*words: str) -> CompletedProcess[str]:
    """Ask what takes no time, unless the daemon hangs; raise NoDockerError where it does."""
    try:
        return run_program(["docker", *words], within_s=ANSWERS_WITHIN_S)
    except OperationError as late:
        raise NoDockerError(str(late)) from None


@functools.cache
def _reached(endpoint: str) -> Docker:
    """Ask the daemon what it can do, and remove what killed runs left there; once."""
    done = _answer("--host", endpoint, "info", "--format", "{{json .}}")
    try:
        info: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        info = {}
    if not info.get("ServerVersion"):
        raise NoDockerError(_why_silent(endpoint, f"{info.get('ServerErrors', '')}{done.stderr}"))
    if fault := _fault(info):
        raise NoDockerError(fault)
    takes_groups = os.geteuid() == 0 and info.get("CgroupDriver") == "cgroupfs"
    engine = Docker(endpoint, info["ServerVersion"], takes_groups)
    _sweep(engine)
    return engine


def _why_silent(endpoint: str, said: str) -> str:
    path = endpoint.removeprefix(LOCAL)
    if "permission denied" in said.lower():
        return (
            f"{name_of(None)} may not use Docker's socket {path}: sudo usermod -aG docker "
            f"{name_of(None)} allows it from the next login on (that group can do what root can)"
        )
    return f"Docker doesn't answer at {path}: sudo systemctl start docker"


def _fault(info: Mapping[str, Any]) -> str | None:
    """Why containers of a daemon can't be measured; None if they can."""
    if "desktop" in str(info.get("OperatingSystem")).lower():
        return (
            "Docker Desktop has its containers in a virtual machine, where their CPU time can't be "
            "seen: call webdyno in there, or install Docker Engine"
        )
    if any("rootless" in str(option) for option in info.get("SecurityOptions") or ()):
        return (
            "rootless Docker has its containers in a network that only a proxy of its own leads "
            f"to: use Docker's usual daemon, by export DOCKER_HOST={LOCAL}{USUAL}"
        )
    if str(info.get("DockerRootDir")).endswith(PODMANS_STORE):
        return "Podman answers in Docker's place"
    if not info.get("CPUSet"):
        return "Docker can't keep containers on CPUs here: its daemon lacks the controller cpuset"
    return None


def _sweep(engine: Docker) -> None:
    """Remove what is there of runs that were killed together with who looked after them."""
    sweep()
    # This user's, where temporary folders are the same: as the start script has it.
    label = f"webdyno.{os.geteuid()}.{Path('/proc/self/ns/mnt').stat().st_ino}"
    for kind in KINDS:
        every = ["--all"] if kind == "container" else []
        each = "{{.Name}}" if kind == "volume" else "{{.ID}}"
        form = f'{each} {{{{.Label "{label}"}}}}'
        words = [*engine.words(), kind, "ls", *every, "--filter", f"label={label}"]
        lines = run([*words, "--format", form]).stdout.splitlines()
        left = [line.split(" ", 1) for line in lines]
        gone = [name for name, place in left if not Path(place).is_dir()]
        force = ["--force", "--volumes"] if kind == "container" else []
        if gone:
            run([*engine.words(), kind, "rm", *force, *gone])
