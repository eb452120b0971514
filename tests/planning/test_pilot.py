"""Warm-up, ramp-up and window from simulated pilots, and from recorded ones of today's runtimes."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from simulations.steady import SLOW_START, TIME_S, WINDOW_S, noise, remembering, swing
from webdyno.measure.pilot_looks import PilotLook, series_of, step_after
from webdyno.planning.pilot import SHORTEST_WINDOW_S, Needs, settle
from webdyno.statistics.interval import Logs
from webdyno.statistics.steady import Series
from webdyno.statistics.steady_starts import next_step

RECORDED = json.loads((Path(__file__).parent / "pilots_of_runtimes.json").read_text())
"""Looks of a second at fresh servers on one CPU, then two starts of load; of runtimes that need
long the beginning of a second look."""
NEEDS = Needs(latency_s=0.003, quantile=None, slots_per_round=4, most_warmup_s=15, most_slot_s=10)
THROUGHPUT = np.log(20_000)


def series(logs: Logs) -> Series:
    return Series(WINDOW_S, THROUGHPUT + logs)


def starts(rng: np.random.Generator, lost: float, fades_s: float) -> list[list[Series]]:
    """Begin the load six times, each time slowly."""
    logs = np.log(1 - lost * np.exp(-TIME_S[:100] / fades_s))
    return [[series(logs + rng.normal(0, 0.01, 100))] for _ in range(6)]


def test_a_quick_steady_server_needs_next_to_nothing() -> None:
    rng = np.random.default_rng(0)
    pilot = settle([[series(noise(rng))]], starts(rng, 0, 1), NEEDS)
    assert pilot.steady
    assert pilot.warmup_s == 0
    assert pilot.ramp_up_s <= 0.2
    assert 0.2 <= pilot.window_s <= 0.6
    assert pilot.period_s is None


def test_cpu_time_has_to_be_steady_too() -> None:
    rng = np.random.default_rng(1)
    cpu = Series(WINDOW_S, np.log(50) + noise(rng) + np.where(TIME_S < 8, 0.3, 0))
    pilot = settle([[series(noise(rng) + SLOW_START), cpu]], [], NEEDS)
    assert pilot.steady
    assert pilot.warmup_s == pytest.approx(8, abs=0.2)


def test_cpu_time_may_be_reported_for_longer_than_the_rate() -> None:
    rng = np.random.default_rng(8)
    rate = series(noise(rng)[:100])
    cpu = Series(WINDOW_S, noise(rng) + np.where(TIME_S < 8, 0.3, 0))
    assert settle([[rate, cpu]], [], NEEDS).warmup_s == pytest.approx(8, abs=0.2)


def test_what_one_start_alone_shows_is_no_warm_up() -> None:
    rng = np.random.default_rng(9)
    warming = np.where(TIME_S < 0.8, -0.1, 0)
    interfered = series(noise(rng) + warming + np.where((TIME_S > 1) & (TIME_S < 8), -0.05, 0))
    again = series(noise(rng) + warming)
    pilot = settle([[interfered], [again]], [], NEEDS)
    assert pilot.steady
    assert pilot.warmup_s == pytest.approx(0.8, abs=0.2)
    never_steady = series(noise(rng) + warming + 0.2 * TIME_S / 20)
    assert settle([[never_steady], [again]], [], NEEDS).warmup_s == pilot.warmup_s


def test_a_level_that_is_seen_again_is_no_warm_up() -> None:
    """A machine whose other programs slow it down now and then, at the start as well."""
    rng = np.random.default_rng(11)
    slowed = series(noise(rng) + np.where(TIME_S < 8, -0.3, 0))
    assert settle([[slowed]], [], NEEDS).warmup_s == pytest.approx(8, abs=0.2)
    assert settle([[slowed]], [[series(noise(rng)[:16] - 0.3)]], NEEDS).warmup_s == 0
    other_way = series(noise(rng) + np.where(TIME_S < 8, 0.3, 0))
    pilot = settle([[slowed], [other_way]], [], NEEDS)
    assert (pilot.warmup_s, pilot.steady) == (0, True)
    assert "look like the rest" in pilot.why


def test_starts_of_load_after_a_look_that_was_too_short_are_no_proof() -> None:
    """Vert.x was seen for 16 s, then for 1 s at another start: it was cold there all the time."""
    rng = np.random.default_rng(17)
    long = series(noise(rng) + np.where(TIME_S < 6, -0.8, 0))
    short, begun = series(noise(rng)[:20] + TIME_S[:20] - 1.8), series(noise(rng)[:16] - 0.8)
    pilot = settle([[long], [short]], [[begun], [begun]], NEEDS)
    assert pilot.warmup_s == pytest.approx(6, abs=0.2)


def test_starts_may_be_reported_by_windows_of_other_lengths() -> None:
    rng = np.random.default_rng(13)
    early = series(noise(rng) + np.where(TIME_S < 0.1, -0.3, 0))
    coarse = [[Series(0.4, THROUGHPUT + rng.normal(0, 0.02, 12))] for _ in range(3)]
    assert settle([[early]], coarse, NEEDS).warmup_s == pytest.approx(0.1)
    assert settle([[early], coarse[0]], coarse, NEEDS).warmup_s == 0


def test_starts_of_load_report_before_another_fresh_start_has_to() -> None:
    """Throughput and CPU time, at a level that is left late: both have to be seen again."""
    rng = np.random.default_rng(16)
    slowed = np.where(TIME_S < 1, -0.4, 0)[:40]
    look = [series(noise(rng)[:40] + slowed), Series(WINDOW_S, noise(rng)[:40] - slowed)]
    assert next_step([look], is_last_start=False) == "again"

    def begun(rate: float, cost: float) -> list[Series]:
        return [series(noise(rng)[:12] + rate), Series(WINDOW_S, noise(rng)[:12] + cost)]

    assert next_step([look], [begun(0, 0), begun(-0.45, 0.45)], is_last_start=False) == "enough"
    for never in (begun(0, 0), begun(-0.45, 0), begun(0, 0.45)):
        assert next_step([look], [begun(0, 0), never], is_last_start=False) == "again"


def test_a_slow_swing_is_steady_unless_its_beginning_is_unlike_the_rest() -> None:
    rng = np.random.default_rng(12)
    steps = np.tile(np.repeat([0, -0.3, 0.05, -0.25, 0.0, -0.3, 0.05, -0.2], 10), 5)
    assert next_step([[series(noise(rng) + steps)]], is_last_start=True) == "enough"
    rising = np.repeat([-0.9, -0.7, -0.4, -0.2, 0.0, -0.1, 0.0, -0.1], 50)
    assert next_step([[series(noise(rng) + rising)]], is_last_start=True) == "longer"


def test_a_half_that_swings_as_much_as_the_other_is_not_unlike_it() -> None:
    """A second of Apache's event MPM, answers in 25 ms: its first half has 5% fewer."""
    # fmt: off
    responses = [
        123, 436, 416, 521, 492, 526, 565, 496, 527, 406, 323, 386, 389, 357, 338, 345,
        367, 422, 469, 452, 544, 541, 537, 420, 411, 383, 391, 361, 395, 434, 555, 528,
        511, 500, 538, 565, 528, 583, 571, 552,
    ]
    # fmt: on
    assert next_step([[Series.of_counts(responses, 0.025, 1)]], is_last_start=False) == "enough"


