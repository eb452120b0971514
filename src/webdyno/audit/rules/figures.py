"""Whether the figures of one output agree with each other, and with what links can carry."""

from collections.abc import Iterator

from webdyno.audit.rules.rule import Rule, Seen, number
from webdyno.readers.output import Output

AGREE = 0.02
"""Relative difference at which figures count as equal."""

ROUNDING_S = 0.015
"""Rounding of times: siege and wrk print hundredths of a second."""

COUNTS_AGREE = 0.01

LONGER, LENGTH_ROUNDING_S = 1.1, 1.0
"""An answer takes no longer than the run; some tools cut lengths to whole seconds."""

SHORTER, LONGEST, LATE_S = 0.9, 2.0, 10.0
"""Shares of the length that was asked for; last answers may come late."""

COUNTED_RUNS = {"ab"}
"""Tools that end at a number of requests even where a time was given."""

MOST_HEAD_BYTES = 4096
"""More than the head of any usual answer."""

RATE_MET = 0.95
DROPPED = 0.01
"""Share of k6's iterations that may be dropped at the start, until it has enough users."""

QUEUE = 0.05
"""Mean lateness as a share of the run from which the queue must have grown all the time."""

GROWN = 0.3
"""Mean as a share of the longest from which a queue may have grown: lateness that grows from
nothing makes a half, more where a tool leaves out the start, and a few slow answers make less."""

LINKS_MBIT = (10, 100, 1000, 2500, 10_000, 25_000)
LINK_FULL = (0.92, 0.955)
"""Share of a link's bits that can be an answer's bytes: 1448 (with timestamps) of 1538 on the
wire are 94.1 %."""
OUR_OWN = {"localhost", "::1"}


def _rate(output: Output) -> Iterator[Seen]:
    rate, took_s = output.rate_rps, output.duration_s
    requests = output.requests if output.rated_requests is None else output.rated_requests
    if not rate or not took_s or not requests:
        return
    expected = rate * took_s
    # The rate has been rounded as well; small ones most of all.
    tolerance = AGREE * requests + rate * ROUNDING_S + 0.01 * took_s + 1
    if abs(expected - requests) > tolerance:
        what = f"{number(rate, 6)} requests/s over {number(took_s)} s are {number(expected)} "
        yield Seen(output.where("rate_rps"), f"{what}requests, and {number(requests)} are reported")


def _transfer(output: Output) -> Iterator[Seen]:
    speed, took_s, total = output.transfer_kib_s, output.duration_s, output.total_bytes
    if not speed or not took_s or not total or output.tool == "httperf":
        return  # httperf's Net I/O counts requests, too
    expected = speed * 1024 * took_s
    tolerance = AGREE * total + speed * 1024 * ROUNDING_S + 20 * took_s
    if abs(expected - total) > tolerance:
        what = f"{number(speed, 6)} KB/s over {number(took_s)} s are {number(expected)} bytes, "
        yield Seen(output.where("transfer_kib_s"), f"{what}and {number(total)} are reported")


def _document(output: Output) -> Iterator[Seen]:
    answer, document = output.answer_bytes, output.document_bytes
    if answer is None or not document or output.failed_length:
        return
    most = document * 1.1 + MOST_HEAD_BYTES
    if not output.failed and answer < document * (1 - AGREE):
        how = "shorter"
    elif answer > most:
        how = "longer"
    else:
        return
    what = f"{number(answer)} bytes were received per answer, and the document is said to have "
    yield Seen(output.where("document_bytes"), f"{what}{number(document)}: it was {how}")


def _counts(output: Output) -> Iterator[Seen]:
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
        what = f"statuses (and failures) are {number(counted)} together, and "
        yield Seen(output.where("by_status"), f"{what}{number(output.requests)} are reported")


def _longest(output: Output) -> Iterator[Seen]:
    longest_ms, took_s = output.max_ms, output.took_s
    if longest_ms is None or not took_s:
        return
    if longest_ms / 1000 > LONGER * took_s + LENGTH_ROUNDING_S:
        what = f"the longest answer took {number(longest_ms / 1000)} s, and the whole run "
        yield Seen(output.where("max_ms"), f"{what}{number(took_s)} s")


def _length(output: Output) -> Iterator[Seen]:
    asked_s, took_s = output.time_limit_s, output.duration_s
    if not asked_s or took_s is None or output.tool in COUNTED_RUNS:
        return
    command = output.command
    if command and command.requests is not None:
        return  # whichever ends first
    if took_s < SHORTER * asked_s - LENGTH_ROUNDING_S or took_s > LONGEST * asked_s + LATE_S:
        what = f"{number(asked_s)} s were asked for, and the run took {number(took_s)} s"
        half = took_s < asked_s / 2 or took_s > asked_s
        yield Seen(output.where("duration_s"), what, serious=half)


