"""Command lines as people write them down, typesetters' dashes and all."""

from typing import Any

import pytest

from webdyno.audit.commands import find_command
from webdyno.formats.text import NumberedLine

WRITTEN: dict[str, dict[str, Any]] = {
    "ab -kc 100 -n 1000 http://web.test/page.html": {
        "tool": "ab",
        "keepalive": True,
        "concurrency": 100,
        "requests": 1000,
        "host": "web.test",
        "path": "/page.html",
    },
    "ab -k -c5 -t10000 http://<server>/100.html": {"concurrency": 5, "time_limit_s": 10000},
    "$ ab -n 500 -c 100 \u201chttp://web.test\u201d": {"requests": 500, "host": "web.test"},
    "ab -c 10 -H 'a: b' -n 5": {"concurrency": 10, "requests": 5, "keepalive": False},
    "httperf \u2013timeout=5 \u2013server=HOST \u2013uri=/a \u2013rate=X \u2013num-conns=5000 "
    "\u2013num-calls=10": {
        "host": "HOST",
        "path": "/a",
        "connections": 5000,
        "calls_per_connection": 10,
        "demanded_rps": None,
        "open_loop": True,
    },
    "httperf --server h --num-conns 7 --rate 50": {
        "host": "h",
        "connections": 7,
        "demanded_rps": 50,
    },
    "wrk -t12 -c400 -d30s http://127.0.0.1:8080/index.html": {
        "concurrency": 400,
        "time_limit_s": 30,
        "host": "127.0.0.1",
        "open_loop": False,
    },
    "wrk2 --rate 2000 -c 8 http://a/": {"demanded_rps": 2000, "open_loop": True, "path": "/"},
    "run `hey -z 2m -c 10 http://a/` twice": {"time_limit_s": 120, "concurrency": 10},
    "oha -q 500 -c 32 http://a/": {"demanded_rps": 500, "open_loop": False},
    "oha -q 500 --latency-correction http://a/": {"open_loop": True},
    "siege -b -c 20 -t 3S http://a/": {"concurrency": 20, "time_limit_s": 3},
    "redis-benchmark -n 100000 -c 50 -q": {"requests": 100_000, "concurrency": 50},
    "siege -c50 -t60 app.test": {"concurrency": 50, "time_limit_s": 3600},
    "siege -c50 --time=2H app.test": {"time_limit_s": 7200},
    "h2load --clients=10 --requests=5000 -m 10 https://a/": {
        "concurrency": 10,
        "requests": 5000,
        "streams": 10,
        "unread": (),
    },
    "oha -n 10k -p 20 --http2 https://a/": {"requests": 10_000, "streams": 20, "whole": True},
    "hey -n 2000 -disable-keepalive http://a/": {"reconnects": True, "unread": ()},
    "wrk -c 8 -H 'Connection: close' http://a/": {"reconnects": True, "whole": True},
    "hey -q 20 -c 5 http://a/": {"each_rps": 20, "demanded_rps": None},
    "ghz --cpus=3 -n 100000 ...": {"whole": False},
    "h2load -c 8 --timing-script-file=f --rate=3 https://a/": {
        "unread": ("--timing-script-file", "--rate")
    },
    "ab -n 5 -c 1 http://a/ > out.txt --wrong": {"requests": 5, "unread": ()},
    "`oha -c 8 http://a/` with -p 9 is another matter": {"concurrency": 8, "streams": None},
}


@pytest.mark.parametrize("text", WRITTEN)
def test_options_are_understood(text: str) -> None:
    command = find_command(NumberedLine(7, text))
    assert command is not None
    assert command.line == 7
    assert {name: getattr(command, name) for name in WRITTEN[text]} == WRITTEN[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "ab",
        "the ab - a tool - is old",
        "ab -n NREQ -c NCONC",
        "httperf is a tool -- a good one",
        "grab -n 5 -c 5",
        "hey - what is this?",
    ],
)
def test_what_is_no_command_with_settings(text: str) -> None:
    assert find_command(NumberedLine(1, text)) is None
