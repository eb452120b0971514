"""Validity rules about answers, memory and throughput fire on real causes."""

import os
from pathlib import Path

import pytest

from e2e.commands import QUICK, left_behind, run_rounds, webdyno
from webdyno.core.judgement import ValidityWarning
from webdyno.measure.folder import RunFolder
from webdyno.validity import warnings_of

pytestmark = pytest.mark.measures

FAULTY = Path(__file__).parent / "faulty"


def faulty(fault: str) -> list[str]:
    """Settings that put a server with a fault in Apache's place."""
    return [
        f"--catalog={FAULTY}",
        "--yes",
        "--set=variants.apache-event.stack=faulty",
        f"--set=variants.apache-event.settings.fault={fault}",
    ]


def found_of(variant: str, folder: Path) -> dict[str, ValidityWarning]:
    """The warnings about a variant of the run in a test's folder, by rule."""
    run = RunFolder.open(folder / "run")
    return {it.rule: it for it in warnings_of(run.data().points[0]) if it.variant == variant}


@pytest.mark.parametrize(
    ("fault", "rule", "said"),
    [
        ("not-found", "non-2xx", "unexpected status (404"),
        ("truncated", "truncated", "truncated responses at"),
    ],
)
def test_wrong_answers_under_load(fault: str, rule: str, said: str, tmp_path: Path) -> None:
    run_rounds(1, "run", *QUICK, *faulty(fault), folder=tmp_path)
    warning = found_of("apache-event", tmp_path)[rule]
    assert warning.severity == "invalid"
    assert said in warning.what


@pytest.mark.parametrize(
    ("fault", "rule", "said"),
    [
        (
            "compressed",
            "no-response",
            "its body came in the encoding 'gzip', which nobody asked for",
        ),
        ("other-body", "different-body", "with another body than the site's"),
    ],
)
def test_a_wrong_answer_ends_the_run_before_any_load(
    fault: str, rule: str, said: str, tmp_path: Path
) -> None:
    done = webdyno("run", *QUICK, *faulty(fault), "--output=run", folder=tmp_path)
    assert done.returncode == 1, done.stderr
    assert left_behind(tmp_path) == []
    warning = found_of("apache-event", tmp_path)[rule]
    assert warning.severity == "invalid"
    assert said in warning.what


@pytest.mark.skipif(os.geteuid() != 0, reason="memory limits take root")
def test_a_memory_limit_that_is_reached(tmp_path: Path) -> None:
    limit = "--set=variants.apache-event.memory=32MB"
    # The kernel may kill the server in its first slot, which ends the run: then that is reported.
    webdyno("run", *QUICK, *faulty("memory"), limit, "--output=run", folder=tmp_path)
    assert left_behind(tmp_path) == []
    found = found_of("apache-event", tmp_path)
    killed = "memory-limit" not in found
    warning = found["incident" if killed else "memory-limit"]
    assert warning.severity == "invalid"
    said = "the memory limit was reached, OOM kills: 1" if killed else "memory limit of 32 MB"
    assert said in warning.what


def test_more_requests_are_due_than_can_be_answered(tmp_path: Path) -> None:
    too_many = ('--set=load.loop="open"', "--set=load.rate_per_s=200000")
    run_rounds(1, "run", *QUICK, *too_many, folder=tmp_path)
    warning = found_of("apache-event", tmp_path)["offered-rate"]
    assert warning.severity == "invalid"
    assert "200,000 req/s were offered" in warning.what
