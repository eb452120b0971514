"""Outputs as people post them: what is wrong is found, what is right is not accused."""

import pytest

from audit.texts import ab, audited, found, outputs, recorded, serious, wrk

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("autocannon-400.txt", {"non-2xx"}),
        ("autocannon-pipelining.txt", {"pipelining"}),
        ("bombardier-503.txt", {"non-2xx"}),
        ("gatling-old.txt", {"longest-response"}),
        ("ghz.txt", {"failures"}),
        ("h2load-no-reconnect.txt", {"failures"}),
        ("hey.csv", {"non-2xx"}),
        ("jmeter-statistics.json", {"failures"}),
        ("jmeter.csv", {"failures"}),
        ("jmeter.jtl", {"failures", "non-2xx"}),
        ("jmeter.txt", {"failures"}),
        ("k6-export.json", {"failures"}),
        ("k6-old.txt", {"failed-checks", "failures", "rate-missed"}),
        ("locust.txt", {"failures"}),
        ("locust_stats.csv", {"failures"}),
        ("oha.csv", {"non-2xx"}),
        ("plow-refused.txt", {"failures"}),
        ("rewrk-errors.txt", {"failures"}),
        ("siege-4.1.7.txt", {"failures", "non-2xx"}),
        ("vegeta-refused.txt", {"failures"}),
        ("vegeta.json", {"non-2xx"}),
        ("zrk-shed.txt", {"failed-connections", "failures", "non-2xx"}),
        ("autocannon-before-3.txt", set()),
        ("autocannon.json", set()),
        ("autocannon.txt", set()),
        ("bombardier.json", set()),
        ("bombardier.txt", set()),
        ("gatling.txt", set()),
        ("ghz.json", set()),
        ("k6-groups.txt", set()),
        ("k6-v2.json", set()),
        ("k6.txt", set()),
        ("plow.json", set()),
        ("plow.txt", set()),
        ("rewrk.txt", set()),
        ("vegeta.txt", set()),
        ("zrk.json", set()),
        ("zrk.txt", set()),
    ],
)
def test_each_tool_is_read_whole_and_judged(name: str, rules: set[str]) -> None:
    audit = audited(recorded(name))
    assert serious(recorded(name)) == rules
    assert [each.kind for each in audit.read] == [outputs(recorded(name))[0].tool]
    assert audit.complete


def test_an_impossible_rate_of_k6() -> None:
    text = recorded("k6.txt").replace("2449.183122/s", "449183.122/s")
    assert serious(text) == {"throughput-times-time", "too-many-under-way"}
    assert "longest-response" in serious(
        text.replace("max=211.84ms", "max=21.84s").replace("running (0m30.0s)", "")
    )


def test_wrk2_that_ran_a_millisecond_instead_of_5_s() -> None:
    text = "wrk -t2 -c100 -d5s -R20000 --latency http://192.0.2.7:8080/a?b=c\n" + wrk(
        requests=19, took="1.25ms", rate=15_200, longest="1.10s", concurrency=100
    ).replace("Running 10s", "Running 5s").replace(
        "Requests/sec", "  Socket errors: connect 0, read 0, write 0, timeout 29\nRequests/sec"
    )
    (output,) = outputs(text)
    assert output.tool == "wrk2"
    assert {"run-length", "longest-response", "failures", "rate-missed"} <= serious(text)
    (length,) = found(text, "run-length")
    assert length.what == "5 s were requested, and the run took 0.00125 s"


def test_connections_that_failed_are_counted_as_connections() -> None:
    errors = "  Socket errors: connect 155, read 0, write 0, timeout 57\n"
    (warning,) = found(wrk(concurrency=400, more=errors), "failed-connections")
    assert warning.severity == "serious"
    assert warning.what.startswith("155 of 400 connections could not be opened")
    assert "ulimit -n" in warning.instead


def test_a_table_in_a_frame_is_a_table() -> None:
    text = (
        "┌────────┬──────────┬────────┬──────────┐\n│ server │ requests │ errors │ req/s    │\n"
        "├────────┼──────────┼────────┼──────────┤\n│ nginx  │ 100000   │ 0      │ 51234.11 │\n"
        "│ apache │ 100000   │ 31110  │ 60012.45 │\n└────────┴──────────┴────────┴──────────┘\n"
    )
    (warning,) = found(text, "failures-column")
    assert "“errors” is 31110 for “apache”: 31.1% failed" in warning.what
    assert warning.line == 5


def test_rows_of_a_sheet_are_sides_with_their_bytes_per_answer() -> None:
    text = (
        "server,duration,requests,bytes,rps\nactix,30,1200000,189600000,40000\n"
        "express,30,300000,105600000,10000\n"
    )
    (warning,) = found(text, "different-documents")
    assert "is 158 for “actix” and 352 for “express”" in warning.what
    assert not found(text.replace("105600000", "47700000"), "different-documents")


