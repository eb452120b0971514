"""Rules about the client."""

import pytest

from builders import SimulatedVariant, service_use, simulated_run
from validity.broken import found_in, load_with, readings_with, run_with
from webdyno.core.judgement import ValidityWarning
from webdyno.core.load_result import Window
from webdyno.core.readings import CpuUse, StoppedUse
from webdyno.core.records import SlotRecord
from webdyno.core.testbed import Ceiling, Limit


@pytest.mark.parametrize(("busy", "fires"), [(0.5, False), (0.85, False), (0.86, True)])
def test_a_busy_client_is_the_bottleneck(busy: float, fires: bool) -> None:
    variants = {"nginx": SimulatedVariant(busy=busy), "apache": SimulatedVariant()}
    found = found_in(simulated_run(variants, rounds=6))
    assert ("client-limited" in found) == fires


def test_client_limited_invalidates_what_the_client_times_only() -> None:
    variants = {"nginx": SimulatedVariant(busy=0.97), "apache": SimulatedVariant()}
    warning = found_in(simulated_run(variants, rounds=6))["client-limited"]
    assert "97%" in warning.what
    assert "server_cpu_us" not in warning.metrics
    assert warning.metrics == ["latency_p50_us", "latency_p99_us"]
    assert "its throughput is at least what was measured" in warning.what
    assert "server_cpu_us" in warning.fix


@pytest.mark.parametrize(
    ("loop", "delay_us", "budget_us", "latency_us", "fires"),
    [
        ("open", 2_000.0, 0.0, 10_000.0, True),
        ("open", 2_000.0, 1_000.0, 10_000.0, True),
        ("open", 2_000.0, 2_000.0, 10_000.0, False),
        ("open", 2_000.0, 0.0, 50_000.0, False),
        ("open", 200.0, 0.0, 300.0, False),
        ("closed", 2_000.0, 0.0, 10_000.0, False),
    ],
)
def test_late_requests_invalidate_an_open_loop(
    loop: str, delay_us: float, budget_us: float, latency_us: float, fires: bool
) -> None:
    delay = {"p99": delay_us, "budget": budget_us}
    change = load_with(loop=loop, send_delay_us=delay, latency_us={"p99": latency_us})
    found = found_in(run_with(change))
    assert ("send-delay" in found) == fires


@pytest.mark.parametrize(
    ("waiting", "shared", "fires"),
    [
        (0.1, False, False),
        (0.2, False, True),
        (0.6, False, True),
        (0.6, True, False),
        (None, False, False),
    ],
)
def test_a_client_that_did_not_get_its_cpu_is_reported(
    waiting: float | None, shared: bool, fires: bool
) -> None:
    change = readings_with(client_waiting=waiting, shared_cpus=shared)
    found = found_in(run_with(change))
    assert ("client-cpu-starved" in found) == fires
    if fires:
        assert f"{waiting:.0%}"[:2] in found["client-cpu-starved"].what


def with_windows(*completed: int, median_us: float = 1_500.0) -> dict[str, ValidityWarning]:
    """Warnings of slots of four seconds in windows of one."""
    windows = [
        Window(at_s=float(at), length_s=1.0, completed=count) for at, count in enumerate(completed)
    ]
    change = load_with(windows=windows, latency_us={"p50": median_us})
    return found_in(run_with(change))


def test_a_stretch_without_answers_in_a_closed_loop_is_reported() -> None:
    warning = with_windows(9_112, 0, 0, 0)["stalls"]
    assert "for 3 s of a slot next to nothing was answered" in warning.what
    assert warning.severity == "note"


def test_answers_in_slow_bursts_are_no_stall() -> None:
    assert "machine-stalled" not in with_windows(64, 0, 64, 0, median_us=1_900_000)


def test_a_client_that_was_seen_stopped_is_reported() -> None:
    found = found_in(run_with(readings_with(stopped=StoppedUse(client_s=0.3))))
    assert "stalled for up to 0.3 s of a slot" in found["client-stalled"].what


@pytest.mark.parametrize(("gone", "fires"), [(1, False), (2, True)])
def test_a_slot_whose_windows_measure_nothing_is_reported(gone: int, fires: bool) -> None:
    """Windows in which the client stalled don't count; what is left isn't much of a slot."""
    windows = [
        Window(at_s=at / 5, length_s=0.2, completed=4_000, stalled=at < gone) for at in range(5)
    ]
    client = {"stalled_s": 0.2 * gone, "excluded_windows": gone}
    found = found_in(run_with(load_with(measured_s=1.0, windows=windows, client=client)))
    assert ("client-stalled" in found) == fires


@pytest.mark.parametrize("loop", ["open", "closed"])
@pytest.mark.parametrize(("still_s", "fires"), [(0.009, False), (0.011, True)])
def test_a_client_that_says_it_stalled_is_believed(loop: str, still_s: float, fires: bool) -> None:
    found = found_in(run_with(load_with(loop=loop, client={"stalled_s": still_s})))
    assert ("client-stalled" in found) == fires


@pytest.mark.parametrize(
    ("offered", "completed", "fires"),
    [
        (None, 20_000, False),
        (40_000.0, 20_000, False),
        (40_000.0, 19_700, False),
        (40_000.0, 19_000, True),
        (40_000.0, 21_000, True),
        (200.0, 90, False),
        (200.0, 60, True),
    ],
)
def test_a_rate_that_was_missed_is_reported(
    offered: float | None, completed: int, fires: bool
) -> None:
    change = load_with(
        loop="open",
        offered_rps=offered,
        requests={"completed": completed, "drained": 0},
        throughput_rps=completed / 0.5,
    )
    found = found_in(run_with(change))
    assert ("offered-rate" in found) == fires
    if fires and offered:
        assert f"{offered:,.0f} req/s were offered" in found["offered-rate"].what


