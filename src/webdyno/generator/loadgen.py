"""webdyno's own engine behind `loadgen serve`: a JSON line in, a JSON line out, per slot."""

import json
import logging
import os
import re
import selectors
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import ValidationError

from webdyno.generator.contract import order_json
from webdyno.generator.interface import (
    GeneratorError,
    LoadOrder,
    LoginError,
    ServerResponse,
)
from webdyno.host.children import must, run_program
from webdyno.model.errors import UserError
from webdyno.model.experiment import OWN_GENERATOR
from webdyno.model.load import Load
from webdyno.model.load_result import SCHEMA, LoadResult
from webdyno.model.request import WrittenRequest
from webdyno.model.testbed import is_in_own_network

logger = logging.getLogger(__name__)

PATIENCE_S = 15.0
"""How long the engine may overstay a slot's duration and its time-out before it counts as hung."""

LOGIN = re.compile(r"login of user (\d+), step (\d+) of \d+: (.*)", re.DOTALL)
"""How the engine begins when a server didn't let a user in."""
LOGIN_PATIENCE_S = 600.0
"""How long all users together may take to log in: checking passwords takes servers long on purpose.
"""
LOGIN_TIMEOUT_S = 60.0
"""A response to a login at least has so long: a server with one worker checks one at a time."""


def find_loadgen() -> Path:
    """Find the engine: $WEBDYNO_LOADGEN, this checkout's build, the wheel's, then the PATH."""
    if named := os.environ.get("WEBDYNO_LOADGEN"):
        if os.access(named, os.X_OK):
            return Path(named)
        raise UserError(
            f"WEBDYNO_LOADGEN names {named}, which is not a program; correct or unset it"
        )
    package = Path(__file__).parents[1]
    for built in (package.parents[1] / "loadgen/target/release/loadgen", package / "bin/loadgen"):
        if built.exists():
            return built
    if path := shutil.which("loadgen"):
        return Path(path)
    raise UserError(
        "the load engine is not built; in a checkout './dyno doctor' builds it, "
        "else set WEBDYNO_LOADGEN to the program"
    )


def loadgen_version() -> str:
    """Give the engine's name and version, as recorded with a run."""
    program = find_loadgen()
    return must(run_program([program, "--version"], within_s=10), f"{program} doesn't work")


