"""The test of Shapiro and Wilk gives what scipy gives."""

import numpy as np
import pytest
from scipy.stats import shapiro

from webdyno.judge.normality import shapiro_wilk_p


@pytest.mark.parametrize("n", [6, 7, 11, 12, 30, 300])
def test_it_gives_what_scipy_gives(n: int) -> None:
    rng = np.random.default_rng(n)
    for values in (
        rng.normal(0, 1, n),
        rng.standard_cauchy(n),
        rng.exponential(1, n),
        *_outlying(n),
    ):
        assert shapiro_wilk_p(values) == pytest.approx(shapiro(values).pvalue, rel=1e-3, abs=1e-12)


def _outlying(n: int) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    values = np.linspace(-1, 1, n)
    return [np.append(values[:-1], far) for far in (5.0, 1e3)]
