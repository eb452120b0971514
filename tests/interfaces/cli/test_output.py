"""Output that nobody reads, or that has no room: no traceback, and an exit code of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WEBDYNO = str(Path(sys.executable).parent / "webdyno")


@pytest.mark.parametrize("arguments", [["list", "stacks"], ["--help"], ["run", "--help"]])
def test_a_reader_that_went_away(arguments: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as unread:
        done = subprocess.run(
            [WEBDYNO, *arguments], stdout=unread, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", [["list", "stacks"], ["--help"]])
def test_a_full_disk(arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [WEBDYNO, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (3, "webdyno: output: No space left on device\n")


def test_a_mistake_is_one_even_where_it_can_not_be_reported() -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([WEBDYNO, "run", "no-such-thing"], stderr=full, check=False)
    assert done.returncode == 2


def test_output_that_was_closed() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "{WEBDYNO}" list >&-'],
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_terminal_without_our_signs() -> None:
    done = subprocess.run(
        [WEBDYNO, "list"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
