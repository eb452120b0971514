"""Whose work samples are: what was done, and for which function of the program."""

import pytest

from webdyno.probes.stacks import (
    MOST_FUNCTIONS,
    MOST_LETTERS,
    OTHER_FUNCTIONS,
    SAMPLED_HZ,
    Frame,
    Function,
    function_in,
    function_of,
    profile_of,
    what_is_done,
)

HERE = ("/srv/shop",)
KERNEL = "[kernel.kallsyms]"
MAP = "/tmp/perf-4711.map"  # noqa: S108 (perf's own place)
BUILT = "/home/me/.cache/webdyno/revisions/0123456789abcdef0123/files"
SAID = """\
nginx  4211
\tffffffff81e4a1b2 copy_user_generic ([kernel.kallsyms])
\tffffffff81e4a1b2 tcp_sendmsg_locked ([kernel.kallsyms])
\tffffffff81e4a1b2 __x64_sys_writev ([kernel.kallsyms])
\tffffffff81e4a1b2 do_syscall_64 ([kernel.kallsyms])
\t    7f1e2c3d4e5f writev+0x5f (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t    55e4a1b2c3d4 [unknown] (/usr/sbin/nginx)

nginx worker  4211
\t    55e4a1b2c3d4 ngx_http_parse_request_line (/usr/sbin/nginx)

swapper     0
\tffffffff81e4a1b2 default_idle ([kernel.kallsyms])

php-fpm8.2  4300
\t    55e4a1b2c3d4 [unknown] (/usr/sbin/php-fpm8.2)

"""


def test_samples_are_put_down_to_what_was_done() -> None:
    found = profile_of(iter(SAID.splitlines()))
    assert found.cpu_s == {
        "sending": 1 / SAMPLED_HZ,
        "nginx's own code": 1 / SAMPLED_HZ,
        "php-fpm8.2's own code": 1 / SAMPLED_HZ,
    }
    assert found.stacks["nginx worker;ngx_http_parse_request_line"] == 1
    assert not any("swapper" in stack for stack in found.stacks)


@pytest.mark.parametrize(
    ("calls", "what"),
    [
        (["tcp_v4_rcv", "net_rx_action", "__x64_sys_sendto"], "the network's receiving side"),
        (["inet_csk_accept", "__x64_sys_accept4"], "accepting"),
        (["link_path_walk", "do_sys_openat2", "__x64_sys_openat"], "files"),
        (["ep_poll", "do_epoll_wait", "__x64_sys_epoll_wait"], "waiting for events"),
        (["clear_page", "handle_mm_fault", "exc_page_fault"], "page faults"),
        (["__schedule", "schedule"], "the kernel's other work"),
    ],
)
def test_the_kernel_s_work_is_named_by_the_call(calls: list[str], what: str) -> None:
    assert what_is_done([Frame(call, KERNEL) for call in calls]) == what


@pytest.mark.parametrize(
    ("program", "what"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc's own code"),
        ("/usr/lib/apache2/modules/mod_mime.so", "mod_mime's own code"),
        ("/usr/bin/node", "node's own code"),
        ("", "unknown's own code"),
        (MAP, "code compiled while it ran"),
        ("//anon", "code compiled while it ran"),
        ("[JIT] tid 4711", "code compiled while it ran"),
    ],
)
def test_what_is_no_kernel_s_is_named_by_its_program(program: str, what: str) -> None:
    assert what_is_done([Frame("f", program)]) == what


