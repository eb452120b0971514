"""Lines of logs, of each format, damaged and hostile ones among them."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traffic.made import BEGIN_S, line, read
from webdyno.core.errors import UserError
from webdyno.traffic.access import Access, NoRequest
from webdyno.traffic.lines import read_line
from webdyno.traffic.log import Log, LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs

CADDY = {
    "level": "info",
    "ts": 1763800000.25,
    "logger": "http.log.access",
    "request": {
        "remote_ip": "10.0.0.1",
        "client_ip": "10.0.0.1",
        "method": "GET",
        "uri": "/a?b=c",
        "headers": {"User-Agent": ["curl/8"]},
    },
    "status": 200,
    "size": 12,
}
NGINX = {
    "time_iso8601": "2025-11-22T08:26:40+00:00",
    "remote_addr": "10.0.0.1",
    "request": "GET /a?b=c HTTP/2.0",
    "status": "200",
    "body_bytes_sent": "12",
    "http_user_agent": "curl/8",
    "connection_requests": "2",
}


@pytest.mark.parametrize(
    ("text", "time_s", "first"),
    [
        ('h - - [22/Nov/2025:09:26:40 +0100] "GET /a?b=c HTTP/1.0" 200 12', BEGIN_S, None),
        (
            'h - joe [22/Nov/2025:08:26:40 +0000] "GET /a?b=c HTTP/1.1" 200 12 "-" "a \\" b"',
            BEGIN_S,
            None,
        ),
        (json.dumps(CADDY), BEGIN_S + 0.25, None),
        (json.dumps(NGINX), BEGIN_S, False),
        (
            json.dumps(NGINX | {"msec": "1763800000.5", "connection_requests": 1}),
            1763800000.5,
            True,
        ),
        (
            json.dumps(
                {
                    "time_local": "22/Nov/2025:08:26:40 +0000",
                    "request_method": "GET",
                    "request_uri": "/a?b=c",
                    "status": 200,
                    "bytes_sent": 12,
                }
            ),
            BEGIN_S,
            None,
        ),
    ],
)
def test_each_format_says_the_same(text: str, time_s: float, first: bool | None) -> None:
    found = read_line(text.encode())
    assert found.time_s == time_s
    assert found[3:8] == (b"GET", b"/a?b=c", 200, 12, first)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("nonsense", "none of the formats"),
        ('h - - [22/Nov/2025:08:26:40 +0000] "\\x16\\x03\\x01" 400 0', "no request such as GET"),
        ('h - - [99/Nov/2025:08:26:40 +0000] "GET / HTTP/1.1" 200 1', "there never was"),
        ('h - - [22/Nop/2025:08:26:40 +0000] "GET / HTTP/1.1" 200 1', "no time such as"),
        ('h - - [22/Nov/2025:08:26:40 +9900] "GET / HTTP/1.1" 200 1', "there never was"),
        ("{", "no JSON"),
        ("{}", "lacks"),
        (json.dumps(NGINX | {"status": []}), "lacks"),
        (json.dumps(NGINX | {"time_iso8601": "nan"}), "lacks"),
        (json.dumps(NGINX | {"body_bytes_sent": -1}), "lacks"),
        (json.dumps(CADDY | {"ts": 1e300}), "lacks"),
    ],
)
def test_a_line_that_is_no_request_says_why(text: str, why: str) -> None:
    with pytest.raises(NoRequest, match=why):
        read_line(text.encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.binary() | JSON.map(lambda it: json.dumps(it).encode()))
def test_any_line_is_a_request_or_unreadable(text: bytes) -> None:
    _read_or_not(text)


@given(st.sampled_from([CADDY, NGINX]), st.data(), JSON)
def test_any_value_of_a_key_is_read_or_refused(
    record: dict[str, object], data: st.DataObject, value: object
) -> None:
    key = data.draw(st.sampled_from(sorted(record)))
    _read_or_not(json.dumps(record | {key: value}).encode())


def _read_or_not(text: bytes) -> None:
    with suppress(NoRequest):
        assert isinstance(read_line(text), Access)


def test_lines_that_are_no_request_are_counted_and_the_first_ones_named(tmp_path: Path) -> None:
    text = line() + "\n" + "bad\n" * 7 + "x" * 200_000 + "\n" + line("/b")
    log = read(tmp_path / "a.log", text)
    assert len(log) == 2
    assert log.excluded == {"lines that are no request": 8}
    assert [bad.line for bad in log.bad] == [3, 4, 5, 6, 7]
    assert log.lines == 11


def test_what_is_excluded_is_counted_by_why(tmp_path: Path) -> None:
    text = (
        line("/early", time_s=BEGIN_S - 10)
        + line("/")
        + line("/", method="POST")
        + line("/", status=502)
        + line("*")
        + line("/late", time_s=BEGIN_S + 100)
    )
    log = read(tmp_path / "a.log", text, LogSelection(from_s=BEGIN_S, to_s=BEGIN_S + 100))
    assert [asked.path for asked in log.asked] == ["/"]
    assert log.excluded == {
        "before --from": 1,
        "of other methods": 1,
        "answered with 5xx, or not at all": 1,
        "for what is no path": 1,
        "after --to": 1,
    }


def test_compressed_logs_and_har_files_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "a.log.gz"
    packed.write_bytes(gzip.compress((line("/a") * 3).encode()))
    assert len(_log(packed)) == 3
    entry = {
        "startedDateTime": "2025-11-22T08:26:40.125Z",
        "connection": "7",
        "request": {"method": "GET", "url": "https://shop.example/a?b=c"},
        "response": {"status": 200, "bodySize": -1, "content": {"size": 12}},
    }
    har = json.dumps({"log": {"entries": [entry, entry]}}).encode()
    plain, packed = tmp_path / "a.har", tmp_path / "a.har.gz"
    plain.write_bytes(har)
    packed.write_bytes(gzip.compress(har))
    for log in map(_log, (plain, packed)):
        assert log.asked[0].path == "/a"
        assert log.connection.tolist() == [1, 0]
        assert log.time_s[0] == BEGIN_S + 0.125
        assert log.body_bytes.tolist() == [12, 12]


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize(
    ("started", "reported"),
    [
        ({}, "is no HAR file: log.entries.0.startedDateTime field required"),
        ({"startedDateTime": 5}, "is no HAR file: log.entries.0.startedDateTime input should be a"),
        ({"startedDateTime": "now"}, "log.entries.0.startedDateTime 'now' is no time such as"),
    ],
)
def test_a_har_file_has_to_report_when_it_was_asked(
    tmp_path: Path, mark: str, started: dict[str, object], reported: str
) -> None:
    entry = {
        **started,
        "request": {"method": "GET", "url": "https://shop.example/"},
        "response": {"status": 200},
    }
    har = tmp_path / "a.har"
    har.write_text(mark + json.dumps({"log": {"entries": [entry]}}), encoding="utf-8")
    with pytest.raises(UserError) as refused:
        _log(har)
    assert str(refused.value).startswith(f"{har}: {reported}")


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"x\n", b'{"log": {}}', b'{"log": {"entries": []}}', b"\xff\xfe\x00"]
)
def test_a_file_without_requests_is_refused_with_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.log"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"a\.log: "):
        _log(path)


def test_of_a_cut_gzip_file_what_is_there_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress((line("/a") * 5).encode())[:-9])
    log = _log(path)
    assert 0 < len(log) <= 5
    assert log.notes == [f"{path} ends too early or is damaged; what was read before that is used"]
    path.write_bytes(gzip.compress(line().encode())[:12])
    with pytest.raises(UserError, match=r"a\.gz: there is no request.*; .*ends too early"):
        _log(path)


def _log(path: Path) -> Log:
    return read_logs([path], LogSelection(), Privacy("drop", "hash"))


@pytest.mark.parametrize("word", ["x" * 65_000, "1:" * 32_000, ":1" * 32_000])
def test_words_without_an_end_are_passed_over(word: str) -> None:
    """From each of their letters to the end, they would take minutes."""
    for _ in range(20):
        with suppress(NoRequest, ValueError):
            read_line(word.encode())
