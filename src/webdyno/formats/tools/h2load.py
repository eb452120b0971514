"""h2load of nghttp2: the columns of all versions, by their headings."""

from webdyno.formats.facts import Facts, Figures, Tool, in_ms, patterns
from webdyno.formats.values import as_float

COLUMNS_OF_OLD = "min max mean sd"
EVEN = 0.8
"""The slowest connection's rate as a share of the mean from which all end at about the same time.
Without a duration each connection has its own share of the requests."""


def _more(facts: Facts, figures: Figures) -> Figures:
    times, connects = (
        {name: in_ms(cell) for name, cell in _row(facts, key).items()}
        for key in ("request_times", "connect_times")
    )
    percentiles = {50.0: "median", 90.0: "p90", 95.0: "p95", 99.0: "p99"}
    succeeded, failed = figures.get("rated_requests") or 0, facts.integer("all_failed") or 0
    more = facts.groups() | {
        "keepalive_requested": True,
        # Some versions count as done what broke off, and some don't.
        "requests": max(figures.get("requests") or 0, succeeded + failed),
        # With a rate of connections they aren't there at once.
        "concurrency": None if "ramped" in facts.texts else sum(facts.parts.values()) or None,
        "uneven": "timed" not in facts.texts and not _even(facts),
        "min_ms": times.get("min"),
        "mean_ms": times.get("mean"),
        "max_ms": times.get("max"),
        "percentiles_ms": {
            percent: time_ms
            for percent, name in percentiles.items()
            if (time_ms := times.get(name)) is not None
        },
        "connect_median_ms": connects.get("median", connects.get("mean")),
        "connect_max_ms": connects.get("max"),
        # What it calls failed includes answers with a bad status, which are counted apart here.
        "failed": facts.integer("errored"),
    }
    if figures.get("body_bytes") and succeeded:
        more["document_bytes"] = round(figures["body_bytes"] / succeeded)
    wanted, started = facts.integer("wanted"), facts.integer("started")
    if wanted is not None and started is not None and wanted > started:
        more["never_started"] = wanted - started
    return more


def _row(facts: Facts, key: str) -> dict[str, str]:
    """Give the cells of a row by their headings; nothing where they don't fit."""
    heads = facts.texts.get("columns", COLUMNS_OF_OLD).removesuffix("+/- sd").split()
    cells = facts.texts.get(key, "").split()
    return dict(zip(heads, cells, strict=False)) if len(cells) == len(heads) + 1 else {}


def _even(facts: Facts) -> bool:
    rates = {name: as_float(cell) for name, cell in _row(facts, "rates").items()}
    slowest, mean = rates.get("min"), rates.get("mean")
    return slowest is not None and mean is not None and slowest >= EVEN * mean


_CELLS = r"\S+(?:\s+\S+){2,12})$"

H2LOAD = Tool(
    name="h2load",
    opening=r"starting benchmark\.\.\.|spawning thread #|finished in \S+, ",
    only_first=r"spawning thread #0:",
    restart=r"starting benchmark\.\.\.|finished in \S+, ",
    patterns=patterns(
        r"starting (?P<banner>benchmark)\.\.\.",
        r"spawning thread #(?P<part>INT): (?P<count>INT) (?:total|concurrent) client"
        r"(?:\(s\)\. (?:(?P<timed>Timing)|(?P<ramped>Up to)))?",
        r"Application protocol: (?P<protocol>\S+)",
        r"finished in (?P<took>[^\s,]+), (?P<throughput_rps>NUM) req/s, (?P<transfer>\S+)B/s",
        r"requests: (?P<wanted>INT) total, (?P<started>INT) started, (?P<requests>INT) done, "
        r"(?P<rated_requests>INT) succeeded, (?P<all_failed>INT) failed, "
        r"(?P<errored>INT) errored(?:, (?P<failed_timeout>INT) timeout)?",
        r"status codes: (?P<responses_2xx>INT) 2xx, (?P<responses_3xx>INT) 3xx, "
        r"(?P<responses_4xx>INT) 4xx, (?P<responses_5xx>INT) 5xx",
        r"traffic: \S+ \((?P<total_bytes>INT)\) total, .*?(?:\((?P<body_bytes>INT)\) data)?$",
        r"traffic: (?P<total_bytes>INT) bytes total, .*?(?:(?P<body_bytes>INT) bytes data)?$",
        r"(?P<columns>min\s+max\s.{3,120})$",
        rf"(?:time for )?request\s*:\s+(?P<request_times>{_CELLS}",
        rf"(?:time for )?connect\s*:\s+(?P<connect_times>{_CELLS}",
        rf"req/s\s*(?:\(client\)\s*)?:\s+(?P<rates>{_CELLS}",
    ),
    more=_more,
    chatter=(
        *("Warm-up ", "progress: ", "Main benchmark", "Stopped all", "Protocol: "),
        *("TLS Protocol", "Cipher:", "Server Temp Key", "time to 1st byte", "TTFB"),
    ),
)
