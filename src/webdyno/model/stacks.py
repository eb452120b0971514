"""Stacks of calls that were sampled, as a run's folder keeps them: `program;call;call 12` a line.

Programs that draw flame graphs (FlameGraph, inferno, speedscope) read the same.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from webdyno.model.run import arm_folder

PROFILE_FOLDER = "profile"
MOST_DIGITS = 18


def stacks_file(run: Path, arm: str) -> Path:
    """Give where an arm's stacks are kept."""
    return run / PROFILE_FOLDER / f"{arm_folder(arm)}.folded"


def read_stacks(text: str) -> Counter[str]:
    """Count the samples of each stack; lines that are none are left out."""
    found = Counter[str]()
    for line in text.split("\n"):
        stack, _, count = line.rpartition(" ")
        if stack and count.isdecimal() and len(count) <= MOST_DIGITS:
            found[stack] += int(count)
    return found


def written_stacks(stacks: Mapping[str, int]) -> str:
    """Write stacks as lines, the same for the same samples."""
    return "".join(f"{stack} {count}\n" for stack, count in sorted(stacks.items()))
