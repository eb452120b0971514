"""Whatever the text: no exception, bounded memory; and what must stay the same."""

import time
import tracemalloc
from collections.abc import Iterator
from itertools import cycle

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.texts import RECORDED, ab, audited, outputs, recorded
from variants import further
from webdyno.audit import MOST_WARNINGS, audit_lines
from webdyno.formats.text import LONGEST_LINE, NumberedLine

TEXTS = [path.read_text(encoding="utf-8") for path in sorted(RECORDED.iterdir())]
TABLE = "Transfer rate [KB/s]\n\na\tb\tc\n1\t2.345\t5.678\n2\t3.456\t6.789\n3\t4.567\t7.891\n"
TEXTS += [TABLE, TABLE.replace("Transfer rate [KB/s]", "Requests per second"), "$loop=12345;\n"]
LINES = sorted({line for text in TEXTS for line in text.splitlines()})

odd_numbers = st.sampled_from(["0", "-1", "1e999", "9" * 400, "nan", "", "٣", "0.0", "1,5", "²"])
fragments = st.one_of(st.sampled_from(LINES), st.text(max_size=60), st.sampled_from(TEXTS))


@st.composite
def broken_lines(draw: st.DrawFn) -> str:
    """Take a real line, and put something else where a word of it was."""
    words = draw(st.sampled_from(LINES)).split(" ")
    place = draw(st.integers(0, len(words) - 1))
    words[place] = draw(st.one_of(odd_numbers, st.text(max_size=8)))
    return " ".join(words)


@given(st.lists(st.one_of(fragments, broken_lines()), max_size=40))
@example(["{", '"summary": {}, "statusCodeDistribution": {"200": -1}', "}"])
@example(['{"summary": ' * 5000])
@example(
    ['{"summary": {"total": Infinity}, "statusCodeDistribution": {"200": ' + "9" * 5000 + "}}"]
)
@example(['{"summary": {"total": "x"}, "statusCodeDistribution": {}, "latencyPercentiles": []}'])
@example(["dem_req_rate,req_rate_a", '"1,2', "1,x", "3,4"])
@example(["Requests per second: " + "9" * 400 + " [#/sec] (mean)", "Complete requests: 1"])
@example(["Label,# Samples,Average,FAIL,Error %", f"TOTAL,{'9' * 5000},1,1,3%"])
@example(["Label,# Samples,Average,FAIL,Error %", f"TOTAL,{'9' * 400},1,,3%"])
@example(["response-time,DNS+dialup,status-code,offset", *["1e308,0,200,1e308"] * 9])
@example(["ab -n 5 -c 0 http://[::1", "Complete requests: 0", "Time taken for tests: 0.0 seconds"])
def test_no_text_is_too_broken(parts: list[str]) -> None:
    found = audited("\n".join(parts).encode("utf-8", "surrogatepass"))
    lines = "\n".join(parts).count("\n") + 1
    assert all(1 <= warning.line <= lines for warning in found.warnings)
    assert all(warning.what and warning.why and warning.instead for warning in found.warnings)
    assert found.model_validate_json(found.model_dump_json()) == found


@given(st.binary(max_size=2000))
@example(b"\xff\xfe\x00")
@example(b"\xfe\xff")
@example(b"\xef\xbb\xbf\n")
@example(b"\x00" * 100)
def test_no_bytes_are_too_broken(content: bytes) -> None:
    audited(content)


@given(st.sampled_from(TEXTS), st.lists(st.sampled_from(["", "And then…", "# next"]), max_size=30))
def test_prose_above_moves_lines_and_changes_nothing_else(text: str, above: list[str]) -> None:
    plain, moved = audited(text), audited("\n".join([*above, text]))
    shifted = [each.model_copy(update={"line": each.line + len(above)}) for each in plain.warnings]
    assert moved.warnings == shifted


