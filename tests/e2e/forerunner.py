"""Has imported webdyno, and forks off processes that run it: imports take most of a start's second.

    python forerunner.py SOCKET

An order comes with four files: a socket, on which its process's number and exit code are reported,
and the process's standard streams.
"""

import gc
import json
import os
import signal
import socket
import sys
from collections.abc import Iterable
from importlib import import_module
from typing import Any

MODULES = (
    *("interfaces.cli.run", "interfaces.cli.serving", "interfaces.cli.experiment_flags"),
    *("interfaces.cli.result", "interfaces.cli.progress", "interfaces.cli.cluster"),
    *("questions.compare.command", "questions.gate.command"),
    *("questions.gate.experiment", "questions.gate.show", "questions.explain.command"),
    *("questions.explain.explain", "questions.explain.experiments", "questions.tune.tune"),
    *("launch.arrangement", "launch.measure", "measure.session", "measure.repeat"),
    *("measure.budget", "comparison", "report.view", "report.brief"),
    *("media.terminal", "systems.variants", "systems.revision", "systems.repository"),
    *("host.this_machine", "config.traffic", "load.ab", "load.httperf"),
    *("load.redis_benchmark", "load.wrk", "load.split_and_merge"),
)
"""What commands import once they are called; what only few of them need they import themselves."""
LARGEST_ORDER = 2**17
STARTS_WITHIN_S = 60.0
"""Servers of tests have that time: many start at once."""


def main() -> None:
    """Run webdyno, in a child of a child for each order."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    cli = import_module("webdyno.interfaces.cli")
    for module in MODULES:
        import_module(f"webdyno.{module}")
    vars(import_module("webdyno.servers.service"))["READY_WITHIN_S"] = STARTS_WITHIN_S
    # Most commands read these; how a model is read is worked out when that is first done.
    catalogue = import_module("webdyno.config").Catalogue.load()
    _compile_templates(catalogue.services.values())
    import_module("webdyno.core.experiment").Experiment.model_rebuild()
    import_module("webdyno.core.records").RECORD.rebuild()
    gc.freeze()  # what is never looked at is never copied
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    while True:
        order, files, _, _ = socket.recv_fds(orders, LARGEST_ORDER, 4)
        if not order:
            return
        if os.fork() == 0:
            break
        for file in files:
            os.close(file)
    orders.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    _wait_for_child(*files)
    _become(json.loads(order), files)
    cli.main()


def _compile_templates(services: Iterable[Any]) -> None:
    """Each start would compile what it fills in, twice."""
    render, templates = map(import_module, ("webdyno.servers.render", "webdyno.servers.templates"))
    for service in services:
        job = templates.service_job(service, {})
        render._Filler(job, render._sources(job)).compile_all()


def _wait_for_child(reported: int, *streams: int) -> None:
    """Fork, and say what becomes of the child; only the child comes back."""
    child = os.fork()
    if child == 0:
        return
    for stream in streams:
        os.close(stream)
    os.write(reported, str(child).encode())
    _, status = os.waitpid(child, 0)
    os.write(reported, str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def _become(order: dict[str, Any], files: list[int]) -> None:
    """Be as if this process had been started, in a session of its own as a terminal gives it."""
    os.setsid()
    _, *streams = files
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for file in files:
        os.close(file)
    # Those of the forerunner were made for files that could be sought in.
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.argv = order["words"]


if __name__ == "__main__":
    main()
