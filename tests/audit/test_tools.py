"""Figures of outputs: equal to what the tool printed, or absent."""

import re
from itertools import pairwise
from typing import Any

import pytest

from audit.texts import ab, audited, outputs, recorded

PRINTED: dict[str, dict[str, Any]] = {
    "ab-404.txt": {
        "tool": "ab",
        "server": "nginx/1.22.1",
        "host": "127.0.0.1",
        "port": 50305,
        "path": "/missing",
        "document_bytes": 153,
        "concurrency": 200,
        "duration_s": 0.1,
        "requests": 1000,
        "failed": 0,
        "non_2xx": 1000,
        "keepalive_requested": False,
        "keepalive_requests": None,
        "total_bytes": 303000,
        "body_bytes": 153000,
        "throughput_rps": 9970.09,
        "mean_ms": 20.06,
        "max_ms": 26,
        "transfer_kib_s": 2950.13,
        "connect_max_ms": 14,
    },
    "ab-keepalive-refused.txt": {"keepalive_requested": True, "keepalive_requests": 0},
    "ab-varying.txt": {"failed": 1910, "failed_length": 1910, "failed_connect": 0, "non_2xx": 0},
    "ab-syn.txt": {"connect_min_ms": 0, "connect_median_ms": 0, "connect_max_ms": 1009},
    "httperf-rate.txt": {
        "tool": "httperf",
        "loop": "open",
        "connections": 500,
        "requests": 5000,
        "duration_s": 1.997,
        "throughput_rps": 2503.7,
        "most_connections": 4,
        "demanded_rps": 250,
        "host": "127.0.0.1",
        "path": "/hello.txt",
        "document_bytes": 13,
        "mean_ms": 0.2,
        "transfer_kib_s": 782.4,
        "non_2xx": 0,
        "failed": 0,
        "reply_rate_samples": 0,
    },
    "httperf-404.txt": {"requests": 600, "non_2xx": 600, "by_status": {"4xx": 600}},
    "httperf-refused.txt": {"requests": 0, "failed": 100, "failed_connect": 100},
    "httperf-timeouts.txt": {"requests": 0, "failed": 100, "failed_timeout": 100},
    "httperf-sequential.txt": {"loop": "closed", "most_connections": 1, "demanded_rps": None},
    "wrk-latency.txt": {
        "tool": "wrk",
        "loop": "closed",
        "path": "/hello.txt",
        "concurrency": 32,
        "requests": 263803,
        "duration_s": 6.03,
        "throughput_rps": 43770.84,
        "mean_ms": 2.57,
        "max_ms": 92.92,
        "percentiles_ms": {50.0: 0.563, 75.0: 1.85, 90.0: 7.27, 99.0: 28.78},
        "non_2xx": 0,
        "failed": 0,
        "document_bytes": None,
    },
    "wrk-404.txt": {"non_2xx": 46412, "requests": 46412},
    "wrk-socket-errors.txt": {"requests": 0, "throughput_rps": 0},
    "wrk2.txt": {"tool": "wrk2", "loop": "open", "requests": 23861, "throughput_rps": 1988.26},
    "wrk2-overload.txt": {"tool": "wrk2", "mean_ms": 9510},
    "h2load.txt": {
        "tool": "h2load",
        "concurrency": 32,
        "requests": 100000,
        "duration_s": 2.77,
        "throughput_rps": 36149.08,
        "total_bytes": 24900000,
        "body_bytes": 1300000,
        "mean_ms": 0.881,
        "max_ms": 82.8,
        "connect_max_ms": 1.82,
        "non_2xx": 0,
        "failed": 0,
    },
    "h2load-404.txt": {"non_2xx": 59716, "by_status": {"4xx": 59716}, "failed": 0},
    "hey.txt": {
        "tool": "hey",
        "requests": 20000,
        "duration_s": 1.5896,
        "throughput_rps": 12582.1529,
        "document_bytes": 13,
        "body_bytes": 260000,
        "by_status": {"200": 20000},
        "concurrency": None,
    },
    "hey-mixed.txt": {"requests": 300, "non_2xx": 248, "by_status": {"200": 52, "503": 248}},
    "hey-refused.txt": {"requests": 20, "failed": 20, "non_2xx": None},
    "oha.txt": {
        "tool": "oha",
        "requests": 20000,
        "throughput_rps": 40766.8698,
        "document_bytes": 13,
    },
    "oha-rate.txt": {"requests": 1500, "failed": 0, "throughput_rps": 499.7817},
    "oha-mixed.txt": {"non_2xx": 249, "by_status": {"200": 51, "503": 249}},
    "oha.json": {"tool": "oha", "requests": 20000, "body_bytes": 260000, "loop": None},
    "oha-404.json": {"requests": 300, "non_2xx": 300},
    "siege.txt": {"tool": "siege", "requests": 28716, "throughput_rps": 10960.31, "non_2xx": 0},
    "siege-text.txt": {
        "requests": 14977,
        "duration_s": 1.37,
        "throughput_rps": 10932.12,
        "failed": 0,
    },
    "siege-404.txt": {"requests": 1000, "non_2xx": 1000, "failed": 0},
    "siege-refused.txt": {"requests": 400, "failed": 400, "non_2xx": 0},
    "k6.txt": {
        "tool": "k6",
        "concurrency": 50,
        "requests": 73530,
        "duration_s": 30,
        "throughput_rps": 2449.183122,
        "failed": 0,
        "checks": 73530,
        "failed_checks": 0,
        "mean_ms": 20.31,
        "max_ms": 211.84,
        "percentiles_ms": {50.0: 18.9, 90.0: 31.5, 95.0: 39.12},
        "total_bytes": 19_000_000,
    },
    "k6-old.txt": {
        "requests": 6000,
        "failed": 2400,
        "dropped": 2990,
        "checks": 6000,
        "failed_checks": 2400,
        "duration_s": 30,
        "concurrency": 30,
    },
    "k6-groups.txt": {"requests": 60000, "throughput_rps": 1998.183122},
    "k6-export.json": {"tool": "k6", "requests": 6000, "failed": 2400, "mean_ms": 136.91},
    "k6-v2.json": {"tool": "k6", "requests": 73530, "duration_s": 30.05, "failed": 0},
    "vegeta.txt": {
        "tool": "vegeta",
        "loop": "open",
        "requests": 1500,
        "duration_s": 29.98,
        "throughput_rps": 50.03,
        "mean_ms": 3.204,
        "max_ms": 48.113,
        "percentiles_ms": {50.0: 2.981, 90.0: 4.52, 95.0: 5.361, 99.0: 11.87},
        "document_bytes": 612,
        "by_status": {"200": 1500},
        "failed": 0,
    },
    "vegeta-refused.txt": {"requests": 1200, "failed": 535, "by_status": {"200": 665}},
    "vegeta.json": {"non_2xx": 27, "mean_ms": 2.371194, "duration_s": 0.989999944},
    "autocannon.txt": {
        "tool": "autocannon",
        "host": "localhost",
        "port": 3000,
        "concurrency": 100,
        "pipelining": 1,
        "requests": 365_000,
        "duration_s": 10.02,
        "throughput_rps": 36484.8,
        "mean_ms": 2.31,
        "max_ms": 62,
        "total_bytes": 67_900_000,
        "percentiles_ms": {50.0: 2, 97.5: 5, 99.0: 7},
        "non_2xx": 0,
    },
    "autocannon-400.txt": {"requests": 211216, "non_2xx": 211216, "by_status": {"400": 211216}},
    "autocannon-pipelining.txt": {"pipelining": 10, "requests": 3_074_000},
    "autocannon-before-3.txt": {"mean_ms": 51.7, "throughput_rps": 19183.6, "failed": 6},
    "autocannon.json": {"requests": 364848, "by_status": {"2xx": 364848}, "port": 3000},
    "bombardier.txt": {
        "tool": "bombardier",
        "concurrency": 125,
        "time_limit_s": 10,
        "requests": 1_166_828,
        "throughput_rps": 117714.36,
        "mean_ms": 1.07,
        "max_ms": 116.08,
        "failed": 0,
        "non_2xx": 0,
    },
    "bombardier-503.txt": {"requests": 1_000_000, "non_2xx": 999_000, "failed": 5},
    "bombardier.json": {"duration_s": 10.001, "mean_ms": 1.07, "total_bytes": 249_700_000},
    "plow.txt": {
        "tool": "plow",
        "requests": 1_127_417,
        "concurrency": 20,
        "duration_s": 10,
        "mean_ms": 0.176,
        "max_ms": 1.839,
        "by_status": {"2xx": 1_127_417},
        "failed": 0,
    },
    "plow-refused.txt": {"requests": 198_140, "failed": 198_140},
    "plow.json": {"requests": 1_127_417, "mean_ms": 0.176},
    "rewrk.txt": {
        "tool": "rewrk",
        "requests": 91281,
        "concurrency": 60,
        "mean_ms": 3.27,
        "max_ms": 9.39,
        "non_2xx": None,
        "percentiles_ms": {},
    },
    "rewrk-errors.txt": {"failed": 4121, "rated_requests": 91281, "requests": 95402},
    "ghz.txt": {"tool": "ghz", "requests": 20000, "failed": 2000, "duration_s": 5.31},
    "ghz.json": {"tool": "ghz", "concurrency": 50, "mean_ms": 13.21, "failed": 0},
    "zrk.txt": {
        "tool": "zrk",
        "loop": "open",
        "requests": 59990,
        "throughput_rps": 2000,
        "percentiles_ms": {50.0: 0.412, 75.0: 0.53, 90.0: 0.702, 99.0: 1.92, 99.9: 4.21},
        "max_ms": 12.8,
        "failed": 0,
        "non_2xx": 0,
    },
    "zrk-shed.txt": {"non_2xx": 112, "failed_connect": 3, "failed": 18775},
    "zrk.json": {"tool": "zrk", "demanded_rps": 2000, "mean_ms": 0.4512, "port": 8080},
    "gatling.txt": {
        "tool": "gatling",
        "requests": 198_973,
        "failed": 20,
        "throughput_rps": 6632.43,
        "mean_ms": 46,
        "max_ms": 3219,
        "percentiles_ms": {50.0: 22, 75.0: 51, 95.0: 140, 99.0: 402},
    },
    "gatling-old.txt": {
        "requests": 6000,
        "failed": 0,
        "throughput_rps": 222222.222,
        "max_ms": 5316,
    },
    "jmeter.txt": {
        "tool": "jmeter",
        "requests": 61344,
        "failed": 231,
        "duration_s": 90,
        "throughput_rps": 681.6,
        "mean_ms": 72,
        "max_ms": 812,
    },
    "jmeter.csv": {"tool": "jmeter", "requests": 61344, "failed": 233, "throughput_rps": 681.60422},
    "jmeter-statistics.json": {"tool": "jmeter", "requests": 61344, "failed": 231, "max_ms": 812},
    "jmeter.jtl": {"tool": "jmeter", "requests": 5, "failed": 1, "non_2xx": 1},
    "locust.txt": {
        "tool": "locust",
        "requests": 3034,
        "failed": 40,
        "throughput_rps": 101.13,
        "mean_ms": 46,
        "max_ms": 431,
    },
    "locust_stats.csv": {"tool": "locust", "requests": 3034, "failed": 40, "mean_ms": 46.7},
    "siege-4.1.7.txt": {
        "requests": 5000,
        "rated_requests": 4606,
        "failed": 394,
        "non_2xx": 2303,
        "mean_ms": 41.51,
        "max_ms": 310,
    },
    "hey.csv": {"tool": "hey", "requests": 8, "non_2xx": 2, "max_ms": 13.1},
    "oha.csv": {"tool": "oha", "requests": 3, "non_2xx": 1, "max_ms": 1.31},
    "h2load-no-reconnect.txt": {
        "requests": 200_000,
        "rated_requests": 27726,
        "never_started": 172_174,
        "failed": 172_274,
        "total_bytes": 6_649_852,
    },
}


