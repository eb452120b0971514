"""Tests in several processes each run once, and those whose process ends have failed."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workers import Shares

TESTS = Path(__file__).parent
SUITE = """
import os, pytest

def test_ends():
    os._exit(7)

@pytest.mark.parametrize("number", range(20))
def test_passes(number, tmp_path):
    assert tmp_path.is_dir()

@pytest.fixture(scope="module")
def started(tmp_path_factory):
    yield
    (tmp_path_factory.getbasetemp() / f"ended-{os.getpid()}").touch()

def test_fails(started):
    print("what it", "printed")
    assert 1 == 2
"""


@given(costs=st.lists(st.integers(1, 10)), workers=st.integers(2, 7), data=st.data())
def test_each_test_is_run_once(costs: list[int], workers: int, data: st.DataObject) -> None:
    shares = Shares(costs, workers)
    working = list(range(workers))
    given_out = []
    while working:
        worker = data.draw(st.sampled_from(working))
        test = shares.next_of(worker)
        if test is None:
            working.remove(worker)
        else:
            given_out.append(test)
    assert sorted(given_out) == list(range(len(costs)))


def test_workers_begin_with_as_much_as_each_other() -> None:
    shares = Shares([1] * 10 + [10] * 2, workers=3)
    assert [shares.next_of(worker) for worker in range(3)] == [0, 10, 11]


def run(folder: Path, suite: str, *options: str) -> tuple[int, str]:
    """Run a suite in two processes; give the exit code and what was printed."""
    (folder / "test_suite.py").write_text(suite)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "workers", "--workers=2", "--basetemp=t", *options],
        env={"PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:anyio"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def test_results_of_all_workers_are_reported(tmp_path: Path) -> None:
    code, output = run(tmp_path, SUITE)
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "assert 1 == 2" in output
    assert output.count("test session starts") == output.count("what it printed") == 1
    assert "its worker ended with exit code 7" in output
    assert "3 failed, 19 passed" in output  # with the one that was to be the next
    # What one has started it ends, though its test failed; the next run knows which those were.
    assert len(list((tmp_path / "t").rglob("ended-*"))) == 1
    code, output = run(tmp_path, SUITE.replace("1 == 2", "1 == 1"), "--last-failed", "-k=fails")
    assert "1 passed" in output


def test_it_ends_with_the_first_failure_where_asked(tmp_path: Path) -> None:
    code, output = run(tmp_path, SUITE, "-x", "-k=fails or passes")
    assert code == pytest.ExitCode.TESTS_FAILED
    assert "stopping after 1 failures" in output
