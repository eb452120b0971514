"""hey, boom as it was called before, and what prints like it: oha, and ghz for gRPC.

ghz's statuses are names such as `OK` and `Unavailable`.
"""

import re

from webdyno.formats.facts import (
    BODY,
    COUNTED,
    CommandLine,
    Facts,
    Figures,
    Tool,
    in_bytes,
    non_2xx,
    patterns,
)
from webdyno.formats.text import Fields, known

CUT_OFF = "aborted due to deadline"
"""What oha calls the requests under way when the time is up: those are no failures. They are in its
rate, but are no requests that ended."""
RIGHT = "OK"
"""ghz's status of a valid response."""

FIRST_COUNTED = 1_000_000
"""hey keeps the statuses and times of so many responses, and divides the sums of all by them."""

_PERCENTILE = re.compile(r"p\d{1,2}(?:\.\d{1,4})?$", re.ASCII)
_OHA_KEYS = (
    ("duration_s", "total", 1),
    ("throughput_rps", "requestsPerSec", 1),
    ("document_bytes", "sizePerRequest", 1),
    ("body_bytes", "totalData", 1),
    ("min_ms", "fastest", 1000),
    ("mean_ms", "average", 1000),
    ("max_ms", "slowest", 1000),
)


def _hey(facts: Facts, figures: Figures) -> Figures:
    counts = _counts(facts.by_status, facts.errors)
    rate, took_s = figures.get("throughput_rps"), figures.get("duration_s")
    if sum(facts.by_status.values()) != FIRST_COUNTED or not rate or not took_s:
        return counts
    requests = round(rate * took_s)
    responses = max(FIRST_COUNTED, requests - counts["failed"])
    mean_ms, size = figures.get("mean_ms"), figures.get("document_bytes")
    return counts | {
        "requests": requests,
        "rated_requests": requests,
        "first_counted": FIRST_COUNTED if responses > FIRST_COUNTED else None,
        "by_status": {},
        "mean_ms": None if mean_ms is None else mean_ms * FIRST_COUNTED / responses,
        "document_bytes": None if size is None else round(size * FIRST_COUNTED / responses),
    }


def _counts(by_status: dict[str, int], errors: dict[str, int]) -> Figures:
    if not by_status and not errors:
        return {}
    failed = sum(count for error, count in errors.items() if error != CUT_OFF)
    requests = sum(by_status.values()) + failed
    return {
        "requests": requests,
        "rated_requests": requests + errors.get(CUT_OFF, 0),
        "failed": failed,
        "non_2xx": non_2xx(by_status),
        "errors": {error: count for error, count in errors.items() if error != CUT_OFF},
    }


def _oha(facts: Facts, figures: Figures) -> Figures | None:
    size = in_bytes(facts.texts.get("size"))
    document = {"document_bytes": None if size is None else int(size)}
    if figures["duration_s"] is None:
        return None
    return document | _counts(facts.by_status, facts.errors)


def _oha_json(parsed: Fields) -> Figures | None:
    summary = parsed.inside("summary")
    if not summary or "statusCodeDistribution" not in parsed:
        return None
    percentiles = parsed.inside("latencyPercentiles")
    by_status = parsed.counts("statusCodeDistribution")
    return {
        **{name: summary.amount(key, scale=scale) for name, key, scale in _OHA_KEYS},
        "percentiles_ms": known(
            {
                float(name[1:]): percentiles.amount(name, scale=1000)
                for name in percentiles
                if _PERCENTILE.match(name)
            }
        ),
        "by_status": by_status,
        **_counts(by_status, parsed.counts("errorDistribution")),
    }


def _ghz_counts(statuses: dict[str, int]) -> Figures:
    failed = sum(number for name, number in statuses.items() if name != RIGHT)
    return {"failed": failed, "by_status": {}}  # they are none of HTTP's


def _ghz_json(parsed: Fields) -> Figures | None:
    if "rps" not in parsed or "statusCodeDistribution" not in parsed or "average" not in parsed:
        return None
    return {
        "requests": parsed.count("count"),
        "duration_s": parsed.amount("total", scale=1e-9),
        "throughput_rps": parsed.amount("rps"),
        "min_ms": parsed.amount("fastest", scale=1e-6),
        "mean_ms": parsed.amount("average", scale=1e-6),
        "max_ms": parsed.amount("slowest", scale=1e-6),
        "concurrency": parsed.count("options", "concurrency"),
        "percentiles_ms": {
            percent: time_ms
            for row in parsed.objects("latencyDistribution")
            if (percent := row.amount("percentage")) is not None
            and (time_ms := row.amount("latency", scale=1e-6)) is not None
        },
        "errors": parsed.counts("errorDistribution"),
        **_ghz_counts(parsed.counts("statusCodeDistribution")),
    }


