"""Settings of services, their ranges, and what a search among them did."""

from collections.abc import Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import Field, model_validator

from webdyno.core.base import Amount, Count, Model

SettingValue = bool | int | float | str
"""A setting's value as it stands in a TOML file."""

FOLLOWING_CPUS = {"server-cpus": (1, 0), "2 * server-cpus + 1": (2, 1)}
"""Values of whole-number settings that follow the number of CPUs which the servers get: times what,
and plus what."""


def in_figures(value: SettingValue, server_cpus: int) -> SettingValue:
    """Return the number that a value stands for which follows the CPUs; any other as it is."""
    if isinstance(value, str) and value in FOLLOWING_CPUS:
        factor, more = FOLLOWING_CPUS[value]
        return factor * server_cpus + more
    return value


class Tuned(Model):
    """Where tuning looks for a better value, one that changes nothing of the question."""

    vendor: str
    """Address of the vendor's documentation of the setting."""
    min: int | float | None = None
    max: int | float | None = None
    """Of a number: the range that is searched; its own where that is omitted."""
    choices: list[str] | None = None
    """Of a choice: those that are tried; all where that is omitted."""

    @property
    def bounds(self) -> list[SettingValue]:
        """Values that the setting has to allow."""
        ends = [end for end in (self.min, self.max) if end is not None]
        return [*ends, *(self.choices or [])]


Sign = Literal["large responses", "new connections", "idle CPUs"]
"""What a run has to show for a setting to matter: responses of several packets; connections that
aren't kept; servers' CPUs with headroom while requests wait."""

FixableRule = Literal["listen-overflow"]
"""Rules of validity that a setting can fix, by name (docs/reference/warnings.md)."""

FACTORS = {"*4": 4.0, "/4": 0.25}
"""What a number may be tried as, next to values: four times what it is, or a quarter."""


class Cause(Model):
    """How a setting makes servers slow, and what is better."""

    says: str
    """What servers do for its sake, as words that follow "it", such as "opens each file again"."""
    better: Annotated[list[SettingValue], Field(min_length=1)]
    """What is tried in its place, each for itself; of a number also `*4` and `/4`."""
    vendor: str
    """Address of the vendor's documentation of the setting."""
    where: Sign | None = None
    """Only where a run shows this."""
    fixes: FixableRule | None = None
    """The rule that servers break for its sake. Where a run breaks it no throughput or time is
    valid, so that nothing else can be tried before."""


class _Setting(Model):
    help: str
    """What it does, in a sentence."""
    when: dict[str, list[SettingValue]] = {}
    """Values of other settings of the same service with which it has an effect."""
    needs_header: str | None = None
    """The header without which requests don't feel it, such as Accept-Encoding."""
    tune: Tuned | None = None
    """Where tuning looks; None: it leaves it as it is."""
    cause: Cause | None = None
    """How it makes servers slow, if that is known of it."""
    when_sampled: SettingValue | None = None
    """What `webdyno explain --profile` gives it, so that samples have names; None: it stays."""

    def idle(self, fixed: Mapping[str, SettingValue]) -> bool:
        """Whether it has no effect, given the settings that are fixed."""
        return any(name in fixed and fixed[name] not in self.when[name] for name in self.when)


class SwitchSetting(_Setting):
    """On or off."""

    type: Literal["switch"]
    default: bool

    @model_validator(mode="after")
    def _default_fits(self) -> "SwitchSetting":
        return _with_right_default(self)

    def fault(self, value: SettingValue) -> str | None:
        """What is wrong with a value, in words that follow its name; None if nothing is."""
        return None if isinstance(value, bool) else "should be true or false"

    def range(self) -> str:
        """The allowed values, for people."""
        return "true or false"


