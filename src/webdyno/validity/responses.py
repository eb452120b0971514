"""Whether requests were answered, and rightly: a fast error page is no fast page.

Not at all: `truncated`, `malformed`, `timeouts`, `resets`, `refused`, `no-responses`. Wrongly:
`non-2xx`, `wrong-body`, `other-size-under-load`, `request-count`. Rightly is also by the rules of
sites, which make programs comparable (`few-reads`). What to do about a status that wasn't expected
depends on the status.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence

from webdyno.core.experiment import Experiment
from webdyno.core.format import count, number, significant, upper_first
from webdyno.core.judgement import ValidityWarning
from webdyno.core.metrics import responses
from webdyno.core.records import PreflightRecord, Response, SlotRecord
from webdyno.core.request import WrittenRequest, header
from webdyno.core.session import PLACE
from webdyno.core.text import split_url
from webdyno.evidence.point_data import PointData
from webdyno.validity.rule import RunRule, SlotRule, note, uncomparable

OK, REDIRECT, BAD_REQUEST, SERVER_ERROR = 200, 300, 400, 500
NOT_ALLOWED = {401, 403}
BEHIND = {502, 503, 504}
NO_SUCH_PAGE = 404
SEE = "See what it sends with `webdyno up` and curl"
LOGS = "its log is in the run's folder"

KEEP_RULES = (
    "Correct the program: who serves a site does what its rules say, which make servers comparable."
)
ENOUGH = 0.9
"""Share of the rows that have to be read: counters and responses don't begin at one moment."""
OTHER_SIZE, FRAMES_BYTES = 2.0, 64
"""How many times larger or smaller a mean response may be; what chunks may add to a small one."""
READING = ("SELECT", "WITH", "(SELECT")
CATALOG = "pg_"
"""In statements by which drivers ask for types, and let go of locks: `pg_advisory_unlock_all`."""


def _count(slots: Sequence[SlotRecord], kind: str) -> int:
    return sum(slot.load.all_of_it.failures.by_kind()[kind] for slot in slots)


def _requests(slot: SlotRecord) -> int:
    """Count requests sent, or where those aren't known, their responses and failures."""
    whole = slot.load.all_of_it
    return whole.completed + whole.failures.total if whole.sent is None else whole.sent


def _example(slots: Sequence[SlotRecord]) -> str:
    samples = [sample for slot in slots for sample in slot.load.all_of_it.failure_samples]
    return f"; for example {samples[0]}" if samples else ""


def _unexpected_status(slots: Sequence[SlotRecord]) -> str:
    by_status = Counter[str]()
    for slot in slots:
        by_status.update(slot.load.all_of_it.by_status)
    codes = [code for code, _ in by_status.most_common() if not code.startswith("2")]
    total = sum(responses(slot) for slot in slots)
    return (
        f"{number(_count(slots, 'status'))} of {count(total, 'response')} had an unexpected status "
        f"({', '.join(codes or by_status)}){_refusal(slots) or _example(slots)}"
    )


def _refusal(slots: Sequence[SlotRecord]) -> str:
    refusal = next((slot.refusal for slot in slots if slot.refusal), "")
    return f"; its log says: {refusal:.200}" if refusal else ""


def _limit_or_overload(slots: Sequence[SlotRecord]) -> str:
    """Advise on statuses that come under load alone, so that curl sees none of them."""
    if _refusal(slots):
        return LIMITED
    statuses = {code for slot in slots for code in slot.load.all_of_it.by_status}
    wrong = {code for code in statuses if not code.startswith("2")}
    return OVERLOADED if wrong and wrong <= UNDER_LOAD else ""


def _failure_rule(
    name: str, kind: str, noun: str, fix: str, *, besides: Callable[[SlotRecord], int] = lambda _: 0
) -> SlotRule:
    """Make a rule that forbids one kind of failure; `besides` counts those of another rule."""

    def count_failed(slot: SlotRecord) -> int:
        return slot.load.all_of_it.failures.by_kind()[kind] - besides(slot)

    def what(slots: Sequence[SlotRecord]) -> str:
        sent = sum(_requests(slot) for slot in slots)
        failed = count(sum(map(count_failed, slots)), noun)
        return f"{failed} at {number(sent)} requests{_example(slots)}"

    return SlotRule(name, lambda slot: count_failed(slot) > 0, what, fix)


UNDER_LOAD = {"429", "503"}
"""Too many requests; no room for this one now."""
LIMITED = "Lift that limit (limit_req, limit_conn), or ask for less: --set load.rate_per_s=N."
OVERLOADED = "Use fewer connections or a lower arrival rate, or give the server more workers."
NON_2XX = SlotRule(
    name="non-2xx",
    broken=lambda slot: bool(slot.load.all_of_it.failures.status),
    what=_unexpected_status,
    special_fix=_limit_or_overload,
    fix="Ask for the page with `webdyno up` and curl, and correct the site, its permissions or the "
    "path.",
)

