"""Experiments that are made of others: what of these stays, and what doesn't."""

import pytest

from builders import run_head
from webdyno.core.errors import UserError
from webdyno.core.experiment import CONDITIONS, Experiment
from webdyno.core.findings import Advice
from webdyno.core.load import Load
from webdyno.core.measure import CapacitySettings, Measure, MeasureChanges
from webdyno.core.metrics import CAPACITY
from webdyno.core.setting import TunedVariant
from webdyno.core.variant import Variant
from webdyno.questions.compare.settings import CompareSettings, OneSidedSettings
from webdyno.questions.explain.settings import AdviceSettings
from webdyno.questions.gate.settings import GateSettings

VARIANTS = {"a": Variant(stack="nginx"), "b": Variant(stack="nginx", settings={"workers": 1})}
ADVICE = Advice(setting="workers", now=1, tried=2, says="waits", vendor="https://x.org/")
STUDIES = {
    "tuning": [
        TunedVariant(
            name="b",
            variant="b",
            default_variant="a",
            stack="nginx",
            searched=["workers"],
            settings={"workers": 1},
            used_s=60.0,
            tried=4,
            rounds=8,
            measurements=16,
            steps=[],
            shares=[],
        )
    ],
    "profile": True,
    "asks": GateSettings(),
    "factors": {"load.connections": [1, 8]},
}
"""What an experiment can be besides a comparison, each with a value that says that it is."""


def whole(**changes: object) -> Experiment:
    """An experiment of two variants, with these changes, whether they fit together or not."""
    return run_head({"a": "nginx", "b": "nginx"}).experiment.replace(variants=VARIANTS, **changes)


def test_all_of_an_experiment_is_said_again_or_stays_or_goes() -> None:
    again = {"title", "question", "variants", "measure"}
    assert set(Experiment.model_fields) == again | CONDITIONS | set(STUDIES)


@pytest.mark.parametrize("study", STUDIES)
def test_what_another_experiment_was_does_not_stay(study: str) -> None:
    made = whole(**{study: STUDIES[study]}).derive("Another", "What of it?", VARIANTS)
    assert getattr(made, study) == getattr(whole(), study)


def test_what_it_becomes_is_said() -> None:
    advised = AdviceSettings(tried={"b": ADVICE})
    made = whole(**STUDIES).derive("Another", "What of it?", VARIANTS, asks=advised)
    assert made.asks == advised
    assert (made.title, made.question, made.variants) == ("Another", "What of it?", VARIANTS)


def test_the_conditions_stay() -> None:
    load = Load(connections=7)
    made = whole(load=load, workload={"requests": 3}).derive("Another", "What of it?", VARIANTS)
    assert (made.load, made.workload) == (load, {"requests": 3})


def test_a_search_for_the_capacity_stays_one() -> None:
    searching = whole(capacity=CapacitySettings(slo=["p99<50ms"])).with_measure(decide_on=CAPACITY)
    made = searching.derive("Another", "What of it?", VARIANTS)
    assert (made.capacity, made.measure.decide_on) == (searching.capacity, CAPACITY)


def test_a_question_in_one_direction_was_about_other_variants() -> None:
    asking = whole(asks=OneSidedSettings(claim="faster"), measure=Measure(precision=0.01))
    made = asking.derive("Another", "What of it?", VARIANTS)
    assert (made.asks, made.measure.precision) == (CompareSettings(), 0.01)


def test_what_does_not_fit_together_is_refused() -> None:
    with pytest.raises(UserError, match="Another: decide_on = "):
        whole().derive("Another", "What of it?", VARIANTS, Measure(decide_on=CAPACITY))


def test_how_it_is_measured_can_be_set_otherwise() -> None:
    made = whole(measure=Measure(seed=7)).with_measure(budget_s=30.0, patience=1.0)
    assert made.measure == Measure(seed=7, budget_s=30.0)
    assert set(Measure.model_fields) >= MeasureChanges.__annotations__.keys()
