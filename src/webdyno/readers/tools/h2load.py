"""h2load of nghttp2."""

from webdyno.readers.facts import Facts, Figures, Tool, in_ms, patterns


def _more(facts: Facts, figures: Figures) -> Figures:
    more = facts.groups() | {
        "keepalive_requested": True,
        "connect_median_ms": in_ms(facts.texts.get("connect_mean")),
        # What it calls failed includes answers with a bad status, which are counted apart here.
        "failed": facts.integer("errored"),
    }
    answered = figures.get("rated_requests")
    if figures.get("body_bytes") and answered:
        more["document_bytes"] = round(figures["body_bytes"] / answered)
    wanted, started = facts.integer("wanted"), facts.integer("started")
    if wanted is not None and started is not None and wanted > started:
        more["never_started"] = wanted - started
    return more


H2LOAD = Tool(
    name="h2load",
    opening=r"starting benchmark\.\.\.|spawning thread #|finished in \S+, ",
    patterns=patterns(
        r"starting (?P<banner>benchmark)\.\.\.",
        r"spawning thread #INT: (?P<concurrency>INT) total client",
        r"finished in (?P<took>[^\s,]+), (?P<throughput_rps>NUM) req/s, (?P<transfer>\S+)B/s",
        r"requests: (?P<wanted>INT) total, (?P<started>INT) started, (?P<requests>INT) done, "
        r"(?P<rated_requests>INT) succeeded, INT failed, "
        r"(?P<errored>INT) errored, (?P<failed_timeout>INT) timeout",
        r"status codes: (?P<responses_2xx>INT) 2xx, (?P<responses_3xx>INT) 3xx, "
        r"(?P<responses_4xx>INT) 4xx, (?P<responses_5xx>INT) 5xx",
        r"traffic: \S+ \((?P<total_bytes>INT)\) total, .*?(?:\((?P<body_bytes>INT)\) data)?$",
        r"traffic: (?P<total_bytes>INT) bytes total, .*?(?:(?P<body_bytes>INT) bytes data)?$",
        r"time for request:\s+\S+\s+(?P<max>\S+)\s+(?P<mean>\S+)",
        r"time for connect:\s+\S+\s+(?P<connect_max>\S+)\s+(?P<connect_mean>\S+)",
    ),
    more=_more,
    chatter=(
        *("Warm-up ", "progress: ", "Main benchmark", "Stopped all", "Application protocol"),
        *("TLS Protocol", "Cipher:", "Server Temp Key", "min ", "time to 1st byte", "req/s "),
    ),
)
