"""HTTPS and HTTP/2 with real servers: the certificate, readiness, the load, what is told of it."""

from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, webdyno
from webdyno.model.records import CertificateRecord, SlotRecord
from webdyno.run.folder import RunFolder

VERSIONS = {"https": "HTTP/1.1", "h2": "HTTP/2", "h2c": "HTTP/2"}


@pytest.mark.parametrize("protocol", list(VERSIONS))
@pytest.mark.parametrize("stack", ["nginx", "apache-event", "caddy", "lighttpd", "haproxy-front"])
def test_every_server_is_asked_in_the_load_s_protocol(
    tmp_path: Path, stack: str, protocol: str
) -> None:
    set_protocol = (f"--set=load.protocol={protocol}", "--set=load.connections=4")
    done = webdyno(
        "duel",
        stack,
        "nginx",
        *QUICK,
        *set_protocol,
        "--yes",
        "--out=r",
        folder=tmp_path,
    )
    records = RunFolder.open(tmp_path / "r").records()
    certificate = next(it for it in records if isinstance(it, CertificateRecord))
    answers = [answer for of_arm in certificate.answers.values() for answer in of_arm]
    assert [(it.status, it.http_version) for it in answers] == [(200, VERSIONS[protocol])] * 2
    assert all(it.tls.startswith("TLSv1.3") == (protocol != "h2c") for it in answers), answers
    slots = [it for it in records if isinstance(it, SlotRecord)]
    assert slots, done.stdout + done.stderr
    assert {it.load.failures.total for it in slots} == {0}, slots[0].load.failure_samples
    assert all(it.load.requests.completed for it in slots)
    assert left_behind(tmp_path) == []
