"""wrk and what prints like it: autocannon, wrk2, zrk and rewrk.

autocannon prints boxes, and tables before version 3. wrk2 looks the same as wrk but keeps to a
rate. rewrk doesn't look at statuses, and its "percentiles" are means of what lies above them.
"""

from webdyno.formats.facts import (
    BODY,
    OF_HTTP,
    CommandLine,
    Facts,
    Figures,
    Tool,
    in_ms,
    non_2xx,
    patterns,
)
from webdyno.formats.text import Fields, as_count, as_float, url_figures

PRECISE_THOUSANDS = 50
"""autocannon rounds counts to thousands: from so many on that is an error of 1% at most."""

BOX_PERCENTILES = {2.5: "p2_5", 50.0: "p50", 97.5: "p97_5", 99.0: "p99"}
AUTOCANNON_PERCENTILES = {50.0: "p50", 90.0: "p90", 99.0: "p99", 99.9: "p99_9"}


def _autocannon(facts: Facts, figures: Figures) -> Figures:
    answered = facts.integer("responses_2xx"), facts.integer("non_2xx")
    return {
        "requests": _requests(facts.texts["sent"], answered),
        "failed": _rounded_count(facts.texts.get("errors", "0")),
        "failed_timeout": _rounded_count(facts.texts.get("timeouts", "0")),
        "non_2xx": figures.get("non_2xx", 0),  # it says nothing of what did not happen
        "pipelining": facts.integer("pipelining") or 1,
        "percentiles_ms": facts.percentiles_ms | facts.times_ms(BOX_PERCENTILES),
    }


def _rounded_count(text: str) -> int | None:
    if text.endswith("k"):
        thousands = as_count(text[:-1])
        return None if thousands is None else 1000 * thousands
    return as_count(text)


def _requests(sent: str, answered: tuple[int | None, int | None]) -> int | None:
    if None not in answered:
        return sum(each or 0 for each in answered)
    thousands = as_float(sent.removesuffix("k")) or 0
    return (
        _rounded_count(sent) if not sent.endswith("k") or thousands >= PRECISE_THOUSANDS else None
    )


def _autocannon_json(parsed: Fields) -> Figures | None:
    latency, requests = parsed.inside("latency"), parsed.inside("requests")
    if not latency or not requests or "non2xx" not in parsed:
        return None
    by_status = parsed.counts_by_status_group("{}xx")
    return {
        "concurrency": parsed.count("connections"),
        "pipelining": parsed.count("pipelining"),
        "requests": requests.count("total"),
        "throughput_rps": requests.amount("average"),
        "duration_s": parsed.amount("duration"),
        "failed": parsed.count("errors"),
        "failed_timeout": parsed.count("timeouts"),
        "non_2xx": non_2xx(by_status) if by_status else parsed.count("non2xx"),
        "by_status": by_status,
        "total_bytes": parsed.count("throughput", "total"),
        "mean_ms": latency.amount("average"),
        "max_ms": latency.amount("max"),
        "percentiles_ms": latency.amounts_at(AUTOCANNON_PERCENTILES),
        **url_figures(parsed.get("url")),
    }


