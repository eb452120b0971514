"""What every model shares."""

import pytest

from webdyno.core.measure import Measure


def test_a_record_with_other_values_keeps_the_rest() -> None:
    measure = Measure(precision=0.01, seed=7)
    assert measure.replace(seed=8, budget_s=30.0) == Measure(
        precision=0.01, seed=8, budget_s=30.0, patience=4.0
    )
    assert measure.seed == 7


def test_a_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(TypeError, match="Measure has no budget"):
        Measure().replace(budget=30.0)
