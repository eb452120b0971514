"""Tools in Go with a text and a JSON: bombardier, plow and vegeta."""

import re
from collections.abc import Iterable

from webdyno.core.tables import as_list
from webdyno.formats.facts import (
    BODY,
    COUNTED,
    MOST_ROWS,
    OF_HTTP,
    TLS,
    CommandLine,
    Facts,
    Figures,
    Tool,
    in_ms,
    non_2xx,
    patterns,
)
from webdyno.formats.text import Fields, as_count, known, url_figures


def _bombardier(facts: Facts, _: Figures) -> Figures:
    groups, failed = facts.groups(), facts.integer("others") or 0
    return groups | {"failed": failed, "requests": sum(groups["by_status"].values()) + failed}


def _bombardier_json(parsed: Fields) -> Figures | None:
    spec, result = parsed.inside("spec"), parsed.inside("result")
    if not spec or "req2xx" not in result:
        return None
    by_status = result.counts_by_status_group("req{}xx")
    failed = result.count("others") or 0
    return {
        "concurrency": spec.count("numberOfConnections"),
        "time_limit_s": spec.amount("testDurationSeconds"),
        "demanded_rps": spec.amount("rate"),
        "duration_s": result.amount("timeTakenSeconds"),
        "requests": sum(by_status.values()) + failed,
        "failed": failed,
        "by_status": by_status,
        "non_2xx": non_2xx(by_status) or 0,
        "throughput_rps": result.amount("rps", "mean"),
        "total_bytes": result.count("bytesRead"),
        "mean_ms": result.amount("latency", "mean", scale=0.001),
        "max_ms": result.amount("latency", "max", scale=0.001),
        **url_figures(spec.get("url")),
    }


BOMBARDIER = Tool(
    name="bombardier",
    opening=r"Bombarding \S+ (?:for|with) |Statistics\s+Avg\s+Stdev\s+Max$",
    restart=r"Bombarding \S+ (?:for|with) ",
    patterns=patterns(
        r"Bombarding (?P<url>\S+) for (?P<asked>\S+) using (?P<concurrency>INT) connection",
        r"Bombarding (?P<url>\S+) with INT requests?(?:\(s\))? using (?P<concurrency>INT) connect",
        r"Reqs/sec\s+(?P<throughput_rps>NUM)\s+NUM\s+NUM$",
        r"Latency\s+(?P<mean>\S+)\s+\S+\s+(?P<max>\S+)$",
        r"(?P<percent>\d{1,2})%\s+(?P<at>NUM(?:us|ms|s|m|h))$",
        r"1xx - (?P<responses_1xx>INT), 2xx - (?P<responses_2xx>INT), "
        r"3xx - (?P<responses_3xx>INT), 4xx - (?P<responses_4xx>INT), 5xx - (?P<responses_5xx>INT)",
        r"others - (?P<others>INT)",
        r"Throughput:\s+(?P<transfer>\S+)/s",
        r"(?P<error>\S.{0,300}) - (?P<count>INT)$",
    ),
    chatter=("Statistics ", "Latency Distribution", "HTTP codes:", "Errors:", "Done!", "[="),
    needed=("throughput_rps", "responses_2xx"),
    more=_bombardier,
    read_json=_bombardier_json,
    made_of={"others": "failed"},
    command=CommandLine(
        options=OF_HTTP
        | COUNTED
        | {"r": "demanded_rps", "rate": "demanded_rps"}
        | {"a": "reconnects", "disableKeepAlives": "reconnects"},
        no_matter=(
            f"{BODY} {TLS} f body-file l latencies p print o format s stream fasthttp http1 http2 "
            "q no-print"
        ),
    ),
)


_PLOW_TIME = r"\d[\d.]{0,20}(?:ns|us|µs|μs|ms|s|m[\d.]{1,20}s)"
_PLOW_PERCENTILE = re.compile(r"P(\d{1,2}(?:\.\d{1,4})?)$", re.ASCII)


def _plow(facts: Facts, _: Figures) -> Figures:
    heads, times = (facts.texts.get(name, "").split() for name in ("heads", "times"))
    megabytes = facts.number("reads")
    return {
        "percentiles_ms": _plow_percentiles(zip(heads, times, strict=False)),
        "transfer_kib_s": None if megabytes is None else megabytes * 1024,
        "failed": sum(facts.errors.values()),
        "non_2xx": non_2xx(facts.by_status) or 0,
    }


