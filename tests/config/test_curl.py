"""A curl command becomes the request that curl would make."""

import json
import shlex
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.config.traffic import read_curl
from webdyno.core.errors import UserError
from webdyno.core.files import neighbor
from webdyno.core.request import WrittenRequest


def test_what_a_browser_copies(tmp_path: Path) -> None:
    command = r"""curl 'https://shop.example/api/orders?page=2#top' \
      -H 'accept: */*' \
      -H 'accept-encoding: gzip, deflate, br, zstd' \
      -H 'content-type: application/json' \
      -H 'connection: keep-alive' \
      -b 'session=abc; theme=dark' \
      --data-raw $'{"name":"O\'Neill\u0021"}' \
      --compressed --insecure"""
    entry = read_curl(command, tmp_path)
    assert entry == {
        "path": "/api/orders?page=2",
        "method": "POST",
        "headers": {
            "content-type": "application/json",
            "accept": "*/*",
            "Cookie": "session=abc; theme=dark",
            "Accept-Encoding": "gzip, deflate",
        },
        "body": '{"name":"O\'Neill!"}',
    }
    assert WrittenRequest.model_validate(entry).label == "POST /api/orders?page=2"


def test_data_are_joined_read_from_files_and_go_into_the_query(tmp_path: Path) -> None:
    (tmp_path / "form").write_bytes(b"a=1\r\n&b=2\n")
    (tmp_path / "bytes").write_bytes(b"\xff\x00\n")
    assert read_curl("curl x/ -d @form -d c=3", tmp_path / "form")["body"] == "a=1&b=2&c=3"
    assert read_curl("curl x/ --data-binary @bytes", tmp_path / "form")["body_base64"] == "/wAK"
    assert read_curl("curl x/p?q=1 -G -d r=2", tmp_path / "form") == {
        "path": "/p?q=1&r=2",
        "method": "GET",
    }
    as_json = read_curl("curl -XPUT x/ --json '[1]'", tmp_path)
    assert as_json["headers"] == {"Content-Type": "application/json", "Accept": "application/json"}
    assert (as_json["method"], as_json["body"]) == ("PUT", "[1]")
    assert read_curl("curl -I x", tmp_path) == {"path": "/", "method": "HEAD"}
    basic = read_curl("curl -u me:secret x", tmp_path / "form")["headers"]
    assert basic == {"Authorization": "Basic bWU6c2VjcmV0"}


@pytest.mark.parametrize(
    ("command", "reported"),
    [
        ("curl --proxy x http://y/", "--proxy is not understood"),
        ("curl -F a=b http://y/", "-F is not understood"),
        ("curl", "one URL is needed, this has 0"),
        ("curl a b", "this has 2"),
        ("wget x", "should begin with curl"),
        ("curl 'x", "as a shell would"),
        ("curl x -d @missing", "missing: there is no such file"),
        ("curl x -b cookies.txt", "name=value"),
        ("curl x -H nonsense", "Name: value"),
        ("curl x -H", "-H is not understood here"),
        ("curl x -u 'me:${env:P}'", "nothing can be filled in"),
    ],
)
def test_what_is_not_understood_is_named(command: str, reported: str) -> None:
    with pytest.raises(UserError, match=r"^--traffic") as refused:
        read_curl(command)
    assert reported in str(refused.value)


@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    for command in (text, f"curl {text}", f"curl http://x/ {text}"):
        try:
            entry = read_curl(command)
        except UserError:
            continue
        assert entry["path"].startswith("/")


class _Remembers(BaseHTTPRequestHandler):
    seen: dict[str, object]

    def do_POST(self) -> None:
        """Keep what came."""
        length = int(self.headers["Content-Length"])
        seen = {"path": self.path, "body": self.rfile.read(length).decode(), **self.headers}
        type(self).seen = seen
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    "options",
    [
        "-d a=1 -d b=2",
        "--data-urlencode 'q=a b&c'",
        "--json '{\"a\": 1}'",
        "-d x -H 'X-A: b' -A me",
    ],
)
def test_it_is_what_curl_sends(options: str) -> None:
    with HTTPServer(("127.0.0.1", 0), _Remembers) as server:
        Thread(target=server.handle_request, daemon=True).start()
        command = f"curl -s {options} http://127.0.0.1:{server.server_port}/p?q=1"
        subprocess.run(shlex.split(command), check=True, timeout=20)
        seen = _Remembers.seen
    entry = read_curl(command)
    assert (entry["path"], entry["body"]) == (seen["path"], seen["body"])
    assert entry["headers"].items() <= seen.items(), json.dumps(seen)


def test_what_is_no_text_is_sent_as_it_is(tmp_path: Path) -> None:
    (body := tmp_path / "body").write_bytes(b"a=\xff&b")
    assert read_curl(f"curl -G -d @{body} http://h/p")["path"] == "/p?a=%FF&b"
    smile = read_curl(r"curl -d $'\ud83d\ude00 \ud800' http://h/")
    assert smile["body"] == "\N{GRINNING FACE} \N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize("name", ["\0", "\ud800"])
def test_what_is_no_name_of_a_file_is_refused(tmp_path: Path, name: str) -> None:
    (said := tmp_path / "a.jsonl").write_text(json.dumps({"path": "/", "body_file": name}))
    with pytest.raises(UserError, match="can't be read"):
        neighbor(said, name, "here")
