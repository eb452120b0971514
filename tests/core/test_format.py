import pytest
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core import format as text
from webdyno.core.base import Interval
from webdyno.core.format import MISSING

SENSIBLE = st.floats(min_value=1e-4, max_value=1e9)


@pytest.mark.parametrize(
    ("value", "decimals", "reported"),
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
def test_numbers_are_rounded_and_set_apart(value: float, decimals: int, reported: str) -> None:
    assert text.number(value, decimals) == reported


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
    assert text.quantity(interval) == "48,200"
    assert text.quantity_bounds(interval) == "47,800–48,600"


def test_an_estimate_that_says_little_is_still_not_reported_as_nothing() -> None:
    assert text.quantity(Interval(low=0.2, estimate=31_000, high=7e6)) == "31,000"


def test_a_ratio_has_at_least_two_places_and_the_same_ones_everywhere() -> None:
    wide = Interval(low=1.1, estimate=2.04, high=3.8)
    assert text.times(wide) == "2.04×"
    assert text.ratio_bounds(wide) == "1.10–3.80"
    assert text.ratio_range(wide) == "95% CI 1.10–3.80×"
    narrow = Interval(low=0.9932, estimate=0.9981, high=1.0029)
    assert (text.ratio(narrow), text.times(narrow)) == ("0.998", "0.998×")


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((21.03, 21.47, 21.92), ("21.5×", "21.0–21.9")),
        ((553.3, 959.4, 1672.1), ("959×", "553–1,672")),
        ((0.4, 12.0, 40.0), ("12.0×", "0.4–40.0")),
    ],
)
def test_a_large_ratio_has_three_digits(
    ends: tuple[float, float, float], said: tuple[str, str]
) -> None:
    low, estimate, high = ends
    interval = Interval(low=low, estimate=estimate, high=high)
    assert (text.times(interval), text.ratio_bounds(interval)) == said


def test_a_small_estimate_is_not_rounded_out_of_its_interval() -> None:
    rare = Interval(low=0.0052, estimate=0.0078, high=0.104)
    assert (text.quantity(rare), text.quantity_bounds(rare)) == ("0.008", "0.005–0.104")


def test_what_is_known_exactly_has_four_digits_or_is_whole() -> None:
    assert text.times(Interval(low=1.0, estimate=1.0, high=1.0)) == "1.00×"
    assert text.quantity(Interval(low=251.0, estimate=251.0, high=251.0)) == "251"
    assert text.quantity(Interval(low=2.5, estimate=2.5, high=2.5)) == "2.500"
    assert (
        text.quantity_bounds(Interval(low=77_000.0, estimate=77_000.0, high=77_000.0))
        == "77,000–77,000"
    )


def test_nobody_reads_more_than_four_digits() -> None:
    memory = Interval(low=0.838561, estimate=0.838572, high=0.838583)
    assert (text.quantity(memory), text.quantity_bounds(memory)) == ("0.8386", "0.8386–0.8386")
    assert text.quantity(Interval(low=75412.9, estimate=75413.4, high=75413.9)) == "75,413"
    near_one = Interval(low=1.00011, estimate=1.00032, high=1.00053)
    assert (text.ratio(near_one), text.ratio_bounds(near_one)) == ("1.0003", "1.0001–1.0005")


def read(reported: str) -> float:
    return float(reported.replace(",", "").replace("−", "-"))


@given(SENSIBLE, st.floats(1e-7, 1e7), st.floats(1e-7, 1e7))
def test_rounding_never_puts_an_estimate_outside_its_interval(
    value: float, below: float, above: float
) -> None:
    interval = Interval(low=value / (1 + below), estimate=value, high=value * (1 + above))
    for reported, ends in (
        (text.quantity(interval), text.quantity_bounds(interval)),
        (text.ratio(interval), text.ratio_bounds(interval)),
    ):
        if ends == "not useful yet":
            assert interval.high > 100 * interval.low
            continue
        low, high = map(read, ends.split(text.DASH))
        assert low <= read(reported) <= high
        assert read(reported) > 0


