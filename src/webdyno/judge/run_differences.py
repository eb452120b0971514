"""What isn't equal about two runs: the experiment itself, or what surrounds it."""

from collections.abc import Mapping, Sequence

from webdyno.model.base import Model
from webdyno.model.experiment import Experiment
from webdyno.model.run import RunHead
from webdyno.model.run_comparison import Difference

ABSENT = "not there"


def mismatches(before: Experiment, after: Experiment, arms: Sequence[str]) -> list[Difference]:
    """Give what makes two experiments incomparable: another site, generator, load, bench or arm.

    How long and how often was measured may differ. Loops (open, closed) are part of the load.
    """
    return [
        difference
        for name in ("site", "generator", "load", "bench")
        for difference in _unequal(name, getattr(before, name), getattr(after, name))
    ] + [
        difference
        for arm in arms
        for difference in _unequal(f"arms.{arm}", before.arms[arm], after.arms[arm])
    ]


def differences(before: RunHead, after: RunHead) -> list[Difference]:
    """Give what else may have caused a change: machine, versions, load generator, settings."""
    return [
        difference
        for name, first, second in (
            ("machine", before.machine, after.machine),
            ("versions", before.versions, after.versions),
            ("load_generator", before.load_generator, after.load_generator),
            ("webdyno_version", before.webdyno_version, after.webdyno_version),
            ("measure", before.experiment.measure, after.experiment.measure),
        )
        for difference in _unequal(name, first, second)
        if difference.what != "measure.seed"
    ]


def _unequal(name: str, before: object, after: object) -> list[Difference]:
    first, second = _flat(name, before), _flat(name, after)
    return [
        Difference(what=what, before=first.get(what, ABSENT), after=second.get(what, ABSENT))
        for what in first | second
        if first.get(what) != second.get(what)
    ]


def _flat(name: str, value: object) -> dict[str, str]:
    """Give the leaves of a value, by dotted name."""
    if isinstance(value, Model):
        return _flat(name, dict(value))
    if isinstance(value, Mapping):
        return {
            leaf: text
            for key, inner in value.items()
            for leaf, text in _flat(f"{name}.{key}", inner).items()
        }
    return {name: str(value)}
