"""What stands next to outputs as people post them: all of it is read, and no prose accused."""

import pytest

from audit.texts import ab, audited, found, outputs, recorded, serious, wrk
from webdyno.core.errors import UserError

UNKNOWN = {
    "fortio": (
        "Fortio 1.69.4 running at 8 queries per second, 8->8 procs, for 5s: http://192.0.2.7/\n"
        "Aggregated Function Time : count 40 avg 0.03\nCode 200 : 40 (100.0 %)\n"
        "All done 40 calls (plus 4 warmup) 30.1 ms avg, 8.0 qps\n"
    ),
    "artillery": (
        "All VUs finished. Total time: 12 seconds\n\nSummary report @ 14:46:26(+0100)\n"
        "http.codes.200: ................................ 500\n"
        "http.request_rate: ............................. 50/sec\n"
    ),
    "wrk": "".join(wrk().splitlines(keepends=True)[:6]),
    "figures": "requests/s:  51234\nmean latency:  1.25 ms\nerrors:  51000\n",
}


@pytest.mark.parametrize("kind", UNKNOWN)
@pytest.mark.parametrize("before", ["", "wrk"])
def test_what_is_not_read_is_named_with_its_lines(kind: str, before: str) -> None:
    text = (wrk() if before else "") + UNKNOWN[kind]
    audit = audited(text)
    (part,) = audit.not_read
    assert part.kind == kind
    assert part.first_line == 1 + (8 if before else 0)
    assert not audit.complete


def test_json_of_an_unknown_tool_is_named() -> None:
    (part,) = audited('{"tool": "mine", "latency_p99": 12, "errors": 7}\n').not_read
    assert (part.kind, part.first_line) == ("figures", 1)


@pytest.mark.parametrize(
    "prose",
    [
        "We got about 5,000 requests per second with a latency of 3 ms on this machine.\n",
        "worker_connections  4096;\nkeepalive_requests  100000;\n",
        "CPU: 8 cores\nRAM: 32 GB\nconnections: 256\n",
        "const latency = 5;\nconst requests = 7;\n",
    ],
)
def test_prose_and_settings_are_no_unread_output(prose: str) -> None:
    assert audited(prose + ab()).complete


def test_counts_that_do_not_add_up() -> None:
    text = recorded("vegeta.txt").replace("200:1500", "200:900")
    (warning,) = found(text, "counts-differ")
    assert "900 together, and 1,500 are reported" in warning.what


def test_a_command_without_its_output_is_no_result() -> None:
    audit = audited("wrk -t4 -c256 -d10s http://192.0.2.7/\n")
    assert not audit.complete
    assert [each.kind for each in audit.commands] == ["command"]


def test_failures_are_among_the_requests_or_counted_apart() -> None:
    text = recorded("zrk.json").replace('"timeout": 0', '"timeout": 900')
    assert not found(text, "counts-differ")
    httperf = recorded("httperf-404.txt").replace(
        "Errors: total 0 client-timo 0", "Errors: total 100 client-timo 100"
    )
    assert found(httperf, "failures")
    assert not found(httperf, "counts-differ")


def test_a_run_that_was_broken_off_early_is_a_note() -> None:
    text = wrk(took="7.50s", requests=750_000)
    (warning,) = found(text, "run-length")
    assert (warning.severity, warning.what) == (
        "note",
        "10 s were requested, and the run took 7.5 s",
    )
    assert not found(wrk(took="10.05s"), "run-length")


def test_quick_failures_do_not_put_more_requests_under_way() -> None:
    text = "hey -n 20000 -c 50 http://192.0.2.7/\n" + recorded("hey.txt").replace(
        "[200]\t20000 responses", "[200]\t2000 responses\n\nError distribution:\n  [18000]\tEOF"
    )
    assert serious(text) == {"failures"}


def test_a_column_of_failures_in_a_table_about_something_else() -> None:
    table = "| gate | runs | fail % |\n|---|---|---|\n| quiet | 100 | 5 |\n| loud | 100 | 90 |\n"
    assert serious(table + ab()) == set()


def test_the_help_of_a_tool_is_no_unread_output() -> None:
    text = (
        "-r, --rps=0            Requests per second (RPS) rate limit. Default is no limit.\n"
        "    --latency=0        Latency in ms\n-c, --concurrency=50   Number of requests\n"
    )
    assert audited(text + ab()).complete


def test_lines_of_two_tools_that_ran_at_once() -> None:
    pair = zip(recorded("ab-clean.txt").splitlines(), wrk().splitlines(), strict=False)
    text = "\n".join(line for both in pair for line in both)
    assert {each.tool for each in outputs(text)} <= {"ab", "wrk"}
    assert serious(text) == set()


