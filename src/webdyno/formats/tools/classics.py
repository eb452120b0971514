"""The old tools in C: ab from 2.0, h2load, httperf, redis-benchmark and siege.

h2load: the columns of all versions, by their headings. redis-benchmark: its text, and the one line
per command of `-q`. siege: its text, and the JSON that it prints since 4.0.5.
"""

import re
from collections.abc import Iterator

from webdyno.formats import Output
from webdyno.formats.facts import COUNTED, CommandLine, Facts, Figures, Tool, in_ms, patterns
from webdyno.formats.text import NUMBER, NumberedLine, as_float, known

AB_LABELS = {
    "Server Software": "text",
    "Server Hostname": "text",
    "Server Port": "count",
    "Document Path": "text",
    "Document Length": "bytes",
    "Concurrency Level": "count",
    "Time taken for tests": "seconds",
    "Complete requests": "count",
    "Failed requests": "count",
    "Write errors": "count",
    "Non-2xx responses": "count",
    "Keep-Alive requests": "count",
    "Total transferred": "bytes",
    "HTML transferred": "bytes",
    "Requests per second": "[#/sec]",
    "Time per request": "[ms]",
    "Transfer rate": "[Kbytes/sec]",
}
"""The labels of ab's lines, and what a value of each looks like."""

AB_FIGURES = {
    "requests",
    "gave_up",
    "throughput_rps",
    "duration_s",
    "document_bytes",
    "non_2xx",
    "failed",
}
"""Figures of which an output has two, at least: a single label may stand in any prose."""


ABORTED = r"(?:apr_[a-z_]{1,40}(?:\(\))?: |Test aborted after ).{1,80}"
"""What ab prints when it ends before its time; only the number of requests follows, if any."""


def _ab(facts: Facts, figures: Figures) -> Figures | None:
    if {"banner", "gave_up"} <= facts.texts.keys() and not facts.parts:
        return {"requests": figures.get("requests", 0)}
    if len(AB_FIGURES & figures.keys()) < 2:
        return None
    if "throughput_rps" not in figures:
        return {}
    # ab prints these lines only where there is something to say: with -k, with a bad status.
    kept = "keepalive_requests" in facts.texts
    return {"keepalive_requested": kept, "non_2xx": figures.get("non_2xx", 0)}


AB = Tool(
    name="ab",
    opening=rf"This is ApacheBench|apr_[a-z_]+(?:\(\))?: |(?:{'|'.join(AB_LABELS)}):",
    patterns=patterns(
        r"This is (?P<banner>ApacheBench)",
        r"Server Software:\s*(?P<server>.*)",
        r"Server Hostname:\s*(?P<host>.*)",
        r"Server Port:\s*(?P<port>INT)?",
        r"Document Path:\s*(?P<path>.*)",
        r"Document Length:\s*(?P<document_bytes>INT) bytes",
        r"Concurrency Level:\s*(?P<concurrency>INT)",
        r"Time taken for tests:\s*(?P<duration_s>NUM) seconds",
        r"Complete requests:\s*(?P<requests>INT)",
        r"Failed requests:\s*(?P<failed>INT)",
        r"\(Connect: (?P<failed_connect>INT),(?: Receive: (?P<failed_receive>INT),)?"
        r" Length: (?P<failed_length>INT), Exceptions: (?P<failed_exceptions>INT)\)",
        r"Non-2xx responses:\s*(?P<non_2xx>INT)",
        r"Keep-Alive requests:\s*(?P<keepalive_requests>INT)?",
        r"Total transferred:\s*(?P<total_bytes>INT) bytes",
        r"HTML transferred:\s*(?P<body_bytes>INT) bytes",
        r"Requests per second:\s*(?P<throughput_rps>NUM) \[#/sec\]",
        r"Time per request:\s*(?:(?P<mean_ms>NUM) \[ms\] \(mean\)|NUM \[ms\] \(mean, across)",
        r"Transfer rate:\s*(?P<transfer_kib_s>NUM) \[Kbytes/sec\]",
        r"Connect:\s+(?P<connect_min_ms>NUM)\s+NUM\s+NUM\s+(?P<connect_median_ms>NUM)"
        r"\s+(?P<connect_max_ms>NUM)$",
        r"Total:\s+NUM\s+NUM\s+NUM\s+NUM\s+(?P<max_ms>NUM)$",
        r"(?P<percent>\d{2,3})%:?\s+(?P<at>INT)(?:$|\s+\(longest)",
        rf"Benchmarking (?:.*?(?P<gave_up>{ABORTED}))?",
        rf"(?P<gave_up>{ABORTED})",
        r"Completed (?P<count>INT) (?P<part>requests)",
        r"Total of (?P<requests>INT) requests completed",
    ),
    chatter=(
        *("Copyright 1996 Adam", "Licensed to The Apache", "Finished "),
        *("Write errors:", "Connection Times (ms)", "min ", "Processing:", "Waiting:"),
        "Percentage of the requests",
    ),
    needed=(),
    more=_ab,
    command=CommandLine(
        options={"n": "requests", "c": "concurrency", "t": "time_limit_s", "k": "keepalive"},
        no_matter="T H p u v A P X C x y z w e g h V q r l s b B i f Z I E m S",
    ),
)


