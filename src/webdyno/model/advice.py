"""A setting that may make a server slow, a better one, and what that was found to be worth."""

from webdyno.model.base import Model
from webdyno.model.interval import Interval
from webdyno.model.knob import KnobValue


class Advice(Model):
    """That another value of one knob may be better for an arm."""

    knob: str
    """As users name it."""
    now: KnobValue
    """As the baseline has it."""
    tried: KnobValue
    """As this arm has it."""
    says: str
    """What the servers do as it is now."""
    vendor: str
    """Address of the vendor's documentation of the setting."""


class Gain(Model):
    """What a piece of advice was found to be worth, on the deciding metric."""

    arm: str
    """As it was without it."""
    advice: Advice
    is_sure: bool
    """Whether the arm surely is better with it, by more than what doesn't matter."""
    ratio: Interval
    """With it against without it; above 1 is better."""
