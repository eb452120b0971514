"""ab, ApacheBench: all versions from 2.0."""

from webdyno.formats.facts import Facts, Figures, Tool, patterns

LABELS = {
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
"""The labels of its lines, and what a value of each looks like."""

ENOUGH = {
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
"""What it prints when it ends before its time; then only the number of requests follows, if any."""


def _more(facts: Facts, figures: Figures) -> Figures | None:
    if {"banner", "gave_up"} <= facts.texts.keys() and not facts.parts:
        return {"requests": figures.get("requests", 0)}
    if len(ENOUGH & figures.keys()) < 2:
        return None
    if "throughput_rps" not in figures:
        return {}
    # ab prints these lines only where there is something to say: with -k, with a bad status.
    kept = "keepalive_requests" in facts.texts
    return {"keepalive_requested": kept, "non_2xx": figures.get("non_2xx", 0)}


AB = Tool(
    name="ab",
    opening=rf"This is ApacheBench|apr_[a-z_]+(?:\(\))?: |(?:{'|'.join(LABELS)}):",
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
    more=_more,
)