COLUMNS_OF_OLD = "min max mean sd"
EVEN = 0.8
"""The slowest connection's rate as a share of the mean from which all end at about the same time.
Without a duration each connection has its own share of the requests."""


def _h2load(facts: Facts, figures: Figures) -> Figures:
    times, connects = (
        {name: in_ms(cell) for name, cell in _columns(facts, key).items()}
        for key in ("request_times", "connect_times")
    )
    heads = {50.0: "median", 90.0: "p90", 95.0: "p95", 99.0: "p99"}
    rates = {name: as_float(cell) for name, cell in _columns(facts, "rates").items()}
    slowest, mean = rates.get("min"), rates.get("mean")
    is_even = slowest is not None and mean is not None and slowest >= EVEN * mean
    succeeded, failed = figures.get("rated_requests") or 0, facts.integer("all_failed") or 0
    more = facts.groups() | {
        "keepalive_requested": True,
        # Some versions count as done what broke off, and some don't.
        "requests": max(figures.get("requests") or 0, succeeded + failed),
        # With a rate of connections they aren't there at once.
        "concurrency": None if "ramped" in facts.texts else sum(facts.parts.values()) or None,
        "uneven": "timed" not in facts.texts and not is_even,
        "min_ms": times.get("min"),
        "mean_ms": times.get("mean"),
        "max_ms": times.get("max"),
        "percentiles_ms": known({percent: times.get(name) for percent, name in heads.items()}),
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


def _columns(facts: Facts, key: str) -> dict[str, str]:
    """Return the cells of a row by their headings; nothing where they don't fit."""
    heads = facts.texts.get("columns", COLUMNS_OF_OLD).removesuffix("+/- sd").split()
    cells = facts.texts.get(key, "").split()
    return dict(zip(heads, cells, strict=False)) if len(cells) == len(heads) + 1 else {}


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
    more=_h2load,
    chatter=(
        *("Warm-up ", "progress: ", "Main benchmark", "Stopped all", "Protocol: "),
        *("TLS Protocol", "Cipher:", "Server Temp Key", "time to 1st byte", "TTFB"),
    ),
    made_of={
        "errored": "failed",
        "started": "never_started",
        "parts": "concurrency",
        "request_times": "mean_ms",
    },
    command=CommandLine(
        options=COUNTED
        | {"c": "concurrency", "clients": "concurrency", "D": "time_limit_s"}
        | {"duration": "time_limit_s", "m": "streams", "max-concurrent-streams": "streams"}
        | {"rps": "each_rps"},
        no_matter=(
            "t threads H header i input-file d data v verbose w window-bits W f max-frame-size "
            "connection-window-bits p no-tls-proto ciphers tls13-ciphers h1 h3 alpn-list npn-list "
            "groups T connection-active-timeout N connection-inactivity-timeout warm-up-time "
            "log-file connect-to B base-uri header-table-size encoder-header-table-size histogram "
            "output-file sni ktls no-udp-gso max-udp-payload-size qlog-file-base tls-session-file"
        ),
    ),
)


