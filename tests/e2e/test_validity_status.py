"""Notes on what servers count themselves come of real causes."""

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from e2e.commands import QUICK, next_to, run_rounds, slots, webdyno
from webdyno.core.judgement import ValidityWarning
from webdyno.measure.folder import RunFolder
from webdyno.validity import warnings_of

pytestmark = pytest.mark.measures


def notes_on(variant: str, folder: Path) -> dict[str, ValidityWarning]:
    """What was found about a variant of the run in a test's folder, by rule."""
    run = RunFolder.open(folder / "run")
    return {it.rule: it for it in warnings_of(run.data().points[0]) if it.variant == variant}


@contextmanager
def somebody_else(folder: Path) -> Iterator[None]:
    """Asks every nginx of a run for pages that the run knows nothing of."""

    def ask(enough: threading.Event) -> None:
        while not enough.is_set():
            for file in folder.glob("run/rounds/*/nginx/nginx/nginx.conf"):
                with suppress(OSError, LookupError):  # it may be gone, or not written yet
                    port = int(re.findall(r"listen [\d.]+:(\d+)", file.read_text())[0])
                    ask_often(port, enough)

    def ask_often(port: int, enough: threading.Event) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        with suppress(OSError, http.client.HTTPException):
            while not enough.is_set():
                connection.request("GET", "/hello.txt")
                connection.getresponse().read()
        connection.close()

    with next_to(ask):
        yield


def test_somebody_else_asks_the_server(tmp_path: Path) -> None:
    with somebody_else(tmp_path):
        run_rounds(1, "run", *QUICK, "--set=load.connections=2", folder=tmp_path)
    note = notes_on("nginx", tmp_path)["request-count"]
    assert note.severity == "note"
    assert "request-count" not in notes_on("apache-event", tmp_path)


def test_requests_wait_for_the_children_of_php_fpm(tmp_path: Path) -> None:
    variants = ("nginx-phpfpm", "apache-event-phpfpm", "--site=hello-php")
    few = "--set=variants.nginx-phpfpm.settings.children=2"
    reported = run_rounds(1, "compare", *variants, *QUICK, few, folder=tmp_path)
    notes = notes_on("nginx-phpfpm", tmp_path)
    assert "workers-all-busy" in notes, reported
    note = notes["workers-all-busy"]
    assert "2 of 2 workers of phpfpm" in note.what
    counts = [
        (slot.readings.status["phpfpm"].requests, slot.load.requests.sent)
        for slot in slots(RunFolder.open(tmp_path / "run"))
        if slot.readings
    ]
    assert counts
    assert all(counted == sent for counted, sent in counts)
    webdyno("report", "run", folder=tmp_path)
    assert "nginx-phpfpm counted" in (tmp_path / "run/report.html").read_text()
