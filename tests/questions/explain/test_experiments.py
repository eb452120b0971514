"""Which settings of a variant are suspected, what is tried, and how what came of it is reported."""

from dataclasses import replace

import pytest

from builders import SimulatedRun, SimulatedVariant, run_head, simulated_run
from validity.broken import readings_with
from webdyno.comparison import judge
from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.findings import Advice
from webdyno.core.measure import CapacitySettings, Measure
from webdyno.core.metrics import CAPACITY
from webdyno.core.records import SlotRecord
from webdyno.core.setting import SettingValue
from webdyno.core.variant import Variant
from webdyno.evidence.point_data import PointData
from webdyno.questions.explain.decide import SIGNS, AdviceEvidence, advice_evidence
from webdyno.questions.explain.experiments import advice_experiment, advice_for
from webdyno.questions.explain.settings import AdviceSettings
from webdyno.questions.explain.show import what_settings_are_worth, worth_trying

CATALOGUE = Catalogue.load()
SHOWN = AdviceEvidence(response_bytes=13, keeps_connections=True, busy=1.0)


def suspected(
    variant: Variant, shown: AdviceEvidence = SHOWN, **load: object
) -> dict[tuple[str, SettingValue], Advice]:
    head = run_head({"a": "nginx", "b": "nginx"})
    made = head.experiment.model_copy(
        update={
            "variants": {"a": variant, "b": variant},
            "load": head.experiment.load.model_copy(update=load),
        }
    )
    found = advice_for("a", made, CATALOGUE, head.machine.split, shown)
    return {(it.setting, it.tried): it for it in found}


def test_only_what_is_not_yet_better_is_tried() -> None:
    found = suspected(Variant(stack="apache-event", settings={"allow_override": True}))
    assert found["allow_override", False].now is True
    assert found["allow_override", False].vendor.startswith("https://httpd.apache.org/")
    assert ("access_log", False) not in found
    assert ("allow_override", False) not in suspected(Variant(stack="apache-event"))


def test_numbers_are_tried_larger_and_smaller_within_their_range() -> None:
    few = suspected(Variant(stack="nginx-phpfpm", site="hello-php", settings={"children": 2}))
    assert {value for setting, value in few if setting == "children"} == {8, 1}
    most = suspected(Variant(stack="nginx-phpfpm", site="hello-php", settings={"children": 1000}))
    assert {value for setting, value in most if setting == "children"} == {250}
    workers = suspected(Variant(stack="nginx", settings={"workers": 64}))
    cpus = len(run_head({"a": "nginx", "b": "nginx"}).machine.split.servers)
    assert {value for setting, value in workers if setting == "workers"} == {cpus}


def test_a_run_has_to_show_what_a_setting_needs_to_matter() -> None:
    slow = Variant(stack="nginx", settings={"sendfile": False, "gzip": True, "gzip_level": 9})
    assert not {("sendfile", True), ("gzip_level", 1)} & suspected(slow).keys()
    large = AdviceEvidence(response_bytes=1e6, keeps_connections=True, busy=1.0)
    assert ("sendfile", True) in suspected(slow, large)
    assert ("gzip_level", 1) in suspected(slow, headers={"accept-encoding": "gzip"})
    never = AdviceEvidence(response_bytes=13, keeps_connections=False, busy=1.0)
    assert ("backlog", 4096) in suspected(Variant(stack="nginx"), never)
    assert ("backlog", 4096) not in suspected(Variant(stack="nginx"))


@pytest.mark.parametrize("sign", SIGNS)
def test_each_sign_is_shown_by_some_runs_only(sign: str) -> None:
    shown = AdviceEvidence(response_bytes=1e6, keeps_connections=False, busy=0.3)
    nothing = AdviceEvidence(response_bytes=None, keeps_connections=True, busy=None)
    assert SIGNS[sign](shown)  # type: ignore[index]
    assert not SIGNS[sign](nothing)  # type: ignore[index]


def test_evidence_is_read_from_slots() -> None:
    made = simulated_run(
        {"a": SimulatedVariant(throughput_rps=20_000, server_cpu_us=25.0), "b": SimulatedVariant()},
        rounds=2,
    )
    found = advice_evidence(made.data, "a")
    assert found.busy == pytest.approx(0.5 / len(made.head.machine.split.servers), rel=0.1)
    assert found.keeps_connections
    assert found.response_bytes is not None


def test_each_piece_of_advice_has_a_variant_of_its_own() -> None:
    variant = Variant(stack="apache-event", settings={"allow_override": True, "access_log": True})
    head = run_head({"a": "nginx", "b": "nginx"})
    asked = advice_experiment(
        "a",
        head.experiment.model_copy(update={"variants": {"a": variant, "b": variant}}),
        list(suspected(variant).values()),
    )
    assert asked.variants["a"] == variant
    assert asked.variants["a, access_log = false"].settings == {
        "allow_override": True,
        "access_log": False,
    }
    assert set(asked.asks_as(AdviceSettings).tried) == set(asked.variants) - {"a"}
    Experiment.model_validate(asked.model_dump(exclude_none=True))


