"""Where the trials of a search say that the capacity is: what it costs to find."""

from unittest.mock import Mock

import pytest
from scipy.optimize import minimize

from judge.searches import ROUNDS, Variant, searched
from webdyno.judge import judge

BEGINS, VARIANTS = 2, 2


def test_a_judgement_fits_each_search_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = searched(nginx=Variant(2_345), apache=Variant(6_789))  # of no other test
    fit = Mock(wraps=minimize)
    monkeypatch.setattr("scipy.optimize.minimize", fit)
    judge(run.data)
    assert fit.call_count == BEGINS * ROUNDS * VARIANTS
