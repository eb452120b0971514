"""What the text around the figures gives away about the work and the load."""

from collections.abc import Iterator

from webdyno.audit.document import Document
from webdyno.audit.rules import connections
from webdyno.audit.rules.rule import Rule, Seen, number

CLIENT_BUSY_PERCENT = 85


def _few_in_commands(document: Document) -> Iterator[Seen]:
    for command in document.commands:
        yield from connections.few_in_command(command)


def _pipelining_commands(document: Document) -> Iterator[Seen]:
    for command in document.commands:
        yield from connections.pipelining_in_command(command)
    for setting in document.pipelined:
        what = f"{number(setting.depth)} requests were sent at once over each connection"
        yield Seen(setting.line, what)


def _sequential_commands(document: Document) -> Iterator[Seen]:
    for command in document.commands:
        yield from connections.one_at_a_time_in_command(command)


def _different_loops(document: Document) -> Iterator[Seen]:
    loops = [loop for loop in document.loops if loop.turns > 0]
    for n, loop in enumerate(loops[1:], start=1):
        first = next((each for each in loops[:n] if each.variable == loop.variable), None)
        if first and first.turns != loop.turns:
            times = max(first.turns, loop.turns) / min(first.turns, loop.turns)
            what = f"this loop has {number(loop.turns)} turns, the one in line {first.line} "
            yield Seen(loop.line, f"{what}{number(first.turns)}: {number(times)} times the work")


def _one_cached_url(document: Document) -> Iterator[Seen]:
    outputs = list(document.web_outputs)
    if not document.page_caches or not outputs:
        return
    paths = {output.path for output in outputs if output.path and "**" not in output.path}
    if len(paths) > 1:
        return
    cache = document.page_caches[0]
    what = f"one URL was asked for again and again, from a page cache ({cache.name}, line "
    yield Seen(outputs[0].where("path"), f"{what}{cache.line})")


def _busy_client(document: Document) -> Iterator[Seen]:
    for seen in document.client_cpu:
        if CLIENT_BUSY_PERCENT <= seen.percent <= 100:
            what = f"{seen.tool} took {number(seen.percent)} % of a processor"
            yield Seen(seen.line, what, tool=seen.tool)


RULES = (
    Rule(
        connections.FEW_REQUESTS.name,
        _few_in_commands,
        why=connections.FEW_REQUESTS.why,
        instead=connections.FEW_REQUESTS.instead,
    ),
    Rule(
        connections.PIPELINING.name,
        _pipelining_commands,
        why=connections.PIPELINING.why,
        instead=connections.PIPELINING.instead,
    ),
    Rule(
        connections.ONE_AT_A_TIME.name,
        _sequential_commands,
        why=connections.ONE_AT_A_TIME.why,
        instead=connections.ONE_AT_A_TIME.instead,
    ),
    Rule(
        "different-loops",
        _different_loops,
        why="The programs that are compared don't do the same work.",
        instead="webdyno duel node nginx-phpfpm --site spin has both count equally far.",
    ),
    Rule(
        "one-url-from-a-cache",
        _one_cached_url,
        why="After the first request the page comes from memory: that measures the cache's best "
        "case, without the application and without a miss.",
        instead="webdyno load --request-file urls.jsonl --zipf 0.8 asks for many pages, the first "
        "most often; webdyno duel nginx-phpfpm-cache nginx-phpfpm --site wordpress shows what the "
        "cache is worth.",
    ),
    Rule(
        "busy-client",
        _busy_client,
        why="The client was at its limit (httperf always takes what it can get): the rate may be "
        "the client's, and what it took the server lacked.",
        instead="webdyno load URL watches its own threads and ends with exit code 3 where it was "
        "the limit; webdyno duel nginx apache-event gives the servers CPUs of their own.",
    ),
)
