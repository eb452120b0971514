"""How tuning decides: which settings to try next, which leave, and which is the best.

The first ones are spread evenly (a scrambled Sobol sequence). Of those after them half are the best
one so far with one setting changed (the neighbourhood of SMAC: Hutter, Hoos, Leyton-Brown,
"Sequential model-based optimization for general algorithm configuration", LION 2011), half are
drawn where good ones were found (tree-structured Parzen estimators over all settings together:
Bergstra et al., "Algorithms for hyper-parameter optimization", NIPS 2011, as Optuna has them):
those alone often stay with a wrong choice that came with other good values. All is a function of
what is on record and the seed, so that an interrupted search goes on as it would have.

Rounds sort out the bad ones of each batch by halving: after each the worse half leaves, and the
baseline stays (Karnin, Koren, Somekh, "Almost optimal exploration in multi-armed bandits", ICML
2013).
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import cycle, islice
from math import exp, log
from random import Random
from statistics import fmean, stdev
from typing import TYPE_CHECKING

import numpy as np

from webdyno.comparison.question import RaceQuestion
from webdyno.core.metrics import METRICS
from webdyno.core.setting import ChoiceSetting, NumberSetting, Setting, SettingShare, SettingValue
from webdyno.evidence.point_data import PointData, compute_once
from webdyno.validity import valid_for

if TYPE_CHECKING:  # it takes a second to import
    from optuna import Study
    from optuna.distributions import BaseDistribution

Settings = Mapping[str, SettingValue]
Space = Mapping[str, Setting]
WIDE = 10
"""A range whose end is so many times its beginning is searched in logarithms."""
STEPS = (0.03, 0.3)
"""Standard deviation of a step, as a share of the range: from fine to coarse."""
ASKS = 8
"""Times as many as are wanted: most of a small space has been tried soon."""
CARRIED_ON = 1.0
"""Standard errors by which settings are taken to be worse than they look, since the best of many
look better than they are."""
DRAWS, TREES, ENDS = 20, 16, (5, 95)
FEWEST_FOR_SHARES = 24


class HalvingQuestion(RaceQuestion):
    """Which settings of one stack are better than its default, as tuning asks."""

    def next_variants(self, data: PointData) -> list[str]:
        """Return the baseline, and the others that were in the better half after each round."""
        return _better_halves(data)

    @property
    def piloted_variants(self) -> list[str]:
        """The baseline, which speaks for other settings of its stack."""
        return list(self.experiment.variants)[:1]

    def measured_alike(self, variant: str) -> list[str]:
        """Return all variants: they are settings of one stack."""
        return [variant, *(other for other in self.experiment.variants if other != variant)]

    @cached_property
    def fewest_rounds(self) -> int:
        return 1

    def _over(self, data: PointData) -> str:
        over = data.rounds and len(self.next_variants(data)) <= 2
        return "no more than one variant is left besides the baseline" if over else ""


@compute_once
def _better_halves(data: PointData) -> list[str]:
    """Return the baseline, and the variants that were in the better half after each round."""
    baseline, *others = data.experiment.variants
    failed = {incident.variant for incident in data.incidents}
    racing = [variant for variant in others if variant not in failed]
    for rounds in range(1, len(data.rounds) + 1):
        gains = gains_on_baseline(data.first(rounds))
        known = [variant for variant in racing if variant in gains]
        better = sorted(known, key=lambda variant: -fmean(gains[variant]))
        racing = better[: -(-len(racing) // 2)]
    return [
        variant for variant in data.experiment.variants if variant == baseline or variant in racing
    ]


def gains_on_baseline(data: PointData) -> dict[str, list[float]]:
    """Return each variant's gains on the baseline, in ln, in the rounds that both have."""
    rule = METRICS[data.measure.decide_on]
    valid = valid_for(data, rule.name)
    sign = 1 if rule.metric.better == "higher" else -1
    baseline, *others = data.experiment.variants
    known = valid.values(baseline, rule)
    logs = {
        variant: [
            sign * log(value / known[round_number])
            for round_number, value in valid.values(variant, rule).items()
            if round_number in known and value > 0 and known[round_number] > 0
        ]
        for variant in others
    }
    return {variant: gains for variant, gains in logs.items() if gains}