def _httperf(facts: Facts, figures: Figures) -> Figures:
    sequential = figures.get("most_connections") == 1
    more = facts.groups() | {
        "loop": "closed" if sequential else None,
        "rated_requests": facts.integer("sent"),  # `requests` are those with a reply
    }
    head, body = facts.number("head_bytes"), facts.number("content_bytes")
    if head is not None and body is not None and figures["requests"]:
        more["document_bytes"] = int(body)
        more["total_bytes"] = int((head + body) * figures["requests"])
    return more


HTTPERF = Tool(
    name="httperf",
    opening=r"httperf --client=|Maximum connect burst length|Total: connections ",
    patterns=patterns(
        r"Maximum connect burst length: (?P<banner>INT)",
        r"Total: connections (?P<connections>INT) requests (?P<sent>INT) replies (?P<requests>INT)"
        r"(?: test-duration (?P<duration_s>NUM) s)?",
        r"test-duration\s+(?P<duration_s>NUM) s",
        r"Connection rate:?\s+NUM conn/s \(NUM ms/conn, <=(?P<most_connections>INT) conc",
        r"Connection time \[ms\]:?\s+(?:connect (?P<connect_median_ms>NUM)|min )",
        r"Request rate:?\s+(?P<throughput_rps>NUM) req/s",
        r"Reply rate \[replies/s\]:?\s+min NUM avg NUM max NUM"
        r"(?: stddev NUM \((?P<reply_rate_samples>INT) samples\))?",
        r"Reply time \[ms\]:?\s+response (?P<mean_ms>NUM)",
        r"Reply size \[B\]:?\s+header (?P<head_bytes>NUM) content (?P<content_bytes>NUM)",
        r"Reply status:?\s+1xx=(?P<responses_1xx>INT) 2xx=(?P<responses_2xx>INT) "
        r"3xx=(?P<responses_3xx>INT) 4xx=(?P<responses_4xx>INT) 5xx=(?P<responses_5xx>INT)",
        r"Net I/O:?\s+(?P<transfer_kib_s>NUM) KB/s",
        r"Errors: total (?P<failed>INT) client-timo (?P<failed_timeout>INT) socket-timo INT "
        r"connrefused (?P<failed_connect>INT) connreset (?P<failed_receive>INT)",
        r"Errors: fd-unavail (?P<out_of_descriptors>INT)",
    ),
    more=_httperf,
    chatter=("Connection length", "Request size", "CPU time [s]"),
    command=CommandLine(
        options={
            "num-conns": "connections",
            "num-conn": "connections",
            "num-calls": "calls_per_connection",
            "num-call": "calls_per_connection",
            "rate": "demanded_rps",
            "server": "host",
            "port": "port",
            "uri": "path",
        },
        no_matter=(
            "hog client timeout think-timeout add-header method print-reply print-request "
            "send-buffer recv-buffer http-version v verbose ssl ssl-no-reuse ssl-ciphers "
            "server-name num-calls"
        ),
    ),
)


_QUIET = re.compile(
    rf"\b([A-Z][A-Z_]{{1,40}}(?: \([^)]{{0,60}}\))?): ({NUMBER}) requests per second"
    rf"(?:, p50=({NUMBER}) msec)?"
)