def _plow_percentiles(rows: Iterable[tuple[str, object]]) -> dict[float, float]:
    matches = ((_PLOW_PERCENTILE.match(name), time) for name, time in rows)
    return known({float(match[1]): _plow_ms(time) for match, time in matches if match})


def _plow_ms(value: object) -> float | None:
    return in_ms(value) if isinstance(value, str) else None


def _plow_json(parsed: Fields) -> Figures | None:
    summary = parsed.inside("Summary")
    if "RPS" not in summary:
        return None
    latency = parsed.inside("Statistics", "Latency")
    took_ms, by_status = _plow_ms(summary.get("Elapsed")), summary.counts("Counts")
    return {
        "requests": summary.count("Count"),
        "throughput_rps": summary.amount("RPS"),
        "concurrency": summary.count("Concurrency"),
        "duration_s": None if took_ms is None else took_ms / 1000,
        "mean_ms": _plow_ms(latency.get("Mean")),
        "max_ms": _plow_ms(latency.get("Max")),
        "percentiles_ms": _plow_percentiles(parsed.inside("Percentiles").items()),
        "by_status": by_status,
        "failed": sum(parsed.counts("Error").values()),
        "non_2xx": non_2xx(by_status) or 0,
    }


PLOW = Tool(
    name="plow",
    opening=rf"Benchmarking \S+ (?:with \d+ request\(s\) )?(?:for \S+ )?using \d+ connection"
    rf"|Elapsed\s+{_PLOW_TIME}$",
    patterns=patterns(
        r"Benchmarking (?P<url>\S+) (?:with INT request\(s\) )?(?:for (?P<asked>\S+) )?"
        r"using (?P<concurrency>INT) connection",
        rf"Elapsed\s+(?P<took>{_PLOW_TIME})(?:\s|$)",
        r"Count\s+(?P<requests>INT)(?:\s|$)",
        r"(?P<status>[1-5]xx)\s+(?P<count>INT)$",
        r"RPS\s+(?P<throughput_rps>NUM)$",
        r"Concurrency\s+(?P<concurrency>INT)$",
        r"Reads\s+(?P<reads>NUM)MB/s",
        r"(?P<count>INT)\s+\"(?P<error>.{1,300})\"$",
        rf"Latency\s+{_PLOW_TIME}\s+(?P<mean>{_PLOW_TIME})\s+{_PLOW_TIME}\s+(?P<max>{_PLOW_TIME})$",
        r"RPS\s+NUM\s+NUM\s+NUM\s+NUM$",
        r"(?P<heads>P50(?:\s+P[\d.]{2,8})+)$",
        rf"(?P<times>{_PLOW_TIME}(?:\s+{_PLOW_TIME})+)$",
        rf"{_PLOW_TIME}\s+INT(?:\s|$)",
    ),
    chatter=(
        *("Writes ", "Error:", "Statistics ", "Latency Percentile", "Latency Histogram", "@ Real"),
    ),
    more=_plow,
    read_json=_plow_json,
    command=CommandLine(
        options=OF_HTTP | COUNTED | {"rate": "demanded_rps"},
        no_matter=(
            f"{BODY} {TLS} listen content host socks5 resp-timeout dial-timeout summary json "
            "interval seconds stream auto-open-browser"
        ),
    ),
)


VEGETA_PERCENTILES = {50.0: "50th", 90.0: "90th", 95.0: "95th", 99.0: "99th"}
NO_RESPONSE = "0"
"""vegeta's status code of a request without a response."""

_CODE = re.compile(r"(\d{1,3}):(\d{1,20})")


