"""A node of Ray on this machine, started and stopped by an order on standard input (`ssh.py`).

All that comes of a node is known by a mark in its environment, its session and the folder it was
started in, which processes inherit. Ray, at SIGTERM, doesn't always stop all of its processes, and
some of them write their title over a part of their environment.
"""

import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from socket import create_server
from typing import Annotated, Literal

import psutil
from pydantic import Field, TypeAdapter, ValidationError

from webdyno.core.base import Model
from webdyno.core.debug_log import debug_log
from webdyno.core.errors import OperationError, UserError, lacks_package
from webdyno.host.children import python_module
from webdyno.host.warden import remove_tree

logger = logging.getLogger(__name__)

MARK = "WEBDYNO_CLUSTER_NODE"
"""Environment variable with the node's address: nodes in containers are visible from outside."""
HIDDEN_SESSION = 0
"""Session id of a process whose session leader is in a PID namespace that we can't see."""
SPARING_OPTIONS = ("--object-store-memory=80000000", "--include-log-monitor=false")
"""Close to Ray's minimum, as it would take 30% of the memory by default and we send little. Nobody
reads what its log monitor collects."""
STARTED, TOO_SLOW = "Ray runtime started", "imed out"
TRIES = 3
"""Ray gives a node 30 s to start, which a busy machine may not have."""
LOOKS_EVERY_S, UP_WITHIN_S = 0.2, 120.0
SAID_LINES = 5
STOPS_WITHIN_S = 5.0
"""How long Ray may take to stop its own processes."""
ENDS_WITHIN_S = 30.0
"""How long servers of a run may take after that."""


class StartNode(Model):
    """An order to a host: be a node of a cluster."""

    order: Literal["start"] = "start"
    webdyno: str
    """The version that gives the order."""
    address: str
    """By which the other hosts reach it."""
    port: Annotated[int, Field(ge=1, le=65535)]
    """Where the head listens."""
    head: str | None
    """The head's address; None of the head."""
    token: str
    """Whoever has it may give orders."""
    debug_file: str | None = None
    """Where the node and its agents log; None: nowhere."""


class StopNode(Model):
    """An order to a host: end the node that was started there, and all that came of it."""

    order: Literal["stop"] = "stop"
    address: str
    """That it was started with."""


NODE_ORDER: TypeAdapter[StartNode | StopNode] = TypeAdapter(
    Annotated[StartNode | StopNode, Field(discriminator="order")]
)


class NodeAnswer(Model):
    """What became of an order to a host."""

    wrong: str | None = None
    """Why it wasn't carried out, for people."""
    ended: int = 0
    """How many processes ended."""
    killed: int = 0
    """How many of them had to be killed."""


def environment(token: str) -> dict[str, str]:
    """Return what a node is started with next to what is set there."""
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": token,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # else `uv run` is repeated on each host
        "RAY_worker_niceness": "0",  # else servers are nice by 15
        # An idle node wakes up less often: each time takes caches from servers and load.
        "RAY_object_manager_timer_freq_ms": "2000",
        "RAY_event_stats": "0",
        "RAY_kill_idle_workers_interval_ms": "5000",
        "RAY_memory_monitor_refresh_ms": "0",  # which would end agents, too, if memory is short
        # A host that was killed is seen within 4 s, not 15 and more; one that stalls has 12.
        "RAY_health_check_period_ms": "1000",
        "RAY_health_check_timeout_ms": "3000",
        "RAY_health_check_failure_threshold": "4",
        # A node whose head is lost ends, and what runs there for us, after so long, not a minute.
        "RAY_gcs_rpc_server_reconnect_timeout_s": "10",
    }


def start_node(order: StartNode) -> NodeAnswer:
    """Start a node, and wait until it is up; raise UserError or OperationError."""
    if order.webdyno != (here := version("webdyno")):
        raise UserError(
            f"it has webdyno {here}, and the order comes from {order.webdyno}: install the same"
        )
    if find_spec("ray") is None:
        raise lacks_package("a node takes", "ray")
    if _all_of_it(order.address):
        raise UserError("a node that webdyno started runs there already: `webdyno cluster down` it")
    try:
        create_server((order.address, 0)).close()
    except OSError as error:
        raise UserError(f"{order.address} is no address of its own: {error.strerror}") from error
    for _ in range(TRIES):
        said = _try_to_start(order)
        if STARTED in said:
            return NodeAnswer()
        stop_node(order.address)
        if TOO_SLOW not in said:
            break
    raise OperationError(
        "Ray doesn't start:\n" + "\n".join(said.strip().splitlines()[-SAID_LINES:])
    )


