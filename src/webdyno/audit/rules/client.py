"""Whether the client did what the settings say: connections made, kept and used, requests sent."""

from collections.abc import Iterator, Mapping

from webdyno.audit.prose import RAN_OUT, ClientCpu, CountedLoop, PageCache, PipelineDepth, RanOut
from webdyno.audit.reader import AuditedText
from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.audit.rules.under_way import THINKING
from webdyno.formats import Command, Output

OUTPUT_RULES: list[AuditRule[Output]] = []
DOCUMENT_RULES: list[AuditRule[AuditedText]] = []

FEW_PER_CONNECTION = 20
"""Requests per connection below which most of a run is its start and its end."""

KEPT = 0.9
"""Share of requests over kept connections: Apache closes one after each 100 by default."""

RETRANSMISSIONS_MS = (1000, 3000, 7000, 9000, 15000, 21000, 31000)
"""When a lost SYN is sent again: 1, 2, 4… s apart (RFC 6298), before 2011 3, 6, 12… s."""

ONE = (0.97, 1.03)
"""Requests under way on average, by rounded figures, when there is always exactly one."""

CLIENT_BUSY_PERCENT = 85

EARLIER, LATER = 0.99, 250
"""A connect time counts as a retransmission from 1% below these, up to so many ms above."""


def _few_per_connection(requests: int, connections: int, what: str) -> str | None:
    if connections < 2 or requests >= FEW_PER_CONNECTION * connections:
        return None
    each = numeral(requests / connections)
    return (
        f"{what} {numeral(requests)} requests over {numeral(connections)} connections: {each} each"
    )


@rule(
    OUTPUT_RULES,
    "client-limit",
    why="The load that was requested was never put on the server: these requests were not "
    "sent, and the rest is what the client could do.",
    instead="Keep connections open (webdyno load URL --keepalive always), add addresses to "
    "connect from (--source ADDRESS) for ports, and raise `ulimit -n` for descriptors.",
)
def client_limit(output: Output) -> Iterator[Violation]:
    line = output.where("out_of_descriptors", "failed", "gave_up", "by_status")
    for what, count in ran_out(output).items():
        times = f" {numeral(count)} times" if count > 1 else ""
        yield Violation(line, f"the client ran out of {what}{times}")


@rule(
    OUTPUT_RULES,
    "first-million",
    why="What came later is in the throughput alone: a server that broke in the last minute "
    "looks well.",
    instead="webdyno load URL -c 64 --time 30s counts each response, whatever their number.",
)
def first_million(output: Output) -> Iterator[Violation]:
    if not output.first_counted or not output.requests:
        return
    what = f"{output.tool} keeps the first {numeral(output.first_counted)} responses of "
    what += f"{numeral(output.requests)}: statuses and percentiles are of those, and its average "
    what += f"and size are {numeral(output.requests / output.first_counted)} times too large"
    yield Violation(output.where("by_status"), what, serious=False)


@rule(
    OUTPUT_RULES,
    "other-command",
    why="The output isn't of this command, so its settings aren't known; they were not used.",
    instead="Keep command and output together: webdyno run keeps every setting in the run's "
    "folder.",
)
def other_command(output: Output) -> Iterator[Violation]:
    command = output.other_command
    if not command:
        return
    if command.concurrency and output.concurrency and command.concurrency != output.concurrency:
        asks = f"{numeral(command.concurrency)} connections"
        has = f"{numeral(output.concurrency)}"
        line = output.where("concurrency")
    else:
        asks = f"{numeral(command.requests or 0)} requests"
        has = f"{numeral(output.requests or 0)}"
        line = output.where("requests")
    what = f"the command in line {command.line} asks for {asks}, and the output has {has}"
    yield Violation(line, what, serious=False)


@rule(
    OUTPUT_RULES,
    "few-requests-per-connection",
    why="Most of the run is opening connections and waiting for the last ones; queues, caches "
    "and worker processes never get to a steady state.",
    instead="webdyno load URL -c 64 --time 30s runs for a time instead; webdyno compare nginx "
    "apache-prefork warms up first and repeats with fresh starts.",
)
def few_requests_per_connection(output: Output) -> Iterator[Violation]:
    if output.demanded_rps or output.tool in THINKING:
        return  # connections that wait for their turn are no start and no end
    if output.requests and output.concurrency:
        what = _few_per_connection(output.requests, output.concurrency, "only")
        if what:
            yield Violation(output.where("requests", "concurrency"), what)


