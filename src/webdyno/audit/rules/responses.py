"""Whether requests were answered, rightly, and often enough: a fast error page is no fast page."""

from collections.abc import Iterator

from webdyno.audit.rules import AuditRule, Violation, numeral, rule
from webdyno.audit.rules.client import ran_out
from webdyno.formats import Output

RULES: list[AuditRule[Output]] = []
SAMPLE_RULES: list[AuditRule[Output]] = []

TOLERATED = 0.001
"""Share of requests that may fail before throughput is not to be believed."""

SHORT = 0.5
"""Responses below this share of the document's length are cut off, or other pages."""

_NGINX_REASONS = {
    404: "Not Found",
    403: "Forbidden",
    400: "Bad Request",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Temporarily Unavailable",
    504: "Gateway Time-out",
}
_NGINX = (
    "<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n"
    "<center><h1>{title}</h1></center>\r\n<hr><center>{server}</center>\r\n</body>\r\n</html>\r\n"
)
_APACHE_NOT_FOUND = (
    '<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n'
    "<title>404 Not Found</title>\n</head><body>\n<h1>Not Found</h1>\n"
    "<p>The requested URL{path} was not found on this server.</p>\n</body></html>\n"
)

CHECKED = (
    "webdyno load URL --expect-status 200 --expect-bytes BYTES --fail-if 'failures > 0' checks "
    "each response and counts only right ones"
)


@rule(
    RULES,
    "failed-connections",
    why="A connection that fails is one of the load's users, and counts once however many "
    "requests it would have sent: the run had fewer connections than it says.",
    instead="Raise `ulimit -n` of client and server and the server's backlog; webdyno load "
    "URL -c 400 says how many connections failed, and why.",
)
def failed_connections(output: Output) -> Iterator[Violation]:
    failed = output.failed_connect
    if output.tool not in KEPT_CONNECTIONS or not failed:
        return
    what = f"{numeral(failed)} attempts to connect failed"
    if output.concurrency:
        what = f"{numeral(min(failed, output.concurrency))} of {numeral(output.concurrency)} "
        what += "connections could not be opened"
    yield Violation(output.where("failed_connect"), f"{what}: the others carried all the load")


@rule(
    RULES,
    "failed-checks",
    why="The script itself found these responses wrong; throughput and latency count them.",
    instead=f"Look at one such response with curl; {CHECKED}.",
)
def failed_checks(output: Output) -> Iterator[Violation]:
    failed, checks = output.failed_checks, output.checks
    if not failed or not checks:
        return
    what = f"{numeral(failed)} of {numeral(checks)} of the script's checks failed"
    yield Violation(output.where("failed_checks"), what, failed > TOLERATED * checks)


@rule(
    RULES, "unchecked-status", why="An error page is counted like the page.", instead=f"{CHECKED}."
)
def unchecked_status(output: Output) -> Iterator[Violation]:
    if output.tool == "rewrk" and output.requests:
        what = "rewrk looks at no status: whether these responses were the page isn't known"
        yield Violation(output.where("requests"), what, serious=False)


@rule(
    RULES,
    "non-2xx",
    why="Error pages are short and cheap: throughput and latency are theirs, not the page's.",
    instead=f"Look at the page with curl first; {CHECKED}.",
)
def non_2xx(output: Output) -> Iterator[Violation]:
    if not output.non_2xx:
        return
    whole = max(output.requests or 0, output.non_2xx)
    codes = [status for status in output.by_status if not status.startswith("2")]
    what = f"{numeral(output.non_2xx)} of {numeral(whole)} responses had no 2xx status"
    if codes:
        what += f" ({', '.join(codes)})"
    if page := _page_of_that_length(output):
        what += f"; {numeral(output.document_bytes or 0)} bytes is the length of {page}"
    yield Violation(output.where("non_2xx", "by_status"), what, output.non_2xx > TOLERATED * whole)


KEPT_CONNECTIONS = {"wrk", "wrk2", "zrk"}
"""Tools that open all connections at the start and send each many requests."""


