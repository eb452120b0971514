"""Whether connections were made, kept and used as the settings say."""

from collections.abc import Iterator

from webdyno.audit.rules.rule import Rule, Seen, number
from webdyno.readers.output import Command, Output

FEW_PER_CONNECTION = 20
"""Requests per connection below which most of a run is its start and its end."""

MOST_UNDER_WAY = 2.5
"""Requests under way per connection from which the figures disagree. A median is at most twice the
mean, and some tools correct their times for what they did not ask."""

TIMES_CORRECTED = {"wrk", "wrk2", "k6"}
"""Tools whose rate and mean don't belong together; their readers say what is under way."""

KEPT = 0.9
"""Share of requests over kept connections: Apache closes one after each 100 by default."""

RETRANSMISSIONS_MS = (1000, 3000, 7000, 9000, 15000, 21000, 31000)
"""When a lost SYN is sent again: 1, 2, 4… s apart (RFC 6298), before 2011 3, 6, 12… s."""

ONE = (0.97, 1.03)
"""Requests under way on average, by rounded figures, when there is always exactly one."""

EARLIER, LATER = 0.99, 250
"""A connect time counts as a retransmission from 1 % below these, up to so many ms above."""


def _few_per_connection(requests: int, connections: int, what: str) -> str | None:
    if connections < 2 or requests >= FEW_PER_CONNECTION * connections:
        return None
    each = number(requests / connections)
    return f"{what} {number(requests)} requests over {number(connections)} connections: {each} each"


def _few(output: Output) -> Iterator[Seen]:
    if output.demanded_rps:
        return  # connections that wait for their turn are no start and no end
    if output.requests and output.concurrency:
        what = _few_per_connection(output.requests, output.concurrency, "only")
        if what:
            yield Seen(output.where("requests", "concurrency"), what)


def few_in_command(command: Command) -> Iterator[Seen]:
    """The same of a command whose output isn't there."""
    if command.requests and command.concurrency:
        what = _few_per_connection(command.requests, command.concurrency, "the command asks for")
        if what:
            yield Seen(command.line, what, tool=command.tool)


def _pipelined(output: Output) -> Iterator[Seen]:
    depth = output.pipelining or 1
    if depth > 1 and output.tool != "redis-benchmark":
        option = output.command.pipelined_by if output.command else None
        what = f"each connection sent {number(depth)} requests before the first answer"
        what += f" (`{option}`)" if option else ""
        line = output.where("pipelining")
        yield Seen(output.command.line if option and output.command else line, what)


def pipelining_in_command(command: Command) -> Iterator[Seen]:
    """The same of a command whose output isn't there."""
    if (command.pipelining or 1) > 1 and command.tool != "redis-benchmark":
        what = f"the command asks for pipelining (`{command.pipelined_by}`)"
        yield Seen(command.line, what, tool=command.tool)


def _too_many_under_way(output: Output) -> Iterator[Seen]:
    """Little's law: rate times mean latency is the mean number of requests under way."""
    if output.loop == "open" or not output.concurrency or output.tool == "locust":
        return
    under_way, most = output.under_way, output.concurrency * (output.pipelining or 1)
    own = output.tool in TIMES_CORRECTED
    if under_way is None and not own and output.rate_rps and output.mean_ms:
        right = 1 - (output.failed or 0) / max(1, output.requests or 0, output.failed or 0)
        under_way = right * output.rate_rps * output.mean_ms / 1000  # failures may take no time
    if under_way is not None and under_way > MOST_UNDER_WAY * most + 1:
        what = f"rate × latency is {number(under_way)} requests under way at once, over "
        what += f"{number(output.concurrency)} connections"
        yield Seen(output.where("mean_ms"), what)


def _keepalive_refused(output: Output) -> Iterator[Seen]:
    kept, whole = output.keepalive_requests, output.requests
    if kept is None or not whole or not output.keepalive_requested or kept >= KEPT * whole:
        return
    what = f"keep-alive was asked for, and {number(kept)} of {number(whole)} requests had it"
    yield Seen(output.where("keepalive_requests"), what)


