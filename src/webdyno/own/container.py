"""The script that starts the containers of an arm, in order, in a network of their own."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from webdyno.model.service import ID_FILE
from webdyno.own.compose_order import Awaits
from webdyno.own.kind import verbatim
from webdyno.own.podman import Image, Podman

SCRIPT = "start.sh"
HEAD = """\
# Starts {written}, in a network of its own that ends with it.
set -eu
here=$PWD
group=/webdyno-$(basename "$(dirname "$here")")/$(basename "$here")
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
link=$(echo {{{{ server.host }}}} | tr . -)
outside="nsenter --net=/proc/$PPID/ns/net"

ip link add eth0 type veth peer name "$link" netns $PPID
ip address add {{{{ server.host }}}} peer {{{{ server.client }}}} dev eth0
ip link set lo up
ip link set eth0 up
$outside ip address add {{{{ server.client }}}} peer {{{{ server.host }}}} dev "$link"
$outside ip link set "$link" up
mount -t tmpfs none /dev/shm    # Podman keeps its locks there, for all containers of the machine

podman_run() {{
    exec {run} --cgroup-parent "$group" --cpuset-cpus "$cpus" "$@"
}}
"""
SEVERAL = """\
# run_named NAME WORDS…: a container to its end, its lines with its name before them
run_named() {{
    name=$1
    shift
    {{
        code=0
        (podman_run "$@") || code=$?
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
    """One container of an arm."""

    name: str
    image: Image
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


def script(written: str, engine: Podman, containers: Sequence[Container]) -> str:
    """Give the script; what is asked is the last container, and becomes the script's process."""
    one_line = written.replace("\n", " ")
    parts = [HEAD.format(written=one_line, run=engine.run_words())]
    if len(containers) > 1:
        parts.append(SEVERAL.format(podman=engine.here_words()))
    # Containers that are started at once would each want to make it.
    parts += [f"{engine.here_words()} volume create {name} >&2\n" for name in _shared(containers)]
    *others, front = containers
    for it in others:
        how = "ended" if it.awaits == "ended" else "beside"
        parts.append(f"{how} {it.name} {_words(it, containers)}\n")
        if it.awaits == "healthy":
            parts.append(f"healthy {it.name} {shlex.join(it.health)}\n")
    parts.append(f"podman_run {_words(front, containers)}\n")
    return "\n".join(parts)


def _words(container: Container, containers: Sequence[Container]) -> str:
    hosts = [f"--add-host={it.name}:127.0.0.1" for it in containers if len(containers) > 1]
    return shlex.join(
        [
            *("--name", container.name, "--cidfile", f"{container.name}{ID_FILE}"),
            *(*hosts, "--env-file", variables_file(container.name)),
            *(*container.options, container.image.id, *container.command),
        ]
    )


def _shared(containers: Sequence[Container]) -> Iterator[str]:
    """Name the volumes that several containers have."""
    owners: dict[str, set[str]] = {}
    for it in containers:
        for option in it.options:
            if named := NAMED_VOLUME.match(option):
                owners.setdefault(named[1], set()).add(it.name)
    return (name for name, of in owners.items() if len(of) > 1)


def variables_file(name: str) -> str:
    """Name the file with a container's variables."""
    return f"{name}.env"


MARKS = ("{{ server.host }}", "{{ server.client }}")


def as_template(text: str) -> str:
    """Have nothing but our own marks filled in."""
    for mark in MARKS:
        if mark in text:
            return mark.join(as_template(part) for part in text.split(mark))
    return verbatim(text)
