"""What the servers' CPUs do, from samples of their calls."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from webdyno.host.machine import allowed_cpus
from webdyno.probe.profile import (
    SAMPLED_HZ,
    Frame,
    Profiler,
    profile_of,
    sampling_fault,
    what_is_done,
)

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
KERNEL = "[kernel.kallsyms]"


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
        ("/tmp/perf-4711.map", "code compiled while it ran"),  # noqa: S108 (perf's own place)
        ("//anon", "code compiled while it ran"),
        ("[JIT] tid 4711", "code compiled while it ran"),
    ],
)
def test_what_is_no_kernel_s_is_named_by_its_program(program: str, what: str) -> None:
    assert what_is_done([Frame("f", program)]) == what


def test_names_may_hold_what_parts_stacks() -> None:
    told = ["node 1", "\t 55e4a1b2c3d4 JS:~a;b /srv/app.js:3:4 (/tmp/perf-1.map)", ""]
    assert list(profile_of(iter(told)).stacks) == ["node;JS:~a,b /srv/app.js:3:4"]


def test_where_nothing_can_be_sampled_it_says_what_would_help(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install linux-perf" in (sampling_fault() or "")
    refuses = tmp_path / "perf"
    refuses.write_text("#!/bin/sh\necho 'No permission to enable cpu-clock event.' >&2; exit 255\n")
    refuses.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fault = sampling_fault() or ""
    assert "No permission to enable cpu-clock event" in fault
    assert "kernel.perf_event_paranoid is -1" in fault


@pytest.mark.skipif(shutil.which("perf") is None, reason="perf is not installed")
@pytest.mark.skipif(os.geteuid() != 0, reason="perf of other processes takes root")
def test_a_busy_program_is_seen() -> None:
    cpu = min(allowed_cpus())
    busy = [sys.executable, "-c", "while True: pass"]
    with subprocess.Popen(busy) as process:
        try:
            os.sched_setaffinity(process.pid, {cpu})
            with Profiler([cpu], allowed_cpus()) as profiler:
                time.sleep(0.5)
        finally:  # else it is waited for without end
            process.kill()
    found = profiler.profile.cpu_s
    assert sum(found.values()) > 0.1
    assert any("python" in what for what in found)
