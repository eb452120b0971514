"""Podman: which of its runtimes and storages work here, and the images that it has or can get.

It runs containers without a service in the background: they are children of who starts them, so
that a variant's container is watched, confined and ended like any server. Images that Docker has
are taken over.
"""

import functools
import json
import os
import re
import resource
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdyno.core.errors import OperationError
from webdyno.core.format import indent
from webdyno.core.service import Need
from webdyno.core.tables import as_table
from webdyno.host.children import python_file
from webdyno.host.control_group import forget_groups
from webdyno.systems.containers import container_names
from webdyno.systems.containers.engine import (
    SCRIPT,
    Container,
    Engine,
    Image,
    StartFiles,
    end_of,
    run,
    shell_part,
    start_lines,
    variables_file,
)
from webdyno.systems.target import Notify, Provide

NEEDS = {
    "podman": Need(command=["podman"], apt="podman"),
    "runtime": Need(command=["crun", "runc"], apt="runc"),
    "ip": Need(command=["ip"], apt="iproute2"),
    "nsenter": Need(command=["nsenter"], apt="util-linux"),
}
RUNTIMES = ("crun", "runc")
DOCKER_HUB = "docker.io"
CONTAINERS = Path("/etc/containers")
MAIN_CONFIGURATION = "registries.conf"
REGISTRIES = (
    CONTAINERS / MAIN_CONFIGURATION,
    Path("/usr/share/containers") / MAIN_CONFIGURATION,
    *sorted((CONTAINERS / "registries.conf.d").glob("*.conf")),
)
"""containers-registries.conf(5): the first of the first two is heeded, and all others."""
SAYS_REGISTRIES = re.compile(
    r"^[^\S\n]*(?:unqualified-search-registries|\[registries\.)", re.MULTILINE
)
OWN_REGISTRIES = "CONTAINERS_REGISTRIES_CONF"
POLICY = "policy.json"
POLICIES = (Path.home() / ".config/containers" / POLICY, CONTAINERS / POLICY)
"""containers-policy.json(5): the first is heeded."""
OF_REGISTRIES = ("docker", "containers-storage")
"""Where images of registries are: there, and here once they were fetched."""
TRIAL = f"trial-{os.getpid()}"
"""Names the control groups of a container that never runs."""
NOT_FOUND = 127
"""What `podman run` ends with when all went well but there is no such program in the container."""
OPEN_FILES, PROCESSES = 65536, 16384
"""At most. Podman would give a container all that root may have, which some sandboxes refuse."""
SHOWN_LETTERS = 200
NAMES, NAME_SERVER = "names.json", "names.py"
SUBNET, FIRST = "10.89.7", 2
"""Of the network between containers; the one that is asked has the address before the first."""