@pytest.mark.parametrize(("due_together", "fires"), [(None, True), (20, False)])
def test_bursts_may_miss_the_rate_by_chance(due_together: int | None, *, fires: bool) -> None:
    """85 of 125 are too few where each comes alone, and may be two of six bursts fewer."""
    change = load_with(
        loop="open",
        offered_rps=250.0,
        due_together=due_together,
        requests={"completed": 85, "drained": 0},
    )
    assert ("offered-rate" in found_in(run_with(change))) == fires


@pytest.mark.parametrize(
    ("busiest", "says"),
    [(0.99, "Lower the arrival rate"), (0.3, "CPUs had time left"), (None, "Lower the arrival")],
)
def test_what_lacks_is_reported_by_how_busy_the_servers_were(
    busiest: float | None, says: str
) -> None:
    slower = load_with(
        loop="open", offered_rps=40_000.0, requests={"completed": 15_000, "drained": 0}
    )
    seen = readings_with(host={"busiest_server_cpu": busiest})
    found = found_in(run_with(lambda slot: seen(slower(slot))))
    assert says in found["offered-rate"].fix


def test_more_than_was_due_is_reported_as_what_came_late() -> None:
    found = found_in(
        run_with(
            load_with(loop="open", offered_rps=500.0, requests={"completed": 330, "drained": 0})
        )
    )
    said = found["offered-rate"]
    assert "500 req/s were offered, but 660 were answered: late ones came in addition" in said.what
    assert said.fix.startswith("Client or servers stalled before")


def in_thirds(
    *completed: int, drained: int, drain_s: float, median_us: float
) -> dict[str, ValidityWarning]:
    """Warnings of an open loop at 5,000/s over half a second."""
    windows = [
        Window(at_s=at / 6, length_s=1 / 6, completed=count) for at, count in enumerate(completed)
    ]
    change = load_with(
        loop="open",
        offered_rps=5_000.0,
        requests={"completed": sum(completed), "drained": drained},
        drain_s=drain_s,
        windows=windows,
        latency_us={"p50": median_us, "mean": median_us},
    )
    return found_in(run_with(change))


def test_a_server_that_keeps_up_from_far_away_is_not_too_slow() -> None:
    """At a round trip of 100 ms, 500 of 2,500 responses come after the slot's end."""
    found = in_thirds(334, 833, 833, drained=500, drain_s=0.1, median_us=100_000)
    assert "offered-rate" not in found


def test_a_queue_that_grows_is_no_keeping_up_though_it_is_worked_off_in_the_drain() -> None:
    found = in_thirds(667, 667, 666, drained=500, drain_s=0.125, median_us=62_000)
    assert "4,000" in found["offered-rate"].what or "3,996" in found["offered-rate"].what


def test_slots_shorter_than_a_response_are_judged_by_all_that_was_answered() -> None:
    assert "offered-rate" not in in_thirds(0, 0, 0, drained=2_500, drain_s=0.6, median_us=6e5)


THROUGHPUT_RPS = 40_000
"""Of simulated variants, give or take their noise of 2%."""


@pytest.mark.parametrize(
    ("ceiling_rps", "limit", "rule"),
    [
        (THROUGHPUT_RPS, "client", "client-ceiling"),
        (THROUGHPUT_RPS, "link", "link-limited"),
        (THROUGHPUT_RPS, "server", None),
        (THROUGHPUT_RPS * 2, "client", None),
        (THROUGHPUT_RPS / 2, "client", None),  # out of date: it was exceeded by far
    ],
)
def test_rates_near_a_ceiling(ceiling_rps: float, limit: Limit, rule: str | None) -> None:
    ceiling = Ceiling(throughput_rps=ceiling_rps, limited_by=limit)
    by_rule = found_in(run_with(readings_with(ceiling=ceiling)))
    assert by_rule.keys() & {"client-ceiling", "link-limited"} == ({rule} if rule else set())
    if rule:
        assert "webdyno doctor --calibrate" in by_rule[rule].what
        assert by_rule[rule].severity == ("invalid" if limit == "client" else "note")


def test_without_a_calibration_nothing_is_said() -> None:
    by_rule = found_in(run_with(readings_with()))
    assert not by_rule.keys() & {"client-ceiling", "link-limited"}


def test_a_stall_that_the_load_generator_explains_isnt_the_servers() -> None:
    windows = [Window(at_s=float(at), length_s=1.0, completed=9_000 * (at > 0)) for at in range(4)]
    client = {"stalled_s": 0.9}
    change = load_with(windows=windows, latency_us={"p50": 1_500.0}, client=client)
    found = found_in(run_with(change))
    assert "machine-stalled" in found
    assert "stalls" not in found


@pytest.mark.parametrize("asleep", [False, True])
def test_servers_that_sleep_are_not_excused_by_others_who_have_their_cpus(*, asleep: bool) -> None:
    windows = [Window(at_s=float(at), length_s=1.0, completed=9_000 * (at > 0)) for at in range(4)]
    service = service_use(waited_for_cpu_s=0.0 if asleep else 0.9)

    def change(slot: SlotRecord) -> SlotRecord:
        loaded = load_with(windows=windows, latency_us={"p50": 1_500.0})(slot)
        cpus = CpuUse(user_s=4.0, system_s=0.0, interrupts_s=0.0, idle_s=0.0, steal_s=0.0)
        host = {"servers": cpus, "took_s": 4.0}
        return readings_with(host=host, services={"apache": service})(loaded)

    found = found_in(run_with(change))
    assert ("stalls" in found) == asleep
    assert ("machine-stalled" in found) != asleep
