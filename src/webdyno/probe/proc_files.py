"""Files of /proc, parsed."""

from pathlib import Path

PROC = Path("/proc")


def counters(text: str, protocol: str) -> dict[str, int]:
    """Read counters of a protocol from the text of /proc/net/snmp or /proc/net/netstat.

    There each protocol has a line of names and one of values.
    """
    names, values = (
        line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")
    )
    return {name: int(value) for name, value in zip(names, values, strict=True)}


def fields(text: str) -> dict[str, int]:
    """Read lines such as `VmHWM:   1234 kB` or `read_bytes: 99`: the first number by name."""
    found = {}
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        first = rest.split(None, 1)[0] if rest.strip() else ""
        if first.isdecimal():
            found[name] = int(first)
    return found
