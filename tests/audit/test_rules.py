"""Each rule fires on its cause, says where and by how much, and keeps quiet just next to it."""

import pytest

from audit.texts import ab, audited, found, recorded, serious


def test_a_clean_run_has_nothing_serious() -> None:
    assert serious(ab(kept=399_000)) == set()
    assert {each.rule for each in audited(ab()).warnings} == {"closed-loop"}


@pytest.mark.parametrize(
    "name",
    [
        "ab-clean.txt",
        "autobench.csv",
        "h2load.txt",
        "hey-rate.txt",
        "hey.txt",
        "httperf-rate.txt",
        "httperf-sequential.txt",
        "oha-rate.txt",
        "oha.json",
        "oha.txt",
        "redis-quiet.txt",
        "redis.csv",
        "redis.txt",
        "siege-text.txt",
        "siege.txt",
        "wrk-latency.txt",
        "wrk2.txt",
    ],
)
def test_recorded_runs_that_went_well_have_nothing_serious(name: str) -> None:
    assert serious(recorded(name)) == set()


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("ab-404.txt", {"non-2xx", "few-requests-per-connection"}),
        ("ab-keepalive-refused.txt", {"keepalive-refused"}),
        ("ab-mixed.txt", {"non-2xx"}),
        ("ab-syn.txt", {"syn-retransmission"}),
        ("ab-varying.txt", set()),
        ("h2load-404.txt", {"non-2xx"}),
        ("hey-mixed.txt", {"non-2xx"}),
        ("hey-refused.txt", {"failures"}),
        ("httperf-404.txt", {"non-2xx"}),
        ("httperf-refused.txt", {"failures", "no-responses"}),
        ("httperf-timeouts.txt", {"failures", "no-responses"}),
        ("oha-404.json", {"non-2xx"}),
        ("oha-mixed.txt", {"non-2xx"}),
        ("siege-404.txt", {"non-2xx"}),
        ("siege-refused.txt", {"failures"}),
        ("wrk-404.txt", {"non-2xx"}),
        ("wrk-socket-errors.txt", {"no-responses"}),
        ("wrk2-overload.txt", {"rate-missed"}),
    ],
)
def test_recorded_runs_that_went_wrong(name: str, rules: set[str]) -> None:
    assert serious(recorded(name)) == rules


def test_non_2xx_names_number_line_and_error_page() -> None:
    (warning,) = found(recorded("ab-404.txt"), "non-2xx")
    assert warning.what.startswith("1,000 of 1,000 responses")
    assert "nginx's 404 page" in warning.what
    assert warning.line == 30
    assert warning.tool == "ab"
    apache = ab(server="Apache/2.4.39 (Unix)", path="/a.php", document=203, non_2xx=5000)
    (warning,) = found(apache, "non-2xx")
    assert "Apache's 404 page for this path" in warning.what


def test_one_bad_answer_in_many_is_a_note() -> None:
    (warning,) = found(ab(non_2xx=3), "non-2xx")
    assert warning.severity == "note"
    assert found(ab(), "non-2xx") == []


def test_an_error_page_with_status_200_is_a_note() -> None:
    (warning,) = found(ab(document=153), "error-page-length")
    assert warning.severity == "note"
    assert found(ab(document=154), "error-page-length") == []


def test_failures_by_length_and_what_they_hide() -> None:
    lengths = {"document": 1000, "requests": 10_000, "took_s": 10, "length_failures": 100}
    empty = ab(**lengths, body=9900 * 1000)  # type: ignore[arg-type]
    (warning,) = found(empty, "failed-by-length")
    assert warning.severity == "serious"
    assert "empty" in warning.what
    cut_off = ab(**lengths, body=9900 * 1000 + 100 * 300)  # type: ignore[arg-type]
    (warning,) = found(cut_off, "failed-by-length")
    assert warning.severity == "serious"
    assert "300 bytes on average instead of 1" in warning.what
    varying = ab(**lengths, body=9900 * 1000 + 100 * 1004)  # type: ignore[arg-type]
    (warning,) = found(varying, "failed-by-length")
    assert warning.severity == "note"


def test_few_requests_per_connection() -> None:
    (warning,) = found(ab(requests=1000, concurrency=200, took_s=6), "few-requests-per-connection")
    assert warning.what.endswith("5 each")
    assert found(ab(requests=4000, concurrency=200), "few-requests-per-connection") == []
    assert found(ab(requests=5, concurrency=1), "few-requests-per-connection") == []
    offered = """oha -c 50 -z 30s {}http://x/
Summary:
  Success rate: 1.0000
  Total:        30.0009 secs
  Requests/sec: 20.0327

Status code distribution:
  [200] 601 responses
"""
    assert found(offered.format(""), "few-requests-per-connection")
    assert found(offered.format("-q 20 "), "few-requests-per-connection") == []
    (warning,) = found("Then ab -n 1000 -c 200 http://x/ it was.\n", "few-requests-per-connection")
    assert warning.line == 1


def test_keepalive_asked_for_and_not_given() -> None:
    assert found(ab(kept=0), "keepalive-refused")
    assert not found(ab(kept=396_000), "keepalive-refused")  # Apache closes one in a hundred
    assert not found(ab(), "keepalive-refused")  # not asked for


