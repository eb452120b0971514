"""A setting that may make a server slow, a better one, and what that was found to be worth."""

from webdyno.model.base import Count, Model
from webdyno.model.interval import Interval
from webdyno.model.knob import KnobValue, Mended


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
    mends: Mended | None = None
    """The rule of validity that the arm breaks for its sake."""


class Gain(Model):
    """What a piece of advice was found to be worth, on the deciding metric."""

    arm: str
    """As it was without it."""
    advice: Advice
    is_sure: bool
    """Whether the arm surely is better with it, by more than what doesn't matter, or keeps the rule
    that it breaks without it."""
    mended_blocks: Count = 0
    """Blocks in which it broke that rule without it; with it there was none."""
    ratio: Interval
    """With it against without it; above 1 is better."""
