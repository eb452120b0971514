"""What differs between two texts, line by line, in little time whatever they hold.

`difflib` takes the cube of the number of lines at worst: minutes for 20 KiB that repeat.
"""

import re
from collections.abc import Sequence
from difflib import unified_diff
from itertools import takewhile

MOST_COMPARED = 1_000
"""Lines of each text, from the first that differ on."""
CUT = "…"
_PLACE = re.compile(r"(?<=^@@ )-(\d+)(.*) \+(\d+)(.*)(?= @@$)")


def line_diff(
    before: Sequence[str], after: Sequence[str], names: tuple[str, str] = ("", ""), around: int = 0
) -> list[str]:
    """Return a unified diff, its last line CUT where the texts go on beyond what was compared.

    `around`: as many equal lines are shown before and after each that differs.
    """
    if list(before) == list(after):
        return []
    equal = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    begin = max(sum(1 for _ in equal) - around, 0)
    end = begin + MOST_COMPARED
    compared = unified_diff(before[begin:end], after[begin:end], *names, n=around, lineterm="")
    lines = [_moved(line, begin) for line in compared]
    return [*lines, CUT] if before[end:] or after[end:] else lines


def _moved(line: str, by: int) -> str:
    return _PLACE.sub(
        lambda place: f"-{int(place[1]) + by}{place[2]} +{int(place[3]) + by}{place[4]}", line
    )