@pytest.mark.parametrize("most", [999, 1003, 2999, 3012, 7015, 15031])
def test_connect_times_of_retransmissions(most: int) -> None:
    (warning,) = found(ab(connect=(0, 8, most)), "syn-retransmission")
    assert warning.severity == "serious"


@pytest.mark.parametrize("connect", [(0, 1, 40), (0, 8, 1600), (900, 950, 1003), (96, 98, 107)])
def test_connect_times_of_distance_or_load(connect: tuple[int, int, int]) -> None:
    assert found(ab(connect=connect), "syn-retransmission") == []


def test_rate_times_time_is_the_number_of_requests() -> None:
    (warning,) = found(ab(rate=35_000), "throughput-times-time")
    assert warning.severity == "serious"
    assert not found(ab(rate=32_100), "throughput-times-time")  # rounding


def test_transfer_rate_times_time_is_the_number_of_bytes() -> None:
    assert found(ab(transfer=99_999), "transfer-times-time")
    assert not found(ab(), "transfer-times-time")


def test_answers_shorter_or_longer_than_the_document() -> None:
    (warning,) = found(ab(document=4000, total=400_000 * 900), "document-size")
    assert "shorter" in warning.what
    (warning,) = found(ab(document=4000, total=400_000 * 90_000), "document-size")
    assert "longer" in warning.what
    assert not found(ab(document=4, head=900), "document-size")


def test_a_full_link() -> None:
    full = ab(document=102_400, requests=11_400, took_s=100, host="192.0.2.7")  # 93 of 100 Mbit/s
    (warning,) = found(full, "link-limited")
    assert warning.severity == "serious"
    assert "100 Mbit/s" in warning.what
    assert not found(full.replace("192.0.2.7", "127.0.0.1"), "link-limited")
    assert not found(ab(document=102_400, requests=9000, took_s=100), "link-limited")


def test_an_offered_rate_that_was_missed() -> None:
    wrk2 = "wrk2 -R 3000 -c 32 http://127.0.0.1/\n" + recorded("wrk2.txt")
    (warning,) = found(wrk2, "rate-missed")
    assert warning.severity == "serious"
    assert not found(wrk2.replace("3000", "2000"), "rate-missed")
    assert not found(recorded("httperf-rate.txt"), "rate-missed")  # 250 connections × 10 calls
    sweep = recorded("autobench.csv").replace("4000,4006.0", "4000,2500.0")
    (warning,) = found(sweep, "rate-missed")
    assert (warning.severity, warning.line) == ("note", 9)


@pytest.mark.parametrize(
    ("latencies", "grew"),
    [
        ("0.5s, 0.64s, 0.45s, 1.7s, 2.13s, 2.64s", False),  # a few slow responses
        ("0.1s, 1.3s, 1.3s, 2.5s, 2.6s, 2.7s", True),
    ],
)
def test_slow_answers_are_no_growing_queue(latencies: str, grew: bool) -> None:
    report = f"""Requests      [total, rate]            200, 19.35
Duration      [total, attack, wait]    11.97s, 10.34s, 1.64s
Latencies     [min, mean, 50, 95, 99, max]  {latencies}
Success       [ratio]                  100.00%
Status Codes  [code:count]             200:200
"""
    assert bool(found(report, "rate-missed")) is grew


def test_errors_in_a_sweep() -> None:
    sweep = recorded("autobench.csv").replace("1251.9,0", "1251.9,12.5")
    (warning,) = found(sweep, "sweep-errors")
    assert (warning.severity, warning.line) == ("serious", 9)


def test_thin_tails_are_reported_with_their_samples() -> None:
    (warning,) = found(ab(requests=500, concurrency=5, took_s=9), "thin-tail")
    assert "p99 of 500 requests has 5 of them above it" in warning.what
    assert not found(ab(requests=2000), "thin-tail")


def test_percentiles_of_an_open_loop_are_not_reported_off() -> None:
    assert found(ab(), "closed-loop")
    assert not found(recorded("wrk2.txt"), "closed-loop")


def test_short_runs_and_the_default_of_ab() -> None:
    command = "ab -k -c5 -t10000 http://<server>/100.html\n"
    (warning,) = found(command + ab(requests=50_000, took_s=2.6, concurrency=5), "short-run")
    assert "instead of 10" in warning.what
    assert not found(command + ab(requests=50_000, took_s=60, concurrency=5), "short-run")


def test_one_connection_at_a_time() -> None:
    assert found(recorded("httperf-sequential.txt"), "one-at-a-time")
    assert not found(recorded("httperf-rate.txt"), "one-at-a-time")
    assert found("httperf --server=h --num-conns=100 --num-calls=50\n", "one-at-a-time")
    paced = "httperf \u2013server=h \u2013num-conns=5000 \u2013rate=X \u2013num-calls=10\n"
    assert not found(paced, "one-at-a-time")


def test_a_client_that_took_a_whole_processor() -> None:
    assert found("CPU: 100% httperf 57% redis-server\n" + ab(), "busy-client")
    assert not found("CPU: 40% httperf, 57% redis-server\n" + ab(), "busy-client")


def test_an_output_that_is_cut_short_is_no_accusation() -> None:
    text = "Complete requests: 50000\nRequests per second: 5000.00 [#/sec] (mean)\n"
    assert serious(text) == set()
    assert audited("Requests per second: as many as you like\n").read == []