def tried(**gains: float) -> SimulatedRun:
    variants = {"a": SimulatedVariant()} | {
        name: SimulatedVariant(throughput_rps=SimulatedVariant().throughput_rps * gain)
        for name, gain in gains.items()
    }
    made = simulated_run(variants, rounds=10, restart_sd=0.005, slot_sd=0.005)
    advice = {
        name: Advice(setting=name, now=True, tried=False, says="waits", vendor="https://x.org/")
        for name in gains
    }
    return made.asking(AdviceSettings(tried=advice))


def test_only_sure_gains_are_claimed_the_largest_first() -> None:
    made = tried(log=1.1, cache=1.3, none=1.0)
    found = judge(made.data).gains
    assert [it.is_sure for it in found] == [True, True, False]
    first, second, rest = what_settings_are_worth(found)
    assert first.startswith("a: cache = false is worth 1.298× (1.290–1.306×)")
    assert first.endswith(": with true it waits (https://x.org/).")
    assert second.startswith("a: log = false is worth 1.098× (1.090–1.106×)")
    assert rest.startswith("a: no gain is sure of none = false (0.9")


def test_a_gain_from_too_few_rounds_is_not_called_none() -> None:
    made = tried(cache=3.0)
    found = judge(
        PointData.of(made.head, [it for it in made.records if (it.round or 0) <= 3])
    ).gains
    (reported,) = what_settings_are_worth(found)
    assert reported.startswith("a: more time (--time) would decide cache = false (2.9")


def test_a_gain_in_what_is_better_low_is_above_one() -> None:
    made = tried(log=1.0)
    measure = made.head.experiment.measure.model_copy(update={"decide_on": "server_cpu_us"})
    experiment = made.head.experiment.model_copy(update={"measure": measure})
    slow = simulated_run(
        {"a": SimulatedVariant(server_cpu_us=20), "log": SimulatedVariant(server_cpu_us=10)},
        rounds=8,
    )
    (found,) = judge(
        PointData.of(made.head.model_copy(update={"experiment": experiment}), slow.records)
    ).gains
    assert found.is_sure
    assert found.ratio.low < 2 < found.ratio.high


def with_full_queues(made: SimulatedRun, variant: str) -> SimulatedRun:
    """The listen queue of that variant is full in each slot."""
    full, quiet = (readings_with(network={"dropped": n, "listen_drops": n}) for n in (5, 0))
    records = [
        (full if it.variant == variant else quiet)(it) if isinstance(it, SlotRecord) else it
        for it in made.records
    ]
    return SimulatedRun(made.head, records)


def test_what_fixes_a_broken_rule_is_tried_alone_and_claimed_first() -> None:
    plain = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=2)
    full = with_full_queues(plain, "a").data
    shown = advice_evidence(full, "a")
    assert shown.broken == {"listen-overflow"}
    never = replace(shown, keeps_connections=False)
    found = suspected(Variant(stack="nginx", settings={"access_log": True}), never)
    assert list(found) == [("backlog", 4096)]
    advice = found["backlog", 4096]
    experiment = plain.head.experiment
    assert advice_experiment("a", experiment, [advice]).measure.decide_on == "server_cpu_us"
    searching = experiment.replace(capacity=CapacitySettings(slo=["p99<50ms"]))
    asked = advice_experiment("a", searching.with_measure(decide_on=CAPACITY), [advice])
    assert asked.measure.decide_on == CAPACITY

    made = tried(backlog=1.0)
    asks = AdviceSettings(tried={"backlog": advice})
    update = {"asks": asks, "measure": Measure(decide_on="server_cpu_us")}
    head = made.head.model_copy(
        update={"experiment": made.head.experiment.model_copy(update=update)}
    )
    for variant, sure in (("a", True), ("backlog", False)):
        (gain,) = judge(PointData.of(head, with_full_queues(made, variant).records)).gains
        assert gain.is_sure is sure
        (reported,) = what_settings_are_worth([gain])
        assert reported.startswith(
            "a: backlog = 4,096 fixes that connections find" if sure else "a: no"
        )


def test_what_was_not_tried_is_only_worth_trying() -> None:
    advice = Advice(setting="log", now=True, tried=False, says="waits", vendor="https://x.org/")
    (reported,) = worth_trying("a", [advice])
    assert reported == "a: worth trying is log = false: with true it waits (https://x.org/)."
    (none,) = worth_trying("a", [])
    assert "no known cause" in none


def test_what_only_matters_over_tls_is_tried_where_the_load_speaks_it() -> None:
    slow = Variant(stack="nginx", settings={"tls_resumption": False})
    never = AdviceEvidence(response_bytes=13, keeps_connections=False, busy=1.0)
    assert ("tls_resumption", True) in suspected(slow, never, protocol="https")
    assert ("tls_resumption", True) not in suspected(slow, never)


def test_gains_are_of_the_metric_that_the_run_decides_on() -> None:
    experiment = run_head({"a": "nginx", "b": "nginx"}).experiment
    measure = experiment.measure.model_copy(update={"decide_on": "server_cpu_us"})
    advice = Advice(
        setting="access_log", now=True, tried=False, says="waits", vendor="https://x.org/"
    )
    asked = advice_experiment("a", experiment.model_copy(update={"measure": measure}), [advice])
    assert asked.measure.decide_on == "server_cpu_us"
