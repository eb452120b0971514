"""`webdyno capacity` of one system: its experiment, and what is refused."""

import pytest

from webdyno.core.errors import Exit, UserError
from webdyno.core.experiment import Experiment
from webdyno.questions.capacity.command import capacity


def test_one_system_is_an_experiment_of_one_variant(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, Experiment]] = []

    def measure(name: str, experiment: Experiment, *_: object, **__: object) -> Exit:
        seen.append((name, experiment))
        return Exit.OK

    monkeypatch.setattr("webdyno.interfaces.cli.result.measure_and_show", measure)
    assert capacity("nginx", slo=["p99<20ms"]) is Exit.OK
    ((name, experiment),) = seen
    assert name == "nginx"
    assert list(experiment.variants) == ["nginx"]
    assert experiment.question.startswith("How much can nginx take")
    assert experiment.capacity
    assert experiment.capacity.slo == ["p99<20ms"]


def test_curves_need_a_second_system() -> None:
    with pytest.raises(UserError, match="--curves: are drawn for two systems"):
        capacity("nginx", curves=True)