@pytest.mark.parametrize("name", PRINTED)
def test_figures_are_those_that_the_tool_printed(name: str) -> None:
    (output,) = outputs(recorded(name))
    for figure, printed in PRINTED[name].items():
        assert getattr(output, figure) == pytest.approx(printed), figure


def test_times_in_other_units_are_milliseconds() -> None:
    (text,), (json,) = outputs(recorded("oha.txt")), outputs(recorded("oha.json"))
    assert text.mean_ms == pytest.approx(1.2135)
    assert text.percentiles_ms[99.99] == pytest.approx(17.7303)
    assert text.duration_s == pytest.approx(0.4905944)
    assert json.mean_ms == pytest.approx(1.2858728901499914)
    assert json.max_ms == pytest.approx(17.936074)
    (hey,) = outputs(recorded("hey.txt"))
    assert hey.percentiles_ms[99] == pytest.approx(18.3)
    assert hey.max_ms == pytest.approx(41.8)


def test_redis_benchmark_in_its_three_forms() -> None:
    first, second = outputs(recorded("redis.txt"))
    assert (first.path, first.requests, first.duration_s, first.concurrency) == (
        "SET",
        100000,
        1.29,
        50,
    )
    assert (second.path, second.throughput_rps) == ("GET", 65746.22)
    quiet = outputs(recorded("redis-quiet.txt"))
    assert [each.path for each in quiet][:3] == ["PING_INLINE", "PING_MBULK", "SET"]
    assert quiet[0].throughput_rps == 82644.62
    assert quiet[0].percentiles_ms == {50.0: 0.359}
    assert quiet[0].requests is None
    sheet = outputs(recorded("redis.csv"))
    assert [(each.path, each.throughput_rps) for each in sheet] == [
        ("SET", 90497.73),
        ("GET", 106382.98),
    ]
    assert sheet[0].percentiles_ms[99.0] == 0.791


