"""What the end of a service's log says about why it died, beyond its own words."""

import re
from collections.abc import Sequence

IN_USE = "address already in use"
"""How the C library says it, and node as well."""
_PORT = re.compile(r"""(?:[:\]]|\bport |['"], )(\d{2,5})\b""")
LEAST_PORT = 80
"""Numbers below are seconds of a time of day, or lines of a file."""
DOCKERS_RESOLVER = "127.0.0.11"


def other_port_in_use(lines: Sequence[str], own: int) -> int | None:
    """Give the port that a log says is taken; None where that is its own, or isn't named."""
    for line in lines:
        if IN_USE not in line.lower():
            continue
        ports = [int(it) for it in _PORT.findall(line) if int(it) >= LEAST_PORT]
        if ports and own not in ports:
            return ports[-1]
    return None


def hint(lines: Sequence[str], own_port: int, is_container: bool) -> str:
    """Give words behind what happened; none where the log shows no cause that is known."""
    other = other_port_in_use(lines, own_port)
    if other and is_container:
        return f": two of its services want port {other}, in the one network that they share"
    if other:
        return (
            f": it wants port {other} as well as $PORT, and another program has that. All variants "
            "run at the same time: give each a port of its own (--env, or environment of an arm), "
            "leave that listener out, or compare containers (image:), which have a network each"
        )
    if is_container and any(DOCKERS_RESOLVER in line for line in lines):
        return (
            f": it asks {DOCKERS_RESOLVER}, Docker's resolver, which isn't here. The names of "
            "services are in /etc/hosts: leave `resolver` out of its configuration"
        )
    return ""