AUTOCANNON = Tool(
    name="autocannon",
    opening=r"Running \d+ requests test @ |[│|] Stat\s+[│|] 2\.5%|Stat\s+Avg\s+Stdev\s+Max$|"
    r"\d+ 2xx responses, \d+ non 2xx|\d+k? requests in \d[\d.]*s, \d[\d.]* [kMGT]?B read",
    looks_like="wrk",
    sure_by=r"\d+ connections(?: with \d+ pipelining factor)?$",
    restart=r"Running \d+ requests test @ |[│|] Stat\s+[│|] 2\.5%\s+[│|] 50%",
    patterns=patterns(
        r"Running (?P<asked>NUM ?s) test @ (?P<url>\S+)",
        r"Running INT requests test @ (?P<url>\S+)",
        r"Running \S+ (?:requests )?warmup @ ",
        r"(?P<concurrency>INT) connections(?: with (?P<pipelining>INT) pipelining factor)?$",
        r"[│|] Latency\s+[│|] NUM ms\s+[│|] (?P<p50>NUM ms)\s+[│|] (?P<p97_5>NUM ms)\s+"
        r"[│|] (?P<p99>NUM ms)\s+[│|] (?P<mean>NUM ms)\s+[│|] NUM ms\s+[│|] (?P<max>NUM ms)",
        r"[│|] Req/Sec\s+[│|](?: NUM\s+[│|]){4} (?P<throughput_rps>NUM)\s+[│|]",
        r"[│|] Bytes/Sec\s+[│|](?: NUM [kMGT]?B\s+[│|]){4} (?P<transfer>NUM [kMGT]?B)\s+[│|]",
        r"[│|] (?P<status>[1-5]\d\d)\s+[│|] (?P<count>INT)\s+[│|]$",
        r"[│|] (?P<percent>\d{1,2}(?:\.\d{1,3})?)\s+[│|] (?P<at>NUM)\s+[│|]$",
        r"Latency \(ms\)\s+(?P<mean>NUM)\s+NUM\s+(?P<max>NUM)$",
        r"Req/Sec\s+(?P<throughput_rps>NUM)\s+NUM\s+NUM$",
        r"Bytes/Sec\s+(?P<transfer>NUM [kMGT]?B)\s+NUM [kMGT]?B\s+NUM [kMGT]?B$",
        r"(?P<responses_2xx>INT) 2xx responses, (?P<non_2xx>INT) non 2xx responses",
        r"(?P<sent>(?:INT)k?) requests in (?P<duration_s>NUM)s, (?P<read>NUM [kMGT]?B) read",
        r"(?P<errors>(?:INT)k?) errors \((?P<timeouts>(?:INT)k?) timeouts\)",
    ),
    chatter=(
        *("┌", "├", "└", "│ Stat", "│ Code", "│ Percentile", "Req/Bytes counts", "# of samples:"),
        "Stat ",
    ),
    needed=("sent",),
    more=_autocannon,
    read_json=_autocannon_json,
    bytes_step=1000,
    made_of={"errors": "failed"},
    command=CommandLine(
        options=OF_HTTP
        | {"p": "pipelining", "pipelining": "pipelining", "a": "requests", "amount": "requests"}
        | {"R": "demanded_rps", "overallRate": "demanded_rps"}
        | {"r": "each_rps", "connectionRate": "each_rps"},
        no_matter=(
            f"{BODY} i input l latency T title w workers n no-progress j json renderStatusCodes "
            "expectBody E F form t debug warmup ca S socketPath"
        ),
    ),
)


ZRK_PERCENTILES = {
    50.0: "p50",
    75.0: "p75",
    90.0: "p90",
    99.0: "p99",
    99.9: "p99_9",
    99.99: "p99_99",
}
ZRK_ERRORS = ("connect", "read", "write", "timeout", "deadline")


def _wrk(facts: Facts, figures: Figures) -> Figures:
    wrk2 = {"tool": "wrk2", "loop": "open"} if "calibration" in facts.texts else {}
    rate, stdev_ms = facts.number("throughput_rps"), in_ms(facts.texts.get("stdev"))
    mean_ms, median_ms = figures.get("mean_ms"), facts.percentiles_ms.get(50.0)
    if median_ms is None and mean_ms is not None and stdev_ms is not None:
        median_ms = max(0.0, mean_ms - stdev_ms)  # which it is at least
    # By Little's law, from the median: wrk adds late responses to its mean.
    under_way = None if rate is None or median_ms is None else rate * median_ms / 1000
    return wrk2 | _failures(facts, figures) | {"under_way": under_way}


def _failures(facts: Facts, figures: Figures) -> Figures:
    """Add failures up; none of these tools says anything of what did not happen."""
    kinds = ("failed_connect", "failed_receive", "failed_timeout", "failed_write", "late")
    failed = sum(facts.integer(kind) or 0 for kind in kinds)
    return {"failed": failed, "non_2xx": figures.get("non_2xx", 0)}


def _zrk_json(parsed: Fields) -> Figures | None:
    if "zrk_version" not in parsed:
        return None
    errors, statuses = parsed.counts("errors"), parsed.counts("status_codes")
    by_status = {status: number for status, number in statuses.items() if number}
    demanded_rps, last_rps = parsed.amount("target_rate"), parsed.amount("target_rate_end")
    if demanded_rps is not None and last_rps is not None:
        demanded_rps = (demanded_rps + last_rps) / 2  # a ramp's mean
    return {
        "concurrency": parsed.count("config", "connections"),
        "time_limit_s": parsed.amount("config", "duration_s"),
        "demanded_rps": demanded_rps,
        "requests": parsed.count("requests"),
        "duration_s": parsed.amount("duration_s"),
        "throughput_rps": parsed.amount("achieved_rate"),
        "total_bytes": parsed.count("bytes"),
        "by_status": by_status,
        "non_2xx": non_2xx(by_status),
        "failed": sum(errors.get(kind, 0) for kind in ZRK_ERRORS),
        "failed_connect": errors.get("connect"),
        "failed_receive": errors.get("read"),
        "failed_timeout": errors.get("timeout"),
        "mean_ms": parsed.amount("latency_us", "mean", scale=0.001),
        "max_ms": parsed.amount("latency_us", "max", scale=0.001),
        "percentiles_ms": parsed.inside("latency_us").amounts_at(ZRK_PERCENTILES, 0.001),
        **url_figures(parsed.inside("target").get("url")),
    }