def test_what_every_start_shows_is_a_warm_up() -> None:
    rng = np.random.default_rng(10)
    fresh_starts = [[series(noise(rng) + SLOW_START)] for _ in range(3)]
    alone = settle(fresh_starts[:1], [], NEEDS)
    assert settle(fresh_starts, [], NEEDS).warmup_s == pytest.approx(alone.warmup_s, rel=0.2)


FADING = [
    *(
        167,
        171,
        176,
        177,
        181,
        182,
        185,
        187,
        190,
        192,
        191,
        196,
        199,
        200,
        203,
        204,
        206,
        208,
        209,
    ),
    *(
        212,
        212,
        215,
        214,
        218,
        218,
        220,
        222,
        223,
        223,
        225,
        227,
        227,
        228,
        229,
        230,
        231,
        232,
        220,
    ),
    *(228, 234),
]
"""Responses in windows of 25 ms of a server whose slow start fades with a time constant of 0.5 s;
at its end the machine stalled for a moment."""


def test_the_end_of_a_slow_start_is_not_steady() -> None:
    """It was, and what was counted from 0.5 s on came out 5% too low."""
    look = [Series.of_counts(FADING, 0.025)]
    assert next_step([look], is_last_start=False) != "enough"
    assert next_step([look, look], is_last_start=True) == "longer"


