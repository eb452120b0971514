"""Which settings make the difference of two variants.

Their designs, and the variants made of them.
"""

import numpy as np
import pytest

from builders import run_head
from webdyno.config import Catalogue
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.measure import Measure
from webdyno.core.run import RunHead
from webdyno.core.variant import Variant
from webdyno.questions.explain.experiments import interventions, limits_experiment
from webdyno.questions.explain.explain import MOST_SETTINGS, factorial_experiment, two_level_design
from webdyno.questions.explain.settings import DesignSettings, LimitsSettings


def experiment(**variants: Variant) -> Experiment:
    made = run_head({"a": "nginx", "b": "nginx"}).experiment
    return made.model_copy(update={"variants": variants})


def test_variants_have_each_setting_as_in_the_one_or_the_other() -> None:
    before = Variant(stack="nginx", settings={"workers": 1, "sendfile": True})
    after = Variant(stack="nginx", settings={"workers": 4, "access_log": True}, memory=2**26)
    asked = factorial_experiment("a", "b", experiment(a=before, b=after))
    design = asked.asks_as(DesignSettings)
    assert design.settings == [
        "access_log: its default → true",
        "sendfile: true → its default",
        "workers: 1 → 4",
        "memory: no limit → 64 MiB",
    ]
    assert len(asked.variants) == 8
    assert asked.variants["a"] == before
    for name, variant in asked.variants.items():
        log, sendfile, workers, memory = design.levels[name]
        assert variant.settings.get("access_log") == (True if log else None)
        assert variant.settings.get("sendfile") == (None if sendfile else True)
        assert variant.settings["workers"] == (4 if workers else 1)
        assert variant.memory == (2**26 if memory else None)
    Experiment.model_validate(asked.model_dump(exclude_none=True))


def test_why_a_run_is_fast_that_reported_what_settings_do_is_no_such_run_itself() -> None:
    head = run_head({"a": "nginx", "b": "nginx"})
    design = DesignSettings(settings=["workers: 1 → 4"], levels={"a": [False], "b": [True]})
    made = head.experiment.replace(asks=design)
    asked = limits_experiment("a", made, Catalogue.load(), head.machine.split)
    assert asked.asks_as(LimitsSettings).interventions


def test_without_quotas_the_rest_is_tried() -> None:
    head = run_head({"a": "nginx", "b": "nginx"})
    few = Variant(stack="nginx", settings={"workers": 4})
    made = head.experiment.model_copy(update={"variants": {"a": few, "b": Variant(stack="nginx")}})
    catalogue, split = Catalogue.load(), head.machine.split
    asked = limits_experiment("a", made, catalogue, split, cpu_time_is_ours=False)
    assert list(asked.variants) == ["a", "a, fewer connections", "a, workers = 2"]
    alone = Variant(stack="redis", site="keys", load={"connections": 1})
    made = made.model_copy(update={"variants": {"a": alone, "b": alone}})
    with pytest.raises(OperationError, match="a: nothing can be taken"):
        limits_experiment("a", made, catalogue, split, cpu_time_is_ours=False)


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (Variant(stack="nginx"), "differ in 0 settings"),
        (Variant(stack="caddy"), "differ in their stack"),
        (Variant(stack="nginx", settings={f"k{n}": n for n in range(16)}), "differ in 16 settings"),
    ],
)
def test_what_settings_alone_do_not_report_apart_is_refused(after: Variant, said: str) -> None:
    with pytest.raises(UserError, match=said):
        factorial_experiment("a", "b", experiment(a=Variant(stack="nginx"), b=after))


def test_what_there_is_can_be_taken() -> None:
    head = run_head({"a": "nginx", "b": "nginx"})
    variant = Variant(stack="nginx", settings={"workers": 4}, memory=2**30, testbed={"link": 1e8})
    testbed = head.experiment.testbed.model_copy(update={"kind": "netns"})
    made = head.experiment.model_copy(
        update={"variants": {"a": variant, "b": variant}, "testbed": testbed}
    )
    found = {
        it.resource: (it.share, changed)
        for it, changed in interventions("a", made, Catalogue.load(), head.machine.split)
    }
    assert set(found) == {
        "servers' CPU",
        "client's CPU",
        "link",
        "memory",
        "workers",
        "connections",
    }
    assert found["connections"][0] == pytest.approx(45 / 64)
    assert found["connections"][1].load == {"connections": 45}
    assert found["servers' CPU"][1].cpus == pytest.approx(0.7 * len(head.machine.split.servers))
    assert found["client's CPU"][1].testbed["client_cpus"] == pytest.approx(
        0.8 * len(head.machine.split.client)
    )
    assert found["link"][1].testbed["link"] == pytest.approx(7e7)
    assert found["memory"][1].memory == round(0.8 * 2**30)
    assert found["workers"][0] == 0.5
    assert found["workers"][1].settings["workers"] == 2


def test_how_a_run_was_measured_is_kept_where_it_was_said() -> None:
    head = run_head({"a": "nginx", "b": "nginx"}, measure=Measure(slot_s=2.0, budget_s=30.0))
    read = RunHead.model_validate_json(head.model_dump_json())
    asked = limits_experiment("b", read.experiment, Catalogue.load(), read.machine.split)
    assert (asked.measure.slot_s, asked.measure.budget_s, asked.measure.patience) == (2, 30, 1)


def test_the_experiment_compares_a_variant_with_itself_that_has_less() -> None:
    head = run_head({"a": "nginx", "b": "nginx"})
    asked = limits_experiment("b", head.experiment, Catalogue.load(), head.machine.split)
    assert list(asked.variants) == [
        "b",
        "b, less servers' CPU",
        "b, less client's CPU",
        "b, fewer connections",
        "b, workers = 1",
    ]
    less = asked.asks_as(LimitsSettings).interventions["b, less servers' CPU"]
    assert less.resource == "servers' CPU"
    assert asked.variants["b"] == head.experiment.variants["b"]
    assert (asked.measure.precision, asked.measure.patience) == (0.05, 2)
    Experiment.model_validate(asked.model_dump(exclude_none=True))


@pytest.mark.parametrize("settings", range(1, MOST_SETTINGS + 1))
def test_each_setting_is_changed_in_half_of_the_rows_and_apart_from_the_others(
    settings: int,
) -> None:
    rows = two_level_design(settings)
    signs = 2 * np.array(rows, dtype=int) - 1
    assert signs.shape[1] == settings
    assert (signs.T @ signs == len(rows) * np.eye(settings)).all()
    assert signs.sum(axis=0).tolist() == [0] * settings
    assert len(set(rows)) == len(rows)
    assert len(rows) <= max(2 * settings, 8)


@pytest.mark.parametrize("settings", range(1, MOST_SETTINGS + 1))
def test_the_first_row_changes_nothing(settings: int) -> None:
    assert not any(two_level_design(settings)[0])


@pytest.mark.parametrize("settings", [1, 2, 3])
def test_of_few_settings_there_are_all_combinations(settings: int) -> None:
    assert len(two_level_design(settings)) == 2**settings


@pytest.mark.parametrize("settings", [0, MOST_SETTINGS + 1])
def test_too_many_are_refused(settings: int) -> None:
    with pytest.raises(ValueError, match="1 to 15"):
        two_level_design(settings)
