"""What the end of a log says about why a service died."""

import pytest

from webdyno.servers.output import hint, other_port_in_use

OWN = 12_345


@pytest.mark.parametrize(
    ("line", "port"),
    [
        ("main.go:120: listen tcp :9090: bind: address already in use", 9090),
        ("Error: listen EADDRINUSE: address already in use :::9090", 9090),
        ("[Errno 98] bind on address ('127.0.0.1', 9090): address already in use", 9090),
        ('Address already in use - bind(2) for "127.0.0.1" port 9090 (Errno::EADDRINUSE)', 9090),
        ("21:34:12 bind() to 0.0.0.0:80 failed (98: Address already in use)", 80),
        (f"listen tcp 127.0.0.1:{OWN}: bind: address already in use", None),
        ("OSError: [Errno 98] Address already in use", None),
        ("listening on :9090", None),
    ],
)
def test_a_port_that_is_taken_and_not_its_own(line: str, port: int | None) -> None:
    assert other_port_in_use(["before", line, "after"], OWN) == port


def test_causes_are_named() -> None:
    taken = ["listen tcp :9090: bind: address already in use"]
    assert "it wants port 9090 as well as $PORT" in hint(taken, OWN)
    assert hint(["hello"], OWN) == ""
