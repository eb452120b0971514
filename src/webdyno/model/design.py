"""Settings in which two arms differ, and arms that have some of them as in the one or the other."""

from webdyno.model.base import Model
from webdyno.model.interval import Interval
from webdyno.model.names import Name


class Design(Model):
    """Arms of a two-level design: each setting is as in the one arm, or as in the other."""

    settings: list[str]
    """What differs, in words: `workers: 1 → 4`."""
    levels: dict[Name, list[bool]]
    """By arm, in the settings' order: whether it is as in the other arm."""

    @property
    def is_full(self) -> bool:
        """Whether every combination is there, so that what interacts can be told."""
        return len(self.levels) == 1 << len(self.settings)


class Effect(Model):
    """What a setting does to the deciding metric, or two of them together beyond what each does."""

    settings: list[str]
    """One; two where it is their interaction."""
    ratio: Interval
    """How many times the metric's value, averaged over the other settings (geometric mean)."""
    is_sure: bool
    """Whether all effects' intervals together allow to say that there is one."""
