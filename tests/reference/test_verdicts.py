"""What recorded runs are judged to be, digit by digit: nothing of it may change unnoticed.

Numbers are equal when they agree in twelve digits: numpy adds in another order on another kind of
CPU, which shows in the last ones.

A change that is not meant to change a verdict (a move, a new name, another way to compute the same)
changes no file in `verdicts/`. `WEBDYNO_REWRITE_VERDICTS=1 pytest tests/reference` writes them
again; that is allowed only in a commit whose message says which rule or formula it changes and why
these verdicts are now the right ones. Whoever commits reads the difference: a verdict, a bound or
an interval that nobody meant to change is a mistake, however small.
"""

import json
import os
from collections.abc import Iterator
from math import isclose
from pathlib import Path

import pytest

from reference.recorded import names, unpacked
from reference.verdicts import change_verdict_of, fleet_verdict_of, verdicts_of

VERDICTS = Path(__file__).parent / "verdicts"
REWRITE = "WEBDYNO_REWRITE_VERDICTS"
SAME = 1e-12
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
    """Compare with the verdict that is kept, and write it again where that is requested."""
    file = VERDICTS / f"{name}.json"
    told = json.loads(json.dumps(verdict))
    changed = list(differences(json.loads(file.read_text("utf-8")), told)) if file.exists() else []
    if os.environ.get(REWRITE) and (changed or not file.exists()):
        file.write_text(json.dumps(verdict, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    assert not changed, f"{name} is judged otherwise than before; see the head of this file"


def differences(kept: object, told: object, where: str = "") -> Iterator[str]:
    """Name each place in which two verdicts differ, and how."""
    if isinstance(kept, dict) and isinstance(told, dict):
        if list(kept) != list(told):
            yield f"{where}: {', '.join(kept)}, now {', '.join(told)}"
            return
        for key, value in kept.items():
            yield from differences(value, told[key], f"{where}.{key}")
    elif isinstance(kept, list) and isinstance(told, list) and len(kept) == len(told):
        for number, (before, after) in enumerate(zip(kept, told, strict=True)):
            yield from differences(before, after, f"{where}[{number}]")
    elif isinstance(kept, float) and isinstance(told, float):
        if not isclose(kept, told, rel_tol=SAME):
            yield f"{where}: {kept!r}, now {told!r}"
    elif kept != told:
        yield f"{where}: {kept!r}, now {told!r}"


def test_the_thirteenth_digit_is_the_cpu_and_the_eleventh_a_change() -> None:
    assert not list(differences({"a": [1.0]}, {"a": [1.0 + 1e-13]}))
    assert list(differences({"a": [1.0]}, {"a": [1.5]})) == [".a[0]: 1.0, now 1.5"]
    assert list(differences({"a": [1.0]}, {"a": [1.0 + 1e-11]}))
    assert list(differences({"a": 1}, {"a": "1"})) == [".a: 1, now '1'"]
    assert list(differences({"a": 1, "b": 2}, {"b": 2, "a": 1}))
