"""`webdyno load`: load on a URL by the load generator, with flags and exit codes of webdyno."""

import logging
import re
import signal
import subprocess
import tempfile
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.core.errors import Exit, OperationError, UserError
from webdyno.interfaces.cli.flags import flag

logger = logging.getLogger(__name__)

CODES = {
    0: Exit.OK,
    1: Exit.INVALID,  # requests failed, or none was answered
    2: Exit.USER_ERROR,
    3: Exit.INVALID,  # the client was saturated
    4: Exit.FAILED,  # what was measured could not be written
    5: Exit.WORSE,  # a limit was crossed
}
MERGE = "merge"
"""In the place of a URL: what follows are results."""
LIMIT = re.compile(r"\s*+((?:(?:ttft|itl|tpot) )?[\w.]+)\s*+([<>])\s*+([0-9][\w.]*)\s*+(%?)\s*+")
SHARES = {"failures", "retried", "unanswered"}
"""Limits that may be shares of the requests."""
LINES = {".jsonl", ".ndjson", ".json"}
END_WITHIN_S = 10.0


@Parameter(name="*")
@dataclass(frozen=True)
class LoadFlags:
    """The load, as the load generator takes it."""

    connections: Annotated[int, flag("COUNT: connections of the load", "-c", "--connections")] = 64
    time: Annotated[str | None, flag("DURATION: length of the load [default: 10s]")] = None
    count: Annotated[int | None, flag("COUNT: requests to send [default: no limit]")] = None
    rate: Annotated[float | None, flag("RATE: arrivals per second [default: closed loop]")] = None
    rate_per_conn: Annotated[
        float | None, flag("RATE: of each connection, which sends only its own.", rare=True)
    ] = None
    burst: Annotated[
        int | None, flag("COUNT: requests due at once, at the same rate.", rare=True)
    ] = None
    method: Annotated[str | None, flag("NAME: method [default: GET]")] = None
    header: Annotated[Sequence[str], flag("FIELD: a header, such as 'Accept: text/html'.")] = ()
    user: Annotated[str | None, flag("NAME:PASSWORD: basic authentication; or --bearer TOKEN.")] = (
        None
    )
    bearer: Annotated[str | None, Parameter(show=False)] = None
    compressed: Annotated[bool, flag("Ask for compressed bodies.")] = False
    data: Annotated[str | None, flag("TEXT: body of each request, or @FILE.")] = None
    message: Annotated[
        str | None, flag("TEXT: of WebSocket (--binary), JSON of gRPC (--proto FILE).")
    ] = None
    binary: Annotated[bool, Parameter(show=False)] = False
    broadcast: Annotated[
        bool, flag("WebSocket: one more sends; all connections receive.", rare=True)
    ] = False
    proto: Annotated[Path | None, Parameter(show=False)] = None
    events: Annotated[
        str | None, flag("FORMAT: time each event (token) of streams: sse, lines, grpc.")
    ] = None
    goodput: Annotated[
        Sequence[str],
        flag("LIMIT: of streams: 'ttft<500ms', 'tpot<50ms', 'latency<5s'."),
    ] = ()
    once: Annotated[bool, flag("Send one request; show it and its response.")] = False
    traffic: Annotated[Path | None, flag("FILE: requests, one JSON object a line.")] = None
    expect_status: Annotated[Sequence[int], flag("STATUS: valid ones [default: any 2xx]")] = ()
    expect_bytes: Annotated[
        int | None, flag("BYTES: length of a valid body; --expect-sha256 HEX.", rare=True)
    ] = None
    expect_sha256: Annotated[str | None, Parameter(show=False)] = None
    ramp_up: Annotated[str | None, flag("DURATION: load before, discarded.", rare=True)] = None
    conn_ramp: Annotated[
        str | None, flag("DURATION: in which connections begin, one by one.", rare=True)
    ] = None
    threads: Annotated[int | None, flag("COUNT: threads [default: 1]")] = None
    cpus: Annotated[str | None, flag("LIST: CPUs to run on, such as 0,2-3.", rare=True)] = None
    keepalive: Annotated[
        str | None, flag("HOW: requests per connection: always, never, a number.")
    ] = None
    timeout: Annotated[
        str | None, flag("DURATION: longest wait for a response [default: 5s, events 60s]")
    ] = None
    think: Annotated[
        str | None,
        flag("DURATION: pause, closed loop; --think-distribution exponential.", rare=True),
    ] = None
    think_distribution: Annotated[str | None, Parameter(show=False)] = None
    seed: Annotated[int | None, flag("NUMBER: of all random choices [default: 0]", rare=True)] = (
        None
    )
    stage: Annotated[
        Sequence[str], flag("STAGE: LENGTH:RATE or LENGTH:FROM-TO, as 1m:0-1000.", rare=True)
    ] = ()
    times: Annotated[
        Path | None, flag("FILE: moments of requests, in seconds, one a line.", rare=True)
    ] = None
    conn_rate: Annotated[float | None, flag("RATE: new connections per second.", rare=True)] = None
    requests_per_conn: Annotated[
        int | None, flag("COUNT: on each of --conn-rate [default: 1]", rare=True)
    ] = None
    poisson: Annotated[bool, flag("Arrivals at random, not evenly spaced.", rare=True)] = False
    send_delay_budget: Annotated[
        str | None, flag("TIME: send so much later, several at once, at most.", rare=True)
    ] = None
    kernel_times: Annotated[
        bool, flag("Time responses by when the kernel got them.", rare=True)
    ] = False
    max_backlog: Annotated[
        int | None, flag("COUNT: that wait for a connection [default: 100000]", rare=True)
    ] = None
    zipf: Annotated[
        float | None, flag("EXPONENT: popularity of requests by Zipf's law.", rare=True)
    ] = None
    replay: Annotated[Path | None, flag("FILE: access log to replay.", rare=True)] = None
    replay_speed: Annotated[
        float | None, flag("FACTOR: how much faster than it was.", rare=True)
    ] = None
    cookies: Annotated[bool, flag("Send back the cookies that are set.", rare=True)] = False
    exclude_client_limited: Annotated[
        bool, flag("Exclude windows with a saturated client.", rare=True)
    ] = False
    window: Annotated[str | None, flag("DURATION: of windows [default: 1s]", rare=True)] = None
    source: Annotated[
        Sequence[str], flag("ADDRESS: local ones to connect from, in turn.", rare=True)
    ] = ()
    idle_connections: Annotated[int | None, flag("COUNT: idle connections as well.", rare=True)] = (
        None
    )
    slow_readers: Annotated[
        int | None, flag("COUNT: slow readers as well; --slow-rate BYTES per second.", rare=True)
    ] = None
    slow_rate: Annotated[int | None, Parameter(show=False)] = None
    connect_to: Annotated[
        Sequence[str], flag("RULE: connect elsewhere: HOST:PORT:TO_HOST:TO_PORT.")
    ] = ()
    resolve: Annotated[
        Sequence[str], flag("RULE: addresses for a host: HOST:PORT:ADDRESS,…", rare=True)
    ] = ()
    ipv4: Annotated[
        bool, flag("IPv4 addresses only; -6, --ipv6: only those.", "-4", "--ipv4", rare=True)
    ] = False
    ipv6: Annotated[bool, Parameter(name=["-6", "--ipv6"], show=False)] = False
    allow_remote: Annotated[bool, flag("Allow other machines as targets.")] = False
    http2: Annotated[bool, flag("Speak HTTP/2; --http3: HTTP/3.", rare=True)] = False
    http3: Annotated[bool, Parameter(show=False)] = False
    streams: Annotated[
        int | None, flag("COUNT: requests at a time per HTTP/2 or 3 connection.", rare=True)
    ] = None
    cacert: Annotated[Path | None, flag("FILE: certificates to trust, as PEM.", rare=True)] = None
    tls_verify: Annotated[
        str | None, flag("HOW: check the server's certificate [default: on]", rare=True)
    ] = None
    cert: Annotated[
        Path | None, flag("FILE: the client's certificate, as PEM; --key FILE.", rare=True)
    ] = None
    key: Annotated[Path | None, Parameter(show=False)] = None
    tls_version: Annotated[str | None, flag("VERSION: only 1.2 or 1.3.", rare=True)] = None
    tls_resumption: Annotated[
        str | None, flag("HOW: on or off: resume TLS sessions [default: on]", rare=True)
    ] = None
    prometheus: Annotated[
        Path | None, flag("FILE: metrics of each window, for Prometheus.", rare=True)
    ] = None
    log_requests: Annotated[
        Path | None, flag("FILE: each request as JSON, or one in --log-every N.", rare=True)
    ] = None
    log_every: Annotated[int | None, Parameter(show=False)] = None

    def words(self) -> Iterator[str]:
        """Return them as the load generator's own flags."""
        for field in fields(self):
            value = getattr(self, field.name)
            flag = f"--{field.name.replace('_', '-')}"
            if value is True:
                yield flag
            elif value is not None and value is not False:
                several = value if isinstance(value, tuple | list) else [value]
                yield from (f"{flag}={each}" for each in several)


