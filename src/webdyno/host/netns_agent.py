"""Holds the network namespaces of a testbed, and works inside them for webdyno.

Started by `host.netns` as `python -I -S netns_agent.py FD FD FD` in a session of its own;
needs nothing but the standard library. The descriptors are sockets to webdyno, one for each of
three processes: the first one's namespace is for the link between the two sides, the others are
the client's and the servers'. The namespaces have no names: when webdyno ends in any way, the
sockets close, these processes end, and with the last process inside a namespace it is gone.

Each message is a JSON object, and so is its answer:
  {"run": ARGV}        runs a command to its end          -> {"code": N, "said": TEXT}
  {"start": ARGV}      starts one that lives as long as this process -> {"said": its first line}
  {"write": [PATH, TEXT]}                                  -> {"error": TEXT | null}
  {"socket": null}     makes a TCP socket in here          -> {} with the socket
An ordinary user gets a user namespace around them, in which he has the rights that they need.
"""

import contextlib
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
PR_SET_PDEATHSIG, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 1, 47, 2
CAPABILITY_VERSION = 0x20080522
NET_ADMIN, NET_RAW = 12, 13
SIGKILL = 9
MESSAGE_BYTES = 65536
COMMAND_WITHIN_S = 20
libc = ctypes.CDLL(None, use_errno=True)


def main(descriptors: list[int]) -> None:
    """Become the process that holds the link's namespace, with two children for the sides."""
    link, *sides = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    try:
        if os.geteuid() == 0:
            unshare(CLONE_NEWNET)
        else:
            enter_own_user_namespace()
    except OSError as error:
        for end in (link, *sides):
            send_answer(end, {"error": error.strerror})
        return
    parent = os.getpid()
    for mine in sides:
        if os.fork() == 0:
            for other in (link, *sides):
                if other is not mine:
                    other.close()
            end_with(parent)
            unshare(CLONE_NEWNET)
            work(mine)
            os._exit(0)
    for side in sides:
        side.close()
    work(link)


def work(end: socket.socket) -> None:
    """Answer messages until webdyno has gone."""
    send_answer(end, {"pid": os.getpid()})
    started: list[subprocess.Popen[bytes]] = []
    with contextlib.suppress(ConnectionError):
        while message := end.recv(MESSAGE_BYTES):
            ((order, argument),) = json.loads(message).items()
            if order == "socket":
                with socket.socket() as made:
                    socket.send_fds(end, [b"{}"], [made.fileno()])
            elif order == "run":
                send_answer(end, run_to_end(argument))
            elif order == "start":
                started.append(start_program(argument))
                line = started[-1].stdout.readline()  # type: ignore[union-attr]
                send_answer(end, {"said": line.decode("utf-8", "replace").strip()})
            elif order == "write":
                send_answer(end, {"error": write(*argument)})
    for process in started:
        process.kill()


def send_answer(end: socket.socket, content: dict) -> None:  # type: ignore[type-arg]
    """Send an answer, if webdyno is still there."""
    with contextlib.suppress(ConnectionError):
        end.send(json.dumps(content).encode())


def run_to_end(argv: list[str]) -> dict:  # type: ignore[type-arg]
    """Run a command to its end."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=COMMAND_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"code": 127, "said": str(error)}
    return {"code": done.returncode, "said": done.stdout.decode("utf-8", "replace").strip()}


def start_program(argv: list[str]) -> subprocess.Popen[bytes]:
    """Start a program that is killed when this process ends."""
    parent = os.getpid()
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=lambda: end_with(parent),
    )


def write(path: str, text: str) -> str | None:
    """Write a file of the kernel; return what went wrong."""
    try:
        with open(path, "w") as file:  # noqa: PTH123 (nothing needless is imported here)
            file.write(text)
    except OSError as error:
        return error.strerror
    return None


def enter_own_user_namespace() -> None:
    """Be the same user inside, and let the commands that are run here keep the rights they need."""
    uid, gid = os.geteuid(), os.getegid()
    unshare(CLONE_NEWUSER | CLONE_NEWNET)
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        if fault := write(f"/proc/self/{name}", text):
            raise OSError(0, fault)
    rights = 1 << NET_ADMIN | 1 << NET_RAW
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    held = ctypes.create_string_buffer(24)
    libc.capget(header, held)
    effective, permitted, *_ = words = list(struct.unpack("=6I", held.raw))
    words[0:3] = [effective, permitted, rights]
    libc.capset(header, struct.pack("=6I", *words))
    for right in (NET_ADMIN, NET_RAW):
        libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, right, 0, 0)


def unshare(what: int) -> None:
    """Leave namespaces for new ones."""
    if libc.unshare(what) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def end_with(parent: int) -> None:
    """Be killed by the kernel when the parent ends."""
    libc.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]])
