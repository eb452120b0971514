import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.model.judgement import ArmValue, Interval
from webdyno.report import text
from webdyno.report.text import MISSING, THIN

SENSIBLE = st.floats(min_value=1e-4, max_value=1e9)


@pytest.mark.parametrize(
    ("value", "decimals", "told"),
    [
        (48213.4, 0, "48,213"),
        (48213.4, -2, "48,200"),
        (1.9249, 2, "1.92"),
        (-3.5, 1, "−3.5"),
        (-0.001, 2, "0.00"),
        (float("nan"), 0, MISSING),
        (float("inf"), 0, MISSING),
    ],
)
def test_numbers_are_rounded_and_set_apart(value: float, decimals: int, told: str) -> None:
    assert text.number(value, decimals) == told


@pytest.mark.parametrize(
    ("half_width", "decimals"),
    [(0.05, 2), (0.012, 3), (0.0299, 3), (0.03, 2), (400, -2), (150, -1)],
)
def test_an_estimate_gets_the_digits_that_its_interval_bears(
    half_width: float, decimals: int
) -> None:
    assert text.decimals_for(half_width) == decimals


def test_a_quantity_and_its_interval_have_the_same_digits() -> None:
    interval = Interval(low=47812.3, estimate=48213.4, high=48602.9)
    assert text.estimate(interval) == "48,200"
    assert text.bounds(interval) == "47,800–48,600"


def test_an_estimate_that_says_little_is_still_not_told_as_nothing() -> None:
    assert text.estimate(Interval(low=0.2, estimate=31_000, high=7e6)) == "30,000"


def test_a_ratio_has_at_least_two_places() -> None:
    wide = Interval(low=1.1, estimate=2.04, high=3.8)
    assert text.ratio(wide) == "2.04×"
    assert text.ratio_bounds(wide) == "1.10–3.80"
    narrow = Interval(low=0.9932, estimate=0.9981, high=1.0029)
    assert text.ratio(narrow) == "0.998×"


def test_an_interval_without_width_is_no_error() -> None:
    point = Interval(low=1.0, estimate=1.0, high=1.0)
    assert text.ratio(point) == "1.000×"


@given(SENSIBLE, st.floats(min_value=1e-6, max_value=0.5))
def test_a_rounded_estimate_stays_inside_its_interval(value: float, spread: float) -> None:
    interval = Interval(low=value / (1 + spread), estimate=value, high=value * (1 + spread))
    told = float(text.estimate(interval).replace(",", ""))
    half_width = (interval.high - interval.low) / 2
    assert abs(told - value) <= half_width * 0.51 or half_width < 1e-6


def test_a_value_without_an_interval_is_that_of_the_only_block() -> None:
    one = ArmValue(arm="a", metric="rate_rps", by_block=[39123.4], blocks=[1], interval=None)
    none = one.model_copy(update={"by_block": [], "blocks": []})
    assert text.only(one) == "39,120"
    assert text.only(none) == MISSING
    assert text.only(None) == MISSING


def test_counts_agree_with_their_noun() -> None:
    assert text.count(1, "block") == f"1{THIN}block"
    assert text.count(1200, "block") == f"1,200{THIN}blocks"


def test_times_shares_and_sizes() -> None:
    assert text.duration(0.5) == f"0.5{THIN}s"
    assert text.duration(90) == f"90{THIN}s"
    assert text.duration(300) == f"5{THIN}min"
    assert text.percent(0.02) == f"2{THIN}%"
    assert text.percent(0.98333) == f"98.3{THIN}%"
    assert text.size(13) == f"13{THIN}bytes"
    assert text.size(1536) == f"1.5{THIN}KiB"
    assert text.size(16 * 2**30) == f"16{THIN}GiB"


@pytest.mark.parametrize(
    ("cpus", "told"), [([], ""), ([2], "2"), ([0, 1], "0-1"), ([8, 0, 2, 1], "0-2,8")]
)
def test_cpu_sets_are_written_as_the_kernel_does(cpus: list[int], told: str) -> None:
    assert text.cpu_list(cpus) == told
