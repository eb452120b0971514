"""Flame graphs: boxes as wide as the time spent, on one scale, coloured by the difference."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import runs
from webdyno.core.records import SlotRecord
from webdyno.core.run import DEEPEST, read_stacks, written_stacks
from webdyno.measure.folder import RunFolder
from webdyno.report.flame_charts import boxes, flame_figure, spent_by_name_us, spent_us

NAMES = st.text(st.characters(codec="utf-8", exclude_characters=";\n"), min_size=1)
STACKS = st.dictionaries(
    st.lists(NAMES, min_size=1, max_size=5).map(";".join),
    st.integers(1, 1000),
    min_size=1,
    max_size=20,
)


@given(STACKS)
def test_what_is_written_is_read(stacks: dict[str, int]) -> None:
    assert read_stacks(written_stacks(stacks)) == stacks


@given(STACKS)
def test_calls_lie_above_their_callers_and_next_to_each_other(stacks: dict[str, int]) -> None:
    spent = spent_us(stacks, 50.0)
    placed = {box.call: box for box in boxes(spent, 0.0)}
    assert sum(us for call, us in spent.items() if len(call) == 1) == pytest.approx(50.0)
    for call, box in placed.items():
        if len(call) > 1:
            below = placed[call[:-1]]
            assert box.begin_us >= below.begin_us - 1e-9
            assert box.begin_us + box.us <= below.begin_us + below.us + 1e-9
    for depth in {len(call) for call in placed}:
        row = sorted((it.begin_us, it.us) for call, it in placed.items() if len(call) == depth)
        for (begin_us, us), (next_us, _) in pairwise(row):
            assert begin_us + us <= next_us + 1e-9


def sampled() -> SimulatedRun:
    """Nginx takes 10 µs, Apache 20: half of that to look for files."""
    made = simulated_run(
        {
            "apache": SimulatedVariant(server_cpu_us=20.0),
            "nginx": SimulatedVariant(server_cpu_us=10.0),
        },
        rounds=6,
    )
    records = [
        record.model_copy(update={"profile": {"files": record.servers.cpu_s}})
        if isinstance(record, SlotRecord)
        else record
        for record in made.records
    ]
    return SimulatedRun(made.head, records)


def test_both_variants_are_drawn_on_one_scale(tmp_path: Path) -> None:
    made = sampled()
    point = runs.seen(made).points[0]
    assert flame_figure(tmp_path / "run", point) is None
    with RunFolder.create(tmp_path / "run", made.head) as folder:
        for variant, files in (("apache", 100), ("nginx", 10)):
            for _ in range(2):
                folder.add_stacks(
                    variant, Counter({f"{variant};main;open": files, f"{variant};main": 40})
                )
    figure = flame_figure(tmp_path / "run", point)
    assert figure is not None
    first, second = figure.panels
    assert first.heading.startswith("apache: 20")
    assert second.heading.startswith("nginx: 10")
    assert "open: 14" in first.svg
    assert 'data-told="' in second.svg


def test_names_are_compared_wherever_they_are_called() -> None:
    here = {"a;x;send": 3, "a;y;send;send": 1, "a;[unknown];[unknown];y": 4}
    assert spent_by_name_us(here, 80.0) == {"a": 80, "x": 30, "y": 50, "send": 40, "[unknown]": 40}
    calls = spent_us(here, 80.0)
    assert calls["a", "[unknown]", "y"] == pytest.approx(40)
    assert calls["a", "y", "send"] == pytest.approx(10)
    assert ("a", "y", "send", "send") not in calls


def test_samples_that_say_nothing_are_drawn_as_nothing(tmp_path: Path) -> None:
    assert not read_stacks("main 0\nmain;x 00\n")
    made = sampled()
    with RunFolder.create(tmp_path / "run", made.head) as folder:
        for variant in ("apache", "nginx"):
            folder.add_stacks(variant, {f"f{n}": 1 for n in range(2_000)})
    assert flame_figure(tmp_path / "run", runs.seen(made).points[0])


def test_what_is_deep_or_narrow_takes_no_memory() -> None:
    (deep,) = read_stacks("a;b;" * 5_000 + "c 1\n")
    assert deep.count(";") == DEEPEST - 1
    stacks = {"main": 1_000, **{f"main;x{n};y;z": 1 for n in range(9)}}
    calls = spent_us(stacks, 1_009.0, 5.0)
    assert len(calls) == 10
    assert calls["main", "x1"] == pytest.approx(1.0)
