"""What clients reported of known delays, and whether they can be judged by it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from rig.delay_server import Punctuality
from rig.percentiles import Percentiles
from rig.process import BenchError, Finished
from rig.reporters import Reporter
from rig.truth import all_within


@dataclass(frozen=True)
class Trial:
    """One run of a client against a server of its own."""

    percentiles: Percentiles
    """What it reported; empty if it failed."""
    others: float
    """Share of the time in which others had the client's core."""
    punctuality: Punctuality
    problem: str = ""
    """Why it reported nothing."""

    @property
    def sound(self) -> bool:
        """Whether the client can be judged by it, also for failing."""
        return self.punctuality.sound

    def right(self, truth: Mapping[float, float]) -> bool:
        """Say whether all percentiles are as they have to be."""
        return not self.problem and all_within(self.percentiles, truth)


def trial_of(reporter: Reporter, finished: Finished, punctuality: Punctuality) -> Trial:
    """Read what a client reported."""
    failed = partial(Trial, {}, finished.others, punctuality)
    if finished.exit_code not in reporter.good_exits:
        return failed(finished.reason)
    try:
        return Trial(reporter.read(finished.output), finished.others, punctuality)
    except BenchError as error:
        return failed(str(error))


def sound_ones(trials: Sequence[Trial]) -> list[Trial]:
    """Give those that are judged."""
    return [each for each in trials if each.sound]


def unsound_count(trials: Sequence[Trial]) -> int:
    """Count those that are not judged."""
    return len(trials) - len(sound_ones(trials))


def add_round(trials: list[Trial], take: Callable[[], Trial], most_repeats: int) -> None:
    """Take a trial, and again while it is unsound; `most_repeats` are for all rounds together."""
    while True:
        trials.append(take())
        if trials[-1].sound or unsound_count(trials) > most_repeats:
            return
