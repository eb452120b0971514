"""Gates for changes as they are: other answers, new endpoints, and what grew where one fails."""

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from e2e import forked
from e2e.commands import WEBDYNO, environment, left_behind, webdyno
from e2e.own import git
from e2e.test_explain import written_for_perf
from webdyno.core.errors import Exit

NODE = """
const http = require('http')
const ITEMS = Array.from({ length: 20 }, (_, id) => ({ id, name: `item ${id}` }))

function rank(items) {
  const begin = process.hrtime.bigint()
  let sum = 0
  while (Number(process.hrtime.bigint() - begin) < RANK_NS) {
    // What reads the clock isn't this function's own time.
    for (let n = 0; n < 10_000; n++) sum += n % items.length
  }
  return sum
}

function search() {
  const found = ITEMS.filter((item) => item.name.includes('7'))
  return EXTRA
}

function handle(request, response) {
  const known = { '/': () => ({ shop: 'open' }), '/search': search, NEW }
  const page = known[request.url]
  response.statusCode = page ? 200 : 404
  response.setHeader('Content-Type', 'application/json')
  response.end(JSON.stringify(page ? page() : {}))
}

http.createServer(handle).listen(Number(process.env.PORT), '127.0.0.1')
"""
# What V8 inlines, it counts for the functions that call it.
NODE_NAMING_FUNCTIONS = "node --no-turbo-inlining --no-maglev-inlining server.js"
PLAIN = {"RANK_NS": "0", "EXTRA": "{ found }", "NEW": ""}
OTHER_ANSWER = {**PLAIN, "EXTRA": "{ found, rank: 1, of: 20 }"}
SLOWER = {**PLAIN, "RANK_NS": "400000", "EXTRA": "{ found, rank: rank(ITEMS) }"}
NEW_ENDPOINT = {**PLAIN, "NEW": "'/new': search"}

NATIVE = r"""
#include <arpa/inet.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((noinline)) static unsigned rank_items(unsigned rounds) {
    volatile unsigned sum = 0;
    for (unsigned at = 0; at < rounds; at++) sum += at * at;
    return sum;
}

static void *serve(void *given) {
    static const char said[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    int at = (int)(long)given;
    char asked[4096];
    while (read(at, asked, sizeof asked) > 0) {
        rank_items(ROUNDS);
        if (write(at, said, sizeof said - 1) < 0) break;
    }
    close(at);
    return NULL;
}

int main(void) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT")))};
    int on = 1, listening = socket(AF_INET, SOCK_STREAM, 0);
    here.sin_addr.s_addr = inet_addr("127.0.0.1");
    setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listening, (struct sockaddr *)&here, sizeof here) || listen(listening, 64)) return 1;
    for (;;) {
        pthread_t thread;
        long at = accept(listening, NULL, NULL);
        if (at >= 0 && !pthread_create(&thread, NULL, serve, (void *)at)) pthread_detach(thread);
    }
}
"""
PYTHON = """
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        sum(at * at for at in range(COUNT))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *words):
        pass

ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler).serve_forever()
"""
QUICK = (
    *("--set=load.connections=4", "--set=measure.slot_s=0.2", "--set=measure.warmup_s=1"),
    *("--set=measure.slots_per_variant=2", "--time=3m", "--fail-if=cpu > +25%"),
)
WITHIN_S = 280
needs_perf = pytest.mark.skipif(
    shutil.which("perf") is None or os.geteuid() != 0, reason="perf of other processes takes root"
)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
pytestmark = [pytest.mark.measures, pytest.mark.long]


def repository(
    folder: Path, file: str, text: str, revisions: Mapping[str, Mapping[str, str]], app: str
) -> None:
    """Make a repository; revisions are tags, each by what stands in the text's places."""
    git(folder, "init", "--initial-branch=main", ".")
    (folder / ".gitignore").write_text("scratch*\n.cache\nrun*\nserver\n")
    (folder / "webdyno.toml").write_text(f"[app]\n{app}\n")
    for tag, places in revisions.items():
        written = text
        for place, value in places.items():
            written = re.sub(rf"\b{place}\b", value, written)
        (folder / file).write_text(written)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "-m", f"The shop, {tag}")
        git(folder, "tag", tag)


def gate(folder: Path, base: str, head: str, *more: str) -> tuple[int, str, dict[str, Any]]:
    """Ask a gate; give its exit code, what it printed in one line, and gate.json."""
    asked = ("gate", f"--base={base}", f"--head={head}", "--output=run", "--no-report")
    words = [str(WEBDYNO), *asked, *more, *QUICK]
    done = forked.run(words, cwd=folder, env=environment(folder), timeout=WITHIN_S)
    file = folder / "run/gate.json"
    assert file.exists(), done.stdout + done.stderr
    assert left_behind(folder) == []
    return (
        done.returncode,
        " ".join((done.stdout + done.stderr).split()),
        json.loads(file.read_text()),
    )


