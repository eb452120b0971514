"""What a terminal shows while a run goes on."""

from io import StringIO
from math import log

import pytest
from rich.console import Console

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons, sweeps
from webdyno.comparison import question_of
from webdyno.core.records import SlotRecord
from webdyno.interfaces.cli.progress import LiveView, interval_scale


def drawn(view: LiveView, width: int = 100) -> list[str]:
    output = StringIO()
    Console(file=output, width=width, force_terminal=True, color_system=None).print(view)
    return output.getvalue().splitlines()


def view_of(run: SimulatedRun) -> LiveView:
    view = LiveView(run.head)
    view.round_begins(3, 4)
    for record in run.records:
        if isinstance(record, SlotRecord):
            view.slot_ends(record)
    so_far = question_of(run.head.experiment).so_far(run.data)
    view.round_ends(so_far, run.data)
    return view


@pytest.mark.parametrize("width", [100, 60])
def test_it_shows_where_the_run_is_and_how_sure_it_is(width: int) -> None:
    lines = drawn(view_of(comparisons.inconclusive()), width)
    assert "round 3 of about" in lines[0]
    reported = "\n".join(lines)
    assert "servers" in reported
    assert "client" in reported
    assert "target ±2" in reported.replace("\n", " ")
    assert "●" in reported


def test_before_anything_is_measured_it_says_what_is_done() -> None:
    view = LiveView(comparisons.decided().head)
    assert "starting" in "\n".join(drawn(view))


def test_slots_that_are_excluded_are_reported() -> None:
    wrong = SimulatedVariant(wrong_status=404)
    reported = "\n".join(
        drawn(view_of(simulated_run({"nginx": comparisons.NGINX, "apache": wrong}, rounds=4)))
    )
    assert "slots excluded: non-2xx" in reported


def test_a_forecast_that_is_over_is_not_made() -> None:
    sure = simulated_run(
        {"nginx": comparisons.NGINX, "apache": comparisons.NGINX}, restart_sd=0.001, slot_sd=0.001
    )
    first = drawn(view_of(sure))[0]
    assert "of about" not in first
    assert "8 rounds so far" in first


def test_names_are_no_markup() -> None:
    reported = "\n".join(drawn(view_of(sweeps.hostile_markup())))
    assert "[/]" in reported


@pytest.mark.parametrize(
    ("low", "high", "scale"),
    [
        (-0.01, 0.01, "0.94×              ░░░░░░├──●──┤░░░░░             1.06×"),
        (-9.0, 9.0, f"0.25× ├{19 * '─'}●{19 * '─'}┤ 4.00×"),
    ],
)
def test_the_scale_shows_the_interval_next_to_what_is_asked_for(
    low: float, high: float, scale: str
) -> None:
    found = interval_scale(low, high, 0.02).plain
    assert found.split()[0] == scale.split()[0]
    assert found.split()[-1] == scale.split()[-1]
    assert len(found) == len("0.25× ") + 41 + len(" 4.00×")
    assert found[len("0.25× ") + 20] == "●"
    assert found.count("├") == found.count("┤") == 1


def test_a_scale_is_never_shorter_than_its_interval() -> None:
    found = interval_scale(-log(2), log(2), log(1.02)).plain
    assert found.startswith("0.50× ├")