def stop_node(address: str) -> NodeAnswer:
    """End the node that was started here with this address, and all that came of it.

    Ray's `start` gets SIGTERM first, then what it leaves; what is there in the end is killed.
    """
    ours = _all_of_it(address)
    began = sum(map(_runs, ours))
    pids = {process.pid for process in ours}
    for process in ours:
        with suppress(psutil.Error):
            if process.ppid() not in pids:  # none of the others has started it
                process.terminate()
    for process in _left_after(STOPS_WITHIN_S, address, ours):
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    left = _left_after(ENDS_WITHIN_S, address, ours)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    if stays := _left_after(STOPS_WITHIN_S, address, ours):
        raise OperationError(
            f"these can't be killed: {', '.join(str(process.pid) for process in stays)}"
        )
    for folder in Path(tempfile.gettempdir()).glob(f"{_prefix(address)}*"):
        with suppress(OSError):
            remove_tree(folder)
    return NodeAnswer(ended=began, killed=len(left))


def _all_of_it(address: str) -> set[psutil.Process]:
    """Find all that came of a node that was started here, as far as we may look.

    Others can give their processes our mark, and go to our folder.
    """
    sessions = dict[psutil.Process, int]()
    marked, in_folder = set[psutil.Process](), set[psutil.Process]()
    for process in psutil.process_iter(["uids"]):
        if process.pid == os.getpid():
            continue
        place = Path(f"/proc/{process.pid}")
        with suppress(OSError):
            sessions[process] = os.getsid(process.pid)
        if not process.info["uids"] or process.info["uids"].real != os.geteuid():
            continue
        with suppress(OSError):
            if f"{MARK}={address}".encode() in (place / "environ").read_bytes().split(b"\0"):
                marked.add(process)
        with suppress(OSError):
            if (place / "cwd").readlink().name.startswith(_prefix(address)):
                in_folder.add(process)
    theirs = {sessions[process] for process in marked if process in sessions} - {HIDDEN_SESSION}
    in_session = {process for process, session in sessions.items() if session in theirs}
    return marked | in_folder | in_session


def _prefix(address: str) -> str:
    """Of the name of the folder in which a node is started."""
    return f"webdyno-node-{address}-"


def _left_after(wait_s: float, address: str, ours: set[psutil.Process]) -> list[psutil.Process]:
    """Wait until none of `ours` is left, at most so long; return those that are, and new ones."""
    until_s = time.monotonic() + wait_s
    while True:
        ours |= _all_of_it(address)
        left = [process for process in ours if _runs(process)]
        if not left or time.monotonic() > until_s:
            return left
        time.sleep(LOOKS_EVERY_S)


def _runs(process: psutil.Process) -> bool:
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def _try_to_start(order: StartNode) -> str:
    """Return what Ray says until it is up, or has given up."""
    logger.debug("starts a node of Ray at %s", order.address)
    folder = Path(tempfile.mkdtemp(prefix=_prefix(order.address)))
    as_head = ("--head", f"--port={order.port}", "--include-dashboard=false")
    words = (
        "--block",  # so that one process stands for the node, and watches the others
        *(as_head if order.head is None else (f"--address={order.head}:{order.port}",)),
        *(f"--node-ip-address={order.address}", *SPARING_OPTIONS),
    )
    with (folder / "said").open("x+b") as said:
        process = subprocess.Popen(
            [*python_module("ray.scripts.scripts"), "start", *words],
            env=os.environ | environment(order.token) | {MARK: order.address},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,  # else it ends with the connection that brought the order
        )
        until_s = time.monotonic() + UP_WITHIN_S
        while True:
            ended = process.poll() is not None or time.monotonic() > until_s
            said.seek(0)
            text = said.read().decode("utf-8", "replace")
            if STARTED in text or ended:
                return text
            time.sleep(LOOKS_EVERY_S)


def follow_order(order: bytes) -> NodeAnswer:
    try:
        command = NODE_ORDER.validate_json(order)
        if isinstance(command, StopNode):
            return stop_node(command.address)
        with debug_log(["start"], Path(command.debug_file) if command.debug_file else None):
            return start_node(command)
    except ValidationError:
        return NodeAnswer(wrong="it has another webdyno, which doesn't know this order")
    except (UserError, OperationError) as failure:
        return NodeAnswer(wrong=str(failure))


if __name__ == "__main__":
    sys.stdout.write(follow_order(sys.stdin.buffer.read()).model_dump_json() + "\n")