@needs_node
@needs_perf
def test_an_endpoint_that_answers_otherwise_and_slower_is_named_with_its_function(
    tmp_path: Path,
) -> None:
    before = written_for_perf()
    revisions = {"start": PLAIN, "slower": SLOWER}
    repository(tmp_path, "server.js", NODE, revisions, f'start = "{NODE_NAMING_FUNCTIONS}"')
    code, reported, answer = gate(tmp_path, "start", "slower", "--path=/", "--path=/search")
    assert code == Exit.WORSE, reported
    assert "/search: responses differ: " in reported
    assert "1 field more (rank)" in reported
    assert {it["endpoint"] for it in answer["claims"] if it["answer"] == "worse"} == {"/search"}
    (grew,) = answer["grew"]
    assert grew["endpoint"] == "/search"
    most = max(grew["sampled"]["parts"], key=lambda part: part["more_us"]["estimate"])
    assert most["what"] == "rank (server.js)"
    more = most["more_us"]
    assert more["low"] > 0, most
    own = [part for part in grew["sampled"]["parts"] if part["what"].endswith(" (server.js)")]
    assert 350 < sum(part["more_us"]["estimate"] for part in own) < 600, own
    assert re.search(r"/search \+\S+ \S+ per request, \d+% of it in rank \(server.js\)", reported)
    assert re.search(r"Cause \w{7} .* \(the only commit between both\)", reported), reported
    assert re.search(r"Repeat \S*webdyno gate --base \w+ --head \w+ .*--path=/search", reported), (
        reported
    )
    assert written_for_perf() <= before


@needs_node
def test_an_endpoint_that_only_answers_otherwise_passes_and_says_so(tmp_path: Path) -> None:
    revisions = {"start": PLAIN, "other": OTHER_ANSWER}
    repository(tmp_path, "server.js", NODE, revisions, 'start = "node server.js"')
    code, reported, answer = gate(tmp_path, "start", "other", "--path=/search")
    assert code == Exit.OK, reported
    assert "/search: responses differ: " in reported
    assert "2 fields more (of, rank)" in reported
    assert answer["grew"] == []


@needs_node
def test_a_new_endpoint_is_listed_and_the_others_are_judged(tmp_path: Path) -> None:
    revisions = {"start": PLAIN, "new": NEW_ENDPOINT}
    repository(tmp_path, "server.js", NODE, revisions, 'start = "node server.js"')
    code, reported, answer = gate(tmp_path, "start", "new", "--path=/search", "--path=/new")
    assert code == Exit.OK, reported
    assert "/new: new in head, and not judged: the baseline answers 404" in reported
    assert {it["endpoint"] for it in answer["claims"]} == {"/search"}


@needs_perf
@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
def test_a_function_of_a_compiled_program_is_named_and_a_failure_confirmed(tmp_path: Path) -> None:
    revisions = {"start": {"ROUNDS": "1000"}, "slower": {"ROUNDS": "60000"}}
    app = 'build = "gcc -O2 -pthread -o server server.c"\nstart = "./server"'
    repository(tmp_path, "server.c", NATIVE, revisions, app)
    code, reported, answer = gate(tmp_path, "start", "slower", "--path=/", "--confirm")
    assert code == Exit.WORSE, reported
    assert "measured again from fresh builds: / CPU per request " in reported
    most = max(answer["grew"][0]["sampled"]["parts"], key=lambda it: it["more_us"]["estimate"])
    assert most["what"] == "rank_items (server)"
    assert len(list((tmp_path / "run").glob("confirmation/slots.jsonl"))) == 1
    printed = webdyno("report", "run", folder=tmp_path).stdout
    assert "of it in rank_items (server)" in " ".join(printed.split())


@needs_perf
@pytest.mark.skipif(not Path("/usr/bin/python3.11").exists(), reason="this is about Python 3.11")
def test_of_a_runtime_that_names_no_functions_the_rest_is_reported(tmp_path: Path) -> None:
    revisions = {"start": {"COUNT": "10"}, "slower": {"COUNT": "20000"}}
    repository(tmp_path, "server.py", PYTHON, revisions, 'start = "/usr/bin/python3.11 server.py"')
    code, reported, _ = gate(tmp_path, "start", "slower", "--path=/")
    assert code == Exit.WORSE, reported
    assert "(python3.11)" in reported or "python3.11's own code" in reported, reported
    assert "perf finds no functions of this Python; 3.12 and newer name theirs" in reported