@dataclass(frozen=True)
class TriedSettings:
    """Settings, and by how much they were better than the default, in ln, round by round."""

    settings: Settings
    gains: tuple[float, ...]

    @property
    def gain(self) -> float:
        return fmean(self.gains)


def space_of(settings: Mapping[str, Setting], fixed: Settings) -> dict[str, Setting]:
    """Keep the settings that tuning may change, have an effect, and aren't fixed by the user."""
    return {
        name: setting
        for name, setting in settings.items()
        if setting.tune is not None and name not in fixed and not setting.idle(fixed)
    }


def key_of(settings: Settings) -> tuple[tuple[str, SettingValue], ...]:
    return tuple(sorted(settings.items()))


def next_settings(
    space: Space, tried: Sequence[TriedSettings], wanted: int, seed: int
) -> list[dict[str, SettingValue]]:
    """Return settings that weren't tried yet, as many as are wanted unless there are fewer."""
    if not tried:
        return _first_new(_evenly_spread(space, wanted, seed), [], wanted)
    known: list[Settings] = [settings.settings for settings in tried]
    best = max(tried, key=lambda settings: settings.gain).settings
    near = _first_new(_near(space, best, wanted * ASKS, seed), known, wanted // 2)
    study, distributions = _study(space, tried, seed), _distributions(space)
    likely = (dict(study.ask(distributions).params) for _ in range(wanted * ASKS))
    return near + _first_new(likely, [*known, *near], wanted - len(near))


def _first_new(
    source: Iterable[dict[str, SettingValue]], known: Sequence[Settings], wanted: int
) -> list[dict[str, SettingValue]]:
    seen = set(map(key_of, known))
    fresh: list[dict[str, SettingValue]] = []
    for settings in source:
        if len(fresh) == wanted:
            break
        if key_of(settings) not in seen:
            seen.add(key_of(settings))
            fresh.append(settings)
    return fresh


def best_of(tried: Sequence[TriedSettings]) -> TriedSettings | None:
    """Return the best settings, doubt counted against them; None where none beat the default."""
    # Few rounds say little of their own noise, so that of all settings counts.
    spreads = [stdev(settings.gains) for settings in tried if len(settings.gains) > 1]
    noise = float(np.sqrt(np.mean(np.square(spreads)))) if spreads else 0.0

    def surely(candidate: TriedSettings) -> float:
        return candidate.gain - CARRIED_ON * noise / float(len(candidate.gains) ** 0.5)

    best = max(tried, key=surely, default=None)
    return best if best is not None and surely(best) > 0 else None


def shares_of(space: Space, tried: Sequence[TriedSettings], seed: int) -> list[SettingShare]:
    """Return how much each setting explains, the largest first; nothing of a few settings.

    Hutter, Hoos, Leyton-Brown, "An efficient approach for assessing hyperparameter importance",
    ICML 2014 (fANOVA: over the whole space, wherever the search looked); ranges by the bootstrap.
    """
    if len(tried) < FEWEST_FOR_SHARES or len(space) < 2:
        return []
    from optuna.importance import FanovaImportanceEvaluator, get_param_importances

    rng = np.random.default_rng(seed)
    draws: list[dict[str, float]] = []
    for _ in range(DRAWS):
        drawn = [tried[place] for place in rng.integers(len(tried), size=len(tried))]
        study = _study(space, drawn, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws.append(
                get_param_importances(
                    study, evaluator=FanovaImportanceEvaluator(n_trees=TREES, seed=seed)
                )
            )
    shares = {setting: np.array([draw.get(setting, 0.0) for draw in draws]) for setting in space}
    of_settings = [
        SettingShare(
            setting=setting,
            share=float(of_setting.mean()),
            low=float(np.percentile(of_setting, ENDS[0])),
            high=float(np.percentile(of_setting, ENDS[1])),
        )
        for setting, of_setting in shares.items()
    ]
    return sorted(of_settings, key=lambda setting: -setting.share)


def _evenly_spread(space: Space, wanted: int, seed: int) -> Iterator[dict[str, SettingValue]]:
    from scipy.stats.qmc import Sobol

    sequence = Sobol(d=len(space), scramble=True, rng=np.random.default_rng(seed))
    size = 1 << (wanted * ASKS - 1).bit_length()  # it is even only over powers of two
    for point in sequence.random(size):
        yield {
            name: _at(setting, float(share))
            for (name, setting), share in zip(space.items(), point, strict=True)
        }


def _near(space: Space, best: Settings, most: int, seed: int) -> Iterator[dict[str, SettingValue]]:
    """Change one setting after the other, in random order, to another value or by a random step."""
    rng = Random(seed)
    order = rng.sample(list(space), len(space))
    for name in islice(cycle(order), most):
        yield {**best, name: _step_from(space[name], best[name], rng)}


def _step_from(setting: Setting, value: SettingValue, rng: Random) -> SettingValue:
    if not isinstance(setting, NumberSetting):
        return rng.choice([other for other in values_of(setting) if other != value] or [value])
    step = exp(rng.uniform(*map(log, STEPS)))
    share = _share_of(setting, float(value)) + rng.gauss(0, step)
    return _at(setting, min(max(share, 0.0), 1.0))


def _share_of(setting: NumberSetting, value: float) -> float:
    """Return where in its range a value is, from 0 to 1, as `_at` takes it."""
    low, high = setting.tuned_range
    if is_wide(setting):
        return log(value / low) / log(high / low)
    return (value - low) / (high - low)


def _at(setting: Setting, share: float) -> SettingValue:
    """Return a setting's value at a share of its range: from 0 to 1, below it for one of a few."""
    if not isinstance(setting, NumberSetting):
        values = values_of(setting)
        return values[int(share * len(values))]
    low, high = setting.tuned_range
    if is_wide(setting):
        value = exp(log(low) + share * (log(high) - log(low)))
    else:
        value = low + share * (high - low)
    return round(value) if setting.type == "whole" else value


def values_of(setting: Setting) -> list[SettingValue]:
    """Return the values of a setting that has a few."""
    if isinstance(setting, ChoiceSetting):
        return list((setting.tune and setting.tune.choices) or setting.choices)
    return [False, True]


def is_wide(setting: NumberSetting) -> bool:
    """Whether its range is searched in logarithms."""
    low, high = setting.tuned_range
    return low > 0 and high / low >= WIDE


def _study(space: Space, tried: Sequence[TriedSettings], seed: int) -> "Study":
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = optuna.samplers.TPESampler(
            seed=seed, n_startup_trials=1, multivariate=True, constant_liar=True
        )
    study = optuna.create_study(direction="maximize", sampler=sampler)
    distributions = _distributions(space)
    study.add_trials(
        [
            optuna.trial.create_trial(
                params=dict(settings.settings), distributions=distributions, value=settings.gain
            )
            for settings in tried
        ]
    )
    return study


def _distributions(space: Space) -> "dict[str, BaseDistribution]":
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    distributions: dict[str, BaseDistribution] = {}
    for name, setting in space.items():
        if not isinstance(setting, NumberSetting):
            distributions[name] = CategoricalDistribution(values_of(setting))
            continue
        low, high = setting.tuned_range
        if setting.type == "whole":
            distributions[name] = IntDistribution(int(low), int(high), log=is_wide(setting))
        else:
            distributions[name] = FloatDistribution(low, high, log=is_wide(setting))
    return distributions