REDIS = Tool(
    name="redis-benchmark",
    opening=r"(?:.*\s)?====== [^=]{1,80} ======",
    patterns=patterns(
        r"(?:.*\s)?====== (?P<path>[^=]{1,80}) ======",
        r"(?P<requests>INT) requests completed in (?P<duration_s>NUM) seconds",
        r"(?P<concurrency>INT) parallel clients",
        r"throughput summary: (?P<throughput_rps>NUM) requests per second",
        r"(?P<throughput_rps>NUM) requests per second$",
        r"(?P<percent>\d{1,3}(?:\.\d{1,4})?)% <= (?P<at>NUM milliseconds)",
        r"INT bytes payload",
        r"NUM(?:\s+NUM){5}$",
    ),
    needed=("throughput_rps",),
    chatter=(
        *("keep alive", "host config", "multi-thread", "Latency by perc", "Cumulative dist"),
        *("Summary:", "latency summary", "avg "),
    ),
    command=CommandLine(
        options=COUNTED | {"c": "concurrency", "P": "pipelining", "p": "port", "h": "host"},
        no_matter="t q d r csv n k a s u threads precision e l I cluster dbnum user",
    ),
)


def redis_quiet(line: NumberedLine) -> Iterator[Output]:
    """Read `SET: 105273.69 requests per second`; several commands may stand in a line."""
    for name, rate, median in _QUIET.findall(line.text):
        yield Output(
            tool="redis-benchmark",
            first_line=line.number,
            last_line=line.number,
            loop="closed",
            path=name,
            throughput_rps=as_float(rate),
            percentiles_ms={50.0: p50} if (p50 := as_float(median)) is not None else {},
        )


def _siege(facts: Facts, figures: Figures) -> Figures:
    hits, failed = figures["requests"], figures.get("failed") or 0
    succeeded, data_mb = facts.integer("succeeded"), facts.number("data_mb")
    more: Figures = {"requests": hits + failed, "rated_requests": hits}
    if succeeded is not None:
        # A 404 is a transaction for it and no failed one, but no successful one either.
        more["non_2xx"] = max(0, hits - succeeded)
    if data_mb is not None:
        more["body_bytes"] = int(data_mb * 1024 * 1024)
    for name in ("mean", "max"):
        # The unit is `secs`, since 4.1.7 `ms`, and seconds where there is none (JSON).
        text = facts.texts.get(name)
        more[f"{name}_ms"] = in_ms(text if not text or text[-1] == "s" else f"{text} secs")
    return more


def _siege_line(label: str, key: str, name: str, unit: str = "") -> str:
    return rf'(?:{label}:|\{{?\s*"{key}":)\s+(?P<{name}>NUM)(?:{unit})?,?$'


def _siege_time(label: str, key: str, name: str) -> str:
    return rf'(?:{label}:|\{{?\s*"{key}":)\s+(?P<{name}>NUM(?: (?:secs|ms))?),?$'


SIEGE = Tool(
    name="siege",
    opening=r'Transactions:\s+\d[\d.,]*\s+hits|\{?\s*"transactions":\s',
    patterns=patterns(
        _siege_line("Transactions", "transactions", "requests", r"\s+hits"),
        _siege_line("Availability", "availability", "availability", " %"),
        _siege_line("Elapsed time", "elapsed_time", "duration_s", " secs"),
        _siege_line("Data transferred", "data_transferred", "data_mb", " MB"),
        _siege_time("Response time", "response_time", "mean"),
        _siege_line("Transaction rate", "transaction_rate", "throughput_rps", " trans/sec"),
        _siege_line("Throughput", "throughput", "throughput", " MB/sec"),
        _siege_line("Concurrency", "concurrency", "concurrency_seen"),
        _siege_line("Successful transactions", "successful_transactions", "succeeded"),
        _siege_line("Failed transactions", "failed_transactions", "failed"),
        _siege_line("HTTP OK received", "http_ok_received", "okay"),
        _siege_time("Longest transaction", "longest_transaction", "max"),
        _siege_time("Shortest transaction", "shortest_transaction", "min"),
    ),
    more=_siege,
    command=CommandLine(
        options={
            "c": "concurrency",
            "concurrent": "concurrency",
            "t": "minutes",
            "time": "minutes",
        },
        no_matter=(
            "b benchmark d delay i internet f file H header q quiet v verbose r reps log l g get "
            "A user-agent T content-type j json-output R rc m mark p print N n"
        ),
    ),
)