def _rewrk(facts: Facts, figures: Figures) -> Figures:
    answered, failed = figures["requests"], sum(facts.errors.values())
    return {"failed": failed, "rated_requests": answered, "requests": (answered or 0) + failed}


WRK = Tool(
    name="wrk",
    opening=r"Running \S+ test @ |Making \d+ requests to \S",
    patterns=patterns(
        r"Running (?P<asked>\S+) test @ (?P<url>\S+)",
        r"Making INT requests to (?P<url>\S+)",
        r"INT threads? and (?P<concurrency>INT) connections?$",
        r"Thread calibration: (?P<calibration>mean)",
        r"Latency\s+(?P<mean>\S+)\s+(?P<stdev>\S+)\s+(?P<max>\S+)\s+\S+$",
        r"(?P<percent>\d{1,3}(?:\.\d{1,6})?)%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"NUM\s+[01]\.\d{6}\s+INT(?:\s+(?:NUM|inf))?$",
        r"(?P<requests>INT) requests in (?P<took>\S+), (?P<read>\S+) read",
        r"Socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"Non-2xx or 3xx responses: (?P<non_2xx>INT)",
        r"Requests/sec:\s+(?P<throughput_rps>NUM)",
        r"Transfer/sec:\s+(?P<transfer>\S+)",
    ),
    more=_wrk,
    chatter=(
        *("Initialised ", "Thread Stats", "Req/Sec", "Latency Distribution"),
        *("Detailed Percentile", "Value ", "#[", "----------"),
    ),
    command=CommandLine(
        options=OF_HTTP
        | {"R": "demanded_rps", "rate": "demanded_rps", "s": "script", "script": "script"},
        no_matter="t threads H header L latency U u_latency T timeout v version B batch_latency",
        other_names=("wrk2",),
    ),
)

ZRK = Tool(
    name="zrk",
    opening=r"\d+ requests in \d[\d.]*s, \S+ read\s+·",
    patterns=patterns(
        r"(?P<requests>INT) requests in (?P<duration_s>NUM)s, (?P<read>\S+) read\s+·\s+"
        r"(?P<throughput_rps>NUM) req/s",
        r"p(?P<percent>\d{1,2}(?:\.\d{1,3})?)\s+(?P<at>NUM(?:us|ms|s))$",
        r"max\s+(?P<max>NUM(?:us|ms|s))$",
        r"non-2xx/3xx: (?P<non_2xx>INT)",
        r"socket errors: connect (?P<failed_connect>INT), read (?P<failed_receive>INT), "
        r"write (?P<failed_write>INT), timeout (?P<failed_timeout>INT)",
        r"deadline misses: (?P<late>INT)",
        r"NUM%\s+NUM(?:us|ms|s)$",
    ),
    chatter=("latency (coord", "Detailed Percentile", "3xx (redirect)", "peak schedule lag"),
    loop="open",
    more=_failures,
    read_json=_zrk_json,
    command=CommandLine(
        options=OF_HTTP | {"R": "demanded_rps", "rate": "demanded_rps"},
        no_matter="t threads H header T timeout latency json",
        open_loop=True,
    ),
)

REWRK = Tool(
    name="rewrk",
    opening=r"Benchmarking \d+ connections @ ",
    patterns=patterns(
        r"Benchmarking (?P<concurrency>INT) connections @ (?P<url>\S+)"
        r"(?: for (?P<asked>NUM seconds?)$)?",
        r"(?P<mean>NUMms)\s+NUMms\s+NUMms\s+(?P<max>NUMms)$",
        r"Total:\s+(?P<requests>INT)\s+Req/Sec:\s+(?P<throughput_rps>NUM)",
        r"Total:\s+(?P<read>NUM [KMGT]?B)\s+Transfer Rate:\s+(?P<transfer>NUM [KMGT]?B)/Sec",
        r"(?P<count>INT) Errors: (?P<error>\S.{0,300})",
        r"\|\s+NUM%\s+\|\s+NUMms\s+\|$",
    ),
    chatter=("Latencies:", "Avg ", "Requests:", "Transfer:", "+ ---", "|   Percentile"),
    more=_rewrk,
    command=CommandLine(
        options={"c": "concurrency", "connections": "concurrency", "d": "time_limit_s", "h": "url"},
        no_matter="t threads host http2 pct json m method H header b body verify-ssl",
    ),
)