@given(SENSIBLE, st.floats(min_value=1e-6, max_value=0.5))
def test_a_rounded_estimate_is_near_the_exact_one(value: float, spread: float) -> None:
    interval = Interval(low=value / (1 + spread), estimate=value, high=value * (1 + spread))
    half_width = (interval.high - interval.low) / 2
    off = abs(read(text.quantity(interval)) - value)
    assert off <= max(half_width * 0.51, value * 0.51e-3)


def test_ordinals() -> None:
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)
    said = "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
    assert " ".join(map(text.ordinal, numbers)) == said


def test_counts_agree_with_their_noun() -> None:
    assert text.count(1, "round") == "1 round"
    assert text.count(1200, "round") == "1,200 rounds"
    assert text.count(97, "request without a response") == "97 requests without a response"
    assert text.count(2, "connection reset by the server") == "2 connections reset by the server"


def test_times_shares_and_sizes() -> None:
    assert text.duration(0.5) == "0.5 s"
    assert text.duration(90) == "90 s"
    assert text.duration(300) == "5 min"
    assert text.percent(0.02) == "2%"
    assert text.percent(0.0055) == "0.55%"
    assert text.percent(1.0) == "100%"
    assert text.confidence_level(0.98333) == "98.3%"
    assert text.confidence_level(0.95) == "95%"
    assert text.confidence_level(0.99958) == "99.96%"
    assert text.minutes(61) == "2 minutes"
    assert text.size(13) == "13 bytes"
    assert text.size(1536) == "1.5 KiB"
    assert text.size(16 * 2**30) == "16 GiB"


@pytest.mark.parametrize(
    ("cpus", "reported"), [([], ""), ([2], "2"), ([0, 1], "0-1"), ([8, 0, 2, 1], "0-2,8")]
)
def test_cpu_sets_are_written_as_the_kernel_does(cpus: list[int], reported: str) -> None:
    assert text.cpu_list(cpus) == reported


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("", "    (nothing)"),
        (" \n\n", "    (nothing)"),
        ("one", "    one"),
        ("\none\ntwo\r\n  three\n\n", "    two\n      three"),
    ],
)
def test_the_end_of_what_a_program_said_is_indented(said: str, reported: str) -> None:
    assert text.last_lines(said, 2) == reported


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(1e-9, 3.4e7, "no useful CI yet"), (0.62, 200.83, "no useful CI yet")],
)
def test_an_interval_that_says_nothing_is_not_shown(low: float, high: float, said: str) -> None:
    wide = Interval(low=low, estimate=0.65, high=high)
    assert text.ratio_range(wide) == said
    assert text.ratio_bounds(wide) == "not useful yet"


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.00003, 0.84, "up to 0.840×"), (1.2, 900, "from 1.20×"), (0.01, 90, "unknown")],
)
def test_of_a_wide_interval_the_end_is_reported_that_says_something(
    low: float, high: float, said: str
) -> None:
    assert text.between(Interval(low=low, estimate=(low * high) ** 0.5, high=high)) == said


def test_settings_are_shown_as_files_have_them() -> None:
    values = (True, "text", 1_000_000, 0.1 + 0.2)
    assert [text.setting_value(it) for it in values] == ["true", "text", "1000000", "0.3"]
    assert [text.scalar(it) for it in values][-1] == "0.30000000000000004"
    assert [text.level(it) for it in (False, 1_000_000, ["/a", "/b"])] == [
        "false",
        "1,000,000",
        "/a, /b",
    ]


def test_latency_has_three_digits() -> None:
    reported = [text.latency(it) for it in (0.05, 85.31, 999.4, 999.9, 4214.0, 2.5e6)]
    assert reported == ["less than 0.1 µs", "85.3 µs", "999 µs", "1.00 ms", "4.21 ms", "2.50 s"]
    short = Interval(low=0.3, estimate=0.8, high=2.0)
    assert text.latency_and_bounds(short) == ("0.8 µs", "0.3–2.0")
    exact = Interval(low=1_619.0, estimate=1_622.0, high=1_625.0)
    assert text.latency_and_bounds(exact) == ("1.62 ms", "1.62–1.62")


def test_names_with_commas_are_listed_with_semicolons() -> None:
    assert text.listed_to(2, ["a", "b", "c"]) == "a, b and 1 more"
    assert text.listed_to(2, ["nginx, slow", "b"]) == "nginx, slow; b"
