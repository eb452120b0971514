"""Files of /proc, parsed."""

import os
from pathlib import Path

PROC = Path("/proc")
USUAL_FILE_BYTES = 1 << 16


def read_quickly(path: str) -> bytes:
    """Read a file of /proc that is small as a rule; three times as quick as with a file object."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        text = part = os.read(descriptor, USUAL_FILE_BYTES)
        while len(part) == USUAL_FILE_BYTES:
            part = os.read(descriptor, USUAL_FILE_BYTES)
            text += part
        return text
    finally:
        os.close(descriptor)


def number_after(name: bytes, text: bytes) -> int:
    """Give the number behind a name in a text such as /proc/PID/status; 0 if it isn't there."""
    place = text.find(name)
    return int(text[place + len(name) :].split(None, 1)[0]) if place >= 0 else 0


def counters(text: str, protocol: str) -> dict[str, int]:
    """Read counters of a protocol from the text of /proc/net/snmp or /proc/net/netstat.

    There each protocol has a line of names and one of values.
    """
    names, values = (
        line.split()[1:] for line in text.splitlines() if line.startswith(f"{protocol}:")
    )
    return {name: int(value) for name, value in zip(names, values, strict=True)}