def test_a_longer_look_shows_more_than_a_short_one() -> None:
    age_s = np.arange(120) * 0.025
    longer = [Series(0.025, np.log(10_000 / (1 + 0.5 * np.exp(-age_s / 0.5))))]
    found = settle([[Series.of_counts(FADING, 0.025)], longer], [], NEEDS)
    assert found.warmup_s > 1.3


def test_what_is_not_steady_warms_up_as_long_as_it_may() -> None:
    rng = np.random.default_rng(2)
    pilot = settle([[series(noise(rng) + 0.2 * TIME_S / 20)]], [], NEEDS)
    assert not pilot.steady
    assert pilot.warmup_s == NEEDS.most_warmup_s
    late = replace(NEEDS, most_warmup_s=2)
    capped = settle([[series(noise(rng) + np.where(TIME_S < 6, -0.8, 0))]], [], late)
    assert (capped.steady, capped.warmup_s) == (False, 2)
    assert "the warm-up is cut to 2 s" in capped.why


def test_a_last_change_late_in_the_look_may_not_be_the_last() -> None:
    """Half more cost at first, fading in 0.5 s: it was warmed up for 1 s, and 10% were missing."""
    # fmt: off
    responses = [
        41, 43, 44, 44, 46, 45, 46, 47, 48, 48, 48, 49, 50, 50, 51, 51, 51, 52, 53, 52,
        54, 53, 54, 54, 55, 55, 56, 55, 56, 56, 57, 57, 57, 57, 58, 57, 58, 58, 59, 58,
        58, 59, 59, 60, 59, 60, 59, 60, 60, 60, 61, 60, 60, 61, 60, 61, 61, 61, 61, 61,
        61, 61, 61, 62, 61, 61, 62, 61, 62, 62, 61, 62, 62, 61, 62, 62, 62, 62, 62, 62,
    ]
    # fmt: on
    look = [Series.of_counts(responses, 0.025)]
    pilot = settle([[Series.of_counts(responses[:40], 0.025)], look], [], NEEDS)
    assert not pilot.steady
    assert pilot.warmup_s == NEEDS.most_warmup_s