def _vegeta(facts: Facts, _: Figures) -> Figures:
    codes = {code: as_count(number) or 0 for code, number in _CODE.findall(facts.texts["codes"])}
    # `mean, 50, 95, 99, max`, with the times below.
    heads, times = (facts.texts.get(name, "").split(", ") for name in ("heads", "times"))
    latencies = dict(zip(heads, map(in_ms, times), strict=False))
    filled = [in_ms(low) or 0.0 for low, count in facts.parts.items() if count]
    is_of_all = sum(facts.parts.values()) == facts.integer("requests")
    return {
        "ended_s": facts.time_s("ended"),
        # Where the highest bucket with a response begins, in a histogram of all requests.
        "longest_above_ms": max(filled, default=None) if is_of_all else None,
        "min_ms": latencies.get("min"),
        "mean_ms": latencies.get("mean"),
        "max_ms": latencies.get("max"),
        "percentiles_ms": known(
            {float(name): time_ms for name, time_ms in latencies.items() if name.isdecimal()}
        ),
        **_vegeta_counts(codes, facts.number("mean_bytes")),
    }


def _vegeta_counts(codes: dict[str, int], mean_bytes: float | None) -> Figures:
    """Set apart what got no response; the mean of bytes means a document only where all got one."""
    failed = codes.pop(NO_RESPONSE, 0)
    mixed = failed or len(codes) != 1
    return {
        "failed": failed,
        "by_status": codes,
        "non_2xx": non_2xx(codes) or 0,
        "document_bytes": None if mixed or mean_bytes is None else int(mean_bytes),
    }


def _vegeta_json(parsed: Fields) -> Figures | None:
    latencies = parsed.inside("latencies")
    if not latencies or "status_codes" not in parsed:
        return None
    duration_s, wait_s = (parsed.amount(name, scale=1e-9) for name in ("duration", "wait"))
    return {
        "requests": parsed.count("requests"),
        "throughput_rps": parsed.amount("rate"),
        "duration_s": duration_s,
        "ended_s": None if duration_s is None else duration_s + (wait_s or 0),
        "body_bytes": parsed.count("bytes_in", "total"),
        "min_ms": latencies.amount("min", scale=1e-6),
        "mean_ms": latencies.amount("mean", scale=1e-6),
        "max_ms": latencies.amount("max", scale=1e-6),
        "percentiles_ms": latencies.amounts_at(VEGETA_PERCENTILES, 1e-6),
        # It lists each once, without a count.
        "errors": {
            error: 0
            for error in as_list(parsed.get("errors"))[:MOST_ROWS]
            if isinstance(error, str)
        },
        **_vegeta_counts(parsed.counts("status_codes"), parsed.amount("bytes_in", "mean")),
    }


VEGETA = Tool(
    name="vegeta",
    opening=r"Requests\s+\[total, rate(?:, throughput)?\]|Bucket\s+#\s+%\s+Histogram",
    restart=r"Requests\s+\[total, rate(?:, throughput)?\]",
    patterns=patterns(
        r"Requests\s+\[total, rate(?:, throughput)?\]\s+(?P<requests>INT), (?P<throughput_rps>NUM)",
        r"Duration\s+\[total, attack, wait\]\s+(?P<ended>[\w.µμ]+), (?P<took>[\w.µμ]+), ",
        r"Latencies\s+\[(?P<heads>[a-z0-9, ]{5,80})\]\s+(?P<times>[\w.µμ, ]{5,200})$",
        r"Bytes In\s+\[total, mean\]\s+(?P<body_bytes>INT), (?P<mean_bytes>NUM)",
        r"Status Codes\s+\[code:count\]\s*(?P<codes>.{0,400})$",
        r"(?P<error>(?:Get|Head|Post|Put|Patch|Delete|Options) \"?https?://.{1,300})$",
        r"Bucket\s+#\s+%\s+(?P<banner>Histogram)",
        r"\[(?P<part>[\w.µμ]+),\s+[\w.µμ+]+\]\s+(?P<count>INT)\s+(?P<share>NUM)%",
    ),
    chatter=("Bytes Out ", "Success ", "Error Set:"),
    loop="open",
    needed=("requests", "throughput_rps", "codes"),
    more=_vegeta,
    read_json=_vegeta_json,
    made_of={"codes": "by_status"},
    command=CommandLine(
        options={"rate": "demanded_rps", "duration": "time_limit_s"},
        no_matter=(
            "targets body header name timeout keepalive connections max-connections workers "
            "max-workers http2 h2c insecure lazy format output redirects laddr root-certs cert "
            "key resolvers chunked max-body session-tickets type inputs"
        ),
        open_loop=True,
    ),
)
