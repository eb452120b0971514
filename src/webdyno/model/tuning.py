"""What a search for better settings did, as it is kept with the run that judges its result."""

from webdyno.model.base import Amount, Count, Model
from webdyno.model.knob import KnobValue


class TuningStep(Model):
    """The best settings known after a round of the search, as the search saw them."""

    used_s: Amount
    """Measuring time used by then."""
    gain: float
    """By how much they were better than the default, as a factor. The best of many noisy values
    looks better than it is."""


class KnobShare(Model):
    """How much of the differences between the settings that were tried a knob explains."""

    knob: str
    """Its name."""
    share: float
    """From 0 to 1; those of all knobs add up to 1."""
    low: float
    """Where the share begins, 90 % sure: by explaining other draws of what was tried."""
    high: float
    """Where it ends."""


class TunedSide(Model):
    """What was done for one contender. All get the same time."""

    name: str
    """What was tuned, as the user calls it."""
    arm: str
    """Its tuned arm in the run."""
    default_arm: str
    """The arm with its settings as they were."""
    stack: str
    """Its stack."""
    knobs: list[str]
    """What was tuned."""
    settings: dict[str, KnobValue]
    """What was found; empty where nothing better than the default was."""
    used_s: Amount
    """Measuring time of the search."""
    tried: Count
    """Different settings."""
    blocks: Count
    """Blocks of the search."""
    measurements: Count
    """Blocks times the settings in them, the default among them."""
    steps: list[TuningStep]
    """By round."""
    shares: list[KnobShare]
    """The largest first; empty where few settings were tried, or one knob."""