class Loadgen:
    """A running `loadgen serve`, its threads pinned to `cpus`, one each."""

    name = OWN_GENERATOR

    def __init__(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> None:
        """`entry` are words before the command that let it run in a network of our own.

        Without CPUs it has one thread, which runs anywhere.
        """
        self._cpus = cpus
        self._entry = entry
        self._process: subprocess.Popen[bytes] | None = None
        self._unread = bytearray()

    def __enter__(self) -> Self:
        """Start the engine in a session of its own, so that Ctrl-C reaches only webdyno."""
        cpus = ",".join(map(str, self._cpus))
        pinned = ["--cpus", cpus] if cpus else []
        self._process = subprocess.Popen(
            [*self._entry, find_loadgen(), "serve", *pinned],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        logger.debug("process %d is the load engine, on CPUs %s", self._process.pid, cpus or "any")
        return self

    def __exit__(self, *_: object) -> None:
        """Close the engine's input, which ends it; kill it if it doesn't hear."""
        process, self._process = self._process, None
        if process is None:
            return
        logger.debug("the load engine, process %d, is to end", process.pid)
        if process.stdin:
            process.stdin.close()
        try:
            process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout:
            process.stdout.close()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def slot(self, order: LoadOrder) -> LoadResult:
        """Load a server for one slot."""
        patience_s = order.load_s + order.load.timeout_s + PATIENCE_S
        logger.debug("the load engine is given %s, for %g s at most", order.id, patience_s)
        answer = self._answer(order, self._order(order), patience_s)
        logger.debug("the load engine has answered")
        try:
            return LoadResult.model_validate(answer | _offered(order))
        except ValidationError as error:
            raise GeneratorError(
                f"the load engine's answer to slot {order.id} is not of the agreed form: {error}"
            ) from error

    def log_in(self, order: LoadOrder) -> None:
        """Have an order's users log in, where they haven't."""
        if order.users is not None and order.users.login:
            asked = self._order(order)
            asked["session"]["only_login"] = True
            asked["load"]["timeout_s"] = max(order.load.timeout_s, LOGIN_TIMEOUT_S)
            logger.debug("the load engine is given the logins of %s", order.id)
            self._answer(order, asked, LOGIN_PATIENCE_S)

    def trace(self, order: LoadOrder, *, accepts_within_s: float = 0.0) -> Iterator[ServerResponse]:
        """Ask for all once, over one connection; where connections are users, one logs in before.

        Where nobody accepts a connection, it is tried again for so long. The responses have to be
        taken to their end.
        """
        asked = self._order(order) | {"trace": {"accepts_within_s": accepts_within_s}}
        answer = self._answer(order, asked, LOGIN_PATIENCE_S)
        while "traced" not in answer:
            body = self._read(self._running, answer["body_bytes"], LOGIN_PATIENCE_S)
            yield _response(answer, body)
            answer = self._next_line(order, LOGIN_PATIENCE_S)

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise GeneratorError("the load engine has not been started")
        return self._process

    def _answer(self, order: LoadOrder, asked: dict[str, Any], patience_s: float) -> dict[str, Any]:
        """Give what the engine answers to one line; raise GeneratorError for an error."""
        process = self._running
        assert process.stdin is not None  # noqa: S101 (requested in __enter__)
        line = memoryview(json.dumps(asked).encode() + b"\n")
        try:
            while line:
                line = line[process.stdin.write(line) :]
        except BrokenPipeError:
            raise self._died(process) from None
        return self._next_line(order, patience_s)

    def _next_line(self, order: LoadOrder, patience_s: float) -> dict[str, Any]:
        try:
            answer: dict[str, Any] = json.loads(self._read_line(self._running, patience_s))
        except json.JSONDecodeError as error:
            raise GeneratorError(
                f"the load engine's answer to slot {order.id} is not of the agreed form: {error}"
            ) from error
        if (spoken := answer.get("schema", SCHEMA)) != SCHEMA:
            raise GeneratorError(
                f"{find_loadgen()} speaks version {spoken!r:.20} of the engine's "
                f"contract, this webdyno version {SCHEMA}: build it again ('./dyno doctor' in a "
                "checkout), or set WEBDYNO_LOADGEN to a program of the same version"
            )
        if "error" in answer:
            why = str(answer["error"])
            if login := LOGIN.fullmatch(why):
                raise LoginError(int(login[1]), int(login[2]), login[3])
            raise GeneratorError(f"the load engine refused {order.id}: {why}")
        return answer

    def _order(self, order: LoadOrder) -> dict[str, Any]:
        # In a network of our own nobody else can be reached.
        is_ours = is_in_own_network(order.url)
        return order_json(order) | ({"allow_remote": True} if is_ours or order.allow_remote else {})

    def _read_line(self, process: subprocess.Popen[bytes], patience_s: float) -> bytes:
        begin = 0
        while (end := self._unread.find(b"\n", begin)) < 0:
            begin = len(self._unread)
            self._receive(process, patience_s)
        return self._read(process, end + 1, patience_s)

    def _read(self, process: subprocess.Popen[bytes], count: int, patience_s: float) -> bytes:
        while len(self._unread) < count:
            self._receive(process, patience_s)
        taken = bytes(self._unread[:count])
        del self._unread[:count]
        return taken

    def _receive(self, process: subprocess.Popen[bytes], patience_s: float) -> None:
        assert process.stdout is not None  # noqa: S101 (requested in __enter__)
        with selectors.PollSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            if not selector.select(patience_s):
                raise GeneratorError(f"the load engine did not answer within {patience_s:.0f} s")
        chunk = os.read(process.stdout.fileno(), 1 << 20)
        if not chunk:
            raise self._died(process)
        self._unread += chunk

    @staticmethod
    def _died(process: subprocess.Popen[bytes]) -> GeneratorError:
        return GeneratorError(f"the load engine ended unexpectedly (exit code {process.wait()})")


def _response(answer: Mapping[str, Any], body: bytes) -> ServerResponse:
    return ServerResponse(
        status=answer["status"],
        version=answer["version"],
        headers=[(name, value) for name, value in answer["headers"]],
        head_bytes=answer["head_bytes"],
        body=body,
        tls=answer.get("tls", ""),
        failure=answer.get("failure"),
        trouble=answer.get("trouble"),
        came_bytes=answer.get("came_bytes", 0),
        took_s=answer.get("took_s", 0.0),
        is_login=answer["login"],
        number=answer["request"],
        captured=answer["captured"],
    )


def _offered(order: LoadOrder) -> dict[str, float | None]:
    together = order.load.burst * max(many for many, _ in order.flows())
    offered: dict[str, float | None] = {
        "offered_rps": order.offered_rps(),
        "due_together": together if together > 1 else None,
    }
    if order.replay is None:
        return offered
    return offered | {"last_offered_rps": order.offered_rps(order.duration_s / 3)}


class Engine:
    """webdyno's own engine as one of the programs that make load: it can do and tells all."""

    name = OWN_GENERATOR
    protocol = "http"
    tells_times = True
    tells_windows = True
    need = None
    biases = ()

    def fault(self, load: Load, requests: Sequence[WrittenRequest]) -> None:
        """Nothing that a load can ask for is beyond it."""

    def version(self) -> str:
        return loadgen_version()

    def new(self, cpus: Sequence[int], entry: Sequence[str] = ()) -> Loadgen:
        return Loadgen(cpus, entry)


PROGRAM = Engine()
