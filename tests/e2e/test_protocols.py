"""HTTPS and HTTP/2 with real servers: the certificate, readiness, the load, what is told of it."""

from pathlib import Path

import pytest

from e2e.commands import left_behind, run_blocks
from webdyno.model.records import CertificateRecord, SlotRecord
from webdyno.run.folder import RunFolder

VERSIONS = {"https": "HTTP/1.1", "h2": "HTTP/2", "h2c": "HTTP/2"}
STACKS = ("nginx", "apache-event", "caddy", "lighttpd", "haproxy-front")
EXPERIMENT = """
title = "Protocols"
question = "Do all servers speak it?"
site = "static"
load = {{ protocol = "{protocol}", connections = 4, keepalive = {keepalive}{more} }}
measure = {{ slot_s = 0.3, warmup_s = 0.0, slots_per_arm = 2 }}
"""
ARMS = "".join(f'[arms.{stack}]\nstack = "{stack}"\n' for stack in STACKS)


def first_block(
    folder: Path, protocol: str, keepalive: str = '"always"', more: str = ""
) -> tuple[CertificateRecord, list[SlotRecord]]:
    """Run all servers until they have a block; give the certificate and the slots."""
    text = EXPERIMENT.format(protocol=protocol, keepalive=keepalive, more=more) + ARMS
    (folder / "protocols.toml").write_text(text)
    run_blocks(1, "run", "protocols.toml", "--yes", folder=folder)
    records = RunFolder.open(folder / "run").records()
    certificate = next(it for it in records if isinstance(it, CertificateRecord))
    assert left_behind(folder) == []
    return certificate, [it for it in records if isinstance(it, SlotRecord)]


@pytest.mark.parametrize("protocol", list(VERSIONS))
def test_every_server_is_asked_in_the_load_s_protocol(tmp_path: Path, protocol: str) -> None:
    certificate, slots = first_block(tmp_path, protocol)
    answers = {arm: told[0] for arm, told in certificate.answers.items()}
    assert list(answers) == list(STACKS)
    for arm, answer in answers.items():
        assert (arm, answer.status, answer.http_version) == (arm, 200, VERSIONS[protocol])
        assert answer.tls.startswith("TLSv1.3") == (protocol != "h2c"), (arm, answer.tls)
    assert {it.arm for it in slots} == set(STACKS)
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.arm, slot.load.failure_samples)
        # The first answers may take longer than so short a slot.
        assert slot.load.requests.completed + slot.load.requests.drained, slot.arm
        assert slot.load.target.startswith("http:" if protocol == "h2c" else "https:")


@pytest.mark.parametrize("resumption", ["true", "false"])
def test_connections_of_one_request_resume_sessions_or_make_full_handshakes(
    tmp_path: Path, resumption: str
) -> None:
    _, slots = first_block(tmp_path, "https", '"never"', f", tls_resumption = {resumption}")
    for slot in slots:
        assert slot.load.tls is not None
        made = (slot.load.tls.full_handshakes, slot.load.tls.resumed_handshakes)
        most = made.index(max(made))
        assert most == (1 if resumption == "true" else 0), (slot.arm, made)
        assert sum(made) >= slot.load.requests.completed, slot.arm
