"""bench/twins.py: from a log of a real stack to two verdicts, and the table of what came of it."""

from pathlib import Path

import pytest
from rich.console import Console

import twins
from bench.outcomes import KEPT, outcome
from e2e.commands import environment
from rig import lab
from webdyno.config import Catalogue
from webdyno.core.judgement import Verdict
from webdyno.traffic.lines import read_line
from webdyno.traffic.log import LogSelection
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.read import read_logs


def compared(original: Verdict | None, twin: Verdict | None) -> twins.Compared:
    return twins.Compared(
        **KEPT,
        case="static",
        original=outcome("static, original", original),
        twin=outcome("static, twin", twin),
    )


QUICKLY = {"measure.slot_s": 0.1, "measure.warmup_s": 0, "measure.slots_per_variant": 2}


@pytest.mark.long
def test_all_steps_run_on_a_log_of_a_real_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    found = twins.compare(twins.CASES["static"], 60, "1s", QUICKLY)
    for it in (found.original, found.twin):
        assert it.verdict is not None, it.problem
        assert it.metric == "server_cpu_us"
    lab.append(tmp_path / "twins.jsonl", found)
    assert lab.read_as(tmp_path / "twins.jsonl", twins.Compared) == [found]


def test_a_log_shows_what_pages_took(tmp_path: Path) -> None:
    text = twins.made_log(twins.CASES["spin"], 20)
    (tmp_path / "a.log").write_bytes(text)
    log = read_logs([tmp_path / "a.log"], LogSelection(), Privacy("drop", "hash"))
    assert {asked.path for asked in log.asked} == {"/", "/index.php"}
    times = [read_line(line).took_s for line in text.splitlines()]
    assert None not in times


def test_verdicts_are_equal_where_both_are_answers() -> None:
    assert compared(Verdict.FASTER, Verdict.FASTER).is_equal
    assert compared(Verdict.FASTER, Verdict.EQUIVALENT).is_equal is False
    for none in (Verdict.INCONCLUSIVE, Verdict.INVALID, None):
        assert compared(none, none).is_equal is None
    console = Console(width=200, record=True)
    known = [compared(Verdict.SLOWER, Verdict.SLOWER), compared(Verdict.SLOWER, None)]
    console.print(twins.table(known))
    assert "in 1 of 1 comparisons; in 1 more" in console.export_text()


@pytest.mark.parametrize("case", twins.CASES.values(), ids=lambda case: case.site)
def test_each_case_is_served_by_its_stacks(case: twins.Case) -> None:
    catalogue = Catalogue.load()
    site = catalogue.site(case.site)
    for stack in case.stacks:
        assert site.served_by(catalogue.stack(stack).serves)
    assert "apache" in catalogue.stack(case.stacks[1]).services
    assert set(case.settings) <= set(site.settings)
