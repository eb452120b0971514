"""How the configurations of two arms differ: the files that their servers were started with."""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import unified_diff
from pathlib import Path
from typing import NamedTuple

from webdyno.judge import question_of
from webdyno.model.experiment import Experiment
from webdyno.model.files import read_given
from webdyno.model.mistake import Mistake
from webdyno.model.run import arm_folder, block_path
from webdyno.report.view import PointView, RunView

LARGEST_FILE_BYTES = 256 * 1024
MOST_LINES = 400
AROUND = 2
"""Lines before and after one that differs."""
_OF_THE_START = (
    (re.compile(r"""(?:/[^\s"';,:]*)?/live/\w{8}(?=/|\b)"""), "RUN"),
    (re.compile(r"(?i)(?<=:)\d{4,5}\b|(?<=listen )\d{4,5}\b|(?<=port = )\d{4,5}\b"), "PORT"),
)
"""What is another at each start: the folder that servers run in, and their ports."""
_NO_CONFIGURATION = {"version.txt"}


class FileDifference(NamedTuple):
    """What of one file is other in an arm than in another one."""

    arm: str
    other: str
    file: str
    diff: str
    """Unified, from the other arm's to the arm's."""


def configuration_differences(folder: Path, view: RunView) -> list[FileDifference]:
    """Compare the files of arms that were compared, where both have them; at the first point."""
    point = view.points[0]
    files = {arm: files_of(folder, point, arm) for arm in point.data.experiment.arms}
    return [
        found
        for arm, other in _pairs(point.data.experiment)
        for found in file_differences(arm, files[arm], other, files[other])
    ]


def _pairs(experiment: Experiment) -> Iterator[tuple[str, str]]:
    if experiment.tuning:
        found = (side for side in experiment.tuning if side.arm in experiment.arms)
        yield from ((side.arm, side.default_arm) for side in found)
    elif question_of(experiment).has_baseline:
        first, *others = experiment.arms
        yield from ((arm, first) for arm in others)


def files_of(folder: Path, point: PointView, arm: str) -> dict[str, str]:
    """Give an arm's files by `role/file`, as of the last block that it was started in."""
    for block in sorted({it.block for it in point.data.records if it.block}, reverse=True):
        root = block_path(folder, point.number, block) / arm_folder(arm)
        if root.is_dir():
            return dict(_readable(root))
    return {}


def _readable(root: Path) -> Iterator[tuple[str, str]]:
    """Give the files of an arm that can be compared, by `role/file`; no links, nothing large."""
    for path in sorted(root.glob("*/**/*")):
        if path.name in _NO_CONFIGURATION or not path.is_file():
            continue
        with suppress(Mistake, OSError):
            content = read_given(path, LARGEST_FILE_BYTES).decode(errors="replace")
            yield str(path.relative_to(root)), content


def file_differences(
    arm: str, files: Mapping[str, str], other: str, of_other: Mapping[str, str]
) -> Iterator[FileDifference]:
    """Give what differs in files that both have."""
    for name in sorted(files.keys() & of_other.keys()):
        lines = list(
            unified_diff(
                _settled(of_other[name]),
                _settled(files[name]),
                f"{other}: {name}",
                f"{arm}: {name}",
                n=AROUND,
                lineterm="",
            )
        )
        if lines:
            more = ["…"] if len(lines) > MOST_LINES else []
            yield FileDifference(arm, other, name, "\n".join(lines[:MOST_LINES] + more))


def _settled(content: str) -> list[str]:
    for volatile, name in _OF_THE_START:
        content = volatile.sub(name, content)
    return content.splitlines()