def test_a_table_with_columns_of_text_and_a_row_of_failures() -> None:
    text = (
        "| server | protocol | req/s | failed % |\n|---|---|---|---|\n"
        "| Caddy | h2 TLSv1.2 | **76,835** | 0 |\n| nginx | h2 TLSv1.3 | 80,112 | 31.11 |\n"
    )
    (warning,) = found(text, "failures-column")
    assert "31.1% failed" in warning.what
    assert found(text.replace("31.11", "0"), "failures-column") == []


def test_a_column_of_status_codes() -> None:
    rows = "".join(f"{n}\t{12.5 + n}\t{503 if n % 4 == 0 else 200}\n" for n in range(1, 9))
    (warning,) = found("n\ttime (ms)\tstatus\n" + rows, "status-column")
    assert warning.what.startswith("2 of 8 rows of “status” are no 2xx status (503)")


@pytest.mark.parametrize("blank", [NBSP, "&nbsp;"])
def test_an_output_from_a_page_whose_blanks_are_unbreakable(blank: str) -> None:
    text = recorded("ab-404.txt").replace(" ", blank)
    assert serious(text) == {"few-requests-per-connection", "non-2xx"}
    assert outputs(text) == outputs(recorded("ab-404.txt"))


@pytest.mark.parametrize(
    "prefix",
    [
        "2026-11-20T09:12:33.1234567Z ",
        "bench\tRun ab\t2026-11-20T09:12:33.1234567Z ",
        "bench-1  | ",
        "bench_1    | ",
        "2026-11-20T09:12:33.123456789Z stdout F ",
        "2026-11-20T09:12:33.123456Z 01O ",
        "\x1b[36mbench-1  | \x1b[0m",
        "Nov 20 09:12:33 host-7 ab[4711]: ",
        "> > ",
    ],
)
@pytest.mark.parametrize("name", ["ab-mixed.txt", "gatling-old.txt", "locust.txt", "siege-404.txt"])
def test_prefixes_of_logs_change_nothing(prefix: str, name: str) -> None:
    text = "".join(f"{prefix}{line}\n" for line in recorded(name).splitlines())
    assert serious(text) == serious(recorded(name)) != set()
    assert audited(text).complete


def test_a_row_of_a_table_is_no_prefix() -> None:
    text = "name | rps | ms\nweb-1 | 4321.5 | 12.25\nweb-2 | 5432.5 | 11.5\nweb-3 | 6543.5 | 9.75\n"
    (table,) = audited(text + ab()).read[:1]
    assert (table.kind, table.first_line, table.last_line) == ("table", 1, 4)


def test_html_around_and_in_an_output() -> None:
    shown = recorded("ab-404.txt").splitlines()
    text = "\n".join(f"<code>{line}</code><br>" for line in shown)
    assert serious(text) == {"few-requests-per-connection", "non-2xx"}


def test_pipelining_on_one_side_of_a_redis_comparison() -> None:
    text = (
        "redis-benchmark -p 6379 -n 100000 -q\nSET: 105273.69 requests per second\n"
        "redis-benchmark -p 6380 -n 100000 -P 16 -q\nSET: 1205273.69 requests per second\n"
    )
    (warning,) = [each for each in found(text, "different-settings") if "pipelining" in each.what]
    assert warning.severity == "serious"
    assert not found(text.replace("-P 16 ", ""), "different-settings")
    both = text.replace("-p 6379", "-p 6379 -P 16")
    assert not found(both, "different-settings")


def test_a_pipelining_script_and_figures_that_only_it_explains() -> None:
    command = "wrk -t4 -c256 -d10s -s pipeline.lua http://192.0.2.7:8080/ -- 16\n"
    pipelined = wrk(mean="40.00ms", stdev="12.00ms", longest="90.00ms")
    plain = wrk(url="http://192.0.2.7:8081/", requests=90_000, rate=9_000, mean="28.00ms")
    assert {"pipelining", "different-settings"} <= serious(
        command + pipelined + "wrk -t4 -c256 -d10s http://192.0.2.7:8081/\n" + plain
    )
    (warning,) = found(pipelined, "too-many-under-way")
    assert "2,800 requests under way at once, over 256 connections" in warning.what
    assert serious(plain) == set()


def test_pipelining_in_a_command_whose_output_is_elsewhere() -> None:
    text = "autocannon -c 100 -d 40 -p 10 localhost:3000\n"
    (warning,) = found(text, "pipelining")
    assert "`-p 10`" in warning.what


def test_answers_of_wrk_that_differ_between_two_sides() -> None:
    text = wrk(url="http://192.0.2.7:8080/", size=331) + wrk(
        url="http://192.0.2.7:8081/", size=24_576
    )
    (warning,) = found(text, "different-documents")
    assert "192.0.2.7:8080 (line 1) answered with 331 bytes, heads included" in warning.what
    assert "192.0.2.7:8081 with 24,576" in warning.what
    again = wrk(size=331) + wrk(size=24_576)
    assert [each.severity for each in found(again, "different-documents")] == ["note"]
    heads = wrk(size=238) + wrk(url="http://192.0.2.7:8081/", size=310)
    assert not found(heads, "different-documents")


