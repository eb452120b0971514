"""HTTPS and HTTP/2 with real servers: the certificate, readiness, the load, what is said of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from e2e.commands import left_behind, run_rounds
from variants import further
from webdyno.core.records import PreflightRecord, SlotRecord
from webdyno.measure.folder import RunFolder

VERSIONS = {"https": "HTTP/1.1", "h2": "HTTP/2", "h2c": "HTTP/2", "h3": "HTTP/3"}
STACKS = ("nginx", "apache-event", "caddy", "lighttpd", "haproxy-front")
EXPERIMENT = """
title = "Protocols"
question = "Do all servers speak it?"
site = "static"
load = {{ protocol = "{protocol}", connections = 4, count = 60, keepalive = {keepalive}{more} }}
measure = {{ slot_s = 10.0, warmup_s = 0.0, slots_per_variant = 2 }}
"""
"""A slot of so many requests has connections enough to say by, however slow the machine is."""
SETTINGS = dict.fromkeys(STACKS, "")
AGAIN = "-again"
"""A variant of a stack that is there already."""


def first_round(
    folder: Path,
    protocol: str,
    keepalive: str = '"always"',
    more: str = "",
    settings: Mapping[str, str] = SETTINGS,
) -> tuple[PreflightRecord, list[SlotRecord]]:
    """Run servers, by their settings, until they have a round; give pre-flight check and slots."""
    text = EXPERIMENT.format(protocol=protocol, keepalive=keepalive, more=more)
    text += "".join(
        f'[variants.{name}]\nstack = "{name.removesuffix(AGAIN)}"\nsettings = {{ {given} }}\n'
        for name, given in settings.items()
    )
    (folder / "protocols.toml").write_text(text)
    run_rounds(1, "run", "protocols.toml", "--yes", folder=folder)
    records = RunFolder.open(folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert left_behind(folder) == []
    return preflight, [it for it in records if isinstance(it, SlotRecord)]


@pytest.mark.parametrize("protocol", [further("https"), "h2", further("h2c")])
def test_every_server_is_asked_in_the_load_s_protocol(tmp_path: Path, protocol: str) -> None:
    preflight, slots = first_round(tmp_path, protocol)
    responses = {variant: reported[0] for variant, reported in preflight.responses.items()}
    assert list(responses) == list(STACKS)
    for variant, response in responses.items():
        assert (variant, response.status, response.http_version) == (
            variant,
            200,
            VERSIONS[protocol],
        )
        assert response.tls.startswith("TLSv1.3") == (protocol != "h2c"), (variant, response.tls)
    assert {it.variant for it in slots} == set(STACKS)
    for slot in slots:
        assert slot.load.failures.total == 0, (slot.variant, slot.load.failure_samples)
        assert slot.load.requests.completed == 60, slot.variant
        assert slot.load.target.startswith("http:" if protocol == "h2c" else "https:")


def test_what_is_served_over_quic_is_asked_so(tmp_path: Path) -> None:
    settings = {"caddy": "threads = 1", f"caddy{AGAIN}": "threads = 1"}
    preflight, slots = first_round(tmp_path, "h3", more=", streams = 2", settings=settings)
    for responses in preflight.responses.values():
        assert (responses[0].status, responses[0].http_version) == (200, VERSIONS["h3"])
        assert responses[0].tls.startswith("TLSv1.3")
    for slot in slots:
        assert slot.load.failures.total == 0, slot.load.failure_samples
        assert slot.load.requests.completed == 60
        assert slot.load.target.startswith("https:")


@pytest.mark.parametrize(
    ("resumption", "stacks"),
    [("true", STACKS[:2]), further("true", STACKS[2:]), further("false", STACKS)],
)
def test_connections_of_one_request_resume_sessions_or_make_full_handshakes(
    tmp_path: Path, resumption: str, stacks: Sequence[str]
) -> None:
    more, settings = f", tls_resumption = {resumption}", dict.fromkeys(stacks, "")
    _, slots = first_round(tmp_path, "https", '"never"', more, settings)
    for slot in slots:
        assert slot.load.tls is not None
        made = (slot.load.tls.full_handshakes, slot.load.tls.resumed_handshakes)
        most = made.index(max(made))
        assert most == (1 if resumption == "true" else 0), (slot.variant, made)
        assert sum(made) >= slot.load.requests.completed, slot.variant


@pytest.mark.parametrize("version", [further("1.2"), further("1.3")])
def test_servers_choose_the_cipher_and_whether_sessions_are_resumed(
    tmp_path: Path, version: str
) -> None:
    chosen = f'tls_version = "{version}", tls_cipher = "chacha20-poly1305", tls_key = "rsa"'
    settings = {name: f"{chosen}, tls_resumption = false" for name in STACKS if name != "caddy"}
    if version == "1.2":
        settings["caddy"] = chosen  # it has no say in ciphers of 1.3, and none in resumption
    preflight, slots = first_round(tmp_path, "https", '"never"', settings=settings)
    for variant, responses in preflight.responses.items():
        assert responses[0].tls.startswith(f"TLSv{version}"), variant
        assert "CHACHA20" in responses[0].tls, (variant, responses[0].tls)
    for slot in slots:
        assert slot.load.tls is not None
        made = (slot.load.tls.full_handshakes, slot.load.tls.resumed_handshakes)
        assert slot.variant == "caddy" or (made[0] > 0 and made[1] == 0), (slot.variant, made)