@rule(
    OUTPUT_RULES,
    "pipelining",
    why="Browsers and HTTP clients wait for a response before they ask again. Many requests in one "
    "packet cost a server far less, so the rate is one that no user sees.",
    instead="webdyno load URL -c 256 --time 30s sends one request at a time over each connection; "
    "measure every variant so.",
)
def pipelining(output: Output) -> Iterator[Violation]:
    depth = output.pipelining or 1
    if depth > 1 and output.tool != "redis-benchmark":
        option = output.command.pipelined_by if output.command else None
        what = f"each connection sent {numeral(depth)} requests before the first response"
        what += f" (`{option}`)" if option else ""
        line = output.where("pipelining")
        yield Violation(output.command.line if option and output.command else line, what)


@rule(
    OUTPUT_RULES,
    "keepalive-refused",
    why="ab speaks HTTP/1.0: a response without Content-Length ends with its connection, so a "
    "dynamic page pays for a new connection each time and a static one doesn't.",
    instead="webdyno load URL --keepalive always speaks HTTP/1.1 and counts how many "
    "requests were sent over kept connections.",
)
def keepalive_refused(output: Output) -> Iterator[Violation]:
    kept, whole = output.keepalive_requests, output.requests
    if kept is None or not whole or not output.keepalive_requested or kept >= KEPT * whole:
        return
    what = f"keep-alive was requested, and {numeral(kept)} of {numeral(whole)} requests had it"
    yield Violation(output.where("keepalive_requests"), what)


@rule(
    OUTPUT_RULES,
    "syn-retransmission",
    why="The server's queue for new connections was full (or packets were lost), and the "
    "kernel's timer is in the figures: mean, p99 and rate are about the queue's length.",
    instead="Raise the server's backlog and net.core.somaxconn, or keep connections open: "
    "webdyno load URL -c 200 --keepalive always counts connect times apart.",
)
def syn_retransmission(output: Output) -> Iterator[Violation]:
    longest, usual = output.connect_max_ms, output.connect_median_ms
    if longest is None:
        return
    if usual is not None and usual > longest / 3:
        return  # all connections are slow: that is distance
    for again in RETRANSMISSIONS_MS:
        if EARLIER * again <= longest <= again + LATER:
            what = f"the longest connect took {numeral(longest)} ms, the median "
            what += f"{numeral(usual or 0)} ms: a lost SYN is sent again after {again // 1000} s"
            yield Violation(output.where("connect_max_ms"), what)
            return


@rule(
    OUTPUT_RULES,
    "one-at-a-time",
    why="The next connection begins when the last has ended. That says how long one client "
    "waits, and nothing of many clients at once.",
    instead="webdyno load URL -c 100 --time 30s for connections side by side, or --conn-rate RATE "
    "for ones that come at a rate.",
)
def one_at_a_time(output: Output) -> Iterator[Violation]:
    several = (output.connections or 0) > 1
    if several and (output.most_connections == 1 or _always_one_request(output)):
        what = f"{numeral(output.connections or 0)} connections, one after the other"
        yield Violation(output.where("connections"), what, serious=False)


def _always_one_request(output: Output) -> bool:
    """Whether by Little's law one request was under way all the time, no less and no more."""
    if output.most_connections is not None or not output.throughput_rps or not output.mean_ms:
        return False
    return ONE[0] <= output.throughput_rps * output.mean_ms / 1000 <= ONE[1]


def ran_out(output: Output) -> Mapping[str, int]:
    """Return what the client ran out of, and how many requests it never sent for it.

    A tool may name its errors without counting them: then the count is 0, unless all are of a kind.
    """
    counts = {"file descriptors": output.out_of_descriptors} if output.out_of_descriptors else {}
    errors = output.errors | ({output.gave_up: 1} if output.gave_up else {})
    uncounted = not any(errors.values())
    for what, words in RAN_OUT.items():
        mine = {error: count for error, count in errors.items() if words.search(error)}
        if mine:
            all_of_them = (output.failed or 0) if uncounted and mine == errors else 0
            counts[what] = counts.get(what, 0) + (sum(mine.values()) or all_of_them)
    return counts


@few_requests_per_connection.also(DOCUMENT_RULES)
def few_requests_in_commands(document: AuditedText) -> Iterator[Violation]:
    for command in document.of(Command):
        if command.requests and command.concurrency:
            asks = "the command asks for"
            what = _few_per_connection(command.requests, command.concurrency, asks)
            if what:
                yield Violation(command.line, what, tool=command.tool)


