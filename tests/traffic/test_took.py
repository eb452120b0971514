"""How long responses took, in the ways of each format."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.test_lines import CADDY, NGINX
from webdyno.traffic.lines import read_line
from webdyno.traffic.log import LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs

COMMON = 'h - - [22/Nov/2025:08:26:40 +0000] "GET / HTTP/1.1" 200 12'
COMBINED = f'{COMMON} "-" "a \\" b"'
MILLISECONDS = st.integers(0, 3_600_000)


def took(text: str) -> float | None:
    return read_line(text.encode()).took_s


@given(MILLISECONDS, st.sampled_from([COMMON, COMBINED]), st.sampled_from(["\n", "\r\n", ""]))
def test_times_next_to_the_text_formats_are_read(ms: int, line: str, end: str) -> None:
    seconds = f"{ms / 1e3:.3f}"
    for reported in (
        f"{line} {ms * 1000}",  # Apache's %D
        f"{line} {seconds}",
        f'{line} "{seconds}"',
        f'{line} "10.0.0.1, 10.0.0.2" {seconds} .',
        f"{line} 3600.001 {seconds}",
        f"{line} rt={seconds}",
        f'{line} rt=9.999 uct="0.000" uht="0.001" urt="{seconds}"',
    ):
        assert took(reported + end) == pytest.approx(ms / 1e3)


@given(MILLISECONDS)
def test_times_in_json_are_read(ms: int) -> None:
    seconds = ms / 1e3
    for reported in (
        CADDY | {"duration": seconds},
        NGINX | {"request_time": f"{seconds:.3f}"},
        NGINX | {"request_time": seconds},
        NGINX | {"request_time": "9.999", "upstream_response_time": f"{seconds:.3f}"},
    ):
        assert took(json.dumps(reported)) == pytest.approx(seconds)


def test_what_no_server_behind_had_to_answer_took_no_time() -> None:
    """The request's own time goes on until the client has it all: seconds for a large file."""
    for nothing in ("-", ""):
        file = NGINX | {"request_time": "4.210", "upstream_response_time": nothing}
        assert took(json.dumps(file)) == 0
    assert took(f'{COMBINED} rt=4.210 urt="-"') == 0


def test_a_server_behind_that_failed_counts_with_the_one_that_answered() -> None:
    assert took(json.dumps(NGINX | {"upstream_response_time": "0.004, 0.012"})) == 0.016


@pytest.mark.parametrize(
    "rest",
    [
        ' "-"',
        " 512 10240",  # bytes in and out, as mod_logio has them
        " example.org 443",
        " 99999999999",
        " 1e3",
        " -0.001",
        " 127.0.0.1",
    ],
)
def test_other_things_next_to_the_text_formats_are_no_times(rest: str) -> None:
    assert took(COMBINED + rest) is None


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text())


@given(VALUES, st.sampled_from(["duration", "request_time", "upstream_response_time"]))
def test_whatever_stands_where_a_time_belongs_the_request_is_read(value: object, key: str) -> None:
    record = CADDY if key == "duration" else NGINX
    found = took(json.dumps(record | {key: value}))
    assert found is None or 0 <= found <= 3_600


@given(st.text())
def test_whatever_follows_a_line_the_request_is_read(rest: str) -> None:
    found = took(f"{COMBINED} {rest}")
    assert found is None or 0 <= found <= 3_600


def test_a_browser_s_waiting_has_the_way_in_it_which_is_taken_off(tmp_path: Path) -> None:
    def entry(wait: float | None, size: int) -> dict[str, object]:
        return {
            "startedDateTime": "2025-11-22T08:26:40Z",
            "request": {"method": "GET", "url": "https://shop.example/a"},
            "response": {"status": 200, "bodySize": size},
            "timings": {"wait": wait},
        }

    reported = [
        entry(31.0, 9),
        entry(0.2, 0),
        entry(30.0, 9),
        entry(72.5, 9),
        entry(None, 9),
        entry(-1, 9),
    ]
    file = tmp_path / "a.har"
    file.write_text(json.dumps({"log": {"entries": reported}}), encoding="utf-8")
    found = read_logs([file], LogSelection(), Privacy("drop", "hash")).took_s
    np.testing.assert_allclose(found, [0.001, np.nan, 0, 0.0425, np.nan, np.nan], atol=1e-6)


@pytest.mark.parametrize("header", ["1.000, ", " 1 1.000 [", " 1 1.000 [] [] 1.000, "])
def test_what_a_visitor_s_header_says_is_read_at_once(header: str) -> None:
    line = f'{COMBINED} "{header * (60_000 // len(header))}x"'.encode()
    began = time.process_time()
    read_line(line)
    assert time.process_time() - began < 1