AS_USUAL = LoadFlags()


def load(
    *urls: Annotated[str, flag("URL: http(s), ws(s), grpc(s), http+unix; or merge FILE….")],
    flags: LoadFlags = AS_USUAL,
    fail_if: Annotated[
        Sequence[str], flag("LIMIT: such as 'p99 > 50ms' or 'failures > 0': exit 4.")
    ] = (),
    stop_if: Annotated[
        Sequence[str], flag("LIMIT: ends the load: 'failures > 5%', 'p99 > 2s'.")
    ] = (),
    format_: Annotated[
        str, flag("FORMAT: text, json, csv or hdr [default: text]", "--format")
    ] = "text",
    output: Annotated[Path | None, flag("FILE: for csv and hdr.", "-o", "--output")] = None,
    quiet: Annotated[bool, flag("Print only the result and errors.")] = False,
) -> Exit:
    """Put load on a URL and print what was measured.

    The loop is closed (each connection sends again when it has its response) unless throughput is
    given: then latency counts from when requests were scheduled. Exit code 1: requests failed, or
    the client was saturated. merge adds up results (--format json) of several machines.

    For example

        webdyno load http://127.0.0.1:8080/ --time 30s

        webdyno load http://127.0.0.1:8080/ --rate 2000 --fail-if 'p99 > 50ms'

        webdyno load ws://127.0.0.1:8080/chat --message hello

        webdyno load grpc://127.0.0.1:50051/hello.Greeter/Say --message @call.json

        webdyno load http://127.0.0.1:8080/ --once

        webdyno load http://127.0.0.1:8080/ --time 10m --stop-if 'failures > 5%'

        webdyno load merge a.json b.json
    """
    from webdyno.load.engine import find_loadgen

    urls = tuple(
        url if "://" in url or url == MERGE or urls[0] == MERGE else f"http://{url}" for url in urls
    )
    limits = [f"--fail-if={_limit('--fail-if', text)}" for text in fail_if]
    if urls[:1] == (MERGE,):
        return _run([str(find_loadgen()), *urls, *limits, *_format_flags(format_, output)])
    if not urls and flags.traffic is None:
        raise UserError("load lacks URL: such as http://127.0.0.1:8080/")
    if flags.traffic is not None and flags.traffic.suffix not in LINES:
        raise UserError(f"--traffic {flags.traffic}: load takes lines of JSON, a .jsonl file")
    words = [
        *replace(flags, proto=None).words(),
        *limits,
        *(f"--stop-if={_limit('--stop-if', text)}" for text in stop_if),
        *_format_flags(format_, output),
        *(["--quiet"] if quiet else []),
        *urls,
    ]
    with _protoset(flags.proto) as services:
        return _run([str(find_loadgen()), "run", *services, *words])


