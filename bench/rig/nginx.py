"""A private nginx: own folder, free port on the loopback interface, pinned, unprivileged."""

import http.client
import os
import re
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

from rig.process import BenchError, pinned

FILES = {"/100b": 100, "/100kb": 100 * 1024, "/1mb": 1024 * 1024}
"""Path and bytes of what is served."""

GREETING = b"\0\0\0\0\x0d\x0a\x0bHello world"
"""What a call of gRPC is answered: a `HelloReply`, with the five bytes before it."""

READY_WITHIN_S = 5.0
COUNTERS_WITHIN_S = 30.0
"""The status page queues behind the load, which can be tens of thousands of requests."""
NOBODY = 65534
# The signal is set once more, because a change of user clears it.
AS_NOBODY = (
    *("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
    *("--pdeathsig", "TERM"),
)
TEMPORARY_PATHS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")

# Without multi_accept a busy nginx takes one connection a turn: thousands would wait for seconds.
CONFIG = """\
daemon off;
worker_processes {workers};
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections {connections}; multi_accept on; }}
http {{
    {temporary_paths}
    access_log off;
    sendfile on;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    server {{
        listen 127.0.0.1:{ports.plain} backlog=4096;
        listen 127.0.0.1:{ports.http2} backlog=4096 http2;
        {tls}
        root {folder}/files;
        location = /status {{ stub_status; }}
        # A file is for GET, which what stands in the place of an error makes of any method.
        location = /helloworld.Greeter/SayHello {{ error_page 404 =200 /greeting; }}
        location = /greeting {{ default_type application/grpc; add_trailer grpc-status 0 always; }}
    }}
}}
"""
# Nobody can resume a session, so that each new connection costs every client the same.
TLS = """\
listen 127.0.0.1:{ports.tls} backlog=4096 ssl http2;
        ssl_certificate {folder}/certificate.pem;
        ssl_certificate_key {folder}/key.pem;
        ssl_session_cache off;
        ssl_session_tickets off;"""


@dataclass(frozen=True)
class Ports:
    """Where it listens: before version 1.25 a port in clear speaks only one protocol."""

    plain: int
    http2: int
    tls: int
    """Speaks both, as the client wants it."""


@dataclass(frozen=True)
class Counters:
    """What nginx has counted since its start; the question for them is not included."""

    accepts: int
    requests: int
    active: int
    """Connections open now."""


class Server(Protocol):
    """What clients load, and what it counts meanwhile."""

    def url(self, path: str, *, tls: bool = False, http2: bool = False) -> str:
        """Give the URL of a path."""
        ...

    def counters(self) -> Counters:
        """Give what it has counted, without this question."""
        ...


def parse_status(text: str) -> Counters:
    """Read the page of nginx's stub_status module."""
    found = re.search(r"Active connections: (\d+)\s+\D+(\d+) \d+ (\d+)", text)
    if not found:
        raise BenchError(f"nginx's status page has an unknown form: {text!r}")
    active, accepts, requests = map(int, found.groups())
    return Counters(accepts=accepts, requests=requests, active=active)


class Nginx:
    """A running nginx."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self._asked = 0

    def url(self, path: str, *, tls: bool = False, http2: bool = False) -> str:
        """Give the URL of a path."""
        if tls:
            return f"https://127.0.0.1:{self._ports.tls}{path}"
        return f"http://127.0.0.1:{self._ports.http2 if http2 else self._ports.plain}{path}"

    def counters(self) -> Counters:
        """Ask nginx for its counters, and take away these questions themselves."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._ports.plain, timeout=COUNTERS_WITHIN_S
        )
        try:
            connection.request("GET", "/status")
            seen = parse_status(connection.getresponse().read().decode())
        except (OSError, http.client.HTTPException) as error:
            raise BenchError(f"nginx does not tell its counters: {error}") from None
        finally:
            connection.close()
        self._asked += 1
        return Counters(seen.accepts - self._asked, seen.requests - self._asked, seen.active - 1)


@contextmanager
def running_nginx(
    cpus: Sequence[int],
    connections: int = 1024,
    *,
    tls: bool = False,
    pages: Mapping[str, str] | None = None,
) -> Iterator[Nginx]:
    """Serve FILES on these CPUs, one worker each, every one for up to `connections` clients.

    `pages` are texts by their paths next to them.
    """
    with TemporaryDirectory(prefix="bench-nginx-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "files").mkdir()
        for path, size_bytes in FILES.items():
            (folder / "files" / path[1:]).write_bytes(b"x" * size_bytes)
        (folder / "files/greeting").write_bytes(GREETING)
        for path, text in (pages or {}).items():
            (folder / "files" / path[1:]).write_text(text)
        ports = _free_ports()
        if tls:
            _make_certificate(folder)
        config = CONFIG.format(
            workers=len(cpus),
            # With less than a sixteenth of them free, nginx closes connections that are idle.
            connections=2 * connections,
            folder=folder,
            ports=ports,
            tls=TLS.format(ports=ports, folder=folder) if tls else "",
            temporary_paths=" ".join(
                f"{each}_temp_path {folder}/{each};" for each in TEMPORARY_PATHS
            ),
        )
        (folder / "nginx.conf").write_text(config)
        command = ["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/nginx.conf"]
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
            command = [*AS_NOBODY, *command]
        try:
            # TERM, because a killed master would leave its workers behind.
            process = subprocess.Popen(pinned(command, cpus, parent_death="TERM"))
        except FileNotFoundError:
            raise BenchError("setpriv was not found; it is in Debian's util-linux") from None
        try:
            _wait_until_ready(process, ports.plain, folder)
            yield Nginx(ports)
        finally:
            process.terminate()
            process.wait()


def _free_ports() -> Ports:
    with socket.socket() as first, socket.socket() as second, socket.socket() as third:
        probes = (first, second, third)
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return Ports(*(probe.getsockname()[1] for probe in probes))


def _make_certificate(folder: Path) -> None:
    """Write a certificate for this address that no one has to trust, and its key."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    name = ("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1")
    files = ("-keyout", f"{folder}/key.pem", "-out", f"{folder}/certificate.pem")
    try:
        subprocess.run(
            ["openssl", "req", "-x509", *key, *name, *files],
            check=True,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise BenchError(
            "openssl was not found; --tls needs it (apt-get install openssl)"
        ) from None
    except subprocess.CalledProcessError as error:
        raise BenchError(f"openssl made no certificate: {error.stderr.strip()}") from None
    # Only its owner may read a key, and as root nginx runs as somebody else.
    (folder / "key.pem").chmod(0o644)


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    end_s = time.monotonic() + READY_WITHIN_S
    while process.poll() is None and time.monotonic() < end_s:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.005)
        else:
            return
    log = folder / "error.log"
    said = log.read_text()[-2000:] if log.exists() else "nothing"
    raise BenchError(
        f"nginx did not start (is it installed? apt-get install nginx); it says: {said}"
    )
