"""Processes of servers: started by us under a warden, or found by their port, and only watched."""

import json
import logging
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import psutil

from webdyno.core.debug_log import words_without_secrets
from webdyno.core.errors import OperationError
from webdyno.host import warden
from webdyno.host.children import python_file
from webdyno.host.control_group import trees
from webdyno.host.listening import Listens, holders, who_listens
from webdyno.host.users import ServerUser, open_log
from webdyno.host.workspace import Workspace

logger = logging.getLogger(__name__)

WARDEN_START_WITHIN_S = 60.0
"""It takes 0.05 s of CPU time, which is long in coming where many programs want the CPUs."""
WARDENS_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
}
PLAIN_ENVIRONMENT = {**WARDENS_ENVIRONMENT, "TZ": "UTC"}
"""The whole environment of a server: its size and content must not depend on the user's shell."""
CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "PIP_CERT"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "NPM_CONFIG_CAFILE"),
)
"""Variables with files of authorities, without which builds may trust no registry; no secrets."""
IN_FRONT_FOR_S = 0.5
"""How long the first process has to live on after other processes began to listen."""
POLL_S = 0.005
STOP = b"."
"""Asks a warden to stop. If the pipe closes without it, webdyno has died."""


class FoundProcess:
    """A server that ran before us, with what a `ServerProcess` has; it is never stopped.

    Its processes are looked for again when one of them has ended: somebody may have restarted it.
    """

    left_running = 0

    def __init__(self, port: int | None) -> None:
        """Look for what listens on a port; None: it is on another machine, with processes there."""
        self._port = port
        self._roots: list[int] = []

    def roots(self) -> list[int]:
        """Those of its processes that none of the others has started; none if we may not see it."""
        if self._port is None:
            return []
        if not self._roots or not all(map(psutil.pid_exists, self._roots)):
            pids = set(who_listens(self._port))
            self._roots = []
            for pid in sorted(pids):
                with suppress(psutil.Error):
                    parents = {parent.pid for parent in psutil.Process(pid).parents()}
                    if not pids & parents:
                        self._roots.append(pid)
        return self._roots

    def pids(self) -> list[int]:
        """Its processes, with all that they have started."""
        pids = list[int]()
        for pid in self.roots():
            pids += [pid, *pids_below(pid)]
        return list(dict.fromkeys(pids))

    def poll(self) -> int | None:
        """None: its end is seen by those who ask it."""
        return None

    def listens(self, place: Listens) -> bool:  # noqa: ARG002
        """Whoever listens there is what was requested."""
        return True

    def ask_to_stop(self) -> None:
        """It isn't ours to stop."""

    def stop(self) -> None:
        """It isn't ours to stop."""


def pids_below(pid: int) -> list[int]:
    """Return the processes that one has started, and those that they have; none when it ended."""
    with suppress(psutil.Error):
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    return []


class Circumstances(TypedDict):
    """In which a command is run."""

    cwd: Path
    env: Mapping[str, str]
    log: Path
    workspace: Workspace
    groups_to_join: NotRequired[Sequence[Path]]
    groups_to_remove: NotRequired[Sequence[Path]]
    """Control groups that it may make by itself."""
    stop_signal: NotRequired[Literal["TERM", "QUIT", "INT"]]
    stop_within_s: NotRequired[float]
    afterwards: NotRequired[Sequence[str]]
    """A command that removes what a daemon has for it, run when all of it has ended."""


