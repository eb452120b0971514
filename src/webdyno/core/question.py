"""What an experiment can ask: what the settings of all questions extend (`core/registry.py`)."""

from abc import ABC
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, NamedTuple, Protocol, Self, TypeVar

from pydantic import TypeAdapter

from webdyno.core.base import Model
from webdyno.core.load import Load
from webdyno.core.measure import CapacitySettings, Measure
from webdyno.core.registry import COMPARE, import_part, question_parts
from webdyno.core.variant import Variant

TOO_FEW = (
    "an experiment needs two variants at least, [variants.A] and [variants.B], the first one being "
    "the baseline; `webdyno up`, `webdyno load` and `webdyno capacity` look at one alone"
)


class Asking(Protocol):
    """The experiment that asks, as far as its question looks at it."""

    @property
    def title(self) -> str: ...

    @property
    def question(self) -> str: ...

    @property
    def site(self) -> str: ...

    @property
    def variants(self) -> Mapping[str, Variant]: ...

    @property
    def load(self) -> Load: ...

    @property
    def measure(self) -> Measure: ...

    @property
    def factors(self) -> Mapping[str, object]: ...

    @property
    def capacity(self) -> CapacitySettings | None: ...


class OneSidedClaim(NamedTuple):
    """What has to be shown in one direction: that a variant is better, or isn't worse by much."""

    words: str
    """As the experiment has it."""
    tolerance: float
    """Share by which it may be worse; 0 where it has to be better."""


class QuestionSettings(Model):
    """What an experiment asks, with the keys that this takes in a table of its own.

    How it is decided is another class: both are named in `core/registry.py`.
    """

    key: ClassVar[str]
    """Of the table that asks it."""
    goes_with_search: ClassVar[bool] = True
    """Whether capacities can be searched for to answer it."""
    usual_measure: ClassVar[Mapping[str, object]] = {}
    """What `measure` is with it, unless given."""

    @classmethod
    def complete(cls, written: object, experiment: Mapping[str, object]) -> object:
        """Return its table with what is usual in such an experiment; nobody has checked either."""
        return written

    def check(self, experiment: Asking) -> None:
        """Raise ValueError where an experiment can't ask it."""
        if len(experiment.variants) < 2 and experiment.capacity is None:
            raise ValueError(TOO_FEW)
        if len(experiment.variants) < 2:
            raise ValueError(
                f"[{self.key}] is about two variants at least: leave it out, or add one"
            )

    @property
    def one_sided(self) -> OneSidedClaim | None:
        """What is claimed of variants in one direction, if that is what is asked."""
        return None

    @property
    def limited_metrics(self) -> set[str]:
        """Metrics with a limit that it decides about, besides the deciding one."""
        return set()

    @property
    def without_claim(self) -> "QuestionSettings":
        """What is asked of the same variants elsewhere, where a claim of them says nothing."""
        return self

    def at_one_of(self, points: int) -> Self:
        """Return it as it is at one of some points."""
        return self

    def means_to_differ(self, variant: str) -> bool:
        """Whether a variant differs from the baseline for the question's sake."""
        return False

    def command_elsewhere(self, experiment: Asking) -> str | None:
        """Return the command that asks the same of any machine; None where there is none."""
        return None


Q = TypeVar("Q", bound=QuestionSettings)


def settings_class(key: str) -> type[QuestionSettings]:
    """Return the class of a question's settings."""
    settings: type[QuestionSettings] = import_part(question_parts(key).settings)
    return settings


def read_question(key: str, written: object, experiment: Mapping[str, object]) -> QuestionSettings:
    """Read a question's table; raise pydantic's ValidationError, which names it, for mistakes."""
    settings = settings_class(key)
    read = _reader(settings).validate_python({key: settings.complete(written, experiment)})
    return read[key]


def comparison() -> QuestionSettings:
    """Return what is asked of several variants where no key says what."""
    return settings_class(COMPARE)()


@cache
def _reader(settings: type[QuestionSettings]) -> TypeAdapter[dict[str, QuestionSettings]]:
    return TypeAdapter(dict[str, settings])  # type: ignore[valid-type]


RANKING = "ranking"
"""The key of the race whose result is ranks."""
FEWEST_IN_RACE = 3


class RaceSettings(QuestionSettings, ABC):
    """What all races have in common."""

    def check(self, experiment: Asking) -> None:
        """Raise ValueError where so many variants can't race."""
        if len(experiment.variants) < FEWEST_IN_RACE:
            raise ValueError("a race has three variants at least; two are compared without it")
