"""Where an experiment runs: this machine as it is, or a network of our own on it."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from webdyno.model.base import Model

RATES = {"bit": 1, "kbit": 10**3, "mbit": 10**6, "gbit": 10**9}
TIMES_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def read_rate(value: object) -> object:
    """Read `100mbit` as bits per second; let everything else through for the type to judge."""
    return _read(value, r"(bit|kbit|mbit|gbit)(?:/s)?", RATES, "a rate looks like 100mbit or 1gbit")


def read_delay(value: object) -> object:
    """Read `20ms` as seconds; let everything else through for the type to judge."""
    return _read(value, "(us|ms|s)", TIMES_S, "a delay looks like 20ms or 0.5s")


def read_share(value: object) -> object:
    """Read `0.1%` as a share of one; let everything else through for the type to judge."""
    return _read(value, "(%)", {"%": 0.01}, "a loss looks like 0.1% or 0.001")


def _read(value: object, unit: str, units: Mapping[str, float], remedy: str) -> object:
    if not isinstance(value, str):
        return value
    match = re.fullmatch(rf"(\d+(?:\.\d+)?)\s*{unit}", value.strip().lower(), re.ASCII)
    if match is None:
        raise ValueError(f"{remedy}, unlike {value!r}")
    return float(match[1]) * units[match[2]]


class BenchSettings(Model):
    """The bench and, where it has a network of its own, what that is like."""

    kind: Literal["this-machine", "netns"] = "this-machine"
    """this-machine: client and servers meet on the loopback interface.
    netns: each side has a network namespace of its own; a virtual cable joins them."""
    server_cores: Annotated[int, Field(ge=1)] | None = None
    """How many of the machine's cores the servers get; the client has the others. About half of
    them unless given; fewer where a fast server leaves the client behind."""
    link: Annotated[float, BeforeValidator(read_rate), Field(ge=1_000)] | None = None
    """What the cable carries each way in bits per second, as text such as "100mbit"; Ethernet
    headers count. No limit unless given."""
    delay: Annotated[float, BeforeValidator(read_delay), Field(ge=0, le=10)] = 0.0
    """What the cable adds to a round trip in seconds, as text such as "20ms": half of it each
    way."""
    loss: Annotated[float, BeforeValidator(read_share), Field(ge=0, le=0.5)] = 0.0
    """Share of the packets that get lost each way, as text such as "0.1%"."""

    @model_validator(mode="after")
    def _a_cable_needs_namespaces(self) -> "BenchSettings":
        if self.kind != "netns" and (self.link or self.delay or self.loss):
            raise ValueError(
                'link, delay and loss need the bench with a network of its own: kind = "netns" '
                "under [bench], or --bench netns"
            )
        return self

    @property
    def link_bytes_per_s(self) -> float | None:
        """What the cable carries each way; None where it has no limit."""
        return self.link / 8 if self.link else None