def test_each_row_of_autobench_is_a_run() -> None:
    rows = outputs(recorded("autobench.csv"))
    assert [row.demanded_rps for row in rows] == [500 * n for n in range(1, 9)]
    assert (rows[-1].throughput_rps, rows[-1].mean_ms, rows[-1].transfer_kib_s) == (
        4006.0,
        0.1,
        1251.9,
    )
    assert {row.host for row in rows} == {"127.0.0.1"}


def test_autobench_of_two_hosts_with_tabs() -> None:
    names = ["req_rate", "con_rate", "min_rep_rate", "avg_rep_rate", "max_rep_rate"]
    names += ["stddev_rep_rate", "resp_time", "net_io", "errors"]
    header = ["dem_req_rate", *(f"{name}_{host}" for host in ("one", "two") for name in names)]
    row = ["100", "99.5", *["10"] * 5, "1.5", "30.1", "0", "98.0", *["10"] * 5, "2.5", "31", "3.5"]
    one, two = outputs("\t".join(header) + "\n" + "\t".join(row) + "\n\nprose\n")
    assert (one.host, one.throughput_rps, one.mean_ms, one.errors_percent) == ("one", 99.5, 1.5, 0)
    assert (two.host, two.throughput_rps, two.mean_ms, two.errors_percent) == (
        "two",
        98.0,
        2.5,
        3.5,
    )


