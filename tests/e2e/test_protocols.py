"""HTTPS and HTTP/2 with real servers: the certificate, readiness, the load, what is told of it."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from e2e.commands import left_behind, run_blocks
from variants import further
from webdyno.model.records import PreflightRecord, SlotRecord
from webdyno.run.folder import RunFolder

VERSIONS = {"https": "HTTP/1.1", "h2": "HTTP/2", "h2c": "HTTP/2"}
STACKS = ("nginx", "apache-event", "caddy", "lighttpd", "haproxy-front")
EXPERIMENT = """
title = "Protocols"
question = "Do all servers speak it?"
site = "static"
load = {{ protocol = "{protocol}", connections = 4, requests = 60, keepalive = {keepalive}{more} }}
measure = {{ slot_s = 10.0, warmup_s = 0.0, slots_per_arm = 2 }}
"""
"""A slot of so many requests has connections enough to tell by, however slow the machine is."""
KNOBS = dict.fromkeys(STACKS, "")


def first_block(
    folder: Path,
    protocol: str,
    keepalive: str = '"always"',
    more: str = "",
    knobs: Mapping[str, str] = KNOBS,
) -> tuple[PreflightRecord, list[SlotRecord]]:
    """Run servers, by their knobs, until they have a block; give pre-flight check and slots."""
    text = EXPERIMENT.format(protocol=protocol, keepalive=keepalive, more=more)
    text += "".join(
        f'[arms.{stack}]\nstack = "{stack}"\nknobs = {{ {given} }}\n'
        for stack, given in knobs.items()
    )
    (folder / "protocols.toml").write_text(text)
    run_blocks(1, "run", "protocols.toml", "--yes", folder=folder)
    records = RunFolder.open(folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert left_behind(folder) == []
    return preflight, [it for it in records if isinstance(it, SlotRecord)]


@pytest.mark.parametrize("protocol", ["https", "h2", further("h2c")])
def test_every_server_is_asked_in_the_load_s_protocol(tmp_path: Path, protocol: str) -> None:
    preflight, slots = first_block(tmp_path, protocol)
    answers = {arm: told[0] for arm, told in preflight.answers.items()}
    assert list(answers) == list(STACKS)
    for arm, answer in answers.items():
        assert (arm, answer.status, answer.http_version) == (arm, 200, VERSIONS[protocol])
        assert answer.tls.startswith("TLSv1.3") == (protocol != "h2c"), (arm, answer.tls)
    assert {it.arm for it in slots} == set(STACKS)
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.arm, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.arm
        assert slot.load.target.startswith("http:" if protocol == "h2c" else "https:")


@pytest.mark.parametrize("resumption", ["true", further("false")])
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


@pytest.mark.parametrize("version", [further("1.2"), "1.3"])
def test_servers_choose_the_cipher_and_whether_sessions_are_resumed(
    tmp_path: Path, version: str
) -> None:
    chosen = f'tls_version = "{version}", tls_cipher = "chacha20-poly1305", tls_key = "rsa"'
    knobs = {name: f"{chosen}, tls_resumption = false" for name in STACKS if name != "caddy"}
    if version == "1.2":
        knobs["caddy"] = chosen  # it has no say in ciphers of 1.3, and none in resumption
    preflight, slots = first_block(tmp_path, "https", '"never"', knobs=knobs)
    for arm, answers in preflight.answers.items():
        assert answers[0].tls.startswith(f"TLSv{version}"), arm
        assert "CHACHA20" in answers[0].tls, (arm, answers[0].tls)
    for slot in slots:
        assert slot.load.tls is not None
        made = (slot.load.tls.full_handshakes, slot.load.tls.resumed_handshakes)
        assert slot.arm == "caddy" or (made[0] > 0 and made[1] == 0), (slot.arm, made)