def test_ramp_up_ends_when_windows_no_longer_know_of_the_loads_beginning() -> None:
    """A start that costs 20% and fades in 0.3 s: the bias after the ramp-up is below 1%."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        pilot = settle([[series(noise(rng))]], starts(rng, 0.2, 0.3), NEEDS)
        begin, size = round(pilot.ramp_up_s / WINDOW_S), round(pilot.window_s / WINDOW_S)
        bias = np.log(1 - 0.2 * np.exp(-TIME_S / 0.3))[begin : begin + size].mean()
        assert abs(bias) < 0.01
        assert pilot.ramp_up_s < 1.5


def test_a_hole_at_the_loads_beginning_is_no_stall() -> None:
    """All starts lose two windows: a ramp-up. One start loses two others: no ramp-up."""
    rng = np.random.default_rng(7)
    begins = [begun.logs.copy() for (begun,) in starts(rng, 0, 1)]
    for logs in begins:
        logs[:2] -= 1
    hole = settle([[series(noise(rng))]], [[Series(WINDOW_S, logs)] for logs in begins], NEEDS)
    assert hole.ramp_up_s == pytest.approx(2 * WINDOW_S)
    begins = [begun.logs.copy() for (begun,) in starts(rng, 0, 1)]
    begins[0][20:22] -= 1
    stall = settle([[series(noise(rng))]], [[Series(WINDOW_S, logs)] for logs in begins], NEEDS)
    assert stall.ramp_up_s <= 0.2


def test_a_short_look_counts_for_its_share_of_a_window() -> None:
    """What 0.3 s of nginx show next to stalls of the machine moves 0.55 s by less than 0.5%."""
    steady = Series(0.025, np.log(61_000) + np.random.default_rng(14).normal(0, 0.02, 40))
    stalled = [
        (1457, 1461, 1512, 1523, 1481, 1173, 1195, 1486, 1467, 1461, 1431, 1484),
        (1388, 1514, 1522, 1470, 1523, 1463, 1528, 1466, 1477, 1505, 1511, 1500),
        (1554, 1571, 1551, 1588, 1574, 1570, 1535, 1565, 1429, 1564, 1553, 1568),
        (1522, 1585, 1568, 1551, 1538, 1573, 1527, 1548, 1557, 1576, 1575, 1560),
        (1542, 1575, 1556, 1576, 1554, 1552, 1561, 1505, 1522, 1547, 1478, 1581),
        (1544, 1562, 1571, 1592, 1566, 1581, 1575, 1545, 1547, 1515, 1365, 1542),
    ]
    counts = [[Series.of_counts(each, 0.025)] for each in stalled]
    for begun in (counts[:2], counts[2:4], counts[4:]):
        assert settle([[steady]], begun, NEEDS).ramp_up_s <= 0.025


def test_a_climb_that_is_shorter_than_the_look_is_excluded_whole() -> None:
    rng = np.random.default_rng(15)
    climbs = [Series(0.025, rng.normal(0, 0.01, 40)) for _ in range(3)]
    for climb in climbs:
        climb.logs[:3] -= 0.5
    begun = [[Series(0.025, climb.logs[:12])] for climb in climbs[:2]]
    assert settle([[climbs[2]]], begun, NEEDS).ramp_up_s == pytest.approx(0.075)


def test_a_swing_gets_windows_of_whole_periods_and_a_ramp_up_past_its_climb() -> None:
    """The first 0.4 s, at the bottom of the swing, are some 5% low; these windows are not."""
    rng = np.random.default_rng(4)
    begins = [[series(swing(rng, 200))] for _ in range(6)]
    pilot = settle([[series(swing(rng))]], begins, NEEDS)
    assert pilot.period_s is not None
    assert pilot.period_s == pytest.approx(1.2, abs=0.4)
    assert pilot.window_s >= 2 * pilot.period_s * 0.99
    begin, size = round(pilot.ramp_up_s / WINDOW_S), round(pilot.window_s / WINDOW_S)
    many = np.array([swing(rng, 400) for _ in range(200)])
    bias = many[:, begin : begin + size].mean() - many.mean()
    assert abs(bias) < 0.01
    assert many[:, :8].mean() - many.mean() < -0.03


def test_windows_are_long_against_memory_responses_and_percentiles() -> None:
    rng = np.random.default_rng(5)
    after_start = [series(remembering(rng, 0.7))]
    assert settle([after_start], [], NEEDS).window_s == pytest.approx(5 * 5.7 * WINDOW_S, rel=0.4)
    slow = settle([[series(noise(rng))]], [], replace(NEEDS, latency_s=0.2))
    assert slow.window_s == pytest.approx(4)
    assert slow.ramp_up_s == pytest.approx(0.4)
    assert "20 times the latency" in slow.why
    few = [Series(WINDOW_S, np.log(50) + noise(rng))]
    asked = settle([few], [], replace(NEEDS, quantile=0.99))
    assert asked.window_s == pytest.approx(368 / 50 / 4, rel=0.05)
    assert "368 responses a round, which p99 needs" in asked.why


def test_what_the_budget_does_not_allow_is_cut_and_reported() -> None:
    rng = np.random.default_rng(6)
    logs = series(noise(rng))
    shorter = settle([[logs]], [], replace(NEEDS, latency_s=0.2, most_slot_s=3))
    assert shorter.steady
    assert shorter.ramp_up_s == pytest.approx(0.4)
    assert shorter.window_s == pytest.approx(2.6)
    assert "the time limit allows 2.6 s after a ramp-up of 0.4 s" in shorter.why
    both = settle([[logs]], [], replace(NEEDS, latency_s=1.0, most_slot_s=5))
    assert (both.ramp_up_s, both.window_s) == (2, 3)
    assert both.steady
    neither = settle([[logs]], [], replace(NEEDS, latency_s=2.0, most_slot_s=5))
    assert (neither.ramp_up_s, neither.window_s) == (2.5, 2.5)
    assert not neither.steady
    swinging = settle([[series(swing(rng))]], [], replace(NEEDS, most_slot_s=2))
    assert swinging.window_s == swinging.period_s


def test_caps_leave_room_for_the_fewest_rounds() -> None:
    needs = Needs.within(
        90, variants=2, start_s=0.3, latency_s=0.003, quantile=0.99, slots_per_round=4
    )
    assert needs.most_warmup_s == pytest.approx(2.4)
    assert needs.most_slot_s == pytest.approx(2.4)
    round_s = 2 * (0.3 + needs.most_warmup_s + 2 * needs.most_slot_s)
    assert 6 * round_s == pytest.approx(90)
    none = Needs.within(1, variants=2, start_s=3, latency_s=0.1, quantile=None, slots_per_round=4)
    assert (none.most_warmup_s, none.most_slot_s) == (0, SHORTEST_WINDOW_S)


def test_next_to_no_data_gives_next_to_no_answer() -> None:
    one = Series(WINDOW_S, np.zeros(1))
    pilot = settle([[one]], [[one], [one]], NEEDS)
    assert not pilot.steady
    assert pilot.warmup_s == NEEDS.most_warmup_s
    with pytest.raises(ValueError, match="windows of one length"):
        settle([[one]], [[Series(0.1, np.zeros(9))], [Series(0.2, np.zeros(9))]], NEEDS)


def look(recorded: dict[str, list[int]], length_s: float = 100.0) -> PilotLook:
    windows = round(length_s / 0.025)
    cpu_s = [cpu_us / 1e6 for cpu_us in recorded["cpu_us"]]
    return PilotLook(recorded["responses"][:windows], cpu_s[:windows])


@pytest.mark.parametrize(
    ("runtime", "step"), [("fastify", "again"), ("express", "longer"), ("vertx", "longer")]
)
def test_a_jit_that_is_faster_at_later_starts_of_load_still_warms_up(
    runtime: str, step: str
) -> None:
    """Fastify's second was called steady from 0.1 s on; it served 12,000/s then, 71,000/s later."""
    recorded = RECORDED[runtime]
    starts = [look(start) for start in recorded["starts"]]
    assert step_after([look(recorded["first"])], starts, is_last_start=False) == step


