import csv
from io import StringIO

import pytest

from builders import SimulatedRun
from report import runs
from webdyno.report.csv_files import COLUMNS, summary_csv

Lines = list[dict[str, str]]


def read(run: SimulatedRun) -> Lines:
    return list(csv.DictReader(StringIO(summary_csv(runs.seen(run)))))


def test_each_metric_has_arms_ratios_and_their_blocks() -> None:
    lines = read(runs.decided())
    rate = [line for line in lines if line["metric"] == "rate_rps"]
    kinds = [line["kind"] for line in rate]
    assert kinds.count("arm") == 2
    assert kinds.count("arm-block") == 16
    assert kinds.count("ratio") == 1
    assert kinds.count("ratio-block") == 8
    assert {line["metric"] for line in lines} == {
        "rate_rps",
        "server_cpu_us",
        "response_p50_us",
        "response_p99_us",
        "answer_bytes",
    }


def test_a_ratio_carries_its_interval_and_verdict() -> None:
    [ratio] = [
        line
        for line in read(runs.decided())
        if (line["kind"], line["metric"]) == ("ratio", "rate_rps")
    ]
    assert (ratio["arm"], ratio["baseline"], ratio["unit"]) == ("nginx", "apache-event", "ratio")
    assert float(ratio["low"]) < float(ratio["estimate"]) < float(ratio["high"])
    assert (ratio["confidence"], ratio["verdict"], ratio["block"]) == ("0.95", "faster", "")


def test_names_with_commas_and_quotes_survive() -> None:
    run = runs.hostile()
    assert {line["arm"] for line in read(run)} == set(run.head.experiment.arms)


@pytest.mark.parametrize("make", runs.ALL, ids=lambda make: make.__name__)
def test_every_kind_of_run_gives_whole_lines(make: runs.Make) -> None:
    for line in read(make()):
        assert set(line) == set(COLUMNS)
        assert line["kind"]


def test_each_factor_is_a_column() -> None:
    lines = read(runs.two_factors())
    ratios = [it for it in lines if it["kind"] == "ratio" and it["metric"] == "rate_rps"]
    levels = [(it["load.connections"], it["load.keepalive"]) for it in ratios]
    assert levels == [(n, kept) for n in ("1", "8", "64") for kept in ("always", "never")]
