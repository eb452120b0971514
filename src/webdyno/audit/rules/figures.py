"""Whether the figures of one output agree with each other."""

from collections.abc import Iterator

from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.formats import Output

RULES: list[AuditRule[Output]] = []

AGREE = 0.02
"""Relative difference at which figures count as equal."""

ROUNDING_S = 0.015
"""Rounding of times: siege and wrk print hundredths of a second."""

SAMPLED_S = {"autocannon": 1.0, "bombardier": 1.0}
"""Tools whose rates are means of samples -> how long a last sample may be left out."""

ROUNDING_MS = 1.0
"""Some tools print whole milliseconds."""

COUNTS_AGREE = 0.01

LONGER, LENGTH_ROUNDING_S = 1.1, 1.0
"""A response takes no longer than the run; some tools cut lengths to whole seconds."""

SHORTER, LONGEST, LATE_S = 0.9, 2.0, 10.0
"""Shares of the length that was requested; last responses may come late."""

COUNTED_RUNS = {"ab"}
"""Tools that end at a number of requests even where a time was given."""

DERIVED_MEANS = {"ab"}
"""Tools whose mean is connections × time ÷ requests, and not one of times."""

MOST_HEAD_BYTES = 4096
"""More than the head of any usual response."""

RATE_MET = 0.95
DROPPED = 0.01
"""Share of k6's iterations that may be dropped at the start, until it has enough users."""

QUEUE = 0.05
"""Mean lateness as a share of the run from which the queue must have grown all the time."""

GROWN = 0.3
"""Mean as a share of the longest from which a queue may have grown: lateness that grows from
nothing makes a half, more where a tool excludes the start, and a few slow responses make less."""

LINKS_MBIT = (10, 100, 1000, 2500, 10_000, 25_000)
LINK_FULL = (0.92, 0.955)
"""Share of a link's bits that can be a response's bytes: 1448 (with timestamps) of 1538 on the
wire are 94.1%."""
OUR_OWN = {"localhost", "::1"}

_MISSED = (
    "The client or the server could not keep up: from here on times grow as long as the run "
    "lasts, and say how long it was."
)
_LESS = (
    "webdyno load URL --rate RATE with less, or --stage 60s:100-1000 to see where it stops "
    "keeping up."
)


@rule(
    RULES,
    "throughput-times-time",
    why="One of the three is not from this run, or was mistyped.",
    instead="Keep the tool's output with the figures: webdyno run keeps every slot in the "
    "run's folder and makes the report from it.",
)
def throughput_times_time(output: Output) -> Iterator[Violation]:
    rate, took_s = output.throughput_rps, output.duration_s
    requests = output.requests if output.rated_requests is None else output.rated_requests
    if not rate or not took_s or not requests:
        return
    expected = rate * took_s
    # The throughput has been rounded as well; small ones most of all.
    tolerance = AGREE * requests + rate * SAMPLED_S.get(output.tool, ROUNDING_S) + 0.01 * took_s + 1
    if abs(expected - requests) > tolerance:
        what = f"{numeral(rate, 6)} requests/s over {numeral(took_s)} s are {numeral(expected)} "
        what += f"requests, and {numeral(requests)} are reported"
        yield Violation(output.where("throughput_rps"), what)


@rule(
    RULES,
    "transfer-times-time",
    why="One of the three is not from this run, or was mistyped.",
    instead="webdyno load URL --format json gives bytes, time and throughput from one and the "
    "same run.",
)
def transfer_times_time(output: Output) -> Iterator[Violation]:
    speed, took_s, total = output.transfer_kib_s, output.duration_s, output.total_bytes
    if not speed or not took_s or not total or output.tool == "httperf":
        return  # httperf's Net I/O counts requests, too
    expected = speed * 1024 * took_s
    tolerance = AGREE * total + speed * 1024 * SAMPLED_S.get(output.tool, ROUNDING_S) + 20 * took_s
    if abs(expected - total) > tolerance:
        what = f"{numeral(speed, 6)} KB/s over {numeral(took_s)} s are {numeral(expected)} bytes, "
        yield Violation(output.where("transfer_kib_s"), f"{what}and {numeral(total)} are reported")


