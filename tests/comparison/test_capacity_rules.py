"""Searches for the capacity, judged: planted trials, and what is said of them."""

import pytest
from pydantic import ValidationError

from builders import SimulatedRun, run_head
from comparison.searches import Variant, searched
from evidence.stretches import Truth, stretch
from webdyno.comparison import decide, judge
from webdyno.comparison.sentences import sentence
from webdyno.core.experiment import Experiment
from webdyno.core.judgement import Verdict
from webdyno.core.measure import CapacitySettings
from webdyno.core.metrics import CAPACITY
from webdyno.core.records import SlotRecord
from webdyno.measure.long_look import doubtful


def rules(run: SimulatedRun) -> dict[str, str]:
    """What is found, by rule: how bad."""
    return {it.rule: it.severity for it in judge(run.data).warnings}


def test_the_larger_capacity_wins_by_its_ratio() -> None:
    judged = judge(searched(apache=Variant(15_000), nginx=Variant(50_000)).data)
    assert judged.verdict is Verdict.FASTER
    assert [metric.name for metric in judged.metrics] == [CAPACITY]
    ratio = judged.comparisons[0].ratio
    assert ratio
    assert ratio.estimate == pytest.approx(50 / 15, rel=0.03)
    assert judged.headline.startswith("nginx is better: 3.3")
    assert judged.warnings == []


def test_equal_capacities_are_not_reported_apart() -> None:
    judged = judge(searched(a=Variant(15_000), b=Variant(15_000)).data)
    assert judged.verdict in {Verdict.EQUIVALENT, Verdict.INCONCLUSIVE}


def test_beyond_the_client_it_is_at_least() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000, client_rps=30_000))
    judged = judge(run.data)
    assert judged.verdict is Verdict.FASTER
    assert judged.comparisons[0].limited_by == {"nginx": "client"}
    assert "at least" in judged.headline
    assert rules(run) == {"client-limited": "note"}


def test_where_both_are_beyond_the_client_more_rounds_would_show_no_more() -> None:
    run = searched(
        apache=Variant(50_000, client_rps=30_000), nginx=Variant(50_000, client_rps=30_000)
    )
    judged = judge(run.data)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert "oth nginx and apache were client-limited: each can take at least" in judged.headline
    assert "more round" not in judged.headline
    assert "too close to call" not in judged.headline


def test_servers_that_do_not_come_back_are_reported() -> None:
    run = searched(apache=Variant(15_000, comes_back=False), nginx=Variant(50_000))
    assert rules(run) == {"does-not-come-back": "note"}


def test_servers_that_die_of_a_load_are_reported() -> None:
    run = searched(apache=Variant(15_000, dies=True), nginx=Variant(50_000))
    judged = judge(run.data)
    assert judged.verdict is Verdict.FASTER
    assert rules(run) == {"dies": "note"}
    (found,) = judged.warnings
    assert found.what.startswith("variant apache: apache ended with exit code 137, in 24 trials")


def test_without_any_rate_that_holds_there_is_no_verdict() -> None:
    run = searched(apache=Variant(15_000, holds=False), nginx=Variant(50_000))
    assert judge(run.data).verdict is Verdict.INVALID
    assert rules(run)["no-capacity"] == "invalid"


def test_a_client_that_is_late_at_any_rate_is_reported_from_a_slow_server() -> None:
    run = searched(apache=Variant(15_000, holds=False), nginx=Variant(50_000))
    (found,) = (it for it in judge(run.data).warnings if it.rule == "no-capacity")
    assert "load generator" not in found.what
    for number, it in enumerate(run.records):
        if isinstance(it, SlotRecord) and it.trial:
            late = it.trial.model_copy(update={"client_limited": True})
            run.records[number] = it.model_copy(update={"trial": late})
    (found,) = (it for it in judge(run.data).warnings if it.rule == "no-capacity")
    assert "where the load generator itself was still too late" in found.what


def test_it_stops_early_where_a_variant_never_holds() -> None:
    run = searched(apache=Variant(15_000, holds=False), nginx=Variant(50_000))
    stop = decide(run.data, elapsed_s=100.0)
    assert stop
    assert (stop.reason, stop.why) == (
        "nothing-valid",
        "variant apache has no capacity in 8 rounds",
    )


def test_keep_alive_on_one_side_only_is_caught() -> None:
    run = searched(apache=Variant(15_000, server_closes=True), nginx=Variant(50_000))
    assert judge(run.data).verdict is Verdict.INVALID
    assert rules(run)["keep-alive"] == "invalid"


def test_a_search_has_the_time_that_it_takes_and_decides() -> None:
    experiment = searched(a=Variant(1), b=Variant(2)).head.experiment
    assert experiment.measure.decide_on == CAPACITY
    assert experiment.measure.budget_s == 600
    assert experiment.capacity
    assert experiment.capacity.deciding_s == 4.0
    assert CapacitySettings(slo=["p99<1s", "p50<10ms"]).deciding_s == 50.0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load": {"loop": "open", "rate_per_s": 10.0}}, 'loop = "open"'),
        ({"load": {"arrival_unit": "connection", "keepalive": 5}}, 'arrival_unit = "connection"'),
        ({"load": {"think_s": 1.0}}, "think_s"),
        ({"generator": "ab"}, "generator"),
        ({"measure": {"decide_on": "throughput_rps"}}, "decide_on"),
        ({"capacity": {"slo": ["p99>1s"]}}, "is no objective"),
    ],
)
def test_what_does_not_fit_a_search_is_refused(changes: dict[str, object], said: str) -> None:
    head = run_head({"a": "nginx", "b": "apache-event"})
    given = head.experiment.model_dump(exclude_unset=True) | {"measure": {}}
    with pytest.raises(ValidationError, match=said):
        Experiment.model_validate(given | {"capacity": {"slo": ["p99<50ms"]}} | changes)


