"""What recorded runs are judged to be, to the last digit: nothing of it may change unnoticed.

A change that is not meant to change a verdict (a move, a new name, another way to compute the same)
changes no file in `verdicts/`. `WEBDYNO_REWRITE_VERDICTS=1 pytest tests/reference` writes them
again; that is allowed only in a commit whose message says which rule or formula it changes and why
these verdicts are now the right ones. Whoever commits reads the difference: a verdict, a bound or
an interval that nobody meant to change is a mistake, however small.
"""

import json
import os
from pathlib import Path

import pytest

from reference.recorded import names, unpacked
from reference.verdicts import change_verdict_of, fleet_verdict_of, verdicts_of

VERDICTS = Path(__file__).parent / "verdicts"
REWRITE = "WEBDYNO_REWRITE_VERDICTS"
FLEETS = {
    "fleet": ["machine-1", "machine-2", "machine-3"],
    "fleet-that-disagrees": ["machine-1", "machine-4", "machine-3"],
    "fleet-of-sweeps": ["sweep-machine-1", "sweep-machine-2"],
}
CHANGES = {
    "change-none": ("machine-1", "machine-2"),
    "change-slower": ("machine-1", "machine-4"),
    "change-of-a-sweep": ("sweep-machine-1", "sweep-machine-2"),
    "change-unlike": ("faster", "not-slower"),
}
"""Two runs, the earlier one first."""


@pytest.mark.parametrize("name", names())
def test_a_run_is_judged_as_before(name: str, tmp_path: Path) -> None:
    assert_as_before(name, verdicts_of(unpacked(name, tmp_path)))


@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_is_judged_as_before(name: str, tmp_path: Path) -> None:
    runs = {machine: unpacked(machine, tmp_path) for machine in FLEETS[name]}
    assert_as_before(name, fleet_verdict_of(runs))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_judged_as_before(name: str, tmp_path: Path) -> None:
    before, after = (unpacked(run, tmp_path) for run in CHANGES[name])
    assert_as_before(name, change_verdict_of(before, after))


def test_no_verdict_is_of_a_run_that_is_gone() -> None:
    kept = {file.stem for file in VERDICTS.iterdir()}
    assert kept == {*names(), *FLEETS, *CHANGES}


def assert_as_before(name: str, verdict: object) -> None:
    """Compare with the verdict that is kept; each digit counts."""
    told = json.dumps(verdict, indent=1, ensure_ascii=False) + "\n"
    file = VERDICTS / f"{name}.json"
    if os.environ.get(REWRITE):
        VERDICTS.mkdir(exist_ok=True)
        file.write_text(told, encoding="utf-8")
    kept = file.read_text(encoding="utf-8")
    assert told == kept, f"{name} is judged otherwise than before; see the head of this file"