@rule(
    RULES,
    "counts-differ",
    why="Responses are missing or counted twice: one of the counts is not from this run, or "
    "was mistyped.",
    instead="webdyno load URL --format json counts each request once, by status or kind of "
    "failure.",
)
def counts_differ(output: Output) -> Iterator[Violation]:
    if not output.by_status or not output.requests:
        return
    answered = sum(output.by_status.values())
    # Some tools count what failed among the requests and some don't.
    both = (answered, answered + (output.failed or 0))
    counted = min(both, key=lambda each: abs(each - (output.requests or 0)))
    # What was under way when the time was up is in one count and not in the other.
    tolerance = COUNTS_AGREE * output.requests + (output.concurrency or 0) * (
        output.pipelining or 1
    )
    if abs(counted - output.requests) > tolerance:
        what = f"statuses (and failures) are {numeral(counted)} together, and "
        yield Violation(output.where("by_status"), f"{what}{numeral(output.requests)} are reported")


@rule(
    RULES,
    "longest-response",
    why="No response takes longer than the run that it is of: throughput, time and count can't "
    "all be from one run.",
    instead="webdyno load URL --time 30s --format json gives length, throughput and the "
    "longest response of one run.",
)
def longest_response(output: Output) -> Iterator[Violation]:
    longest_ms, took_s = output.max_ms, output.took_s
    if longest_ms is None or not took_s:
        return
    if longest_ms / 1000 > LONGER * took_s + LENGTH_ROUNDING_S:
        what = f"the longest response took {numeral(longest_ms / 1000)} s, and the whole run "
        yield Violation(output.where("max_ms"), f"{what}{numeral(took_s)} s")


@rule(
    RULES,
    "longest-response",
    why="Histogram and report can't be of the same responses, or one of them is wrong.",
    instead="webdyno load URL --time 30s --format json gives percentiles and histogram of the "
    "same responses.",
)
def histogram_beyond_longest(output: Output) -> Iterator[Violation]:
    above_ms, longest_ms = output.longest_above_ms, output.max_ms
    if above_ms is not None and longest_ms is not None and above_ms > longest_ms:
        what = f"the histogram has responses above {numeral(above_ms)} ms, and the longest took "
        yield Violation(output.where("max_ms", "heads"), f"{what}{numeral(longest_ms)} ms")


@rule(
    RULES,
    "mean-out-of-range",
    why="A mean lies between the shortest and the longest: some requests were counted with "
    "another time than they took, such as failed ones with none.",
    instead="webdyno load URL --time 30s --format json gives the times of valid responses alone.",
)
def mean_out_of_range(output: Output) -> Iterator[Violation]:
    mean_ms, least_ms, most_ms = output.mean_ms, output.min_ms, output.max_ms
    if mean_ms is None or output.tool in DERIVED_MEANS:
        return
    what = f"the mean latency is {numeral(mean_ms)} ms, and the "
    if least_ms is not None and mean_ms < (1 - AGREE) * least_ms - ROUNDING_MS:
        yield Violation(output.where("mean_ms"), f"{what}shortest {numeral(least_ms)} ms")
    if most_ms and mean_ms > (1 + AGREE) * most_ms + ROUNDING_MS:
        yield Violation(output.where("mean_ms"), f"{what}longest {numeral(most_ms)} ms")


@rule(
    RULES,
    "run-length",
    why="The throughput is of a stop, a stall or a clock, and not of the run that was asked for.",
    instead="webdyno load URL --time 30s shows when a run ended early, and why.",
)
def run_length(output: Output) -> Iterator[Violation]:
    asked_s, took_s = output.time_limit_s, output.duration_s
    if not asked_s or took_s is None or output.tool in COUNTED_RUNS:
        return
    command = output.command
    if command and command.requests is not None:
        return  # whichever ends first
    if took_s < SHORTER * asked_s - LENGTH_ROUNDING_S or took_s > LONGEST * asked_s + LATE_S:
        what = f"{numeral(asked_s)} s were requested, and the run took {numeral(took_s)} s"
        half = took_s < asked_s / 2 or took_s > asked_s
        what += ": it was interrupted (^C)" if output.interrupted else ""
        serious = half and not output.interrupted
        yield Violation(output.where("duration_s"), what, serious=serious)


