"""What is right to say of outputs that people posted in public threads.

Each was written down before the audit had read it. The outputs in `posted/` are rebuilt from the
figures of a thread, in the form of its tool, under other names; a few are of the tool's manual.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Right:
    """What somebody who knows the tool says."""

    answer: str
    serious: frozenset[str] = frozenset()
    """The rules with which the audit says that, and none besides."""
    notes: frozenset[str] = frozenset()
    """Notes that belong to the answer; others are welcome."""
    not_read: tuple[str, ...] = ()


def _right(answer: str, *serious: str, notes: str = "", not_read: str = "") -> Right:
    return Right(answer, frozenset(serious), frozenset(notes.split()), tuple(not_read.split()))


FINE = "nothing serious"

RIGHT: dict[str, Right] = {
    "artillery-1556": _right("184,279 of 184,723 timed out, the rest 404", "failures", "non-2xx"),
    "artillery-2277": _right("19 of 14,817 without a response, 0.13%", "failures"),
    "artillery-436": _right("all timed out", "failures", "no-responses"),
    "autocannon-127": _right("all were 400", "non-2xx"),
    "autocannon-138": _right(f"{FINE}; 10 requests"),
    "autocannon-214": _right("all timed out", "failures", "no-responses"),
    "autocannon-330": _right("735 of some 22,000 failed", "failures"),
    "autocannon-462": _right("75 bad statuses, 22 timeouts of 1,709", "failures", "non-2xx"),
    "autocannon-481": _right("all failed", "failures"),
    "ballerina-3122": _right("10,000 of 100,000 failed; pipelined", "failures", "pipelining"),
    "bombardier-28": _right(f"{FINE}; 100 requests are few for a p99", notes="thin-tail"),
    "bombardier-73": _right("11,009 of 11,020 were 5xx", "non-2xx"),
    "defaulter-4": _right("aborted after 3,983 of 5,000", "gave-up"),
    "dltcollab-124": _right(
        "173 of 1,000 had a bad status; 10 requests a connection",
        "non-2xx",
        "few-requests-per-connection",
    ),
    "dramble-30": _right("652 of 78,676 timed out in the first, the second is fine", "failures"),
    "dramble-40": _right("17 bad statuses, 10 timeouts of 770", "failures", "non-2xx"),
    "fs2-grpc-493": _right(FINE),
    "gatling-3031": _right("222,222/s can't be with responses of 5 s", "longest-response"),
    "ghz-233": _right(
        "all failed; one request a connection", "failures", "few-requests-per-connection"
    ),
    "ghz-8": _right("1,000 requests in 1.2 s are 802/s", "throughput-times-time"),
    "grpc_bench-62": _right("a table alone: not judged"),
    "grpcxx-21": _right(f"{FINE}; 10 streams; 1.5 s", notes="short-run"),
    "grpcxx-24": _right(f"{FINE}; 10 × 10 streams; 0.6 s", notes="short-run"),
    "h2load-2026": _right("a response of 9.9 s in a run of 7.1 s", "longest-response"),
    "h2load-threads": _right(f"{FINE}; 4 × 10 connections"),
    "h2o-1091": _right(FINE),
    "h2o-240": _right(
        f"{FINE}; half of the 250 connections waited at a time", notes="too-few-under-way"
    ),
    "h2o-726": _right("172,254 of 200,000 failed: one connection, lost", "failures"),
    "hey-169": _right(f"{FINE}; 3 s", notes="short-run"),
    "hey-227": _right(
        f"{FINE}; hey counts the first million, and divides by it", notes="first-million"
    ),
    "hey-257": _right("4 requests a connection", "few-requests-per-connection"),
    "hey-283": _right("250 of 500 failed", "failures"),
    "hey-310": _right(FINE),
    "hey-311": _right(FINE),
    "hey-328": _right(
        "all were refused; 4 requests a connection", "failures", "few-requests-per-connection"
    ),
    "hey-out-of-ports": _right("the client was out of ports", "client-limit"),
    "httplib-707": _right(f"{FINE}; 0.06 s", notes="short-run"),
    "judge-41": _right(
        "3,983 of 10,000 had a bad status; 10 requests a connection",
        "non-2xx",
        "few-requests-per-connection",
    ),
    "kazuho-gist": _right(f"{FINE}; 500 × 100 streams"),
    "nghttp2-1195": _right("no request was made", "no-responses"),
    "nghttp2-1343": _right(f"{FINE}; 1 s", notes="short-run"),
    "nghttp2-1523": _right(FINE),
    "nghttp2-583": _right(FINE),
    "nghttp2-howto": _right(
        "the output isn't of that command: it has ten times the requests",
        notes="other-command",
    ),
    "oha-5": _right("the client was out of descriptors", "client-limit"),
    "oha-540": _right(f"{FINE}; 100 requests are few for a p99", notes="thin-tail"),
    "oha-835": _right(
        "332 of 525 were redirects; 10 requests a connection",
        "non-2xx",
        "few-requests-per-connection",
    ),
    "oha-readme-streams": _right(f"{FINE}; 50 × 100 streams"),
    "openvsx-454": _right("2,770 of 7,192 failed", "failures"),
    "payroll-586": _right(
        "7% failed, and 10% of the checks", "failures", "failed-checks", not_read="k6"
    ),
    "pbj-465": _right("the second's average is below its fastest", "mean-out-of-range"),
    "plack-3": _right(
        "aborted after 998 of 1,000; one request a connection",
        "gave-up",
        "few-requests-per-connection",
    ),
    "revolt-70": _right("aborted without a response", "gave-up", "no-responses"),
    "siege-137": _right("208 of 23,873 failed", "failures"),
    "siege-192": _right(
        f"{FINE}; ended after 43 of 60 minutes, as -t60 is minutes", notes="run-length"
    ),
    "siege-40": _right("no hit: 182 redirects", "no-responses"),
    "siege-54": _right(FINE),
    "siege-57": _right("all were 403", "non-2xx"),
    "techempower-117": _right(f"{FINE}; 53 of 100,000 timed out", notes="failures"),
    "tokio-core-218": _right("377,739 errors and 377,105 responses", "failures"),
    "vegeta-244": _right(
        "half failed, also as the client was out of ports", "client-limit", "failures"
    ),
    "vegeta-283": _right("25% got no response, 343 a 502", "failures", "non-2xx"),
    "vegeta-410": _right(f"{FINE}; 5 s", notes="short-run"),
    "vegeta-522": _right("82% above 33 s, and none above 10 ms", "longest-response"),
    "vegeta-583": _right("40% never sent: the client was out of ports", "client-limit"),
    "vegeta-histogram": _right("latencies alone: not judged", not_read="vegeta"),
    "web-frameworks-3484": _right("all had a bad status", "non-2xx"),
    "web-frameworks-6222": _right("all had a bad status; pipelined", "non-2xx", "pipelining"),
    "web-frameworks-9775-64": _right(FINE),
    "web-frameworks-9775-oha": _right(
        "179 of 512 connections waited: the client or link was the limit", "too-few-under-way"
    ),
    "web-frameworks-9775-table": _right(
        "at 512 connections the client or link was the limit, if the loop was closed",
        notes="too-few-under-way",
    ),
    "wrk-140": _right(
        "41 timed out, 296 came; 3 requests a connection",
        "failures",
        "few-requests-per-connection",
    ),
    "wrk-247": _right(f"{FINE}; client and server on one machine", notes="same-machine"),
    "wrk-247-many": _right(
        "694 connections failed, thousands of errors", "failed-connections", "failures"
    ),
    "wrk-256": _right(
        "3,268 read errors and 2,606 responses; half a request a connection",
        "failures",
        "few-requests-per-connection",
    ),
    "wrk-409": _right(f"{FINE}; saturated: latency is connections ÷ throughput"),
    "wrk-438": _right(f"{FINE}; 1 s, a stall", notes="short-run"),
    "wrk-46": _right(f"{FINE}; 1 s", notes="short-run"),
    "wrk-497": _right("no response, read errors", "no-responses", "failures"),
    "wrk-errors-table": _right("31,110 errors for apache", "failures-column"),
    "wrk2-138": _right("a run of 5 s in 1.25 ms", "run-length", "longest-response", "rate-missed"),
    "wrk2-149": _right(FINE),
    "wrk2-62": _right(f"{FINE}; the client's threads make the difference"),
    "actix-403": _right(
        "wrk's is fine; ab made 10 requests a connection", "few-requests-per-connection"
    ),
    "bluebell-go-wrk": _right("an unknown tool: not read", not_read="figures"),
    "bombardier-35": _right(FINE),
    "bombardier-69": _right("one request a connection", "few-requests-per-connection"),
    "centminmod-h2load": _right("10 requests a connection", "few-requests-per-connection"),
    "cpv-14": _right(f"{FINE}; 20,000 connections"),
    "dramble-3": _right("10 requests a connection", "few-requests-per-connection"),
    "fasttext-6": _right(
        "17,996 read errors and 16,382 responses, 8 a connection; the second has 0.08%",
        "failures",
        "few-requests-per-connection",
    ),
    "fiber-rpcx": _right("an unknown tool: not read", not_read="figures"),
    "gatling-3736": _right(FINE),
    "grants-3120": _right("45,428 of 47,905 timed out, 637 bad statuses", "failures", "non-2xx"),
    "grpcxx-2": _right(f"{FINE}; 100 × 10 streams"),
    "hermit-516": _right(f"{FINE}; interrupted after 15 s", notes="run-length"),
    "hey-207": _right("4 requests a connection", "few-requests-per-connection"),
    "hyperx-4": _right(f"{FINE}; 1.7 s", notes="short-run"),
    "kuryu-h2load": _right(FINE),
    "loadtest-107": _right("an unknown tool's JSON: not read", not_read="figures"),
    "nghttp2-1251": _right(f"{FINE}; one request"),
    "nghttp2-1551": _right(f"{FINE}; ten requests"),
    "oha-617": _right(f"{FINE}; wrk and oha agree"),
    "reactor-netty-737": _right("110,000/s were requested, 96,640 came", "rate-missed"),
    "rscs-1": _right("10 requests a connection", "few-requests-per-connection"),
    "rust-web-1": _right(f"{FINE}; rewrk looks at no status", notes="unchecked-status"),
    "rust-web-17": _right(f"{FINE}; 10 minutes"),
    "techempower-925": _right(FINE),
    "vegeta-158": _right("535 of 1,200 got no response", "failures"),
    "vegeta-194": _right("167 of 500 were 404", "non-2xx"),
    "vegeta-210": _right(f"{FINE}; the rate of two attacks together means nothing"),
    "vegeta-293": _right("13 of 200 were 403", "non-2xx"),
    "vegeta-340": _right(f"{FINE}; one request"),
    "wrk-63": _right(FINE),
    "aura-29": _right("one response in 5 s over 10 connections", "few-requests-per-connection"),
    "autocannon-231": _right("pipelined", "pipelining"),
    "autocannon-54": _right(f"{FINE}; 6 of 575,000 failed", notes="failures"),
    "fastify-1297": _right("pipelined", "pipelining"),
    "fastify-178": _right("both pipelined", "pipelining"),
    "freshrss-2205": _right(f"{FINE}; one connection"),
    "k6-workshop-2": _right(FINE),
    "read-it-later-7682": _right(f"{FINE}; one request"),
}
