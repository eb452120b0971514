"""What the client could not do is its own limit, and no failure of the server."""

import pytest

from audit.texts import ab, audited, found, outputs, recorded, serious, wrk

HEY = """hey -n 60000 -c 200 http://192.0.2.7/
Summary:
  Total:	10.0000 secs
  Slowest:	1.0212 secs
  Fastest:	0.0008 secs
  Average:	0.0301 secs
  Requests/sec:	6000.0000

Status code distribution:
  [200]	29766 responses

Error distribution:
  [30234]	Get "http://192.0.2.7/": dial tcp 192.0.2.7:80: {error}
"""
VEGETA = """Requests      [total, rate, throughput]         60000, 1000.02, 451.20
Duration      [total, attack, wait]             1m4.1s, 59.999s, 4.101s
Latencies     [min, mean, 50, 90, 95, 99, max]  110.2µs, 1.211s, 250.1ms, 4.2s, 9.1s, 30s, 30.1s
Success       [ratio]                           48.20%
Status Codes  [code:count]                      0:31080  200:28920
Error Set:
Get "http://192.0.2.7/": dial tcp 0.0.0.0:0->192.0.2.7:80: bind: address already in use
"""


@pytest.mark.parametrize(
    ("error", "what"),
    [
        ("connect: cannot assign requested address", "local ports 30,234 times"),
        ("bind: address already in use", "local ports 30,234 times"),
        ("socket: too many open files", "file descriptors 30,234 times"),
    ],
)
def test_a_client_that_runs_out(error: str, what: str) -> None:
    text = HEY.format(error=error)
    assert serious(text) == {"client-limit"}
    (warning,) = found(text, "client-limit")
    assert warning.what == f"the client ran out of {what}"
    assert "use fewer connections" not in warning.instead
    assert serious(HEY.format(error="connect: connection refused")) == {"failures"}


def test_vegeta_names_errors_and_does_not_count_them() -> None:
    assert serious(VEGETA) == {"client-limit"}
    assert found(VEGETA, "client-limit")[0].what.endswith("local ports 31,080 times")
    mixed = VEGETA + 'Get "http://192.0.2.7/": EOF\n'
    assert serious(mixed) == {"client-limit", "failures"}
    assert found(mixed, "client-limit")[0].what.endswith("local ports")


def test_ab_that_found_no_port() -> None:
    text = (
        "This is ApacheBench, Version 2.3 <$Revision$>\nBenchmarking 192.0.2.7 (be patient)\n"
        "Completed 20000 requests\napr_socket_connect(): Cannot assign requested address (99)\n"
        "Total of 28231 requests completed\n"
    )
    assert serious(text) == {"client-limit", "gave-up"}


def test_hey_counts_the_first_million() -> None:
    text = recorded("hey.txt").replace("[200]\t20000", "[200]\t1000000")
    text = text.replace("12582.1529", "900000.0000").replace("1.5896", "2.0000")
    (output,) = outputs(text)
    assert (output.requests, output.by_status) == (1_800_000, {})
    assert serious(text) == set()
    (warning,) = found(text, "first-million")
    assert "1,000,000 responses of 1,800,000" in warning.what
    assert "1.8 times too large" in warning.what


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("ab -n 1000 -c 32 http://web.test/\n", True),  # of 400,000
        ("ab -n 400000 -c 100 http://web.test/\n", True),  # over 32 connections
        ("ab -n 400000 -c 32 http://web.test/\n", False),
        ("ab -t 10 -n 1000 -c 32 http://web.test/\n", False),  # -t comes with a number of its own
    ],
)
def test_a_command_that_is_not_the_outputs(command: str, other: bool) -> None:
    assert bool(found(command + ab(), "other-command")) is other
    assert serious(command + ab()) == set()


def test_a_mean_lies_between_shortest_and_longest() -> None:
    text = "Summary:\n  Count:\t200\n  Total:\t2.04 s\n  Slowest:\t1.02 s\n  Fastest:\t1.01 s\n"
    text += "  Average:\t{}\n  Requests/sec:\t97.98\n\nStatus code distribution:\n  [OK]   200 resp"
    text += "onses\n"
    assert serious(text.format("367.20 ms")) == {"mean-out-of-range"}
    assert serious(text.format("1.40 s")) == {"mean-out-of-range"}
    assert serious(text.format("1.01 s")) == set()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_what_powershell_writes(encoding: str) -> None:
    """With `>` it writes UTF-16 with a mark at its begin; what is appended to nothing has none."""
    content = HEY.format(error="EOF").encode(encoding)
    if encoding == "utf-16-be":
        content = b"\xfe\xff" + content
    assert [each.kind for each in audited(content).read] == ["hey"]


