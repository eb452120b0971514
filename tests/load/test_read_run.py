"""Strict reading: a figure that is missing or said twice is no zero, it is reported."""

from pathlib import Path

import pytest

from webdyno.formats.facts import Tool
from webdyno.formats.tools.classics import AB, HTTPERF
from webdyno.formats.tools.wrk import WRK
from webdyno.load.instrument import Unreadable, read_run

RECORDED = Path(__file__).parents[1] / "audit/outputs"


def recorded(name: str) -> str:
    return (RECORDED / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("tool", "name", "requests"),
    [
        (AB, "ab-404.txt", 1000),
        (HTTPERF, "httperf-rate.txt", 5000),
        (WRK, "wrk-latency.txt", 263_803),
    ],
)
def test_one_run_is_read(tool: Tool, name: str, requests: int) -> None:
    run = read_run(tool, recorded(name))
    assert run.requests == requests
    assert run.throughput_rps == run.output.throughput_rps
    assert run.measured_s > 0


@pytest.mark.parametrize(
    ("tool", "name", "line", "missing"),
    [
        (AB, "ab-404.txt", "Complete requests", "requests"),
        (AB, "ab-404.txt", "Time taken", "duration_s"),
        (HTTPERF, "httperf-rate.txt", "Reply status", "non_2xx"),
        (WRK, "wrk-latency.txt", " requests in ", "no figures"),
    ],
)
def test_a_missing_figure_is_reported(tool: Tool, name: str, line: str, missing: str) -> None:
    text = "\n".join(each for each in recorded(name).splitlines() if line not in each)
    needed = ("non_2xx",) if tool is HTTPERF else ()
    with pytest.raises(Unreadable, match=missing):
        read_run(tool, text, needed)


def test_ab_prints_no_rate_where_nothing_was_answered() -> None:
    kept = ("Rate", "Requests per second", "Time per request", "Transfer rate", "  ")
    lines = recorded("ab-404.txt").replace("requests:      1000", "requests:      0").splitlines()
    run = read_run(AB, "\n".join(it for it in lines if not it.startswith(kept)))
    assert (run.requests, run.throughput_rps) == (0, 0.0)


def test_figures_that_contradict_each_other_are_reported() -> None:
    text = recorded("ab-404.txt").replace(
        "Complete requests:      1000", "Complete requests:      1000\nComplete requests:      2000"
    )
    assert "2000" in text
    with pytest.raises(Unreadable, match="different things about requests"):
        read_run(AB, text)


def test_another_tools_output_is_none_of_it() -> None:
    with pytest.raises(Unreadable):
        read_run(WRK, recorded("ab-404.txt"))
