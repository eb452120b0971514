"""What is shown of a server's log: lines that say the same are shown once, the first of them."""

import re
from collections.abc import Sequence
from pathlib import Path

READ_BYTES = 32_768
"""Of the beginning, and of the end."""
SHOWN_LINES, FIRST_LINES = 15, 3
"""Different lines that are shown, and how many of these are the first ones, which say why."""
MOST_LETTERS = 400
LIMITING = re.compile(r"limiting (requests|connections)\b")
"""What limit_req and limit_conn write."""
EXHAUSTED = re.compile(
    r"too many open files|EMFILE|ENFILE|assign requested address|EADDRNOTAVAIL|out of memory|ENOMEM"
    r"|cannot allocate memory|no space left|ENOSPC|connections are not enough|resource temporarily",
    re.IGNORECASE,
)
"""What servers and the C library say when they have no more of something."""
UNLIKE = re.compile(r'(?<="err_id":")\w+|0x[0-9a-fA-F]+|[0-9]+')
"""What differs in lines that say the same: times, numbers, and Caddy's names of errors."""


def shown_lines(log: Path) -> list[str]:
    """Give the first and the last lines of a log that say something new; none if there is none."""
    try:
        with log.open("rb") as file:
            text = file.read(READ_BYTES)
            end = max(len(text), log.stat().st_size - READ_BYTES)
            file.seek(end)
            later = file.read(READ_BYTES)
    except OSError:
        return []
    return folded(_lines(text + later))


def refusal_in(folder: Path) -> str:
    """Give the last line of a folder's logs by which nginx says that a limit refuses requests."""
    return _last_line(folder, LIMITING)


def exhaustion_in(folder: Path) -> str:
    """Give the last line of a folder's logs that says that a server has no more of something."""
    return _last_line(folder, EXHAUSTED)


def _last_line(folder: Path, saying: re.Pattern[str]) -> str:
    for log in sorted(folder.glob("*.log")):
        try:
            with log.open("rb") as file:
                file.seek(max(0, log.stat().st_size - READ_BYTES))
                lines = _lines(file.read())
        except OSError:
            continue
        if found := next((line for line in reversed(lines) if saying.search(line)), ""):
            return found.strip()
    return ""


def folded(lines: Sequence[str]) -> list[str]:
    """Fold lines that differ in times and numbers alone; keep the first ones and the last ones."""
    alike: dict[str, list[str]] = {}
    for line in lines:
        alike.setdefault(UNLIKE.sub("#", line), []).append(line)
    shown = [
        those[0] + (f" (and {len(those) - 1} more like it)" if len(those) > 1 else "")
        for those in alike.values()
    ]
    if len(shown) <= SHOWN_LINES:
        return shown
    return [*shown[:FIRST_LINES], "…", *shown[FIRST_LINES - SHOWN_LINES :]]


def _lines(text: bytes) -> list[str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return [line if len(line) <= MOST_LETTERS else f"{line[:MOST_LETTERS]}…" for line in lines]
