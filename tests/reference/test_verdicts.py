"""What recorded runs are judged to be, digit by digit: nothing of it may change unnoticed.

`verdicts/` has codes and figures, `texts/` what is said of them.

Numbers are equal when they agree in twelve digits: numpy adds in another order on another kind of
CPU, which shows in the last ones.

A change that is not meant to change a verdict (a move, a new name, another way to compute the same)
changes no file in `verdicts/`. `WEBDYNO_REWRITE_VERDICTS=1 pytest tests/reference` writes them
again; that is allowed only in a commit whose message says which rule or formula it changes and why
these verdicts are now the right ones. Whoever commits reads the difference: a verdict, a bound or
an interval that nobody meant to change is a mistake, however small.

Texts may be worded otherwise by anybody who reads the difference: `WEBDYNO_REWRITE_SNAPSHOTS=1
pytest tests/reference` writes them again, and no verdict.
"""

import json
import os
from collections.abc import Iterator
from math import isclose
from pathlib import Path

import pytest

from reference.conftest import Kept
from reference.recorded import names, unpacked
from reference.verdicts import (
    Recorded,
    change_verdict_of,
    fleet_verdict_of,
    recorded,
    verdicts_of,
)
from report.approved import assert_same_text
from webdyno.comparison import Stop

VERDICTS, TEXTS = (Path(__file__).parent / kind for kind in ("verdicts", "texts"))
REWRITE = "WEBDYNO_REWRITE_VERDICTS"
SAME = 1e-12
WORDS_OF_A_SENTENCE = 4
LINE, INDENTED = "\n", "\n    "
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


def test_a_run_is_judged_as_before(kept: Kept) -> None:
    assert_as_before(kept.name, verdicts_of(kept.run, kept.judged))


@pytest.mark.parametrize("name", FLEETS)
def test_a_fleet_is_judged_as_before(name: str, tmp_path: Path) -> None:
    runs = {machine: unpacked(machine, tmp_path) for machine in FLEETS[name]}
    assert_as_before(name, fleet_verdict_of(runs))


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_judged_as_before(name: str, tmp_path: Path) -> None:
    before, after = (unpacked(run, tmp_path) for run in CHANGES[name])
    assert_as_before(name, change_verdict_of(before, after))


def test_no_verdict_is_of_a_run_that_is_gone() -> None:
    for kept in (VERDICTS, TEXTS):
        assert {file.stem for file in kept.iterdir()} == {*names(), *FLEETS, *CHANGES}


def assert_as_before(name: str, verdict: Recorded) -> None:
    """Compare with what is kept, the verdict first, then what is said of it."""
    assert_same_figures(name, verdict.figures)
    said = (f"{place}: {text.replace(LINE, INDENTED)}\n" for place, text in verdict.texts.items())
    assert_same_text(TEXTS / f"{name}.txt", "".join(said))


def assert_same_figures(name: str, figures: object) -> None:
    """Compare with the verdict that is kept, and write it again where that is requested."""
    file = VERDICTS / f"{name}.json"
    reported = json.loads(json.dumps(figures))
    changed = (
        list(differences(json.loads(file.read_text("utf-8")), reported)) if file.exists() else []
    )
    if os.environ.get(REWRITE) and (changed or not file.exists()):
        file.write_text(json.dumps(figures, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return
    assert not changed, f"{name} is judged otherwise than before; see the head of this file"


def differences(kept: object, reported: object, where: str = "") -> Iterator[str]:
    """Name each place in which two verdicts differ, and how."""
    if isinstance(kept, dict) and isinstance(reported, dict):
        if list(kept) != list(reported):
            yield f"{where}: {', '.join(kept)}, now {', '.join(reported)}"
            return
        for key, value in kept.items():
            yield from differences(value, reported[key], f"{where}.{key}")
    elif isinstance(kept, list) and isinstance(reported, list) and len(kept) == len(reported):
        for number, (before, after) in enumerate(zip(kept, reported, strict=True)):
            yield from differences(before, after, f"{where}[{number}]")
    elif isinstance(kept, float) and isinstance(reported, float):
        if not isclose(kept, reported, rel_tol=SAME):
            yield f"{where}: {kept!r}, now {reported!r}"
    elif kept != reported:
        yield f"{where}: {kept!r}, now {reported!r}"


def test_the_thirteenth_digit_is_the_cpu_and_the_eleventh_a_change() -> None:
    assert not list(differences({"a": [1.0]}, {"a": [1.0 + 1e-13]}))
    assert list(differences({"a": [1.0]}, {"a": [1.5]})) == [".a[0]: 1.0, now 1.5"]
    assert list(differences({"a": [1.0]}, {"a": [1.0 + 1e-11]}))
    assert list(differences({"a": 1}, {"a": "1"})) == [".a: 1, now '1'"]
    assert list(differences({"a": 1, "b": 2}, {"b": 2, "a": 1}))


def test_what_is_said_is_no_part_of_a_verdict() -> None:
    stops = {"a": [Stop("budget", "out of time")], "b": Stop("precision", "")}
    assert recorded(stops) == (
        {"a": [{"reason": "budget"}], "b": {"reason": "precision"}},
        {".a[0].why": "out of time"},
    )


@pytest.mark.parametrize("name", [*names(), *FLEETS, *CHANGES])
def test_no_sentence_is_left_in_a_verdict(name: str, tmp_path: Path) -> None:
    runs = FLEETS.get(name) or CHANGES.get(name) or [name]
    heads = "".join(unpacked(run, tmp_path).head.model_dump_json() for run in runs)
    figures = json.loads((VERDICTS / f"{name}.json").read_text("utf-8"))
    sentences = {text for text in strings(figures) if len(text.split()) >= WORDS_OF_A_SENTENCE}
    assert not {text for text in sentences if json.dumps(text, ensure_ascii=False) not in heads}


def strings(value: object) -> Iterator[str]:
    """Give all texts in a verdict but its keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)