@rule(
    RULES,
    "failures",
    why="Requests that fail early make a server look fast. Ones that time out are missing in "
    "the percentiles. What is left is no fair sample.",
    instead="webdyno load URL --timeout 5s reports refused, reset, cut-off and late responses "
    "apart; use fewer connections or a lower --rate until there are none.",
)
def failures(output: Output) -> Iterator[Violation]:
    connects = None if output.tool in KEPT_CONNECTIONS else output.failed_connect
    kinds = {
        "failed to connect": connects,
        "broken off while receiving": output.failed_receive,
        "ended in an exception": output.failed_exceptions,
        "timed out": output.failed_timeout,
    }
    parts = [f"{numeral(count)} {kind}" for kind, count in kinds.items() if count]
    failed = (output.failed or 0) - (output.failed_length or 0)
    failed -= sum(ran_out(output).values())  # those were never sent
    if output.tool in KEPT_CONNECTIONS:
        failed -= output.failed_connect or 0
    if failed <= 0 and not parts:
        return
    whole = max(output.requests or 0, output.connections or 0, failed)
    if output.tool == "httperf":  # its requests are replies
        whole = max(whole, (output.requests or 0) + failed)
    what = f"{numeral(failed)} of {numeral(whole)} requests failed" if failed > 0 else "failures"
    if output.tool in KEPT_CONNECTIONS and failed > 0:
        what = f"{numeral(failed)} errors and {numeral(output.requests or 0)} responses"
    what += f" ({', '.join(parts)})" if parts else ""
    if output.never_started:
        what += f"; {numeral(output.never_started)} were never sent: h2load opens no new connection"
    worst = max(failed, *(count or 0 for count in kinds.values()))
    line = output.where("failed", "failed_connect", "by_status")
    yield Violation(line, what, worst > TOLERATED * whole)


@rule(
    RULES,
    "no-responses",
    why="There is nothing here to conclude from, whatever else is printed.",
    instead="Ask for the page with curl; webdyno load URL --timeout 5s says what failed.",
)
def no_responses(output: Output) -> Iterator[Violation]:
    if output.requests == 0:
        yield Violation(output.where("requests"), "not one request was answered")


@rule(
    RULES,
    "gave-up",
    why="The run was not finished: the figures of such runs are missing where a server was worst.",
    instead="webdyno load URL --timeout 5s counts such requests as failures and continues.",
)
def gave_up(output: Output) -> Iterator[Violation]:
    if output.gave_up:
        what = f"{output.tool} gave up after {numeral(output.requests or 0)} requests: "
        yield Violation(output.where("gave_up"), what + output.gave_up)


@rule(
    RULES,
    "failed-by-length",
    why="ab compares lengths with its first response. A page that varies fails by that, and an "
    "empty, cut-off or wrong response is counted just the same: ab can't distinguish them, and "
    "-l makes it count empty responses as successes.",
    instead=f"{CHECKED}; for a page that varies leave --expect-bytes out.",
)
def failed_by_length(output: Output) -> Iterator[Violation]:
    failed, whole, document = output.failed_length, output.requests, output.document_bytes
    if not failed or not whole:
        return
    what = f"{numeral(failed)} of {numeral(whole)} responses had another length than the first"
    line = output.where("failed_length")
    if output.body_bytes is None or not document:
        yield Violation(line, f"{what}; which one is not stated", serious=False)
        return
    others = (output.body_bytes - (whole - failed) * document) / failed
    if others < 1:
        yield Violation(line, f"{what}: by the bytes received, they were empty")
    elif others < SHORT * document:
        mean = f"{numeral(others)} bytes on average instead of {numeral(document)}"
        yield Violation(line, f"{what}: by the bytes received, {mean}")
    else:
        yield Violation(line, f"{what} ({numeral(document)} bytes)", serious=False)


@rule(
    RULES,
    "error-page-length",
    why="It may be chance. If not, an error page came with status 200.",
    instead="webdyno load URL --expect-sha256 HASH checks the bodies' content.",
)
def error_page_length(output: Output) -> Iterator[Violation]:
    if output.non_2xx or not (page := _page_of_that_length(output)):
        return
    what = f"the document's {numeral(output.document_bytes or 0)} bytes are the length of {page}"
    yield Violation(output.where("document_bytes"), what, serious=False)


@rule(
    RULES,
    "sweep-errors",
    why="From the first errors on, a sweep shows what the client's timeout lets through, and "
    "no longer how fast the server answers.",
    instead="webdyno load URL --conn-rate RATE --requests-per-conn 10 counts each kind of "
    "failure, and lateness from when a request was due.",
)
def sweep_errors(output: Output) -> Iterator[Violation]:
    if not output.errors_percent:
        return
    what = f"at {numeral(output.demanded_rps or 0)} requests/s errors were "
    yield Violation(output.first_line, f"{what}{numeral(output.errors_percent)}% of the replies")


ENOUGH_ABOVE = 10
"""Samples that should lie above a percentile before it means anything."""
TAIL = 90.0
"""Percentiles from here up are about the rare long waits that a closed loop hardly sees."""
SHORT_S = 5
AB_DEFAULT_REQUESTS = 50_000
"""`ab -t` without -n stops after so many requests, whatever the time is."""


