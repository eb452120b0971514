"""Two-level designs: settings' effects aren't mixed up with each other's."""

import numpy as np
import pytest

from webdyno.search.design import MOST_SETTINGS, two_level_design


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