class NumberSetting(_Setting):
    """A number within bounds; whole unless `type` is "real"."""

    type: Literal["whole", "real"]
    min: int | float
    max: int | float
    default: int | float | Literal["server-cpus", "2 * server-cpus + 1"]

    @property
    def tuned_range(self) -> tuple[float, float]:
        """The range that tuning searches."""
        tune = self.tune
        low = self.min if tune is None or tune.min is None else tune.min
        high = self.max if tune is None or tune.max is None else tune.max
        return low, high

    @model_validator(mode="after")
    def _default_fits(self) -> "NumberSetting":
        if self.min > self.max:
            raise ValueError(f"min = {self.min} is more than max = {self.max}")
        return _with_right_default(self)

    def fault(self, value: SettingValue) -> str | None:
        """What is wrong with a value, in words that follow its name; None if nothing is."""
        if value in FOLLOWING_CPUS and self.type == "whole":
            return None
        is_broken = isinstance(value, float) and not value.is_integer()
        if isinstance(value, bool | str) or (self.type == "whole" and is_broken):
            number = "whole number" if self.type == "whole" else "number"
            return f"should be a {number} from {self.range()}"
        if not self.min <= value <= self.max:  # and so for what is not a number
            return f"should be between {self.min} and {self.max}"
        return None

    def range(self) -> str:
        return f"{self.min} to {self.max}"


K = TypeVar("K", bound="SwitchSetting | NumberSetting | ChoiceSetting")


def _with_right_default(setting: K) -> K:
    if fault := setting.fault(setting.default):
        raise ValueError(f"default {fault}, not {setting.default!r}")
    for value in setting.tune.bounds if setting.tune else []:
        if fault := setting.fault(value):
            raise ValueError(f"tune {fault}, not {value!r}")
    for value in setting.cause.better if setting.cause else []:
        is_factor = setting.type in {"whole", "real"} and value in FACTORS
        if not is_factor and (fault := setting.fault(value)):
            raise ValueError(f"cause.better {fault}, not {value!r}")
    if setting.when_sampled is not None and (fault := setting.fault(setting.when_sampled)):
        raise ValueError(f"when_sampled {fault}, not {setting.when_sampled!r}")
    return setting


class ChoiceSetting(_Setting):
    """One of a few words."""

    type: Literal["choice"]
    choices: Annotated[list[str], Field(min_length=2)]
    default: str

    @model_validator(mode="after")
    def _default_fits(self) -> "ChoiceSetting":
        if len(set(self.choices)) < len(self.choices):
            raise ValueError("choices has the same word twice")
        return _with_right_default(self)

    def fault(self, value: SettingValue) -> str | None:
        return None if value in self.choices else f"should be one of {self.range()}"

    def range(self) -> str:
        return ", ".join(self.choices)


Setting = Annotated[SwitchSetting | NumberSetting | ChoiceSetting, Field(discriminator="type")]


class TuningStep(Model):
    """The best settings known after a batch of the search, as the search saw them."""

    used_s: Amount
    """Measuring time used by then."""
    gain: float
    """By how much they were better than the default, as a factor. The best of many noisy values
    looks better than it is."""


class SettingShare(Model):
    """How much of the differences between the settings that were tried a setting explains."""

    setting: str
    """Its name."""
    share: float
    """From 0 to 1; those of all settings add up to 1."""
    low: float
    """Where the share begins, 90% sure: by explaining other draws of what was tried."""
    high: float
    """Where it ends."""


class TunedVariant(Model):
    """What was done to tune a variant. All get the same time."""

    name: str
    """What was tuned, as the user calls it."""
    variant: str
    """Its tuned form in the run."""
    default_variant: str
    """The form with its settings as they were."""
    stack: str
    """Its stack."""
    searched: list[str]
    """What was tuned."""
    settings: dict[str, SettingValue]
    """What was found; empty where nothing better than the default was."""
    used_s: Amount
    """Measuring time of the search."""
    tried: Count
    """Different combinations of settings."""
    rounds: Count
    """Rounds of the search."""
    measurements: Count
    """Rounds times the settings in them, the default among them."""
    steps: list[TuningStep]
    """By batch."""
    shares: list[SettingShare]
    """The largest first; empty where few settings were tried, or one setting."""
