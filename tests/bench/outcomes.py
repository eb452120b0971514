"""Results of runs that were never made."""

from datetime import UTC, datetime
from typing import Any

from rig.lab import Outcome
from webdyno.core.judgement import Verdict

KEPT: dict[str, Any] = {
    "at": datetime(2026, 11, 23, tzinfo=UTC),
    "machine": "a machine",
    "commit": "abc",
    "took_s": 60.0,
}
"""What is kept of each run, whatever was asked."""


def outcome(case: str, verdict: Verdict | None, **found: Any) -> Outcome:  # noqa: ANN401 (its fields)
    """A run of the lab, with what it found."""
    return Outcome(**{**KEPT, "case": case, "verdict": verdict, **found})