HEY = Tool(
    name="hey",
    opening=r"Total:\s+\d[\d.]* secs",
    patterns=patterns(
        r"Total:\s+(?P<duration_s>NUM) secs",
        r"Slowest:\s+(?P<max>NUM secs)",
        r"Fastest:\s+(?P<min>NUM secs)",
        r"Average:\s+(?P<mean>NUM secs)",
        r"Requests/sec:\s+(?P<throughput_rps>NUM)",
        r"Total [dD]ata(?: Received)?:\s+(?P<body_bytes>INT) bytes",
        r"(?:Size/request|Response Size per Request):\s+(?P<document_bytes>INT) bytes",
        r"(?P<percent>\d{1,2}(?:\.\d{1,4})?)%+ in (?P<at>NUM secs)",
        r"\[(?P<status>\d{3})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.*)",
        r"NUM \[INT\]",
    ),
    needed=("throughput_rps", "duration_s"),
    more=_hey,
    chatter=(
        *("Response time histogram", "Latency distribution", "Details (", "DNS"),
        *("req write", "resp ", "Status code dist", "Error dist"),
    ),
    command=CommandLine(
        options=COUNTED
        | {"c": "concurrency", "z": "time_limit_s", "q": "each_rps"}
        | {"disable-keepalive": "reconnects"},
        no_matter=f"{BODY} T a A D x h2 host disable-compression disable-redirects cpus more o U",
        other_names=("boom",),
        defaults={"concurrency": 50, "requests": 200},
    ),
)

OHA = Tool(
    name="oha",
    opening=r"Success rate:\s",
    patterns=patterns(
        r"Success rate:\s+(?P<success>NUM)",
        r"Total:\s+(?P<took>NUM \S+)",
        r"Slowest:\s+(?P<max>NUM \S+)",
        r"Fastest:\s+(?P<min>NUM \S+)",
        r"Average:\s+(?P<mean>NUM \S+)",
        r"Requests/sec:\s+(?P<throughput_rps>NUM)",
        r"Size/request:\s+(?P<size>NUM \S+)",
        r"(?P<percent>\d{1,2}(?:\.\d{1,4})?)% in (?P<at>NUM \S+)",
        r"\[(?P<status>\d{3})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.*)",
        r"NUM \S+ \[INT\]",
    ),
    loop=None,
    needed=("throughput_rps", "took"),
    more=_oha,
    read_json=_oha_json,
    chatter=(
        *("Total data", "Size/sec", "Response time", "Details (", "DNS"),
        *("Status code dist", "Error dist"),
    ),
    command=CommandLine(
        options=COUNTED
        | {"c": "concurrency", "z": "time_limit_s", "q": "demanded_rps", "p": "streams"}
        | {"disable-keepalive": "reconnects"},
        no_matter=(
            f"{BODY} T a A D Z F x r redirect w u o j wait-ongoing-requests-after-deadline http2 "
            "http-version no-tui fps latency-correction no-color disable-color output "
            "output-format json insecure cacert cert key ipv4 ipv6 host no-pre-lookup connect-to "
            "connect-timeout db-url disable-compression unix-socket stats-success-breakdown "
            "time-unit debug"
        ),
        defaults={"concurrency": 50, "requests": 200},
    ),
)

GHZ = Tool(
    name="ghz",
    opening=r"Count:\s+\d+$",
    patterns=patterns(
        r"Count:\s+(?P<requests>INT)$",
        r"Total:\s+(?P<took>NUM (?:ns|ms|s))$",
        r"Slowest:\s+(?P<max>NUM (?:ns|ms|s))$",
        r"Fastest:\s+(?P<min>NUM (?:ns|ms|s))$",
        r"Average:\s+(?P<mean>NUM (?:ns|ms|s))$",
        r"Requests/sec:\s+(?P<throughput_rps>NUM)",
        r"(?P<percent>\d{1,2}) ?% in (?P<at>NUM (?:ns|ms|s))",
        r"\[(?P<status>[A-Z][A-Za-z]{1,40})\]\s+(?P<count>INT) responses",
        r"\[(?P<count>INT)\]\s+(?P<error>\S.{0,300})",
        r"NUM \[INT\]",
    ),
    chatter=(
        *("Name:", "Response time histogram", "Latency distribution"),
        *("Status code dist", "Error dist"),
    ),
    more=lambda facts, _: _ghz_counts(facts.by_status),
    read_json=_ghz_json,
    command=CommandLine(
        options=dict.fromkeys(("c", "concurrency"), "concurrency")
        | dict.fromkeys(("n", "total"), "requests")
        | dict.fromkeys(("z", "duration"), "time_limit_s")
        | dict.fromkeys(("r", "rps"), "demanded_rps"),
        no_matter=(
            "proto protoset call d data D data-file b binary B binary-file m metadata M "
            "metadata-file i import-paths insecure skipTLS skip-tls cacert cert key cname t "
            "timeout connections cpus O format o output name tags e enable-compression "
            "lb-strategy connect-timeout keepalive debug reflect-metadata"
        ),
        defaults={"concurrency": 50, "requests": 200},
    ),
)