@rule(
    RULES,
    "document-size",
    why="Most responses were not the document that the output names.",
    instead="webdyno load URL --expect-bytes BYTES --fail-if 'failures > 0' checks each response.",
)
def document_size(output: Output) -> Iterator[Violation]:
    response, document = output.response_bytes, output.document_bytes
    if response is None or not document or output.failed_length:
        return
    most = document * 1.1 + MOST_HEAD_BYTES
    if not output.failed and response < document * (1 - AGREE):
        how = "shorter"
    elif response > most:
        how = "longer"
    else:
        return
    what = f"{numeral(response)} bytes were received per response, and the document is said to "
    what += f"have {numeral(document)}: it was {how}"
    yield Violation(output.where("document_bytes"), what)


@rule(RULES, "rate-missed", why=_MISSED, instead=_LESS)
def rate_missed(output: Output) -> Iterator[Violation]:
    asked, got = output.demanded_rps, output.throughput_rps
    calls = output.command.calls_per_connection if output.command else None
    if output.tool == "httperf" and asked:
        asked *= calls or 1
    if not asked or got is None or output.requests == 0 or got >= RATE_MET * asked:
        return
    what = f"{numeral(asked)} requests/s were requested and {numeral(got, 4)} came"
    yield Violation(output.where("throughput_rps"), what, serious=output.tool != "autobench")


@rule(
    RULES,
    "rate-missed",
    why="What was not sent is missing in throughput, failures and percentiles: they are of a "
    "lighter load than the script requested.",
    instead=_LESS,
)
def dropped_iterations(output: Output) -> Iterator[Violation]:
    if not output.dropped:
        return
    whole = output.dropped + (output.requests or 0)
    what = f"{numeral(output.dropped)} iterations were due and not begun: no virtual user was free"
    yield Violation(output.where("dropped"), what, output.dropped > DROPPED * whole)


@rate_missed.also(RULES)
def growing_queue(output: Output) -> Iterator[Violation]:
    mean, took_s = output.mean_ms, output.duration_s
    if output.loop != "open" or mean is None or not took_s:
        return
    if output.max_ms is not None and mean < GROWN * output.max_ms:
        return
    if mean / 1000 > QUEUE * took_s:
        what = f"responses came {numeral(mean / 1000)} s late on average "
        what += f"in a run of {numeral(took_s)} s"
        yield Violation(output.where("mean_ms"), what)


@rule(
    RULES,
    "link-limited",
    why="The link sets the rate: whatever serves this document will look alike.",
    instead="Compare CPU per request, which a full link leaves as it is: webdyno compare "
    "nginx apache-event --path /100KB.txt reports it next to the throughput.",
)
def link_limited(output: Output) -> Iterator[Violation]:
    if not output.transfer_kib_s or _is_local(output.host):
        return
    mbit = output.transfer_kib_s * 1024 * 8 / 1e6
    for link in LINKS_MBIT:
        if LINK_FULL[0] <= mbit / link <= LINK_FULL[1]:
            what = f"{numeral(mbit)} Mbit/s of responses is what a link of {numeral(link)} Mbit/s "
            what += "holds"
            yield Violation(output.where("transfer_kib_s"), what, serious=output.host is not None)


@rule(
    RULES,
    "same-machine",
    why="Client and server share processors: what one takes the other lacks, and a client "
    "that is saturated makes fast servers look alike.",
    instead="webdyno compare nginx apache-prefork gives each its own CPUs, says when the "
    "client is saturated, and reports the server's CPU per request.",
)
def same_machine(output: Output) -> Iterator[Violation]:
    if _is_local(output.host):
        what = f"the client asked {output.host}: it ran on the server's machine"
        yield Violation(output.where("host"), what, serious=False)


def _is_local(host: str | None) -> bool:
    return host is not None and (host in OUR_OWN or host.startswith("127."))