def _rate_missed(output: Output) -> Iterator[Seen]:
    asked, got = output.demanded_rps, output.rate_rps
    calls = output.command.calls_per_connection if output.command else None
    if output.tool == "httperf" and asked:
        asked *= calls or 1
    if not asked or got is None or output.requests == 0 or got >= RATE_MET * asked:
        return
    what = f"{number(asked)} requests/s were asked for and {number(got, 4)} came"
    yield Seen(output.where("rate_rps"), what, serious=output.tool != "autobench")


def _dropped(output: Output) -> Iterator[Seen]:
    if not output.dropped:
        return
    whole = output.dropped + (output.requests or 0)
    what = f"{number(output.dropped)} iterations were due and not begun: no virtual user was free"
    yield Seen(output.where("dropped"), what, output.dropped > DROPPED * whole)


def _queue_grew(output: Output) -> Iterator[Seen]:
    mean, took_s = output.mean_ms, output.duration_s
    if output.loop != "open" or mean is None or not took_s:
        return
    if output.max_ms is not None and mean < GROWN * output.max_ms:
        return
    if mean / 1000 > QUEUE * took_s:
        what = (
            f"answers came {number(mean / 1000)} s late on average in a run of {number(took_s)} s"
        )
        yield Seen(output.where("mean_ms"), what)


def _link(output: Output) -> Iterator[Seen]:
    if not output.transfer_kib_s or _is_local(output.host):
        return
    mbit = output.transfer_kib_s * 1024 * 8 / 1e6
    for link in LINKS_MBIT:
        if LINK_FULL[0] <= mbit / link <= LINK_FULL[1]:
            what = f"{number(mbit)} Mbit/s of answers is what a link of {number(link)} Mbit/s holds"
            yield Seen(output.where("transfer_kib_s"), what, serious=output.host is not None)


def _same_machine(output: Output) -> Iterator[Seen]:
    if _is_local(output.host):
        what = f"the client asked {output.host}: it ran on the server's machine"
        yield Seen(output.where("host"), what, serious=False)


def _is_local(host: str | None) -> bool:
    return host is not None and (host in OUR_OWN or host.startswith("127."))


_MISSED = (
    "The client or the server could not keep up: from here on times grow as long as the run "
    "lasts, and say how long it was."
)
_LESS = (
    "webdyno load URL --rate RATE with less, or --stage 60s:100-1000 to see where it stops "
    "keeping up."
)

RULES = (
    Rule(
        "rate-times-time",
        _rate,
        why="One of the three is not from this run, or was mistyped.",
        instead="Keep the tool's output with the figures: webdyno run keeps every slot in the "
        "run's folder and makes the report from it.",
    ),
    Rule(
        "transfer-times-time",
        _transfer,
        why="One of the three is not from this run, or was mistyped.",
        instead="webdyno load URL --json gives bytes, time and rate from one and the same run.",
    ),
    Rule(
        "counts-differ",
        _counts,
        why="Answers are missing or counted twice: one of the counts is not from this run, or was "
        "mistyped.",
        instead="webdyno load URL --json counts each request once, by status or kind of failure.",
    ),
    Rule(
        "longest-answer",
        _longest,
        why="No answer takes longer than the run that it is of: rate, time and count can't all be "
        "from one run.",
        instead="webdyno load URL -d 30s --json gives length, rate and the longest answer of one "
        "run.",
    ),
    Rule(
        "run-length",
        _length,
        why="The rate is of a stop, a stall or a clock, and not of the run that was asked for.",
        instead="webdyno load URL -d 30s tells when a run ended early, and why.",
    ),
    Rule(
        "document-size",
        _document,
        why="Most answers were not the document that the output names.",
        instead="webdyno load URL --expect-bytes BYTES --fail-on 'failures>0' checks each answer.",
    ),
    Rule(
        "rate-missed",
        _rate_missed,
        why=_MISSED,
        instead=_LESS,
    ),
    Rule(
        "rate-missed",
        _dropped,
        why="What was not sent is missing in rate, failures and percentiles: they are of a lighter "
        "load than the script asked for.",
        instead=_LESS,
    ),
    Rule(
        "rate-missed",
        _queue_grew,
        why=_MISSED,
        instead=_LESS,
    ),
    Rule(
        "link-bound",
        _link,
        why="The cable sets the rate: whatever serves this document will look alike.",
        instead="Compare CPU time per request, which a full link leaves as it is: webdyno duel "
        "nginx apache-event --path /100KB.txt reports it beside the rate.",
    ),
    Rule(
        "same-machine",
        _same_machine,
        why="Client and server share processors: what one takes the other lacks, and a client "
        "that is at its limit makes fast servers look alike.",
        instead="webdyno duel nginx apache-prefork gives each its own CPUs, says when the client "
        "was the limit, and reports the server's CPU time per request.",
    ),
)