@given(
    requests=st.integers(1, 10**9),
    took_s=st.floats(0.01, 1e5),
    document=st.integers(0, 10**9),
    concurrency=st.integers(1, 20_000),
)
@example(requests=999_999_761, took_s=1.0, document=10**9, concurrency=1)  # 10^18 bytes
def test_what_ab_prints_is_what_is_read(
    requests: int, took_s: float, document: int, concurrency: int
) -> None:
    text = ab(requests=requests, took_s=took_s, document=document, concurrency=concurrency)
    (output,) = outputs(text)
    assert (output.requests, output.document_bytes) == (requests, document)
    assert output.concurrency == concurrency
    assert output.duration_s == pytest.approx(took_s, abs=0.001)
    assert output.throughput_rps == pytest.approx(requests / took_s, abs=0.01)


@given(
    requests=st.integers(1000, 10**8),
    took_s=st.floats(5, 1e4),
    document=st.integers(200, 10**8),
    head=st.integers(80, 2000),
)
def test_figures_that_agree_are_never_said_to_disagree(
    requests: int, took_s: float, document: int, head: int
) -> None:
    text = ab(requests=requests, took_s=took_s, document=document, head=head, concurrency=1)
    rules = {each.rule for each in audited(text).warnings}
    assert not rules & {"throughput-times-time", "transfer-times-time", "document-size"}


@pytest.mark.parametrize(
    "name", ["redis.txt", *map(further, ("ab-404.txt", "wrk2.txt", "autobench.csv"))]
)
def test_memory_does_not_grow_with_the_text(name: str) -> None:
    def numbered(count: int) -> Iterator[NumberedLine]:
        for number, text in zip(range(count), cycle(recorded(name).splitlines()), strict=False):
            yield NumberedLine(number + 1, text.strip())

    def peak_bytes(count: int) -> int:
        tracemalloc.start()
        try:
            audit_lines(numbered(count))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak_bytes(20_000) < 20e6


def test_warnings_are_listed_up_to_a_limit_and_then_counted() -> None:
    found = audited(recorded("ab-404.txt") * 80)
    bad = [each for each in found.warnings if each.rule == "non-2xx"]
    assert len(bad) == MOST_WARNINGS
    assert found.more["non-2xx"] == 80 - MOST_WARNINGS


@pytest.mark.parametrize(
    "bit",
    [
        *(
            "====== x ",
            "=",
            "ab -",
            "ab ",
            "loop = ",
            "loop ",
            "> ",
            "1. ",
            "A",
            "AB: ",
            "{",
            "\t",
            "|",
        ),
        *("\x1b[", "\r", "Benchmarking apr_", "1 ", "1,", "  ", "% ", "- ", "[1] ", "\u2013", "9"),
        *("p(90)=", "│ ", "<a ", "&#", "running (", "summary = ", "KO=", "Aggregated ", "µs "),
        *(
            "requests per second AA",
            "Latency 1 ",
            "traffic: 1 (1) total, (",
            '"a": {',
            "Connect: 0 ",
        ),
    ],
)
def test_long_lines_take_no_more_than_their_length(bit: str) -> None:
    """Expressions that try every place from every place would not come back."""
    starts = (
        *(
            "",
            "Requests per second: ",
            "====== ",
            "Benchmarking ",
            "$ ab ",
            "SET: ",
            "a: ",
            "no CDN ",
        ),
        *("---- Global Information -\na ", "Type Name # reqs # fails |\nGET ", "Elapsed 5s\n1ms "),
        "http_req_duration...: avg=1ms min=1ms med=1ms max=1ms ",
    )
    ends = ("", " requests per second", ' {"summary"', ":")
    line = bit * (LONGEST_LINE // len(bit))
    audited("\n".join(start + line + end for start in starts for end in ends))


def test_a_line_without_end_is_cut() -> None:
    found = audited("x" * 30 * LONGEST_LINE + "\n" + ab())
    assert found.read[0].first_line == 2


def test_lines_of_blanks_are_read_at_once() -> None:
    """Else they take minutes."""
    text = ("let" + " " * 19_000 + "loops\n") * 20
    assert not any("loop" in warning.rule for warning in audited(text).warnings)
    locust, gatling = "Name # reqs # fails |\n", "---- Global Information -\n"
    began = time.process_time()
    audited(locust + ("Total 1 1(1%)" + " " * 19_000 + "x\n") * 9)
    audited(gatling + ("response time 99th percentile" + " " * 19_000 + "x\n") * 9)
    assert time.process_time() - began < 1