@dataclass(frozen=True)
class Podman(Engine):
    """Podman with the storage and the runtime that work here."""

    title = "Podman"
    needs = NEEDS
    network = "its own, by a pair of virtual Ethernet devices"
    without_proxies = ("--http-proxy=false",)
    version: str
    forced: tuple[str, ...]
    """Words that choose how its images are stored, where its own choice doesn't work."""
    storage: str
    """How they are stored: overlay, or vfs where that isn't possible."""
    images: Path
    """Where it keeps them."""
    runtime: str

    def words(self) -> list[str]:
        """Return the words before a subcommand that has to do with its images."""
        return ["podman", *self.forced, "--runtime", self.runtime]

    def find(self, name: str, notify: Notify) -> Image:
        """Find an image by name at Podman, Docker or a registry; raise OperationError without."""
        if image := self.inspect(name) or self.inspect(full_name(name)):
            return image
        source = full_name(name)
        docker = shutil.which("docker")
        of_docker = docker and not run(["docker", "image", "inspect", "--", name]).returncode
        if of_docker:
            last = name.rpartition("/")[2]
            source = f"docker-daemon:{name}{'' if ':' in last or '@' in last else ':latest'}"
        registry = full_name(name).partition("/")[0]
        notify(f"fetching {name} from {'Docker' if of_docker else registry} …")
        done = run([*self.words(), "pull", "--quiet", "--", source])
        image_id = (done.stdout.split() or [""])[-1]
        if done.returncode or not (image := self.inspect(image_id)):
            raise OperationError(
                f"there is no image {name}: neither Podman nor Docker has it as root, and "
                f"{registry} didn't give it; build it first, or see its name. Podman "
                f"said:\n{end_of(done)}"
            )
        if of_docker:  # so that the next run sees what Docker has by then
            run([*self.words(), "untag", image_id])
        return image

    def build_words(self) -> list[str]:
        # The other format has no health checks.
        return [*self.words(), "build", "--format", "docker", *_limits()]

    def build_variables(self, folder: Path) -> Mapping[str, str]:
        return short_names(folder)

    def revision_options(self, folder: Path) -> list[str]:
        """Return the option by which it has a policy of its own for images."""
        (file := folder / POLICY).write_text(json.dumps(registries_alone()))
        return ["--signature-policy", str(file)]

    def start_files(
        self, written: str, containers: Sequence[Container], *, inside: bool
    ) -> StartFiles:
        """Return what starts containers as children of it, in a network that it makes."""
        addresses = addresses_of(containers) if len(containers) > 1 else {}
        texts = {SCRIPT: self._script(written, containers, addresses)}
        if addresses:
            texts[NAMES] = json.dumps(addresses, indent=1)
            texts[NAME_SERVER] = Path(container_names.__file__).read_text(encoding="utf-8")
        joins = ["/usr/bin/nsenter", "--net={{ server.network }}"] if inside else []
        own = [] if inside else ["--net"]
        shell = ["/bin/sh", f"{{{{ server.folder }}}}/{SCRIPT}"]
        return StartFiles(texts, ["/usr/bin/unshare", "--mount", *own, *joins, *shell])

    def _script(
        self, written: str, containers: Sequence[Container], addresses: Mapping[str, str]
    ) -> str:
        title = written.replace("\n", " ")
        podman, run_words = self.here_words(), self.run_words()
        parts = [shell_part("podman.sh", written=title, run=run_words, podman=podman)]
        *others, front = containers
        if others:
            parts.append(shell_part("podman_bridge.sh", front=_address(containers, front)))
            parts += [
                f"network {number} {other.name} {_address(containers, other)}"
                for number, other in enumerate(others, 1)
            ]
            networks = ["/proc/self/ns/net", *(f"network-{other.name}" for other in others)]
            parts.append(f"{shlex.join([*python_file(NAME_SERVER), NAMES, *networks])}\n")
        parts += start_lines(containers, lambda each: _words(each, addresses))
        return "\n".join(parts)

    def here_words(self) -> str:
        """Return words of shell before a subcommand about containers kept in the current folder."""
        words = [
            *("podman", "--storage-driver", self.storage, "--runtime", self.runtime),
            *("--storage-opt", f"additionalimagestore={self.images}"),
            *("--cgroup-manager", "cgroupfs", "--events-backend", "none"),
        ]
        places = '--root "$here/storage" --runroot "$here/state" --tmpdir "$here/temporary"'
        return f"{shlex.join(words)} {places}"

    def run_words(self) -> str:
        """Return the words, for a shell, that run a container of an image in such a place."""
        run = ["run", "--network", "host", "--pull", "never", "--log-driver", "passthrough"]
        return f"{self.here_words()} {shlex.join([*run, *_limits()])}"


def _words(container: Container, addresses: Mapping[str, str]) -> str:
    """Return the words of shell behind those that run a container."""
    hosts = [f"--add-host={name}:{address}" for name, address in addresses.items()]
    resolver = [f"--dns={container_names.ADDRESS}", "--dns-search=."] if hosts else []
    entry = []
    if container.entrypoint is not None:
        entry = [f"--entrypoint={json.dumps(list(container.entrypoint))}"]
    return shlex.join(
        [
            *(*resolver, *hosts, "--env-file", variables_file(container.name)),
            *(*container.options, *entry, container.image.id, *container.command),
        ]
    )


def _address(containers: Sequence[Container], container: Container) -> str:
    *others, front = containers
    return f"{SUBNET}.{FIRST - 1 if container is front else FIRST + others.index(container)}"


def addresses_of(containers: Sequence[Container]) -> dict[str, str]:
    """Return the address of each name; a service's own comes before what else one is called."""
    own = {container.name.lower(): _address(containers, container) for container in containers}
    more = {
        name.lower(): _address(containers, container)
        for container in containers
        for name in container.names
    }
    return more | own


def full_name(name: str) -> str:
    """Return an image's name with its registry: docker.io unless it names one, as Docker has it."""
    first, slash, _ = name.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return name
    return f"{DOCKER_HUB}/{name}" if slash else f"{DOCKER_HUB}/library/{name}"


