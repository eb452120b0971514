"""The name server of containers: what it answers to questions, right ones and others."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.systems.containers.container_names import dns_answer

NAMES = {"db": "10.89.7.2", "cache.internal": "10.89.7.3"}
HEAD = struct.Struct("!6H")
A, AAAA = 1, 28


def question(name: str, kind: int = A) -> bytes:
    labels = b"".join(bytes([len(it)]) + it.encode() for it in name.split("."))
    return HEAD.pack(77, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


@pytest.mark.parametrize(
    ("name", "address"), [("db", "10.89.7.2"), ("DB", "10.89.7.2"), ("Cache.internal", "10.89.7.3")]
)
def test_a_name_has_its_address(name: str, address: str) -> None:
    said = dns_answer(question(name), NAMES)
    assert HEAD.unpack_from(said) == (77, 0x8580, 1, 1, 0, 0)
    assert socket.inet_ntoa(said[-4:]) == address
    assert question(name)[HEAD.size :] in said


@pytest.mark.parametrize(
    ("asked", "status"), [(question("db", AAAA), 0), (question("nobody"), 3), (b"x" * 12, 1)]
)
def test_what_has_no_address_is_said_at_once(asked: bytes, status: int) -> None:
    """Else who asks waits for seconds."""
    _, flags, _, answers, *_ = HEAD.unpack_from(dns_answer(asked, NAMES))
    assert flags & 0xF == status
    assert not answers


@given(st.binary(max_size=600))
def test_nothing_that_is_asked_ends_it(asked: bytes) -> None:
    assert len(dns_answer(asked, NAMES)) <= len(asked) + 28


@given(st.integers(0, 40), st.binary(max_size=4))
def test_a_question_that_was_damaged_does_not_end_it(at: int, other: bytes) -> None:
    asked = question("cache.internal")
    dns_answer(asked[:at] + other + asked[at + len(other) :], NAMES)
