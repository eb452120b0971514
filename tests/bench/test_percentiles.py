"""Reading what clients report as percentiles."""

import json
from collections.abc import Callable

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st

from bench import outputs
from rig import percentiles
from rig.process import BenchError
from rig.truth import PERCENTILES


def test_wrk() -> None:
    expected = {50: 0.347, 75: 0.41, 90: 0.512, 95: 0.602, 99: 0.811, 99.9: 1.904}
    assert percentiles.wrk(outputs.WRK) == expected


def test_hey_takes_them_from_all_requests() -> None:
    assert percentiles.hey(outputs.HEY_CSV)[50] == pytest.approx(2)
    assert percentiles.hey(outputs.HEY_CSV)[99.9] == pytest.approx(30)


def test_oha() -> None:
    assert percentiles.oha(outputs.OHA)[99.9] == pytest.approx(5.413606)


def test_loadgen_from_its_histogram() -> None:
    histogram = HdrHistogram(1, 60_000_000, 3)
    for value_us in range(1000, 101_000, 1000):
        histogram.record_value(value_us)
    encoded = histogram.encode().decode()
    found = percentiles.loadgen(json.dumps({"latency_us": {"histogram": encoded}}))
    assert found[50] == pytest.approx(50, rel=1e-3)
    assert found[99.9] == pytest.approx(100, rel=1e-3)


@pytest.mark.parametrize(
    "read", [percentiles.loadgen, percentiles.wrk, percentiles.hey, percentiles.oha]
)
@given(output=st.text() | st.sampled_from(["{}", "[]", '{"latencyPercentiles": {}}', "a,b\n1,2\n"]))
def test_foreign_output_is_an_error_for_people(
    read: Callable[[str], dict[float, float]], output: str
) -> None:
    with pytest.raises(BenchError):
        read(output)


def test_the_script_for_wrk_prints_all_percentiles() -> None:
    for percent in PERCENTILES:
        assert f" {percent:g}" in percentiles.LUA.read_text()
