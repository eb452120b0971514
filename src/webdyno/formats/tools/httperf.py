"""httperf, and the CSV that autobench makes of a sweep with it."""

from webdyno.formats.facts import Facts, Figures, Tool, patterns


def _more(facts: Facts, figures: Figures) -> Figures:
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
    more=_more,
    chatter=("Connection length", "Request size", "CPU time [s]"),
)