def test_ports_report_two_sides_of_one_machine_apart() -> None:
    variants = [
        f"hey -n 20000 -c 50 http://localhost:{port}/\n"
        + recorded("hey.txt").replace("13 bytes", f"{size} bytes").replace("12582", f"1{port}")
        for port, size in ((3000, 13), (4000, 156))
    ]
    (warning,) = found("".join(variants), "different-documents")
    assert "localhost:3000" in warning.what
    assert "localhost:4000" in warning.what


def test_one_server_measured_twice_is_not_compared_with_itself() -> None:
    text = ab(server="nginx/1.24.0", document=10_240) + ab(
        server="nginx/1.24.0", document=4012, took_s=9
    )
    assert serious(text) == set()


def test_equal_counts_are_no_copy() -> None:
    table = "| c | requests | 2xx responses | req/s |\n|---|---|---|---|\n"
    table += "".join(
        f"| {c} | {412345 + c} | {412345 + c} | {41234.5 + c} |\n" for c in (8, 16, 64)
    )
    assert serious(table + ab()) == set()
    sheet = "c,sent,received\n" + "".join(f"{c},{412345 + c},{412345 + c}\n" for c in (8, 16, 64))
    assert serious(sheet + ab()) == set()


def test_decimal_commas_are_decimal() -> None:
    rates = "Anfragen, req/s\n\n| c | nginx | Apache |\n|---|---|---|\n"
    rates += "| 8 | 9812,4 | 5102,33 |\n| 16 | 9713,25 | 5081,4 |\n| 64 | 9544,75 | 5003,5 |\n\n"
    speeds = "KB/s\n\n| c | nginx | Apache |\n|---|---|---|\n"
    speeds += "| 8 | 8096,97 | 4210,4 |\n| 16 | 8015,15 | 4193,1 |\n| 64 | 7876,1 | 4128,8 |\n\n"
    assert serious(rates + speeds + ab()) == set()


@pytest.mark.parametrize("written", ["100,000", "100.000", f"100{NBSP}000"])
def test_thousands_separators_in_counts(written: str) -> None:
    text = ab(requests=100_000, concurrency=50).replace("      100000", f"      {written}")
    assert outputs(text)[0].requests == 100_000
    assert serious(text) == set()


def test_thousands_separators_in_failures_and_in_wrk() -> None:
    text = ab(requests=100_000, length_failures=0).replace(
        "Failed requests:        0", "Failed requests:        12,345"
    )
    (warning,) = found(text, "failures")
    assert (warning.severity, warning.what) == ("serious", "12,345 of 100,000 requests failed")
    bad = "  Non-2xx or 3xx responses: 1,469,004\n"
    text = wrk(requests=1_469_004, rate=146_900.4, more=bad).replace(
        "  1469004 requests", "  1,469,004 requests"
    )
    assert found(text, "non-2xx")[0].what.startswith("1,469,004 of 1,469,004")


def test_addresses_of_version_6() -> None:
    text = wrk(url="http://[::1]:8080/a")
    (output,) = outputs(text)
    assert (output.host, output.port, output.path) == ("::1", 8080, "/a")
    assert found(text, "same-machine")


def test_read_errors_of_answered_requests_are_no_share() -> None:
    errors = "  Socket errors: connect 0, read 166344, write 0, timeout 0\n"
    (warning,) = found(wrk(requests=166_349, rate=16_634.9, more=errors), "failures")
    assert warning.what.startswith("166,344 errors and 166,349 responses")


def test_the_rate_of_siege_is_that_of_hits() -> None:
    assert not found(recorded("siege-4.1.7.txt"), "throughput-times-time")
    assert not found(recorded("h2load-no-reconnect.txt"), "throughput-times-time")
    (warning,) = found(recorded("h2load-no-reconnect.txt"), "failures")
    assert "172,174 were never sent: h2load opens no new connection" in warning.what


def test_words_alone_are_no_cache_and_no_loop() -> None:
    prose = (
        "There is no CDN and no Varnish in front; the file is in the kernel's page cache.\n"
        "We ran warm-up iterations = 500, measurement iterations = 5000.\n"
    )
    text = prose + ab(path="/100.html") + ab(path="/100.html", took_s=12.9)
    assert serious(text) == set()
    cached = text.replace("There is no CDN and no Varnish", "There is Varnish")
    assert found(cached, "one-url-from-a-cache")


def test_an_old_output_of_h2load() -> None:
    text = recorded("h2load.txt").splitlines()
    old = "traffic: 24900000 bytes total, 12300000 bytes headers, 1300000 bytes data"
    (output,) = outputs(
        "\n".join(old if line.startswith("traffic:") else line for line in text) + "\n"
    )
    assert (output.total_bytes, output.body_bytes) == (24_900_000, 1_300_000)