@pipelining.also(DOCUMENT_RULES)
def pipelining_in_commands(document: AuditedText) -> Iterator[Violation]:
    for command in document.of(Command):
        if (command.pipelining or 1) > 1 and command.tool != "redis-benchmark":
            what = f"the command asks for pipelining (`{command.pipelined_by}`)"
            yield Violation(command.line, what, tool=command.tool)
    for setting in document.of(PipelineDepth):
        what = f"{numeral(setting.depth)} requests were sent at once over each connection"
        yield Violation(setting.line, what)


@one_at_a_time.also(DOCUMENT_RULES)
def one_at_a_time_in_commands(document: AuditedText) -> Iterator[Violation]:
    """Without a rate httperf opens a connection when the last one is done."""
    for command in document.of(Command):
        if command.tool == "httperf" and (command.connections or 0) > 1 and not command.open_loop:
            what = f"httperf without --rate: {numeral(command.connections or 0)} connections, "
            yield Violation(
                command.line, f"{what}one after the other", serious=False, tool="httperf"
            )


@rule(
    DOCUMENT_RULES,
    "different-loops",
    why="The programs that are compared don't do the same work.",
    instead="webdyno compare node nginx-phpfpm --site spin has both count equally far.",
)
def different_loops(document: AuditedText) -> Iterator[Violation]:
    loops = [loop for loop in document.of(CountedLoop) if loop.turns > 0]
    for n, loop in enumerate(loops[1:], start=1):
        first = next((each for each in loops[:n] if each.variable == loop.variable), None)
        if first and first.turns != loop.turns:
            times = max(first.turns, loop.turns) / min(first.turns, loop.turns)
            what = f"this loop has {numeral(loop.turns)} turns, the one in line {first.line} "
            yield Violation(
                loop.line, f"{what}{numeral(first.turns)}: {numeral(times)} times the work"
            )


@rule(
    DOCUMENT_RULES,
    "one-url-from-a-cache",
    why="After the first request the page comes from memory: that measures the cache's best "
    "case, without the application and without a miss.",
    instead="webdyno load --traffic urls.jsonl --zipf 0.8 asks for many pages, the first "
    "most often; webdyno compare nginx-phpfpm-cache nginx-phpfpm --site wordpress shows what "
    "the cache is worth.",
)
def one_url_from_a_cache(document: AuditedText) -> Iterator[Violation]:
    outputs = list(document.web_outputs)
    caches = document.of(PageCache)
    if not caches or not outputs:
        return
    paths = {output.path for output in outputs if output.path and "**" not in output.path}
    if len(paths) > 1:
        return
    cache = caches[0]
    what = f"one URL was requested again and again, from a page cache ({cache.name}, line "
    yield Violation(outputs[0].where("path"), f"{what}{cache.line})")


@rule(
    DOCUMENT_RULES,
    "busy-client",
    why="The client was saturated (httperf always takes what it can get): the rate may be "
    "the client's, and what it took the server lacked.",
    instead="webdyno load URL watches its own threads and ends with exit code 1 where it was "
    "the limit; webdyno compare nginx apache-event gives the servers CPUs of their own.",
)
def busy_client(document: AuditedText) -> Iterator[Violation]:
    for seen in document.of(ClientCpu):
        if CLIENT_BUSY_PERCENT <= seen.percent <= 100:
            what = f"{seen.tool} took {numeral(seen.percent)}% of a processor"
            yield Violation(seen.line, what, tool=seen.tool)


@client_limit.also(DOCUMENT_RULES)
def client_limit_in_logs(document: AuditedText) -> Iterator[Violation]:
    """k6 and siege log errors next to their outputs; a proxy may say the same."""
    if any(True for _ in document.web_outputs):
        for seen in document.of(RanOut):
            yield Violation(seen.line, f"somebody ran out of {seen.what}", serious=False)


@rule(
    DOCUMENT_RULES,
    "unread-option",
    why="It may change what is sent, how fast, or over how many connections. This was not "
    "looked at, and what depends on it is no more than a note.",
    instead="webdyno load URL -c 64 --time 30s --format json writes down every setting.",
)
def unread_option(document: AuditedText) -> Iterator[Violation]:
    joined = (each.command for each in document.of(Output))
    for command in sorted(
        (*filter(None, joined), *document.of(Command)), key=lambda each: each.line
    ):
        if command.unread:
            options = ", ".join(f"`{option}`" for option in command.unread)
            what = f"{options} of {command.tool}: not known here"
            yield Violation(command.line, what, serious=False, tool=command.tool)