def _syn_lost(output: Output) -> Iterator[Seen]:
    longest, usual = output.connect_max_ms, output.connect_median_ms
    if longest is None:
        return
    if usual is not None and usual > longest / 3:
        return  # all connections are slow: that is distance
    for again in RETRANSMISSIONS_MS:
        if EARLIER * again <= longest <= again + LATER:
            what = f"the longest connect took {number(longest)} ms, the median "
            what += f"{number(usual or 0)} ms: a lost SYN is sent again after {again // 1000} s"
            yield Seen(output.where("connect_max_ms"), what)
            return


def _one_at_a_time(output: Output) -> Iterator[Seen]:
    several = (output.connections or 0) > 1
    if several and (output.most_connections == 1 or _always_one_request(output)):
        what = f"{number(output.connections or 0)} connections, one after the other"
        yield Seen(output.where("connections"), what, serious=False)


def _always_one_request(output: Output) -> bool:
    """Whether by Little's law one request was under way all the time, no less and no more."""
    if output.most_connections is not None or not output.rate_rps or not output.mean_ms:
        return False
    return ONE[0] <= output.rate_rps * output.mean_ms / 1000 <= ONE[1]


def one_at_a_time_in_command(command: Command) -> Iterator[Seen]:
    """Without a rate httperf opens a connection when the last one is done."""
    if command.tool == "httperf" and (command.connections or 0) > 1 and not command.open_loop:
        what = f"httperf without --rate: {number(command.connections or 0)} connections, "
        yield Seen(command.line, f"{what}one after the other", serious=False, tool="httperf")


FEW_REQUESTS = Rule(
    "few-requests-per-connection",
    _few,
    why="Most of the run is opening connections and waiting for the last ones; queues, caches "
    "and worker processes never get to a steady state.",
    instead="webdyno load URL -c 64 -d 30s goes on for a time instead; webdyno duel nginx "
    "apache-prefork warms up first and repeats with fresh starts.",
)

ONE_AT_A_TIME = Rule(
    "one-at-a-time",
    _one_at_a_time,
    why="The next connection begins when the last has ended. That says how long one client "
    "waits, and nothing of many clients at once.",
    instead="webdyno load URL -c 100 -d 30s for connections side by side, or --conn-rate RATE "
    "for ones that come at a rate.",
)

PIPELINING = Rule(
    "pipelining",
    _pipelined,
    why="Browsers and HTTP clients wait for an answer before they ask again. Many requests in one "
    "packet cost a server far less, so the rate is one that no user sees.",
    instead="webdyno load URL -c 256 -d 30s sends one request at a time over each connection; "
    "measure every side so.",
)

RULES = (
    FEW_REQUESTS,
    PIPELINING,
    Rule(
        "too-many-under-way",
        _too_many_under_way,
        why="A connection has one request under way, unless requests are pipelined: either they "
        "were, or the figures are not from one run.",
        instead="webdyno load URL -c 256 -d 30s never pipelines, and gives rate and latencies of "
        "the same requests.",
    ),
    Rule(
        "keepalive-refused",
        _keepalive_refused,
        why="ab speaks HTTP/1.0: an answer without Content-Length ends with its connection, so a "
        "dynamic page pays for a new connection each time and a static one doesn't.",
        instead="webdyno load URL --keepalive always speaks HTTP/1.1 and counts how many "
        "requests were sent over kept connections.",
    ),
    Rule(
        "syn-retransmission",
        _syn_lost,
        why="The server's queue for new connections was full (or packets were lost), and the "
        "kernel's timer is in the figures: mean, p99 and rate are about the queue's length.",
        instead="Raise the server's backlog and net.core.somaxconn, or keep connections open: "
        "webdyno load URL -c 200 --keepalive always counts connect times apart.",
    ),
    ONE_AT_A_TIME,
)
