"""The kinds of run that a report must be able to show."""

from collections.abc import Callable

from builders import SimulatedArm, SimulatedRun, simulated_run
from webdyno.model.records import Record

NGINX = SimulatedArm(rate_rps=77_000, server_cpu_us=11.3, response_p50_us=780)
APACHE = SimulatedArm(
    stack="apache-event",
    headers=(
        ("Server", "Apache"),
        ("Content-Type", "text/plain"),
        ("Content-Length", "13"),
        ("ETag", '"d-64d0"'),
    ),
)
LONG_NAME = "nginx-front-apache-prefork-modphp with 32 children and a page cache"
"""Longer than a column of a terminal or half a telephone's screen."""


def decided() -> SimulatedRun:
    """Two arms with a clear difference."""
    return simulated_run({"apache-event": APACHE, "nginx": NGINX}, blocks=8)


def several_arms() -> SimulatedRun:
    """Four arms, one of them with a long name, one close to the baseline."""
    return simulated_run(
        {
            "nginx": NGINX,
            LONG_NAME: SimulatedArm(rate_rps=21_000, server_cpu_us=61, response_p50_us=2_700),
            "apache-event": APACHE,
            "nginx again": SimulatedArm(rate_rps=76_500, server_cpu_us=11.4, response_p50_us=785),
        },
        blocks=8,
    )


def invalid() -> SimulatedRun:
    """One arm answers 404 to everything."""
    wrong = SimulatedArm(stack="apache-event", wrong_status=404, body=b"<title>Not Found</title>")
    return simulated_run({"nginx": NGINX, "apache": wrong}, blocks=6)


def undecided() -> SimulatedRun:
    """Two servers that are nearly alike, too noisy for an answer."""
    near = SimulatedArm(rate_rps=80_000, server_cpu_us=11.0, response_p50_us=750)
    return simulated_run(
        {"nginx": NGINX, "nginx again": near}, blocks=6, restart_sd=0.05, slot_sd=0.05, seed=2
    )


def one_block() -> SimulatedRun:
    """Stopped when only one block was finished."""
    return simulated_run({"nginx": NGINX, "apache": APACHE}, blocks=1)


def no_block() -> SimulatedRun:
    """Stopped after the fairness certificate, before any slot."""
    run = one_block()
    certificate: list[Record] = run.records[:1]
    return SimulatedRun(run.head, certificate)


def hostile() -> SimulatedRun:
    """Names and answers that mean something in HTML, scripts and CSV."""
    name = '</script><img src=x onerror="alert(1)">, {{ 7*7 }}'
    wrong = SimulatedArm(body=b"<script>alert('body')</script>", wrong_status=500, wrong_share=0.5)
    return simulated_run({"nginx": NGINX, name: wrong}, blocks=6, title="<b>& co</b>")


ALL = (decided, several_arms, invalid, undecided, one_block, no_block, hostile)
Make = Callable[[], SimulatedRun]