class ServerProcess:
    """A running server; `pid` is its own process, whose descendants are found by `pids`."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        log: Path,
        cpus: Sequence[int],
        user: ServerUser | None,
        workspace: Workspace,
        groups_to_join: Sequence[Path] = (),
        groups_to_remove: Sequence[Path] = (),
        stop_signal: Literal["TERM", "QUIT", "INT"] = "TERM",
        stop_within_s: float = 5.0,
        afterwards: Sequence[str] = (),
        warden_cpus: Sequence[int] = (),
        entry: Sequence[str] = (),
    ) -> None:
        """Start a server in its own session; its output is appended to `log`.

        `entry` are words before the command that let it run elsewhere, such as in a namespace.
        """
        self.argv = list(argv)
        self.log = log
        self.left_running = 0
        """Processes that the first one left behind when it ended by itself; they were killed."""
        self._ends_within_s = stop_within_s + warden.KILL_WITHIN_S + 2
        if afterwards:
            self._ends_within_s += warden.AFTERWARDS_WITHIN_S
        # Whoever may run it: its warden says why it can't be run.
        name, path = self.argv[0], env.get("PATH")
        program = shutil.which(name, path=path) or shutil.which(name, os.F_OK, path) or name
        order = {
            "program": program,
            "folder": str(cwd.absolute()),
            "argv": self.argv,
            "environment": dict(env),
            "user": user.name if user else None,
            "uid": user.uid if user else None,
            "gid": user.gid if user else None,
            "groups": list(user.groups or [user.gid]) if user else None,
            "cpus": list(cpus),
            "groups_to_join": [str(path) for path in groups_to_join],
            "groups_to_remove": [str(path) for path in groups_to_remove],
            "stop_signal": int(signal.Signals[f"SIG{stop_signal}"]),
            "stop_within_s": stop_within_s,
            "afterwards": list(afterwards),
            "workspace": {
                "path": str(workspace.path),
                "lock": str(workspace.lock_path),
                "groups": [str(tree) for tree in trees(workspace.name)],
            },
        }
        # Builds print sources, and what sets a site up prints passwords.
        with open_log(log, user, closed=log.is_relative_to(workspace.path)) as output:
            self._warden = subprocess.Popen(
                [*entry, *python_file(warden.__file__)],
                cwd="/",
                env=WARDENS_ENVIRONMENT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                start_new_session=True,
            )
        if warden_cpus:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(self._warden.pid, warden_cpus)
        logger.debug(
            "process %d, a warden, starts as %s in %s, logging to %s: %s",
            *(self._warden.pid, order["user"] or "ourselves", cwd, log),
            words_without_secrets(self.argv),
        )
        self._give(json.dumps(order).encode())
        self.pid = self._read_pid()
        logger.debug("process %d is that of %s", self.pid, self.argv[0])

    def _give(self, order: bytes) -> None:
        """Nobody else can read the order: passwords may stand in it."""
        assert self._warden.stdin is not None  # noqa: S101 (it is a pipe, see above)
        with suppress(BrokenPipeError):  # it is reported when its response is read
            self._warden.stdin.write(b"%08d" % len(order) + order)
            self._warden.stdin.flush()

    def _read_pid(self) -> int:
        output = self._warden.stdout
        assert output is not None  # noqa: S101 (it is a pipe, see above)
        readable, _, _ = select.select([output], [], [], WARDEN_START_WITHIN_S)
        line = output.readline() if readable else b""
        if not line:
            self.stop()
            late = "" if readable else f" within {WARDEN_START_WITHIN_S:g} s"
            raise OperationError(f"{self.argv[0]} could not be started{late}; see {self.log}")
        return int(line)

    @property
    def warden_pid(self) -> int:
        """The process that looks after the server; no part of the server."""
        return self._warden.pid

    def poll(self) -> int | None:
        """Exit code once the server's first process and all others have ended, else None."""
        code = self._warden.poll()
        if code is not None and self._warden.stdout and not self._warden.stdout.closed:
            self.left_running = int(self._warden.stdout.readline() or 0)
            self._warden.stdout.close()
        return code

    def wait(self, within_s: float) -> int | None:
        """Wait until it has ended, and give its exit code; None when that takes longer."""
        with suppress(subprocess.TimeoutExpired):
            self._warden.wait(within_s)
        return self.poll()

    def pids(self) -> list[int]:
        """Processes of the server that live now, orphans included."""
        return pids_below(self._warden.pid)

    def listens(self, place: Listens) -> bool:
        """Whether one of its processes listens there.

        So that a response isn't somebody else's, nor that of a server which goes into the
        background: it may answer before its first process has ended, at which it is killed.
        """
        listening = holders(self.pids(), place, near=self.pid)
        if listening == []:
            return False
        if self._stays_in_front(listening or []):
            return True
        self._warden.wait(warden.KILL_WITHIN_S + 2)
        return False

    def _stays_in_front(self, listening: Sequence[int]) -> bool:
        """Whether the first process lives on; one that gives way has others listen for it.

        Daemons leave the session that the warden gave to the first process.
        """
        by_itself = self.pid in listening and all(map(self._in_session, listening))
        deadline = time.monotonic() + (0.0 if by_itself else IN_FRONT_FOR_S)
        with suppress(psutil.NoSuchProcess):
            while psutil.Process(self.pid).status() != psutil.STATUS_ZOMBIE:
                if time.monotonic() >= deadline:
                    return True
                time.sleep(POLL_S)
        return False

    def _in_session(self, pid: int) -> bool:
        with suppress(ProcessLookupError):
            return os.getsid(pid) == self.pid
        return True

    def ask_to_stop(self) -> None:
        """Ask it to stop, without waiting for its end; safe to call twice."""
        lifeline = self._warden.stdin
        if lifeline is not None and not lifeline.closed:
            logger.debug("warden %d is to stop %s", self._warden.pid, self.argv[0])
            with suppress(BrokenPipeError):  # the warden may be gone
                lifeline.write(STOP)
                lifeline.close()

    def stop(self) -> None:
        """Stop gracefully, then by force; returns when nothing is left; safe to call twice."""
        self.ask_to_stop()
        output = self._warden.stdout
        try:
            self._warden.wait(self._ends_within_s)
        except subprocess.TimeoutExpired:
            self._kill_everything()
        logger.debug("warden %d ended with exit code %s", self._warden.pid, self._warden.poll())
        if output is not None:
            output.close()

    def _kill_everything(self) -> None:
        """The warden hangs (a process that the kernel can't kill at once): do its work."""
        logger.debug("warden %d hangs; its processes are killed", self._warden.pid)
        deadline = time.monotonic() + warden.KILL_WITHIN_S
        while (pids := self.pids()) and time.monotonic() < deadline:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        self._warden.kill()
        self._warden.wait()
