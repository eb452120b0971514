"""Simulated searches for the best settings, to see how often they find what is there.

Run as a program it prints the table of docs/validation/ranking-and-tuning.md:

    PYTHONPATH=tests .venv/bin/python tests/simulations/tuning.py [SEARCHES]
"""

import sys
from math import log

import numpy as np

from webdyno.core.setting import ChoiceSetting, NumberSetting, Setting, SwitchSetting, Tuned
from webdyno.questions.tune.decide import Settings, TriedSettings, best_of, key_of, next_settings

VENDOR = Tuned(vendor="https://example.org")


def whole(low: int, high: int) -> NumberSetting:
    return NumberSetting(type="whole", min=low, max=high, default=low, help="", tune=VENDOR)


SPACE: dict[str, Setting] = {
    "size": whole(1, 512),
    "mode": ChoiceSetting(
        type="choice", choices=["plain", "fast", "odd"], default="plain", help="", tune=VENDOR
    ),
    "cache": SwitchSetting(type="switch", default=True, help="", tune=VENDOR),
    "weight": NumberSetting(type="real", min=0, max=1, default=0.5, help="", tune=VENDOR),
}


def cost(settings: Settings) -> float:
    """Of the server in bench/tuning.py, as a multiple of the least."""
    size = settings["size"]
    assert isinstance(size, int)
    off = max(size / 64, 64 / size)
    return (0.75 + 0.25 * off) * (1 if settings["mode"] == "fast" else 1.25)


def gain(settings: Settings) -> float:
    """In ln, against the default."""
    return log(cost({"size": 16, "mode": "plain"}) / cost(settings))


def search(batches: int, noise: float, seed: int) -> list[TriedSettings]:
    """What batches of eight settings say, of which half leave after each round."""
    rng = np.random.default_rng(seed)
    gains: dict[object, list[float]] = {}
    settings: dict[object, Settings] = {}

    def known() -> list[TriedSettings]:
        return [TriedSettings(settings[key], tuple(it)) for key, it in gains.items()]

    for number in range(batches):
        best = sorted(known(), key=lambda it: -it.gain)[:1]
        racing = [it.settings for it in best] + next_settings(SPACE, known(), 8, seed + number)[:7]
        while racing:
            for each in racing:
                settings[key_of(each)] = each
                value = gain(each) + float(rng.normal(0, noise))
                gains.setdefault(key_of(each), []).append(value)
            left = {key_of(it): it for it in racing}
            order = sorted(left, key=lambda key: -float(np.mean(gains[key])))
            racing = [left[key] for key in order[: len(order) // 2]]
    return known()


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 150
    print("noise  batches  tried  within 5%  within 10%  median")  # noqa: T201
    for noise in (0.002, 0.03):
        for batches in (4, 6, 8):
            searches = [search(batches, noise, seed * 100) for seed in range(count)]
            found = [best_of(tried) for tried in searches]
            costs = np.array([cost(it.settings) if it else np.inf for it in found])
            print(  # noqa: T201
                f"{noise:5.1%}  {batches:6}  {len(searches[0]):5}  {np.mean(costs <= 1.05):10.0%}"
                f"  {np.mean(costs <= 1.1):11.0%}  {np.median(costs):6.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
