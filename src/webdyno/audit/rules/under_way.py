"""Little's law, in both directions: throughput × mean latency is what was under way on average."""

import re
from collections.abc import Iterator

from webdyno.audit.reader import AuditedText
from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.audit.tables import TextColumn, TextTable
from webdyno.formats import Output
from webdyno.formats.facts import in_ms

OUTPUT_RULES: list[AuditRule[Output]] = []
DOCUMENT_RULES: list[AuditRule[AuditedText]] = []

MOST = 2.5
"""Requests under way per connection from which the figures disagree. A median is at most twice the
mean, and some tools correct their times for what they did not ask."""

LEAST = 0.5
"""Share of the connections below which most of them weren't waiting for a response."""

FEWEST_CONNECTIONS = 4
ENOUGH_EACH = 20
"""Requests per connection below which the start and the end of a run leave connections idle."""
ENOUGH_S = 1.0
CONNECTING = 10
"""Times the longest connect that a run should take, at least."""
USUAL_STREAMS = 100
"""Streams that servers let a connection have at once: of more they make the others wait."""

TIMES_CORRECTED = {"wrk", "wrk2", "k6"}
"""Tools whose rate and mean don't belong together; their readers say what is under way."""

THINKING = {"k6", "locust", "jmeter", "gatling", "siege"}
"""Tools whose users wait between requests, or may."""

MEAN_STEP_MS = {"autocannon": 1.0, "hey": 0.05, "oha": 0.05}
"""By how much a printed mean may be too small: autocannon's times are whole milliseconds."""


def _successes_rps(output: Output) -> float | None:
    """Return the rate of the requests that the mean latency is of: failures may take no time."""
    rated = output.requests if output.rated_requests is None else output.rated_requests
    if not output.throughput_rps or not output.requests or not rated:
        return output.throughput_rps
    return output.throughput_rps * min(1, max(0, output.requests - (output.failed or 0)) / rated)


def _unsure(output: Output) -> bool:
    """Whether the command has something that may mean other connections, or a pace."""
    return output.command is not None and not (output.command.whole and not output.command.unread)


def _connections(output: Output) -> str:
    count = output.concurrency or 0
    words = f"{numeral(count)} connection{'' if count == 1 else 's'}"
    if output.streams and output.streams > 1:
        words += f" with {numeral(output.streams)} streams each"
    if output.pipelining and output.pipelining > 1:
        words += f" with {numeral(output.pipelining)} requests at once each"
    return words


@rule(
    OUTPUT_RULES,
    "too-many-under-way",
    why="A connection has one request under way for each of its streams, unless requests are "
    "pipelined: either they were, or the figures are not from one run.",
    instead="webdyno load URL -c 256 --time 30s never pipelines, and gives rate and latencies "
    "of the same requests.",
)
def too_many_under_way(output: Output) -> Iterator[Violation]:
    if output.loop == "open" or not output.concurrency or output.tool == "locust":
        return
    if output.tool == "h2load" and output.streams is None and not output.pipelining:
        return  # without its command nobody knows how many streams there were
    under_way, rate = output.under_way, _successes_rps(output)
    if under_way is None and output.tool not in TIMES_CORRECTED and rate and output.mean_ms:
        under_way = rate * output.mean_ms / 1000
    if under_way is not None and under_way > MOST * output.most_under_way + 1:
        what = f"throughput × latency is {numeral(under_way)} requests under way at once, over "
        yield Violation(
            output.where("mean_ms"), what + _connections(output), serious=not _unsure(output)
        )


@rule(
    OUTPUT_RULES,
    "too-few-under-way",
    why="In a closed loop each connection waits for a response nearly all the time. Here most of "
    "them waited for the client, its link or a new connection, so the throughput says little of "
    "the server.",
    instead="webdyno load URL -c 256 --time 30s says when the client is saturated; use fewer "
    "connections, or clients on several machines.",
)
def too_few_under_way(output: Output) -> Iterator[Violation]:
    if not _kept_busy(output) or output.mean_ms is None or output.throughput_rps is None:
        return
    # wrk's mean contains waiting that it adds: the true one is smaller still.
    mean_ms = output.mean_ms + MEAN_STEP_MS.get(output.tool, 0)
    under_way = output.throughput_rps * mean_ms / 1000
    streams = min(output.streams or 1, USUAL_STREAMS)
    most = (output.concurrency or 0) * streams  # not all that may be pipelined is
    if under_way < LEAST * most:
        what = f"throughput × latency is {numeral(under_way)} requests under way on average, over "
        sure = not (output.uneven or streams > 1 or _unsure(output))
        line = output.where("throughput_rps")
        yield Violation(line, what + _connections(output), serious=sure)


