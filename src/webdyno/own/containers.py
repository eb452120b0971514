"""The script that starts the containers of a variant, each in its network, with its names."""

import json
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.own import container_names
from webdyno.own.compose_order import Awaits
from webdyno.own.podman import Image, Podman

SCRIPT, NAMES, NAME_SERVER = "start.sh", "names.json", "names.py"
SUBNET, FIRST = "10.89.7", 2
"""Of the network between containers; the one that is asked has the address before the first."""
HEAD = """\
# Starts {written}, in a network of its own that ends with it.
set -eu
here=$PWD
group=/webdyno-$(basename "$(dirname "$here")")/$(basename "$here")
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
link=$(echo {{{{ server.host }}}} | tr . -)
outside="nsenter --net=/proc/$PPID/ns/net"
network=/proc/self/ns/net

ip link add eth0 type veth peer name "$link" netns $PPID
ip address add {{{{ server.host }}}} peer {{{{ server.client }}}} dev eth0
ip link set lo up
ip link set eth0 up
$outside ip address add {{{{ server.client }}}} peer {{{{ server.host }}}} dev "$link"
$outside ip link set "$link" up
mount -t tmpfs none /dev/shm    # Podman keeps its locks there, for all containers of the machine

podman_run() {{
    exec nsenter --net="$network" {run} --cgroup-parent "$group" --cpuset-cpus "$cpus" "$@"
}}
"""
SEVERAL = """\
# The container that is asked, and those that have networks of their own, on one bridge.
ip link add services type bridge
ip address add {front}/24 dev services
ip link set services up

# network NUMBER NAME ADDRESS: a network for a container
network() {{
    touch "network-$2"
    unshare --net="$here/network-$2" true
    inside="nsenter --net=network-$2"
    $inside ip link add eth0 type veth peer name "service-$1" netns $$
    ip link set "service-$1" master services up
    $inside ip address add "$3/24" dev eth0
    $inside ip link set lo up
    $inside ip link set eth0 up
}}

# run_named NAME WORDS…: a container to its end, its lines with its name before them
run_named() {{
    name=$1
    shift
    {{
        code=0
        (network=$here/network-$name; podman_run "$@") || code=$?
        echo "$code" >"$here/$name.code"
    }} 2>&1 | sed -u "s/^/$name | /"
}}

# beside NAME WORDS…: a container whose end ends all, so that nobody measures what is left
beside() {{
    (
        run_named "$@"
        echo "webdyno: the service $1 ended by itself with exit code $(cat "$here/$1.code")"
        echo "webdyno: one that may end is depended on with service_completed_successfully"
        kill -TERM $$
    ) &
}}

# ended NAME WORDS…: a container that has to end well before the next ones start
ended() {{
    run_named "$@"
    code=$(cat "$here/$1.code")
    [ "$code" = 0 ] || {{
        echo "webdyno: the service $1, which others wait for, ended with exit code $code and not 0"
        exit 1
    }}
}}

# healthy NAME WORDS…: waits until a command in a container succeeds
healthy() {{
    name=$1 before=
    shift
    echo "webdyno: waiting until $name is healthy: $*"
    until said=$({podman} exec "$name" "$@" 2>&1); do
        [ "$said" = "$before" ] || echo "webdyno: $name isn't healthy: $said"
        before=$said
        sleep 0.2
    done
}}
"""
NAMED_VOLUME = re.compile(r"--volume=([A-Za-z0-9][\w.-]*):")


@dataclass(frozen=True)
class Container:
    """One container of a variant."""

    name: str
    image: Image
    names: Sequence[str] = ()
    """By which others know it as well."""
    environment: dict[str, str] = field(default_factory=dict)
    options: Sequence[str] = ()
    """For `podman run`."""
    command: Sequence[str] = ()
    """In the place of the image's own."""
    ports: Sequence[int] = ()
    """Where it says that it listens; as its image says unless given."""
    awaits: Awaits = ""
    """What is waited for before those behind it are started."""
    health: Sequence[str] = ()
    """The command that tells whether it is healthy."""


def container_files(
    written: str, engine: Podman, containers: Sequence[Container]
) -> dict[str, str]:
    """Give the script and what it needs beside the variables of the containers."""
    texts = {SCRIPT: _script(written, engine, containers)}
    if len(containers) > 1:
        texts[NAMES] = json.dumps(_addresses(containers), indent=1)
        texts[NAME_SERVER] = Path(container_names.__file__).read_text(encoding="utf-8")
    return texts


def variables_file(name: str) -> str:
    return f"{name}.env"


def _script(written: str, engine: Podman, containers: Sequence[Container]) -> str:
    """Give the script; what is asked is the last container, and becomes the script's process."""
    one_line = written.replace("\n", " ")
    parts = [HEAD.format(written=one_line, run=engine.run_words())]
    *others, front = containers
    if others:
        parts.append(SEVERAL.format(podman=engine.here_words(), front=_address(containers, front)))
        parts += [
            f"network {number} {other.name} {_address(containers, other)}"
            for number, other in enumerate(others, 1)
        ]
        networks = " ".join(["/proc/self/ns/net", *(f"network-{other.name}" for other in others)])
        python = shlex.join([sys.executable, "-I", "-S", NAME_SERVER, NAMES])
        parts.append(f"{python} {networks}\n")
    # Containers that are started at once would each want to make it.
    parts += [f"{engine.here_words()} volume create {name} >&2\n" for name in _shared(containers)]
    for other in others:
        how = "ended" if other.awaits == "ended" else "beside"
        parts.append(f"{how} {other.name} {_words(other, containers)}\n")
        if other.awaits == "healthy":
            parts.append(f"healthy {other.name} {shlex.join(other.health)}\n")
    parts.append(f"podman_run {_words(front, containers)}\n")
    return "\n".join(parts)


def _address(containers: Sequence[Container], container: Container) -> str:
    *others, front = containers
    return f"{SUBNET}.{FIRST - 1 if container is front else FIRST + others.index(container)}"


def _addresses(containers: Sequence[Container]) -> dict[str, str]:
    """Give the address of each name; a service's own comes before what else one is called."""
    own = {container.name.lower(): _address(containers, container) for container in containers}
    more = {
        name.lower(): _address(containers, container)
        for container in containers
        for name in container.names
    }
    return more | own


def _words(container: Container, containers: Sequence[Container]) -> str:
    known = _addresses(containers) if len(containers) > 1 else {}
    hosts = [f"--add-host={name}:{address}" for name, address in known.items()]
    resolver = [f"--dns={container_names.ADDRESS}", "--dns-search=."] if known else []
    return shlex.join(
        [
            *("--name", container.name, *resolver, *hosts),
            *("--env-file", variables_file(container.name)),
            *(*container.options, container.image.id, *container.command),
        ]
    )


def _shared(containers: Sequence[Container]) -> Iterator[str]:
    """Name the volumes that several containers have."""
    owners: dict[str, set[str]] = {}
    for container in containers:
        for option in container.options:
            if named := NAMED_VOLUME.match(option):
                owners.setdefault(named[1], set()).add(container.name)
    return (name for name, of in owners.items() if len(of) > 1)