def test_a_steep_rise_among_disturbances_is_no_steady_state() -> None:
    """Koa with PostgreSQL rose to the eightfold; it was called steady from 0 s on.

    The rise itself counted as noise, in batches that a slow stretch near the end made long.
    """
    recorded = RECORDED["koa-postgresql"]
    looks = [look(recorded["first"]), look(recorded["second"])]
    starts = [look(start) for start in recorded["starts"]]
    pilot = settle(*series_of(looks, starts), NEEDS)
    assert 0.8 <= pilot.warmup_s <= 2, pilot


@pytest.mark.parametrize("length_s", [1, 2, 3])
def test_a_jit_that_gets_faster_and_cheaper_still_warms_up(length_s: float) -> None:
    """Spring Boot's throughput of now and then is seen again all the time: its compiler stalls it.

    It was said to need no warm-up.
    """
    recorded = RECORDED["spring-boot"]
    looks = [look(recorded["first"]), look(recorded["second"], length_s)]
    assert step_after(looks, [], is_last_start=True) == "longer"
    pilot = settle(*series_of(looks, []), NEEDS)
    assert (pilot.steady, pilot.warmup_s) == (False, NEEDS.most_warmup_s)


@pytest.mark.parametrize("runtime", ["bun", "axum", "actix-web", "puma-sinatra", "php-nginx"])
def test_what_is_compiled_before_or_never_needs_no_warm_up(runtime: str) -> None:
    recorded = RECORDED[runtime]
    starts = [look(start) for start in recorded["starts"]]
    looks = [look(recorded["first"])]
    assert step_after(looks, starts, is_last_start=False) == "enough"
    assert settle(*series_of(looks, starts), NEEDS).warmup_s == 0


def test_what_was_loaded_between_two_looks_is_a_part_of_the_warm_up() -> None:
    recorded = RECORDED["fastify"]
    first, starts = look(recorded["first"]), [look(start) for start in recorded["starts"]]
    first.go_on_with(starts * 14)
    pilot = settle(*series_of([first], starts), NEEDS)
    assert pilot.steady
    assert 0.7 <= pilot.warmup_s <= 1.2