def test_a_capacity_needs_objectives() -> None:
    given = run_head({"a": "nginx", "b": "caddy"}).experiment.model_dump(exclude_unset=True)
    with pytest.raises(ValidationError, match=r"needs a table \[capacity\]"):
        Experiment.model_validate(given | {"measure": {"decide_on": CAPACITY}})


def confirmed(
    run: SimulatedRun, truth: Truth, beyond: int, *, client_limited: bool = False
) -> SimulatedRun:
    """Add load just below the second variant's capacity, with so many late responses."""
    trial = next(it.trial for it in run.records if isinstance(it, SlotRecord) and it.trial)
    asked = 10_000
    held = trial.replace(
        asked=asked, beyond=[beyond] * len(trial.beyond), client_limited=client_limited
    )
    record = stretch(truth, variant="nginx").replace(trial=held)
    return SimulatedRun(run.head, [*run.records, record])


def test_a_server_whose_stalls_break_the_objective_has_no_capacity() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000))
    stalling = Truth(every_s=6.0, stall_s=1.0, looked_s=30.0)
    judged = judge(confirmed(run, stalling, beyond=1_600).data)
    assert judged.verdict is Verdict.INVALID
    (found,) = (it for it in judged.warnings if it.rule == "no-capacity")
    assert "stalls of" in found.what


def first_rounds(run: SimulatedRun, rounds: int) -> SimulatedRun:
    return SimulatedRun(run.head, [it for it in run.records if (it.round or 0) <= rounds])


def test_a_server_that_stalls_in_trials_is_looked_at_before_another_round() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000, stalls=True))
    once = first_rounds(run, 1)
    assert list(doubtful(once.data)) == ["nginx"]
    assert not doubtful(first_rounds(run, 0).data)
    stalling = confirmed(once, Truth(every_s=6.0, stall_s=1.0, looked_s=30.0), beyond=1_600)
    stop = decide(stalling.data, elapsed_s=100.0)
    assert stop
    assert (stop.reason, stop.why) == ("nothing-valid", "variant nginx has no capacity in 1 round")
    assert judge(stalling.data).verdict is Verdict.INVALID


def test_one_whose_objectives_hold_for_longer_all_the_same_goes_on() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000, stalls=True))
    looked = confirmed(first_rounds(run, 1), Truth(looked_s=30.0), beyond=5)
    assert decide(looked.data, elapsed_s=100.0) is None
    assert not doubtful(looked.data)
    later = [it for it in run.records if (it.round or 0) > 1]
    whole = SimulatedRun(run.head, [*looked.records, *later])
    assert not doubtful(whole.data), "once is enough"
    assert not whole.data.looks, "the last one is made at the capacity that all rounds found"


def test_a_capacity_that_doesnt_hold_for_longer_is_no_verdict() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000))
    judged = judge(confirmed(run, Truth(looked_s=30.0), beyond=300).data)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert rules(confirmed(run, Truth(looked_s=30.0), beyond=300))["not-confirmed"] == "note"


def test_a_client_that_was_late_confirms_nothing_and_that_is_reported() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000))
    judged = judge(confirmed(run, Truth(looked_s=30.0), 300, client_limited=True).data)
    assert judged.verdict is Verdict.INCONCLUSIVE
    (found,) = (it for it in judged.warnings if it.rule == "not-confirmed")
    assert "load generator itself was too late" in found.what


def test_a_confirmed_capacity_stands() -> None:
    run = searched(apache=Variant(15_000), nginx=Variant(50_000))
    assert judge(confirmed(run, Truth(looked_s=30.0), 5).data).verdict is Verdict.FASTER


def test_a_capacity_that_ended_with_the_connections_leaves_the_ratio_one_end() -> None:
    crowded = Variant(50_000, latency_us=1_250)
    (found,) = judge(searched(apache=Variant(15_000), nginx=crowded).data).comparisons
    assert found.verdict is Verdict.FASTER
    assert found.limited_by == {"nginx": "load"}
    assert "at least 3.3" in sentence(found)
    assert "(95% CI from 3.2" in sentence(found)
    (turned,) = judge(searched(nginx=crowded, apache=Variant(15_000)).data).comparisons
    assert "at most 0.3" in sentence(turned)


@pytest.mark.parametrize("slower", ["apache", "nginx"])
def test_who_is_better_isnt_known_where_the_slower_one_was_limited_by_the_load(slower: str) -> None:
    limited, other = Variant(15_000, latency_us=1_250 * 50 / 15), Variant(50_000)
    apache, nginx = (limited, other) if slower == "apache" else (other, limited)
    judged = judge(searched(apache=apache, nginx=nginx).data)
    assert judged.verdict is Verdict.INCONCLUSIVE
    assert judged.comparisons[0].limited_by == {slower: "load"}
    assert f"but {slower} was load-limited, and may take more than found" in judged.headline


def test_of_two_such_capacities_neither_end_is_known() -> None:
    crowded = Variant(50_000, latency_us=1_250)
    judged = judge(searched(apache=crowded, nginx=crowded).data)
    assert "both nginx and apache were load-limited: each can take at least" in judged.headline
