"""Settings that are tried next, and which of them is best."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulations.tuning import SPACE, cost, gain, search, whole
from webdyno.core.setting import NumberSetting, Setting, SettingValue, Tuned
from webdyno.questions.tune.decide import (
    TriedSettings,
    best_of,
    key_of,
    next_settings,
    shares_of,
    space_of,
)


def test_only_settings_that_may_be_tuned_and_have_an_effect_are_changed() -> None:
    there: dict[str, Setting] = {
        "workers": whole(1, 8),
        "timeout": NumberSetting(type="whole", min=0, max=9, default=5, help=""),
        "threads": whole(1, 8).model_copy(update={"when": {"mpm": ["event"]}}),
        "children": whole(1, 8),
    }
    assert list(space_of(there, {"mpm": "prefork", "children": 4})) == ["workers"]


def test_the_range_that_is_tuned_may_be_narrower() -> None:
    setting = NumberSetting(
        type="whole",
        min=1,
        max=1024,
        default=1,
        help="",
        tune=Tuned(vendor="https://example.org", max=16),
    )
    assert setting.tuned_range == (1, 16)
    with pytest.raises(ValueError, match="tune should be between 1 and 8"):
        NumberSetting(
            type="whole",
            min=1,
            max=8,
            default=1,
            help="",
            tune=Tuned(vendor="https://example.org", max=16),
        )


@given(seed=st.integers(0, 2**31), tried=st.integers(0, 12))
def test_new_settings_are_new_and_right(seed: int, tried: int) -> None:
    known = [TriedSettings(it, (gain(it),)) for it in next_settings(SPACE, [], tried, seed)]
    found = next_settings(SPACE, known, 8, seed)
    assert len(found) == 8
    keys = [key_of(it) for it in found]
    assert len(set(keys)) == 8
    assert not set(keys) & {key_of(it.settings) for it in known}
    for settings in found:
        assert list(settings) == list(SPACE)
        for name, value in settings.items():
            assert SPACE[name].fault(value) is None


def test_first_ones_are_spread_over_the_whole_range() -> None:
    found = next_settings(SPACE, [], 8, seed=1)
    sizes = sorted(int(it["size"]) for it in found)
    assert sizes[0] <= 4
    assert sizes[-1] >= 128
    assert {it["mode"] for it in found} == {"plain", "fast", "odd"}


def test_a_small_space_comes_to_an_end() -> None:
    small: dict[str, Setting] = {"cache": SPACE["cache"], "workers": whole(1, 2)}
    everything: list[dict[str, SettingValue]] = [
        {"cache": cache, "workers": workers} for cache, workers in product((False, True), (1, 2))
    ]
    found = next_settings(small, [], 8, seed=3)
    assert sorted(map(key_of, found)) == sorted(map(key_of, everything))
    tried = [TriedSettings(it, (0.0,)) for it in found]
    assert next_settings(small, tried, 8, seed=4) == []


def test_half_of_what_is_tried_is_the_best_with_one_setting_changed() -> None:
    tried = [TriedSettings(it, (gain(it),)) for it in next_settings(SPACE, [], 8, seed=1)]
    best = max(tried, key=lambda it: it.gain).settings
    found = next_settings(SPACE, tried, 8, seed=2)
    turned = [[setting for setting in SPACE if it[setting] != best[setting]] for it in found]
    near = [settings for settings in turned if len(settings) == 1]
    assert len(near) == 4
    assert {setting for (setting,) in near} == set(SPACE)


def test_a_planted_optimum_is_found() -> None:
    found = [best_of(search(8, noise=0.02, seed=seed)) for seed in range(0, 100, 10)]
    assert all(it is not None and it.settings["mode"] == "fast" for it in found)
    costs = [cost(it.settings) for it in found if it is not None]
    assert max(costs) < 1.1
    assert sum(it <= 1.05 for it in costs) >= 9
    assert float(np.median(costs)) < 1.03


def test_the_best_of_much_noise_is_not_taken_for_better() -> None:
    rng = np.random.default_rng(5)
    tried = [TriedSettings({"size": size}, tuple(rng.normal(0, 0.02, 2))) for size in range(1, 6)]
    sure = TriedSettings({"size": 9}, tuple(rng.normal(0.1, 0.02, 4)))
    assert best_of([*tried, sure]) == sure
    assert (
        best_of(
            [TriedSettings({"size": 1}, (-0.1, -0.2)), TriedSettings({"size": 2}, (0.01, -0.03))]
        )
        is None
    )
    assert best_of([]) is None


def test_the_settings_that_matter_are_reported_first() -> None:
    near: dict[str, Setting] = SPACE | {"size": whole(24, 160)}
    rng = np.random.default_rng(11)
    spread = next_settings(near, [], 48, seed=11)
    tried = [TriedSettings(it, (gain(it) + float(rng.normal(0, 0.01)),)) for it in spread]
    shares = shares_of(near, tried, seed=0)
    assert {it.setting for it in shares} == set(SPACE)
    assert {it.setting for it in shares[:2]} == {"size", "mode"}
    assert sum(it.share for it in shares) == pytest.approx(1)
    assert all(0 <= it.low <= it.share <= it.high <= 1 for it in shares)
    assert shares_of(near, tried[:4], seed=0) == []