def test_every_recorded_output_in_one_text_with_prose_between() -> None:
    names = [name for name in PRINTED if not name.startswith("siege-refused")]
    text = "".join(f"And now {name}, at last.\n\n{recorded(name)}\n" for name in names)
    found = outputs(text)
    assert [output.tool for output in found] == [PRINTED[n].get("tool", _tool(n)) for n in names]
    assert [output.throughput_rps for output in found] == [
        outputs(recorded(n))[0].throughput_rps for n in names
    ]
    assert all(a.last_line < b.first_line for a, b in pairwise(found))


def _tool(name: str) -> str:
    return re.split(r"[.\-_]", name)[0]


def test_two_outputs_of_one_tool_without_a_banner_are_two() -> None:
    first, second = outputs(ab(requests=1000, took_s=1) + "Apache:\n" + ab(requests=2000, took_s=1))
    assert (first.requests, second.requests) == (1000, 2000)
    assert first.lines["requests"] == 10


def test_labels_and_values_on_lines_of_their_own() -> None:
    """As a converter from PDF leaves them, with a listing's line numbers between."""
    listing = [
        "109.",
        "           Server Software:",
        "110.",
        "                                   Apache/2.4.39",
        "112.",
        "           Server Port:",
        "113.",
        "           Document Path:",
        "                                   /page.php",
        "           Document Length:",
        "                                   236 bytes",
        "117.",
        "                                  4.808 seconds",
        "           Time taken for tests:",
        "           Complete requests:",
        "                                   25000",
        "120.",
        "           Failed requests:",
        "                                   0",
        "                                   25000",
        "121.",
        "           Non-2xx responses:",
        "           Total transferred:",
        "                                  10675000 bytes",
        "           Requests per second:",
        "                                  5199.38 [#/sec] (mean)",
        "             98%",
        "143.                     20",
    ]
    (output,) = outputs("\n".join(listing))
    assert (output.server, output.path, output.port) == ("Apache/2.4.39", "/page.php", None)
    assert (output.document_bytes, output.duration_s) == (236, 4.808)
    assert (output.requests, output.failed, output.non_2xx) == (25000, 0, 25000)
    assert (output.total_bytes, output.throughput_rps) == (10675000, 5199.38)
    assert output.percentiles_ms == {98.0: 20.0}
    assert output.lines["non_2xx"] == 22


