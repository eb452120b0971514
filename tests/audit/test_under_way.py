"""Little's law in both directions: streams multiply, and few under way are the client's limit."""

import pytest

from audit.texts import audited, found, outputs, serious, wrk

H2LOAD = """starting benchmark...
{threads}
Application protocol: {protocol}

finished in 20.00s, {rate} req/s, 7.15MB/s
requests: 600000 total, 600000 started, 600000 done, 600000 succeeded, 0 failed, 0 errored
status codes: 600000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 143.05MB (150000000) total, 17.17MB (18000000) headers, 114.44MB (120000000) data
                     min         max         mean         sd        +/- sd
time for request:      401us       1.21s     {mean}       210us    92.43%
"""
TIMED = "Timing-based test with 0s of warm-up time and 20s of main duration for measurements."


def h2load(
    command: str,
    mean: str,
    *,
    protocol: str = "h2",
    threads: int = 1,
    clients: int = 50,
    how: str = TIMED,
) -> str:
    lines = "\n".join(
        f"spawning thread #{n}: {clients} total client(s). {how}" for n in range(threads)
    )
    shown = H2LOAD.format(threads=lines, protocol=protocol, rate="30000.00", mean=mean)
    return f"h2load {command} https://site.test/\n{shown}"


@pytest.mark.parametrize("option", ["-m100", "-m 100", "--max-concurrent-streams=100"])
def test_streams_of_h2load_multiply(option: str) -> None:
    text = h2load(f"-c50 {option} -D20", "110.00ms")  # 3,300 under way
    assert serious(text) == set()
    (warning,) = found(text.replace("110.00ms", "990.00ms"), "too-many-under-way")
    assert "29,700 requests under way at once, over 50 connections with 100 streams" in warning.what


def test_without_a_command_streams_are_not_known() -> None:
    text = h2load("-c50 -m100 -D20", "110.00ms").partition("\n")[2]
    assert serious(text) == set()
    assert found("h2load -c50 -D20 https://site.test/\n" + text, "too-many-under-way")


def test_h2load_pipelines_over_http_1() -> None:
    text = h2load("-c50 -m10 -D20", "15.00ms", protocol="http/1.1")
    (warning,) = found(text, "pipelining")
    assert "`-m 10`" in warning.what
    assert not found(h2load("-c50 -m10 -D20", "15.00ms"), "pipelining")


def test_the_threads_of_h2load_are_of_one_run() -> None:
    text = h2load("-t4 -c40 -D20", "1.32ms", threads=4, clients=10)
    (output,) = outputs(text + "\nprose\n")
    assert output.concurrency == 40
    assert audited(text).complete
    assert serious(text) == set()
    assert [each.concurrency for each in outputs(text + text)] == [40, 40]
    again = text.replace("starting benchmark...\n", "")
    assert [each.concurrency for each in outputs(again + again)] == [40, 40]


def test_streams_of_oha_multiply() -> None:
    text = (
        "oha -z 10s -c 50 -p 100 {} --no-tui https://site.test/\nSummary:\n"
        "  Success rate: 100.00%\n  Total: 10.0 secs\n  Slowest: 0.31 secs\n  Fastest: 0.01 secs\n"
        "  Average: 0.0431 secs\n  Requests/sec: 76672.1\n\nStatus code distribution:\n"
        "  [200] 766721 responses\n"
    )
    assert serious(text.format("--http2")) == set()
    assert found(text.format("--http2").replace("-p 100 ", ""), "too-many-under-way")


def test_an_unknown_option_makes_a_note_of_what_may_be_its_doing() -> None:
    text = h2load("-c50 --warp=9 -D20", "110.00ms")
    (warning,) = found(text, "too-many-under-way")
    assert warning.severity == "note"
    (warning,) = found(text, "unread-option")
    assert (warning.line, warning.severity) == (1, "note")
    assert "`--warp`" in warning.what
    assert not found(h2load("-t1 -c50 -D20 -H 'a: -b'", "1.66ms"), "unread-option")