@rule(
    SAMPLE_RULES,
    "thin-tail",
    why="A percentile with few samples above it is one or two odd requests, and another run "
    "gives another.",
    instead="webdyno load URL --time 60s for more of them (p99 with 95% confidence takes 299 "
    "requests without a miss); webdyno compare nginx apache-event says which percentiles have "
    "too few.",
)
def thin_tail(output: Output) -> Iterator[Violation]:
    if not output.requests:
        return
    beyond = {
        percent: output.requests * (100 - percent) / 100
        for percent in output.percentiles_ms
        if 50 < percent < 100
    }
    thin = sorted(percent for percent, above in beyond.items() if above < ENOUGH_ABOVE)
    if thin:
        above = f"{beyond[thin[0]]:.2g}"
        what = f"p{thin[0]:g} of {numeral(output.requests)} requests has {above} of them above it"
        if len(thin) > 1:
            what += f", p{thin[-1]:g} has {beyond[thin[-1]]:.1g}"
        yield Violation(output.where("requests"), what, serious=False)


@rule(
    SAMPLE_RULES,
    "closed-loop",
    why="Each connection waits for its response before it asks again, so while the server "
    "stalls nobody asks: the percentiles exclude the waiting that users would have had.",
    instead="webdyno load URL --rate RATE --poisson asks by a timetable and counts from when "
    "a request was due.",
)
def closed_loop(output: Output) -> Iterator[Violation]:
    if output.loop != "closed" or not output.percentiles_ms or output.concurrency == 1:
        return
    highest = max((p for p in output.percentiles_ms if p < 100), default=0.0)
    if highest < TAIL:
        return
    what = f"percentiles up to p{highest:g} from a closed loop"
    yield Violation(output.where("percentiles_ms"), what, serious=False)


@rule(
    SAMPLE_RULES,
    "short-run",
    why="Servers take seconds to start workers, fill caches and compile; a short run "
    "measures that, and one incident moves everything.",
    instead="webdyno load URL --time 30s; webdyno compare nginx apache-prefork warms up, and "
    "repeats until the interval is narrow.",
)
def short_run(output: Output) -> Iterator[Violation]:
    took_s = output.duration_s
    if took_s is None or took_s >= SHORT_S:
        return
    what = f"the run took {numeral(took_s)} s"
    limit_s = output.time_limit_s
    if limit_s and limit_s > 2 * took_s and output.requests == AB_DEFAULT_REQUESTS:
        what += f" instead of {numeral(limit_s)}: ab -t stops at {numeral(AB_DEFAULT_REQUESTS)} "
        what += "requests unless -n comes behind it"
    yield Violation(output.where("duration_s"), what, serious=False)


@rule(
    SAMPLE_RULES,
    "few-rate-samples",
    why="httperf takes one sample each 5 s; minimum, maximum and deviation of a handful say "
    "nothing of how steady the server is.",
    instead="webdyno load URL --rate RATE --time 60s --format csv -o windows.csv gives a row "
    "per second.",
)
def few_rate_samples(output: Output) -> Iterator[Violation]:
    if output.reply_rate_samples is not None and output.reply_rate_samples < 6:
        what = f"the reply rate's spread is from {numeral(output.reply_rate_samples)} samples"
        yield Violation(output.where("reply_rate_samples"), what, serious=False)


@rule(
    SAMPLE_RULES,
    "only-throughput",
    why="Without the run's length and its failures there is nothing to check it by.",
    instead="Keep the whole output: redis-benchmark prints all of it without -q, and "
    "webdyno load URL --format json does for HTTP.",
)
def only_throughput(output: Output) -> Iterator[Violation]:
    if output.requests is None and output.duration_s is None and output.demanded_rps is None:
        what = f"{output.path or output.tool}: throughput, but neither length "
        what += "nor number of requests"
        yield Violation(output.first_line, what, serious=False)


def _page_of_that_length(output: Output) -> str | None:
    """Return the error page that is exactly as long as the document which was measured."""
    server = output.server or ""
    pages: list[tuple[str, str]] = []
    if server.startswith("nginx"):
        pages += [
            (f"nginx's {status} page", _NGINX.format(title=f"{status} {reason}", server=server))
            for status, reason in _NGINX_REASONS.items()
        ]
    elif server.startswith("Apache"):
        # Up to 2.4.41 it names the path, without the query.
        paths = ("", f" {(output.path or '').partition('?')[0]}")
        name = "Apache's 404 page for this path"
        pages += [(name, _APACHE_NOT_FOUND.format(path=path)) for path in paths]
    return " or ".join(name for name, page in pages if len(page) == output.document_bytes) or None
