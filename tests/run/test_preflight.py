"""The pre-flight check's requests: what a server answered is written down as it was."""

import gzip
import hashlib
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from webdyno.generator.interface import Expectation
from webdyno.model.load import Load
from webdyno.run import preflight
from webdyno.run.planned import PlannedRequest
from webdyno.run.preflight import Undecodable, ask_all, decoded

BODY = b"Hello, World!"
ENCODED = {
    "gzip": gzip.compress(BODY),
    "deflate": zlib.compress(BODY),
}


class Site(BaseHTTPRequestHandler):
    """Answers /hello well and as asked for, resets /gone, and is not found elsewhere."""

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
    (answer,) = ask_all(url, [PlannedRequest("/hello", expect)], Load())
    assert (answer.status, answer.body_sha256) == (200, expect.body_sha256)
    assert answer.headers == [("Content-Length", "13")]
    assert answer.head_bytes == len(b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n")
    assert answer.http_version == "HTTP/1.1"


def test_an_error_page_keeps_its_beginning(url: str) -> None:
    (answer,) = ask_all(url, [PlannedRequest("/missing", Expectation(200))], Load())
    assert (answer.status, answer.body_start) == (404, "not here")


def test_no_answer_is_an_answer_with_its_reason_and_the_next_one_is_asked(url: str) -> None:
    gone, hello = ask_all(
        url,
        [PlannedRequest("/gone", Expectation(200)), PlannedRequest("/hello", Expectation(200))],
        Load(),
    )
    assert gone.status is None
    assert gone.error
    assert hello.status == 200


def test_nobody_listening_is_told() -> None:
    (answer,) = ask_all("http://127.0.0.1:9", [PlannedRequest("/", Expectation(200))], Load())
    assert answer.status is None
    assert "refused" in (answer.error or "")


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_is_kept_as_the_page_that_it_is(url: str, encoding: str) -> None:
    expect = Expectation(200, len(BODY), hashlib.sha256(BODY).hexdigest())
    load = Load(headers={"Accept-Encoding": encoding})
    (answer,) = ask_all(url, [PlannedRequest("/hello", expect)], load)
    assert (answer.encoding, answer.wire_bytes) == (encoding, len(ENCODED[encoding]))
    assert (answer.body_bytes, answer.body_sha256) == (len(BODY), expect.body_sha256)


def test_an_encoding_that_nobody_can_read_is_no_answer(url: str) -> None:
    load = Load(headers={"Accept-Encoding": "gzip, deflate"})  # the server takes it literally
    (answer,) = ask_all(url, [PlannedRequest("/hello", Expectation(200))], load)
    assert answer.status is None
    assert "encoding" in (answer.error or "")


def test_bodies_that_are_cut_off_or_never_end_are_no_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(Undecodable, match="cut off"):
        decoded(ENCODED["gzip"][:-9], "gzip", {"gzip"})
    monkeypatch.setattr(preflight, "MOST_DECODED_BYTES", 1000)
    assert len(decoded(gzip.compress(bytes(999)), "gzip", {"gzip"})) == 999
    with pytest.raises(Undecodable, match="very many"):
        decoded(gzip.compress(bytes(1_000_000)), "gzip", {"gzip"})


def test_an_encoding_that_nobody_asked_for_is_no_answer() -> None:
    with pytest.raises(Undecodable, match="'gzip', which nobody asked for"):
        decoded(gzip.compress(b"page"), "gzip", {"identity"})