@pytest.mark.parametrize(
    ("symbol", "program", "name", "is_own"),
    [
        ("JS:*search /srv/shop/app.js:12:8", MAP, "search (app.js)", True),
        ("JS:~search file:///srv/shop/lib/app.mjs:12:8", MAP, "search (lib/app.mjs)", True),
        ("JS:^get url /srv/shop/app.js:12:8", MAP, "get url (app.js)", True),
        ("LazyCompile:*search /srv/shop/app.js:12", MAP, "search (app.js)", True),
        ("JS:~ /srv/shop/app.js:1:1", MAP, "(anonymous) (app.js)", True),
        ("JS:*emit node:events:466:44", MAP, "emit (node:events)", False),
        (
            "JS:*next /srv/shop/node_modules/express/lib/router/route.js:100:5",
            MAP,
            "next (express/lib/router/route.js)",
            False,
        ),
        ("Builtin:ArrayPrototypeSort", MAP, "Builtin:ArrayPrototypeSort", False),
        ("py::Shop.search:/srv/shop/app.py", MAP, "Shop.search (app.py)", True),
        ("py::search:app.py", MAP, "search (app.py)", True),
        ("py::dumps:/usr/lib/python3.12/json/__init__.py", MAP, "dumps (json/__init__.py)", False),
        (
            "py::route:/srv/shop/.venv/lib/python3.12/site-packages/flask/app.py",
            MAP,
            "route (flask/app.py)",
            False,
        ),
        (
            "py::_find:<frozen importlib._bootstrap>",
            MAP,
            "_find (<frozen importlib._bootstrap>)",
            False,
        ),
        (f"py::search:{BUILT}/api/app.py", MAP, "search (api/app.py)", True),
        ("main.search", "/srv/shop/server", "main.search (server)", True),
        ("main.search", f"{BUILT}/server", "main.search (server)", True),
        ("encoding/json.Marshal", "/srv/shop/server", "encoding/json.Marshal (server)", False),
        ("runtime.mallocgc", "/srv/shop/server", "runtime.mallocgc (server)", False),
        ("<alloc::vec::Vec<T> as Drop>::drop", "/srv/shop/server", "", False),
        ("search", "/srv/shop/server", "search (server)", True),
        ("search.constprop.0.isra.0", "/srv/shop/server", "search (server)", True),
        ("search.part.12.cold", "/srv/shop/server", "search (server)", True),
        ("memcpy", "/usr/lib/x86_64-linux-gnu/libc.so.6", "memcpy (libc.so.6)", False),
    ],
)
def test_functions_have_names_that_a_reader_finds(
    symbol: str,
    program: str,
    name: str,
    is_own: bool,
) -> None:
    found = function_in(symbol, program, HERE)
    assert found == Function(name or f"{symbol} (server)", is_own)


@pytest.mark.parametrize(
    ("symbol", "program"), [("[unknown]", "/srv/shop/server"), ("do_syscall_64", KERNEL), ("?", "")]
)
def test_what_has_no_symbol_or_is_the_kernel_s_is_no_function(symbol: str, program: str) -> None:
    assert function_in(symbol, program, HERE) is None


def test_names_without_an_end_are_cut() -> None:
    found = function_in("f<" * 500, "/srv/shop/server", HERE)
    assert found
    assert len(found.name) == MOST_LETTERS


def test_a_sample_is_put_down_to_the_innermost_function_of_the_program() -> None:
    frames = [
        Frame("tcp_sendmsg", KERNEL),
        Frame("__x64_sys_write", KERNEL),
        Frame("write", "/lib/libc.so.6"),
        Frame("JS:*end node:_http_outgoing:1:1", MAP),
        Frame("JS:*search /srv/shop/app.js:12:8", MAP),
        Frame("JS:*handle /srv/shop/app.js:2:8", MAP),
    ]
    assert function_of(frames, HERE) == "search (app.js)"
    assert function_of(frames, ("/elsewhere",)) == "kernel: sending"
    assert function_of(frames[2:], ("/elsewhere",)) == "write (libc.so.6)"
    assert function_of([Frame("[unknown]", "/usr/bin/node")], HERE) == "node's own code"
    assert function_of([], HERE) == "unknown"


def test_stacks_of_two_builds_have_the_same_names() -> None:
    reported = ["node 1", f"\t 55e4 JS:~a;b {BUILT}/app.js:3:4 ({MAP})", ""]
    assert list(profile_of(iter(reported)).stacks) == ["node;a,b (app.js)"]


def test_functions_are_the_servers_alone() -> None:
    reported = [
        *("server 7", "\t 55e4 search (/srv/shop/server)", ""),
        *("python3 8", "\t 55e4 PyEval (/usr/bin/python3)", ""),
        *("ksoftirqd/0 9", f"\t 55e4 net_rx_action ({KERNEL})", ""),
    ]
    found = profile_of(iter(reported), HERE, {7}).functions_s
    assert set(found) == {"search (server)", "kernel: the network's receiving side"}
    assert "PyEval (python3)" in profile_of(iter(reported), HERE).functions_s


def test_functions_beyond_the_most_are_reported_together() -> None:
    reported = [
        line
        for number in range(MOST_FUNCTIONS + 5)
        for line in ("server 1", f"\t 55e4 f{number}+0x1f (/srv/shop/server)", "")
    ]
    found = profile_of(iter(reported), HERE).functions_s
    assert len(found) == MOST_FUNCTIONS + 1
    assert found[OTHER_FUNCTIONS] == pytest.approx(5 / SAMPLED_HZ)
    assert found["f0 (server)"] == pytest.approx(1 / SAMPLED_HZ)