def test_a_table_of_percentiles_in_boxes() -> None:
    text = recorded("autocannon.txt").replace(
        "365k requests",
        "┌────────────┬──────────────┐\n│ Percentile │ Latency (ms) │\n"
        "│ 90         │ 4            │\n"
        "│ 99.9       │ 15           │\n└────────────┴──────────────┘\n\n365k requests",
    )
    assert outputs(text)[0].percentiles_ms[99.9] == 15
    assert [each.kind for each in audited(text).read] == ["autocannon"]


def test_a_setting_above_a_table_says_that_requests_were_pipelined() -> None:
    table = "| server | req/s |\n|---|---|\n| a | 30541.91 |\n| b | 32489.7 |\n"
    (warning,) = found("**Pipelining**: 10\n\n" + table, "pipelining")
    assert (warning.line, warning.severity) == (1, "serious")
    assert found("**Pipelining**: 1\n\n" + table, "pipelining") == []


def test_an_address_in_a_sentence_is_no_command() -> None:
    text = "We used hey https://github.com/rakyll/hey for it.\n" + recorded("hey.txt")
    assert outputs(text)[0].host is None
    assert outputs(text.replace("We used ", "$ "))[0].host == "github.com"


def test_a_text_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webdyno.formats.text.MOST_CHARACTERS", 100_000)
    for text in ("x" * 200_000, "x\n" * 100_000):
        with pytest.raises(UserError, match="give the part that has the outputs"):
            audited(text)


def test_labels_that_ab_has_as_well_are_named_too() -> None:
    text = "Total Requests:   200000\nRequests per second:    50822\nconnection errors:    0\n"
    (part,) = audited(text).not_read
    assert (part.kind, part.first_line, part.last_line) == ("figures", 1, 3)


@pytest.mark.parametrize(
    "text",
    [
        '[\n  {\n    "num_requests": 512,\n    "avg_response_time": 45.1\n  }\n]\n',
        '{\n  "stats": {\n    "meanNumberOfRequestsPerSecond": {"total": 512.5}\n  }\n}\n',
    ],
)
def test_json_over_many_lines_that_is_not_read(text: str) -> None:
    assert audited(text).not_read


def test_a_row_of_failures_below_servers_as_headings() -> None:
    text = (
        "| what | Caddy | nginx |\n|---|---|---|\n| protocol | h2 TLSv1.3 | h2 TLSv1.2 |\n"
        "| req/s | 76,835 | 80,112 |\n| requests | 100000 | 100000 |\n| failed | 0 | 31110 |\n"
    )
    (warning,) = found(text, "failures-column")
    assert "“failed” is 31110 for “nginx”: 31.1% failed" in warning.what


def test_the_last_lines_of_autocannon_alone() -> None:
    text = "0 2xx responses, 122850 non 2xx responses\n123k requests in 10s, 13.3 MB read\n"
    (output,) = outputs(text)
    assert (output.tool, output.requests, output.non_2xx) == ("autocannon", 122_850, 122_850)
    assert serious(text) == {"non-2xx"}


def test_httperf_whose_client_ran_out_of_descriptors() -> None:
    text = (
        "Total: connections 4821 requests 24110 replies 18090 test-duration 40.1 s\n"
        "Request rate: 601.2 req/s (1.7 ms/req)\nReply status: 1xx=0 2xx=18090 3xx=0 4xx=0 5xx=0\n"
        "Errors: total 6020 client-timo 130 socket-timo 0 connrefused 0 connreset 0\n"
        "Errors: fd-unavail 5890 addrunavail 0 ftab-full 0 other 0\n"
    )
    assert serious(text) == {"client-limit", "failures"}
    (warning,) = found(text, "failures")
    assert warning.what == "130 of 18,220 requests failed (130 timed out)"


PROGRESS = (
    "================================================\n"
    "2026-11-20 09:12:33                                           10s elapsed\n"
    "---- Requests -------------------------------|---Total---|-----OK----|----KO----\n"
    "> Global                                     |    12,345 |    12,345 |         0\n"
    "> GET /a                                     |     6,172 |     6,172 |         0\n"
    "> GET /b                                     |     6,173 |     6,173 |         0\n\n"
    "---- Users ------------------------------------------------------------------\n"
    "          active:        50  / done:         0\n"
    "================================================\n\n"
)


def test_the_progress_of_gatling_is_no_table_with_copied_columns() -> None:
    audit = audited(PROGRESS * 3 + recorded("gatling.txt"))
    assert [each.kind for each in audit.read] == ["gatling"]
    assert not audit.serious
    (part,) = audited(PROGRESS * 3).not_read
    assert part.kind == "gatling"


def test_equal_counts_without_headings_are_no_copy() -> None:
    rows = "".join(f"| /{n} | {61720 + 7 * n} | {61720 + 7 * n} |\n" for n in range(4))
    assert serious(rows + ab()) == set()