def _kept_busy(output: Output) -> bool:
    """Whether each connection was to send its next request right after a response."""
    if output.loop == "open" or output.demanded_rps or output.tool in THINKING:
        return False
    requests, command = output.requests or 0, output.command
    failed = (output.failed or 0) + (output.never_started or 0) + (output.failed_connect or 0)
    took_s = output.took_s or 0
    return (
        (output.concurrency or 0) >= FEWEST_CONNECTIONS
        and requests >= ENOUGH_EACH * output.most_under_way
        and not failed
        and took_s >= max(ENOUGH_S, CONNECTING * (output.connect_max_ms or 0) / 1000)
        and not (command and command.reconnects)
    )


@too_few_under_way.also(DOCUMENT_RULES)
def too_few_in_tables(document: AuditedText) -> Iterator[Violation]:
    """Check rows with connections, a rate and latencies, as if their loads were closed loops."""
    for table in document.of(TextTable):
        connections, rates = table.column_headed(_CONNECTIONS), table.column_headed(_RATE)
        if not connections or not rates or table.column_headed(_OFFERED):
            continue
        for place, count in enumerate(connections.values):
            rate_rps, mean_ms = _read_rate(rates.cells[place]), _mean_ms(table, place)
            if not count or count < FEWEST_CONNECTIONS or not rate_rps or mean_ms is None:
                continue
            under_way = rate_rps * mean_ms / 1000
            if under_way < LEAST * count:
                what = f"“{table.columns[0].cells[place]}”: throughput × latency is "
                what += f"{numeral(under_way)} requests under way at most, over {numeral(count)} "
                what += "connections, which a closed loop keeps busy"
                yield Violation(table.row_lines[place], what, serious=False)


def _mean_ms(table: TextTable, place: int) -> float | None:
    """Return the mean latency, or more: half of the responses lie below the median."""
    if mean := table.column_headed(_MEAN):
        return _cell_ms(mean, place)
    middle, high = table.column_headed(_MEDIAN), table.column_headed(_HIGH)
    if not middle or not high:
        return None
    median_ms, high_ms = _cell_ms(middle, place), _cell_ms(high, place)
    return None if median_ms is None or high_ms is None else (median_ms + high_ms) / 2


def _cell_ms(column: TextColumn, place: int) -> float | None:
    """Read a time with its unit, which may stand in the heading."""
    cell, value = column.cells[place].replace(" ", ""), column.values[place]
    if unit := _TIME_UNIT.search(cell) or _TIME_UNIT.search(column.heading):
        return in_ms(f"{value}{unit[1]}") if value is not None else None
    return None


def _read_rate(cell: str) -> float | None:
    """Read 148,906 or 148.9k; None for what may be something else."""
    match = _NUMBER.match(cell.replace(",", "") if _GROUPED.match(cell) else cell)
    return float(match[1]) * {"": 1, "k": 1e3, "K": 1e3, "M": 1e6}[match[2]] if match else None


_CONNECTIONS = re.compile(
    r"^(?:conns?|connections|concurrency|concurrent connections)$", re.IGNORECASE
)
_RATE = re.compile(
    r"^(?:throughput[ (]*)?(?:req(?:uest)?s?\s*(?:/|per)\s*s(?:ec(?:ond)?)?|rps)\)?$", re.IGNORECASE
)
_OFFERED = re.compile(r"target|offered|demanded|\brate\b|arrival", re.IGNORECASE)
_MEAN = re.compile(
    r"\b(?:avg|average|mean)\b.{0,30}\b(?:latency|response|ms|us)|latency.{0,3}avg", re.IGNORECASE
)
_MEDIAN = re.compile(r"^(?:latency )?(?:p50|median|50%)", re.IGNORECASE)
_HIGH = re.compile(r"^(?:latency )?(?:p99|99%)(?![.\d])", re.IGNORECASE)
_TIME_UNIT = re.compile(r"(?:^|[^a-zµ])(ms|us|µs|s)\b(?!/)")
_GROUPED = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d{1,9})?\s?[kKM]?$")
_NUMBER = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s?([kKM]?)$")
