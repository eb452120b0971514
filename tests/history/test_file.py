"""A history's file: gates are added, and what is none is refused by its line."""

from pathlib import Path

import pytest

from evidence.histories import REFERENCE, history_of
from questions.gate.test_ci import claim, gate
from webdyno.core.base import Interval
from webdyno.core.errors import UserError
from webdyno.history import add_to_history, check_history, read_history

LINE = history_of({("/", "server_cpu_us"): [1.0]})[0].model_dump_json()


def test_gates_are_added_and_read_in_the_order_of_their_days(tmp_path: Path) -> None:
    file = tmp_path / "new/performance.jsonl"
    check_history(file, "main (1a2b3c4)", "--history")
    assert add_to_history(file, gate(claim(), claim("worse", "throughput_rps")))
    assert add_to_history(file, gate(claim()))
    first, second = read_history(file)
    assert first.measured_at < second.measured_at
    cpu, throughput = first.ratios
    assert (cpu.ratio.low, cpu.ratio.high) == (0.982, 1.021)
    assert throughput.ratio.estimate == pytest.approx(1 / 1.3), "head's value ÷ the baseline's"
    assert len(second.ratios) == 1


@pytest.mark.parametrize("rest", ["", "\n", "\n\n"])
def test_a_line_that_was_cut_off_keeps_to_itself(tmp_path: Path, rest: str) -> None:
    file = tmp_path / "performance.jsonl"
    file.write_text(LINE.replace(REFERENCE, "main (1a2b3c4)") + rest)
    assert add_to_history(file, gate(claim()))
    assert len(read_history(file)) == 2


def test_what_shows_nothing_is_not_kept(tmp_path: Path) -> None:
    file = tmp_path / "performance.jsonl"
    wide = claim("inconclusive").replace(worse=Interval(low=0.001, estimate=1.0, high=1e9))
    for reported in (claim("invalid"), claim("not asked"), claim().replace(worse=None), wide):
        assert not add_to_history(file, gate(reported))
    assert not file.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "holds no gate yet"),
        ("x", r":1: is no gate that webdyno added to a history: it should"),
        (f"{LINE}\n{{}}", r":2: .*measured_at is missing"),
        (LINE.replace('"low":0.98', '"low":-1.0'), r":1: .*ratio should be above 0"),
        (LINE.replace("server_cpu_us", "server_cpu"), r":1: .*there is no metric 'server_cpu'"),
        (f"{LINE}\n{LINE.replace('1a2b3c4d5e', '5e4d3c2b1a')}", "keep a file for each baseline"),
    ],
)
def test_what_is_no_history_is_refused_by_its_line(tmp_path: Path, content: str, said: str) -> None:
    file = tmp_path / "performance.jsonl"
    file.write_text(content)
    with pytest.raises(UserError, match=said):
        read_history(file)


def test_another_baseline_is_refused_and_another_name_of_it_is_not(tmp_path: Path) -> None:
    file = tmp_path / "performance.jsonl"
    file.write_text(LINE)
    check_history(file, "origin/stable (1a2b3c4d5e)", "--history")
    with pytest.raises(UserError, match=r"--history .*compared with v1\.3 \(5e4d3c2b1a\)"):
        check_history(file, "v1.3 (5e4d3c2b1a)", "--history")
    with pytest.raises(UserError, match="is not a regular file"):
        check_history(tmp_path, REFERENCE, "--history")
    file.write_text("")
    check_history(file, "v1.3 (5e4d3c2b1a)", "--history")