def test_a_server_without_a_name_is_absent() -> None:
    (output,) = outputs(ab().replace("nginx/1.22.1", ""))
    assert output.server is None
    assert output.host == "web.test"


def test_ab_that_gave_up_is_an_output() -> None:
    text = (
        "Benchmarking 127.0.0.1 (be patient)...apr_pollset_poll: The timeout specified has expired "
        "(70007)\nTotal of 394 requests completed\n"
    )
    (output,) = outputs("This is ApacheBench, Version 2.3 <$Revision$>\n" + text)
    assert output.requests == 394
    assert output.gave_up
    assert output.gave_up.startswith("apr_pollset_poll")


def test_httperf_of_which_only_some_lines_were_kept() -> None:
    (output,) = outputs(
        "Total: connections 100 requests 5000 replies 5000\n\n\thome\t\n"
        "Request rate\t48.5 req/s (20.6 ms/req)\t\n"
        "Reply rate [replies/s]\tmin 16.2 avg 48.7 max 71.6\t\n"
        "Reply time [ms]\tresponse 20.6 transfer 0.0\t\n"
        "Reply status:\t1xx=0 2xx=5000 3xx=0 4xx=0 5xx=0\t\ntest-duration\t103.160 s\t\n"
    )
    assert (output.requests, output.throughput_rps, output.duration_s) == (5000, 48.5, 103.16)
    assert (output.mean_ms, output.non_2xx, output.reply_rate_samples) == (20.6, 0, None)


def test_an_output_in_utf_16_as_powershell_writes_it() -> None:
    assert audited(b"\xff\xfe" + ab().encode("utf-16-le")).read[0].kind == "ab"


def test_a_command_says_what_its_output_does_not() -> None:
    (output,) = outputs("$ hey -n 20000 -c 50 http://127.0.0.1:8080/x\n" + recorded("hey.txt"))
    assert (output.concurrency, output.host, output.path) == (50, "127.0.0.1", "/x")
    (output,) = outputs("wrk2 -R 3000 -c 8 http://a/\nsome words\n" + recorded("wrk-latency.txt"))
    assert (output.demanded_rps, output.loop) == (3000, "open")