WRONG_BODY = _failure_rule(
    "wrong-body",
    "body",
    "response with an unexpected body",
    "Look at what it sends with `webdyno up` and curl.",
)

TRUNCATED = _failure_rule(
    "truncated",
    "truncated",
    "truncated response",
    "Look in the server's error log, in the run's folder, for crashes, memory limits and write "
    "timeouts.",
)

MALFORMED = _failure_rule(
    "malformed",
    "malformed",
    "response that can't be read as HTTP",
    "Look at the raw response with `webdyno up` and `curl -i --raw`.",
)

TIMEOUTS = _failure_rule(
    "timeouts",
    "timeout",
    "request without a response in time",
    "Use fewer connections or a lower arrival rate; raise load.timeout_s if slow responses are "
    "right.",
)

RESETS = _failure_rule(
    "resets",
    "reset",
    "connection reset by the server",
    "Look in the server's error log, in the run's folder, for workers that die and full queues; "
    "where it only ends kept connections, use --set load.keepalive=never.",
)

REFUSED = _failure_rule(
    "refused",
    "connect",
    "failed connection attempt",
    "Check that the server stayed up, and raise its limits of backlog, open files and connections.",
    # What the client had no port for is no refusal: `ports-used-up`.
    besides=lambda slot: slot.load.all_of_it.connections.without_port or 0,
)

NO_RESPONSES = SlotRule(
    name="no-responses",
    broken=lambda slot: slot.load.all_of_it.completed == 0,
    what=lambda slots: f"not one valid response in {count(len(slots), 'slot')}",
    fix="Ask for the page with `webdyno up` and curl; if it is only slow, make slots longer: "
    "--set measure.slot_s=5.",
)

RULES = (NON_2XX, WRONG_BODY, TRUNCATED, MALFORMED, TIMEOUTS, RESETS, REFUSED, NO_RESPONSES)


def leads_to(response: Response) -> str:
    """Describe where a redirect leads; nothing of other responses."""
    place = _location(response)
    return f"; it leads to {place!r:.200}" if place else ""


def fix_of_status(response: Response, of_all: Collection[int | None]) -> str:
    """Advise on a response; `of_all`: the statuses of all variants to this request."""
    status = response.status or 0
    itself = (
        f"to measure this response itself, give the request `status = {status}` in [[requests]]"
    )
    if OK <= status < REDIRECT:
        return f"{upper_first(itself)}, if it is the right one."
    if REDIRECT <= status < BAD_REQUEST:
        return f"{_fix_of_redirect(response)}{itself}."
    if status in NOT_ALLOWED:
        return (
            "Send what it wants to see, such as --set 'load.headers.Cookie=${env:COOKIE}' or "
            f"load.headers.Authorization, or name another page by --path; {itself}."
        )
    if status == NO_SUCH_PAGE:
        others = len(set(of_all)) > 1
        have = "that all variants have" if others else "that there is"
        return f"Name a page {have}, by --path or --site; {itself}."
    if status in BEHIND:
        return (
            f"Start what it passes requests on to, or see why that takes no more of them: {LOGS}."
        )
    if status >= SERVER_ERROR:
        return f"See why its program failed: {LOGS}."
    return f"{SEE}, and correct it or the request; {itself}."


def _location(response: Response) -> str:
    if not REDIRECT <= (response.status or 0) < BAD_REQUEST:
        return ""
    return header(dict(response.headers), "location") or ""


def _fix_of_redirect(response: Response) -> str:
    """Describe how to ask for what a redirect leads to."""
    place = split_url(_location(response))
    path = place.path + (f"?{place.query}" if place.query else "")
    steps = []
    if place.scheme == "https" and not response.tls:
        steps.append("speak TLS: --set load.protocol=h2 (or https)")
    if place.hostname and not _is_local(place.hostname):
        steps.append(f"say which host is requested: --host {place.hostname}")
    if path and path != response.path:
        steps.append(f"ask for where it leads: --path {path:.200}")
    if header(dict(response.headers), "set-cookie"):
        steps.append("send the cookie that it sets: --set 'load.headers.Cookie=${env:COOKIE}'")
    if not steps:
        return "Ask for the page that it leads to, as redirects aren't followed; "
    return f"{upper_first('; '.join(steps))}, as redirects aren't followed; "