@contextmanager
def _protoset(proto: Path | None) -> Iterator[list[str]]:
    """Name a file to the load generator that has what a `.proto` file and its imports say."""
    if proto is None:
        yield []
        return
    from webdyno.load.proto import compiled

    with tempfile.NamedTemporaryFile(suffix=".protoset") as file:
        file.write(b64decode(compiled(proto, Path.cwd(), "--proto")))
        file.flush()
        yield [f"--protoset={file.name}"]


def _limit(flag: str, text: str) -> str:
    match = LIMIT.fullmatch(text)
    if match is None or (match[4] and match[1] not in SHARES):
        relative = ": there is no baseline here" if "%" in text else ""
        raise UserError(f"{flag} '{text}'{relative}; write 'p99 > 50ms' or 'failures > 0.1%'")
    return text


def _format_flags(format_: str, output: Path | None) -> list[str]:
    if format_ in {"csv", "hdr"}:
        if output is None:
            raise UserError(f"--format {format_}: name its file with -o FILE")
        return [f"--{format_}={output}"]
    if output is not None:
        raise UserError(f"-o {output}: is for --format csv and hdr; else the shell's > FILE")
    if format_ not in {"text", "json"}:
        raise UserError(f"--format {format_}: should be text, json, csv or hdr")
    return ["--json"] if format_ == "json" else []


def _run(words: Sequence[str]) -> Exit:
    """Run the load generator at the terminal; after a Ctrl-C, which reaches it too, wait for it."""
    from webdyno.host.children import ending_with_us, interrupt

    try:
        engine = subprocess.Popen([*ending_with_us("TERM"), *words])
    except OSError as error:
        raise OperationError(f"{words[0]} can't be started: {error.strerror}") from error
    logger.debug("process %d is the load engine", engine.pid)
    with engine:
        try:
            engine.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            interrupt(engine, END_WITHIN_S)
            return Exit.INTERRUPTED
    return CODES.get(engine.returncode, Exit.FAILED)
