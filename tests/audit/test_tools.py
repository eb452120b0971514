"""Figures of outputs: equal to what the tool printed, or absent."""

import re
from collections.abc import Iterator
from itertools import pairwise

import pytest

from audit.printed import PRINTED
from audit.texts import ab, audited, outputs, recorded
from webdyno.audit import commands
from webdyno.formats.facts import CommandLine, Tool
from webdyno.formats.text import NumberedLine
from webdyno.formats.tools import readable
from webdyno.interfaces.cli.audit import audit


@pytest.mark.parametrize("name", PRINTED)
def test_figures_are_those_that_the_tool_printed(name: str) -> None:
    (output,) = outputs(recorded(name))
    for figure, printed in PRINTED[name].items():
        assert getattr(output, figure) == pytest.approx(printed), figure


def test_the_help_names_all_tools() -> None:
    assert f"Reads outputs of {readable()}. " in " ".join((audit.__doc__ or "").split())


@pytest.fixture
def sloth(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """One more tool, for as long as a test lasts."""
    line = CommandLine({"u": "concurrency"}, no_matter="z", other_names=("ai",))
    tool = Tool("sloth", opening="sloth", patterns=(), command=line)
    monkeypatch.setattr(commands, "tools", lambda: (tool,))
    forget_commands()
    yield tool.name
    forget_commands()


def forget_commands() -> None:
    commands.with_commands.cache_clear()
    commands._command_pattern.cache_clear()


def test_its_command_line_is_part_of_a_tool(sloth: str) -> None:
    read = commands.find_command(NumberedLine(1, "$ ai -u 7 -z -x http://127.0.0.1/"))
    assert read
    assert (read.concurrency, read.path, read.unread) == (7, "/", ("-x",))
    assert commands.prints_for(read.tool) == sloth


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
    (output,) = outputs("wrk2 -R 3000 -c 32 http://a/\nsome words\n" + recorded("wrk-latency.txt"))
    assert (output.demanded_rps, output.loop) == (3000, "open")