def _is_local(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def broken_rules(preflight: PreflightRecord, experiment: Experiment) -> Iterator[ValidityWarning]:
    for variant, what in preflight.broken_rules.items():
        yield uncomparable(
            "broken-rule",
            variant,
            f"variant {variant} breaks a rule of site {experiment.site_of(variant)}: {what}",
            KEEP_RULES,
        )


def _few_reads(data: PointData) -> Iterator[ValidityWarning]:
    for variant in data.experiment.variants:
        slots = [slot for slot in data.of_variant(variant) if slot.readings]
        counted = [slot for slot in slots if slot.readings and slot.readings.databases]
        answers = (preflight.responses.get(variant, []) for preflight in data.preflights)
        expected = min((response.expected_reads for its in answers for response in its), default=0)
        answered, reads = sum(map(responses, counted)), sum(map(_reads, counted))
        if answered and reads < ENOUGH * expected * answered:
            yield uncomparable(
                "few-reads",
                variant,
                f"its database answered {significant(reads / answered, 3)} statements that read "
                f"for each response, and each response holds {expected} rows that have to be read "
                "by a statement each: rows are cached, or several read by one statement",
                KEEP_RULES,
            )


def _reads(slot: SlotRecord) -> int:
    databases = slot.readings.databases.values() if slot.readings else ()
    return sum(
        statement.calls
        for database in databases
        for statement in database.statements
        if statement.text.upper().startswith(READING) and CATALOG not in statement.text
    )


FEW_READS = RunRule("few-reads", _few_reads)


def _other_sizes_under_load(data: PointData) -> Iterator[ValidityWarning]:
    """Compare sizes under load with those of the pre-flight check, whose bodies were looked at.

    Sizes alone, and roughly: pages vary by time and user, and the engine hashes no bodies where a
    site names none.
    """
    for variant in data.experiment.variants:
        requests = data.experiment.requests_of(variant)
        asked = sum(request.stands_for for request in requests)
        checks = [preflight.responses.get(variant, []) for preflight in data.preflights]
        sizes = [each.wire_bytes for check in checks for each in check]
        known = [size for size in sizes if size is not None]
        if not known or len(known) < asked * len(checks) or any(map(_varies, requests)):
            continue
        slots = [
            slot for slot in data.of_variant(variant) if not slot.load.all_of_it.failures.total
        ]
        bodies = [body for slot in slots if (body := slot.load.bytes.body) is not None]
        answered = sum(slot.load.requests.completed for slot in slots)
        # Of those at a slot's ends a part alone may have come in it.
        at_ends = data.experiment.load_of(variant).connections * len(slots)
        least = (answered - at_ends) * min(known) / OTHER_SIZE
        most = (answered + at_ends) * (max(known) * OTHER_SIZE + FRAMES_BYTES)
        if answered and len(bodies) == len(slots) and not least <= sum(bodies) <= most:
            looked_at = " to ".join(number(size) for size in sorted({min(known), max(known)}))
            yield uncomparable(
                "other-size-under-load",
                variant,
                f"variant {variant} answered with {significant(sum(bodies) / answered, 3)} bytes "
                f"on average under load, and with {looked_at} when its responses were looked at",
                "See what it sends under load: error pages with status 200, pages cut short. Name "
                "what a right response holds, as `contains` in [[requests]].",
            )


def _varies(request: WrittenRequest) -> bool:
    """Whether users' values are filled in, or the response is a stream that may be cut."""
    return request.events is not None or bool(PLACE.search(request.model_dump_json()))


OTHER_SIZE_UNDER_LOAD = RunRule("other-size-under-load", _other_sizes_under_load)


def counted_by_front(slot: SlotRecord) -> int | None:
    """Return the requests that the server counted to which clients talk; None if it doesn't."""
    if slot.readings is None or slot.readings.front not in slot.readings.status:
        return None
    return slot.readings.status[slot.readings.front].requests


def _count_differences(data: PointData) -> Iterator[ValidityWarning]:
    for variant in data.experiment.variants:
        load = data.experiment.load_of(variant)
        if load.slow_readers is not None or load.idle_connections:
            continue  # the load's own count leaves their requests out
        slots, off = data.of_variant(variant), list[tuple[int, int]]()
        for slot in slots:
            whole, counted = slot.load.all_of_it, counted_by_front(slot)
            # Some requests the server may never have read to their end.
            unread = (slot.load.requests.unanswered or 0) + whole.failures.total
            if counted is None or whole.sent is None:
                continue
            if abs(counted - whole.sent) > unread:
                off.append((counted, whole.sent))
        if off:
            yield note(
                "request-count",
                variant,
                f"the server counted {count(sum(counted for counted, _ in off), 'request')} where "
                f"the load generator sent {number(sum(sent for _, sent in off))} in {len(off)} of "
                f"{count(len(slots), 'slot')}",
                "Look for who else asks the server, such as monitoring; where it counted less, for "
                "what keeps requests from reaching it.",
            )


REQUEST_COUNT = RunRule("request-count", _count_differences)
