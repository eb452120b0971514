"""The pre-flight check's requests: what a server answered is written down as it was."""

import gzip
import hashlib
import socket
import threading
import zlib
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from manners import serving
from webdyno.core.hiding import HIDDEN, keep_secret
from webdyno.core.load import Load
from webdyno.load.interface import Expectation, Request, ServerResponse
from webdyno.measure import preflight
from webdyno.measure.checked_program import quoted
from webdyno.measure.preflight import (
    MOST_SEARCHED_BYTES,
    Undecodable,
    ask_all,
    blank_response,
    decode_body,
    describe_response,
    without_ignored,
)
from webdyno.validity.preflight import _unlike_expected

BODY = b"Hello, World!"
ENCODED = {
    "gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
}


class Site(BaseHTTPRequestHandler):
    """Answers /hello well and as requested, resets /gone, and is not found elsewhere."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer one request."""
        if self.path == "/gone":
            self.close_connection = True
            return
        body = BODY if self.path == "/hello" else b"not here"
        self.send_response_only(200 if self.path == "/hello" else 404)
        if encoding := self.headers.get("Accept-Encoding"):
            body = ENCODED.get(encoding, body)
            self.send_header("Content-Encoding", encoding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def url() -> Iterator[str]:
    """A real server on a free port of the loopback interface."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_an_answer_is_written_down_with_hash_and_head(url: str) -> None:
    expect = Expectation(200, len(BODY), hashlib.sha256(BODY).hexdigest())
    (response,) = ask_all(url, [Request("/hello", expect)], Load())
    assert (response.status, response.body_sha256) == (200, expect.body_sha256)
    assert response.headers == [("Content-Length", "13")]
    assert response.head_bytes == len(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n")
    assert response.http_version == "HTTP/1.1"


def test_an_error_page_keeps_its_beginning(url: str) -> None:
    (response,) = ask_all(url, [Request("/missing", Expectation(200))], Load())
    assert (response.status, response.body_start) == (404, "not here")


def test_no_answer_is_an_answer_with_its_reason_and_the_next_one_is_asked(url: str) -> None:
    gone, hello = ask_all(
        url,
        [Request("/gone", Expectation(200)), Request("/hello", Expectation(200))],
        Load(),
    )
    assert gone.status is None
    assert gone.error
    assert hello.status == 200


def test_nobody_listening_is_reported() -> None:
    (response,) = ask_all("http://127.0.0.1:9", [Request("/", Expectation(200))], Load())
    assert response.status is None
    assert "refused" in (response.error or "")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_is_kept_as_the_page_that_it_is(url: str, encoding: str) -> None:
    expect = Expectation(200, len(BODY), hashlib.sha256(BODY).hexdigest())
    asked = Request("/hello", expect, headers={"Accept-Encoding": encoding})
    (response,) = ask_all(url, [asked], Load())
    assert (response.encoding, response.wire_bytes) == (encoding, len(ENCODED[encoding]))
    assert (response.body_bytes, response.body_sha256) == (len(BODY), expect.body_sha256)


def test_an_encoding_that_nobody_can_read_is_no_answer(url: str) -> None:
    accepted = {"Accept-Encoding": "gzip, deflate"}  # the server takes it literally
    asked = Request("/hello", Expectation(200), headers=accepted)
    (response,) = ask_all(url, [asked], Load())
    assert response.status is None
    assert "encoding" in (response.error or "")


def test_bodies_that_are_cut_off_or_never_end_are_no_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Undecodable, match="cut off"):
        decode_body(ENCODED["gzip"][:-9], "gzip", {"gzip"})
    monkeypatch.setattr(preflight, "MOST_DECODED_BYTES", 1000)
    assert len(decode_body(gzip.compress(bytes(999)), "gzip", {"gzip"})) == 999
    with pytest.raises(Undecodable, match="very many"):
        decode_body(gzip.compress(bytes(1_000_000)), "gzip", {"gzip"})


def test_an_encoding_that_nobody_asked_for_is_no_answer() -> None:
    with pytest.raises(Undecodable, match="'gzip', which nobody asked for"):
        decode_body(gzip.compress(b"page"), "gzip", {"identity"})


@pytest.mark.parametrize(
    ("headers", "lacking"),
    [
        ({"Content-length": "^13$"}, None),
        ({"Content-Length": "^14$"}, "Content-Length: it should match '^14$', not be '13'"),
        (
            {"Content-Length": "13", "Age": "^0$"},
            "Age: there is none, but it should match '^0$'",
        ),
    ],
)
def test_headers_that_the_site_demands(
    url: str, headers: dict[str, str], lacking: str | None
) -> None:
    asked = Request("/hello", Expectation(200, headers=headers, reads=3))
    (response,) = ask_all(url, [asked], Load())
    assert (response.lacks_header, response.expected_reads) == (lacking, 3)


@pytest.mark.parametrize(
    ("begin", "named"), [(b"HTTP/1.1 200 OK\r\n\r\ndata: x\n", True), (b"", False)]
)
def test_a_response_that_would_take_longer_names_the_timeout(begin: bytes, named: bool) -> None:
    def slow(connection: socket.socket) -> None:
        connection.recv(65_536)
        connection.sendall(begin)
        connection.recv(65_536)  # until the other side has gone

    with serving(slow) as port:
        (response,) = ask_all(
            f"http://127.0.0.1:{port}",
            [Request("/stream", Expectation(200))],
            Load(timeout_s=0.3),
        )
    assert response.error
    assert ("load.timeout_s" in response.error) == named, response.error
    assert "within 0.3 s" in response.error


@pytest.mark.parametrize("begin", range(60, 120, 7))
def test_sentences_that_cut_a_response_show_no_half_of_a_secret(begin: int) -> None:
    keep_secret([token := "sk_live_4f9a7c2e81b35d60aa17e3c95b2d48f6073e1cbd92"])
    keep_secret(["grüße-aus-köln"])
    text = f"{'x' * begin} Bearer {token}, and more"
    asked = Request("/", Expectation(200, contains=f"{token}{text}", headers={"Age": "^0$"}))
    headers = [("Location", f"/{'x' * begin}{text}"), ("Age", text)]
    said = ServerResponse(number=0, status=403, headers=headers, body=text.encode())
    response = describe_response(blank_response(asked), said, asked, ())
    for changed in (response, response.replace(headers=[]), response.replace(status=200)):
        warnings = _unlike_expected({"a": [changed]})
        what = "; ".join([*(warning.what for warning in warnings), str(changed.lacks_header)])
        assert "sk_live" not in what, what
        assert HIDDEN[:1] in what
    latin = replace(said, body="<p>grüße-aus-köln".encode("latin-1"), headers=[])
    assert describe_response(blank_response(asked), latin, asked, ()).body_start == f"<p>{HIDDEN}"
    item = {"id": 1, "said": text}
    assert "sk_live" not in quoted(item)


def test_of_a_very_long_body_nothing_is_ignored() -> None:
    """JSON that a small body unpacks to can take thirty times as much memory."""
    body = b"[" + b"[]," * (MOST_SEARCHED_BYTES // 3) + b"[]]"
    assert without_ignored(body, []) == body
    with pytest.raises(Undecodable, match=r"its body has 32 MiB, .* are searched"):
        without_ignored(body, ["$.time"])
