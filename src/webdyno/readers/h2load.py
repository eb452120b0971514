"""h2load of nghttp2."""

from webdyno.readers.facts import Facts, Tool, in_bytes, in_ms, patterns
from webdyno.readers.output import Output


def _output(facts: Facts) -> Output | None:
    figures = facts.figures()
    if "requests" not in figures or "rate_rps" not in figures:
        return None
    took_ms, per_second = in_ms(facts.texts.get("took")), in_bytes(facts.texts.get("transfer"))
    if took_ms is not None:
        figures["duration_s"] = took_ms / 1000
    if per_second is not None:
        figures["transfer_kib_s"] = per_second / 1024
    answered = figures.get("rated_requests")
    if figures.get("body_bytes") and answered:
        figures["document_bytes"] = round(figures["body_bytes"] / answered)
    statuses = {f"{group}xx": facts.integer(f"answers_{group}xx") for group in "2345"}
    figures["by_status"] = {status: count for status, count in statuses.items() if count}
    if statuses["2xx"] is not None:
        figures["non_2xx"] = sum(count or 0 for status, count in statuses.items() if status > "3")
    asked, started = facts.integer("asked"), facts.integer("started")
    if asked is not None and started is not None and asked > started:
        figures["never_started"] = asked - started
    # What it calls failed includes answers with a bad status, which are counted apart here.
    figures["failed"] = facts.integer("errored")
    for name, what in (("mean_ms", "mean"), ("max_ms", "max"), ("connect_max_ms", "connect_max")):
        figures[name] = in_ms(facts.texts.get(what))
    figures["connect_median_ms"] = in_ms(facts.texts.get("connect_mean"))
    return Output(tool="h2load", loop="closed", keepalive_requested=True, **figures)


H2LOAD = Tool(
    name="h2load",
    opening=r"starting benchmark\.\.\.|spawning thread #|finished in \S+, ",
    patterns=patterns(
        r"starting (?P<banner>benchmark)\.\.\.",
        r"spawning thread #INT: (?P<concurrency>INT) total client",
        r"finished in (?P<took>[^\s,]+), (?P<rate_rps>NUM) req/s, (?P<transfer>\S+)B/s",
        r"requests: (?P<asked>INT) total, (?P<started>INT) started, (?P<requests>INT) done, "
        r"(?P<rated_requests>INT) succeeded, INT failed, "
        r"(?P<errored>INT) errored, (?P<failed_timeout>INT) timeout",
        r"status codes: (?P<answers_2xx>INT) 2xx, (?P<answers_3xx>INT) 3xx, "
        r"(?P<answers_4xx>INT) 4xx, (?P<answers_5xx>INT) 5xx",
        r"traffic: \S+ \((?P<total_bytes>INT)\) total, .*?(?:\((?P<body_bytes>INT)\) data)?$",
        r"traffic: (?P<total_bytes>INT) bytes total, .*?(?:(?P<body_bytes>INT) bytes data)?$",
        r"time for request:\s+\S+\s+(?P<max>\S+)\s+(?P<mean>\S+)",
        r"time for connect:\s+\S+\s+(?P<connect_max>\S+)\s+(?P<connect_mean>\S+)",
    ),
    output=_output,
    chatter=(
        *("Warm-up ", "progress: ", "Main benchmark", "Stopped all", "Application protocol"),
        *("TLS Protocol", "Cipher:", "Server Temp Key", "min ", "time to 1st byte", "req/s "),
    ),
)