def short_names(folder: Path, configurations: Sequence[Path] = REGISTRIES) -> dict[str, str]:
    """Return the variable that has short names mean docker.io where nothing says what they mean.

    Debian's Podman comes like that, and refuses the `FROM nginx` of a Dockerfile.
    """
    texts = {
        configuration: configuration.read_text(errors="replace")
        for configuration in configurations
        if configuration.is_file()
    }
    if OWN_REGISTRIES in os.environ or any(SAYS_REGISTRIES.search(text) for text in texts.values()):
        return {}
    main = [text for path, text in texts.items() if path.name == MAIN_CONFIGURATION]
    file = folder / MAIN_CONFIGURATION
    setting = f'unqualified-search-registries = ["{DOCKER_HUB}"]'
    file.write_text("\n".join([setting, *main[:1]]))
    return {OWN_REGISTRIES: str(file)}


def registries_alone(policies: Sequence[Path] = POLICIES) -> dict[str, Any]:
    """Return this machine's policy for images of registries, which takes none of anywhere else.

    An image's name may say where it lies, in a Dockerfile too: `tarball:/root/backup.tar`
    (containers-transports(5), containers-policy.json(5)).
    """
    file = next(filter(Path.is_file, policies), None)
    try:
        policy = as_table(json.loads(file.read_text()) if file else None)
    except ValueError as error:
        raise OperationError(f"{file}: is no JSON, and Podman reads it: {error}") from None
    usual = policy.get("default", [{"type": "insecureAcceptAnything"}])
    known = as_table(policy.get("transports"))
    taken = {name: {"": usual} | as_table(known.get(name)) for name in OF_REGISTRIES}
    return {"default": [{"type": "reject"}], "transports": taken}


def podman(provide: Provide, notify: Notify) -> Podman:
    """Return Podman as it works here; raise OperationError where it doesn't, or isn't wanted."""
    if os.geteuid() != 0:
        raise OperationError(
            "containers as variants take root, since each gets a network and control groups of its "
            "own: call webdyno by sudo (images are then those of root's Podman, or Docker's)"
        )
    provide(NEEDS.values())
    return _tried_out(notify)


@functools.cache
def _tried_out(notify: Notify) -> Podman:
    """Find the storage and the runtime that work; done, and reported, once."""
    for forced in ((), ("--storage-driver", "vfs")):
        answer = run(["podman", *forced, "info", "--format", "json"])
        if answer.returncode == 0:
            break
    else:
        raise OperationError(f"Podman doesn't work here; it said:\n{end_of(answer)}")
    info = json.loads(answer.stdout)
    storage, images = info["store"]["graphDriverName"], Path(info["store"]["graphRoot"])
    usual = info["host"]["ociRuntime"]["name"]
    refused: dict[str, str] = {}
    for runtime in dict.fromkeys(filter(None, (usual, *RUNTIMES))):
        candidate = Podman(info["version"]["Version"], forced, storage, images, runtime)
        fault = _fault(candidate) if shutil.which(runtime) else "it isn't installed"
        if fault is None:
            if forced:
                notify("images are kept by the driver vfs, since overlay isn't possible here")
            if refused:
                why = ", ".join(f"{name} refuses ({fault})" for name, fault in refused.items())
                notify(f"containers are run by {runtime}: {why}")
            return candidate
        refused[runtime] = fault
    faults = indent(f"{name}: {fault}" for name, fault in refused.items())
    raise OperationError(f"Podman can't run containers here, with none of its runtimes:\n{faults}")


def _fault(candidate: Podman) -> str | None:
    """Have a runtime start a program that isn't there; say why it doesn't come as far as that."""
    with tempfile.TemporaryDirectory() as empty:
        words = [*candidate.words(), "--cgroup-manager", "cgroupfs"]
        words += ["run", "--rm", "--network", "host", "--cgroup-parent", f"/webdyno-{TRIAL}"]
        done = run([*words, *_limits(), "--rootfs", empty, "/nothing"])
    forget_groups(TRIAL)
    if done.returncode == NOT_FOUND:
        return None
    complaint = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return complaint.removeprefix("Error: ").removeprefix("OCI runtime error: ")[:SHOWN_LETTERS]


def _limits() -> list[str]:
    """Return the flags that keep a container's limits within ours."""
    limits = {
        "nofile": (resource.RLIMIT_NOFILE, OPEN_FILES),
        "nproc": (resource.RLIMIT_NPROC, PROCESSES),
    }
    words = []
    for name, (which, at_most) in limits.items():
        hard = resource.getrlimit(which)[1]
        count = at_most if hard == resource.RLIM_INFINITY else min(hard, at_most)
        words += ["--ulimit", f"{name}={count}:{count}"]
    return words