def test_errors_next_to_throughput_alone() -> None:
    table = "| server | Requests/sec | Errors |\n|---|---|---|\n| a | 51234.11 | 0 |\n"
    table += "| b | 40012.45 | {} |\n"
    (warning,) = found(table.format(31110), "failures-column")
    assert (warning.severity, warning.line) == ("serious", 4)
    assert "of how many requests is not stated: 1.3% of a minute's" in warning.what
    (warning,) = found(table.format(31), "failures-column")
    assert warning.severity == "note"
    assert not found(table.format(0), "failures-column")


def test_the_rest_of_another_summary_of_k6_stays_out() -> None:
    tail = "data_received...: 504 MB 3.6 MB/s\ndata_sent...: 4.4 MB 32 kB/s\n\n"
    tail += "running (2m19.2s), 0000/2000 VUs, 7342 complete and 0 interrupted iterations\n\n"
    summary = (
        "█ TOTAL RESULTS\n\nhttp_req_duration...: avg=9.44s min=0s med=56.29ms max=1m0s "
        "p(90)=55.38s p(95)=59.91s\nhttp_reqs...: 26138 174.22812/s\n"
    )
    (output,) = outputs(tail + summary)
    assert (output.requests, output.duration_s) == (26138, None)
    (part,) = audited(tail + summary).not_read
    assert (part.kind, part.last_line) == ("k6", 4)
    assert serious(tail + summary) == set()


def test_vegetas_histogram_is_named_and_held_against_its_report() -> None:
    rows = "Bucket         #      %       Histogram\n[0s,   2s]     28920  48.20%  ####\n"
    rows += "[2s,   +Inf]   31080  51.80%  ####\n"
    assert [each.kind for each in audited(rows).not_read] == ["vegeta"]
    assert "longest-response" not in serious(rows + VEGETA)
    assert "longest-response" in serious(rows.replace("2s", "40s") + VEGETA)
    other = rows.replace("31080", "31081").replace("2s", "40s")  # of other requests
    assert "longest-response" not in serious(other + VEGETA)


def test_a_line_next_to_an_output_says_that_somebody_ran_out() -> None:
    """k6 and siege log it; but a proxy logs it of itself, so it is a note."""
    text = ab() + 'WARN[0012] Request Failed error="dial tcp: cannot assign requested address"\n'
    (warning,) = found(text, "client-limit")
    assert (warning.severity, warning.what) == ("note", "somebody ran out of local ports")
    assert not found(text.replace("cannot assign requested address", "EOF"), "client-limit")
    assert not audited(text.replace(ab(), "")).warnings


def test_an_interrupted_run_is_no_stall() -> None:
    text = "$ wrk -c32 -d10000 http://192.0.2.7:8080/\n" + wrk(
        concurrency=32, mean="0.31ms"
    ).replace("Running 10s", "Running 167m").replace("  Thread Stats", "^C  Thread Stats")
    assert serious(text) == set()
    (warning,) = found(text, "run-length")
    assert warning.what.endswith("took 10 s: it was interrupted (^C)")
    assert serious(text.replace("^C", "")) == {"run-length"}


def test_variants_without_sizes_are_named() -> None:
    variants = [
        f"oha -c 50 -n 20000 http://{host}.test/\nSummary:\n  Success rate: 100.00%\n"
        f"  Total: {took}.0 secs\n  Average: {took * 2.5} ms\n  Requests/sec: {20000 / took}\n"
        "  Size/request: {}\n\nStatus code distribution:\n  [200] 20000 responses\n"
        for host, took in (("a", 5), ("b", 6))
    ]
    text = "".join(variants)
    assert [each.severity for each in found(text.format("NaN", "NaN"), "unknown-sizes")] == [
        "note",
        "note",
    ]
    assert not found(text.format("13 B", "13 B"), "unknown-sizes")
    assert not found(variants[0].format("NaN"), "unknown-sizes")
