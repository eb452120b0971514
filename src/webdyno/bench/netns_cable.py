"""The cable between client and servers: virtual Ethernet with a rate, a delay and losses.

Rates are kept by the kernel (tbf) at both ends. So are delay and losses where the kernel has netem;
where it hasn't, a relay of ours passes the packets on between two cables, late or not at all.
"""

from collections.abc import Iterator
from pathlib import Path

from webdyno.bench.netns_side import Side, Sides
from webdyno.model.bench import BenchSettings
from webdyno.model.mistake import Trouble

CLIENT, SERVERS = "198.18.0.1", "198.18.0.2"
"""RFC 2544 sets 198.18.0.0/15 aside for benchmarks: nobody's real address."""
CLIENT_END, SERVERS_END = "client0", "servers0"
HARDWARE = {CLIENT_END: "02:00:00:00:00:01", SERVERS_END: "02:00:00:00:00:02"}

FRAME_BYTES = 1514
BURST_S = 0.001
"""A rate is kept over this time: shorter bursts may be faster."""
QUEUE_S = 1.0
"""What would wait longer than this is dropped. It is long, as the queue of a server's own network
card is: a short one would add losses that nobody asked for."""
NETEM_PACKETS = 100_000

Command = list[str]


def lay_cable(sides: Sides, settings: BenchSettings, engine: Path) -> str:
    """Join the sides; give the means, for the record. `engine` holds the relay.

    Raise Trouble where this machine can't do what the settings ask for.
    """
    impaired = bool(settings.delay or settings.loss)
    netem = impaired and _has_netem(sides.cable)
    relayed = impaired and not netem
    ends = [(CLIENT_END, "relay0"), (SERVERS_END, "relay1")]
    for pair in ends if relayed else [(CLIENT_END, SERVERS_END)]:
        sides.cable.run(*_pair(*pair))
    _connect(sides, sides.client, CLIENT_END, CLIENT, SERVERS)
    _connect(sides, sides.servers, SERVERS_END, SERVERS, CLIENT)
    for side, end in ((sides.client, CLIENT_END), (sides.servers, SERVERS_END)):
        for command in shaping(end, settings, netem=netem):
            side.run(*command)
    if relayed:
        _relay(sides.cable, settings, engine)
    return ", ".join(_means(settings, netem=netem))


def shaping(end: str, settings: BenchSettings, *, netem: bool) -> Iterator[Command]:
    """Give the commands that shape what leaves at one end of the cable."""
    parent = ["root"]
    if netem:
        impairment = ["netem", "limit", str(NETEM_PACKETS)]
        if settings.delay:
            impairment += ["delay", f"{settings.delay / 2 * 1e6:.0f}us"]
        if settings.loss:
            impairment += ["loss", f"{settings.loss * 100:g}%"]
        yield ["tc", "qdisc", "add", "dev", end, *parent, "handle", "1:", *impairment]
        parent = ["parent", "1:1"]
    if rate := settings.link_bytes_per_s:
        burst = max(rate * BURST_S, 2 * FRAME_BYTES)
        limit = burst + max(rate * QUEUE_S, 20 * FRAME_BYTES)
        yield [
            *("tc", "qdisc", "add", "dev", end, *parent, "handle", "10:"),
            *("tbf", "rate", f"{rate * 8:.0f}bit"),
            *("burst", f"{burst:.0f}b", "limit", f"{limit:.0f}b"),
        ]
    if settings.loss:  # else a whole train of packets would be lost at a time
        yield ["ip", "link", "set", "dev", end, "gso_max_segs", "1"]


def _means(settings: BenchSettings, *, netem: bool) -> Iterator[str]:
    yield "veth"
    if settings.link:
        yield f"{settings.link / 1e6:g} Mbit/s by tbf"
    by = "netem" if netem else "a relay in user space"
    if settings.delay:
        yield f"round trip + {settings.delay * 1e3:g} ms by {by}"
    if settings.loss:
        yield f"{settings.loss * 100:g} % loss by {by}"


def _has_netem(cable: Side) -> bool:
    """Whether the kernel has netem, tried on the loopback interface of a namespace of ours."""
    trial = ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    return cable.attempt(*trial) is None


def _pair(one: str, other: str) -> Command:
    return ["ip", "link", "add", "name", one, "type", "veth", "peer", "name", other]


def _connect(sides: Sides, side: Side, end: str, own: str, theirs: str) -> None:
    """Give a side its end of the cable, with everything set by hand that could cost packets."""
    sides.cable.run("ip", "link", "set", "dev", end, "netns", str(side.pid))
    (other,) = HARDWARE.keys() - {end}
    side.run("ip", "link", "set", "dev", "lo", "up")
    side.run("ip", "link", "set", "dev", end, "address", HARDWARE[end], "addrgenmode", "none")
    side.run("ip", "address", "add", f"{own}/30", "dev", end)
    side.run("ip", "link", "set", "dev", end, "up")
    side.run(
        *("ip", "neighbour", "replace", theirs, "lladdr", HARDWARE[other]),
        *("dev", end, "nud", "permanent"),
    )


def _relay(cable: Side, settings: BenchSettings, engine: Path) -> None:
    for end in ("relay0", "relay1"):
        cable.run("ip", "link", "set", "dev", end, "addrgenmode", "none", "arp", "off")
        cable.run("ip", "link", "set", "dev", end, "up")
    delay = f"{settings.delay / 2 * 1e6:.0f}us"
    said = cable.start(
        str(engine), "relay", "relay0", "relay1", f"--delay={delay}", f"--loss={settings.loss!r}"
    )
    if said != "ready":
        raise Trouble(f"the bench's network can't be set up: {said or 'the relay ended'}")