def test_a_success_share_is_not_taken_of_successes() -> None:
    """h2load's rate counts what succeeded: 84 of 100 streams were under way, not 12."""
    text = h2load("-c1 -m100 -n200000", "7.75ms", clients=1, how="200000 total requests")
    text = text.replace("30000.00", "10568.38").replace(
        "600000 total, 600000 started, 600000 done, 600000 succeeded, 0 failed, 0 errored",
        "200000 total, 27846 started, 200000 done, 27746 succeeded, 172254 failed, 172254 errored",
    )
    assert "too-many-under-way" not in serious(text)
    (warning,) = found(text.replace("7.75ms", "775.00ms"), "too-many-under-way")
    assert "8,190 requests under way" in warning.what


@pytest.mark.parametrize(
    ("done", "succeeded"), [(90_000, 90_000), (100_000, 90_000)]
)  # as versions count what broke off
def test_failures_of_h2load_are_of_all_requests(done: int, succeeded: int) -> None:
    text = h2load("-c50 -n100000", "1.50ms", how="100000 total requests").replace(
        "600000 total, 600000 started, 600000 done, 600000 succeeded, 0 failed, 0 errored",
        f"100000 total, 90001 started, {done} done, {succeeded} succeeded, 10000 failed, "
        "10000 errored",
    )
    (warning,) = found(text, "failures")
    assert warning.what.startswith("10,000 of 100,000 requests failed")


OHA = """oha -z 15s -c 512 --no-tui http://192.0.2.9:3000/
Summary:
  Success rate:	100.00%
  Total:	15.0004 secs
  Slowest:	21.4012 ms
  Fastest:	0.0911 ms
  Average:	{mean} ms
  Requests/sec:	148906.1120

Status code distribution:
  [200] 2233139 responses
{more}"""


def test_few_under_way_are_the_clients_limit() -> None:
    (warning,) = found(OHA.format(mean="1.2031", more=""), "too-few-under-way")
    assert warning.severity == "serious"
    assert "187 requests under way on average, over 512 connections" in warning.what
    assert serious(OHA.format(mean="3.4101", more="")) == set()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-c 512", "-c 512 -q 150000"),  # connections wait for their turn
        ("-c 512", "-c 512 --disable-keepalive"),  # connecting takes the rest
        ("-c 512 ", "-c 512 --burst-delay 1s "),
        (
            "  [200] 2233139 responses\n",
            "  [200] 2233000 responses\n\nError distribution:\n  [139] operation timed out\n",
        ),
    ],
)
def test_connections_that_wait_for_another_reason(old: str, new: str) -> None:
    assert "too-few-under-way" not in serious(OHA.format(mean="1.2031", more="").replace(old, new))


def test_requests_that_are_shared_out_ahead_leave_connections_idle() -> None:
    how = "600000 total requests"
    text = h2load("-c50 -n600000", "700us", how=how)
    (warning,) = found(text, "too-few-under-way")
    assert warning.severity == "note"
    even = "req/s           :     595.00      605.00      600.00        2.00    70.00%\n"
    (warning,) = found(text + even, "too-few-under-way")
    assert warning.severity == "serious"


def test_wrk_by_its_mean_which_is_too_large() -> None:
    plain = wrk(mean="0.40ms", stdev="0.10ms", requests=1_000_000, rate=100_000.0)
    (warning,) = found(plain, "too-few-under-way")
    assert "40 requests under way on average, over 256 connections" in warning.what
    assert not found(wrk(mean="2.50ms"), "too-few-under-way")


TABLE = (
    "| framework | connections | req/s | {} | {} |\n| --- | --- | --- | --- | --- |\n"
    "| a | 64 | 172,187 | 0.31{u} | 0.55{u} |\n| a | 512 | 148.9k | 1.19{u} | 2.19{u} |\n"
)


@pytest.mark.parametrize(
    ("median", "high", "unit"), [("P50 (ms)", "P99 (ms)", ""), ("p50", "p99", " ms")]
)
def test_few_under_way_in_a_table(median: str, high: str, unit: str) -> None:
    (warning,) = found(TABLE.format(median, high, u=unit), "too-few-under-way")
    assert (warning.line, warning.severity) == (4, "note")
    assert "252 requests under way at most, over 512 connections" in warning.what
    offered = TABLE.replace("framework", "target rate").format(median, high, u=unit)
    assert not found(offered, "too-few-under-way")
    assert not found(TABLE.format("p50", "p99", u=""), "too-few-under-way")  # in which unit?
