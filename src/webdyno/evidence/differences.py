"""What isn't equal about two runs or sessions: the experiment itself, or what surrounds it."""

from collections.abc import Mapping, Sequence

from webdyno.core.base import Model
from webdyno.core.experiment import Experiment
from webdyno.core.records import SessionRecord
from webdyno.core.run import RunHead
from webdyno.core.sweep import Difference
from webdyno.core.testbed import Machine

ABSENT = "not there"
SAME_MEMORY = 0.01
"""By how much the memory that the kernel distinguishes of may differ from start to start of a
machine."""


def mismatches(before: Experiment, after: Experiment, variants: Sequence[str]) -> list[Difference]:
    """Return what makes two experiments incomparable: unlike site, load, state, testbed or variant.

    How long and how often was measured may differ. Loops (open, closed) are part of the load.
    """
    return [
        difference
        for name in ("site", "generator", "load", "requests", "endpoint", "state", "testbed")
        for difference in _unequal(name, getattr(before, name), getattr(after, name))
    ] + [
        difference
        for variant in variants
        for difference in _unequal(
            f"variants.{variant}",
            before.variants[variant].without_warmup,
            after.variants[variant].without_warmup,
        )
    ]


def differences(before: RunHead, after: RunHead) -> list[Difference]:
    """Return what else may have caused a change: machine, versions, load generator, settings."""
    experiments = [head.experiment for head in (before, after)]
    measures = (experiment.measure for experiment in experiments)
    both = [name for name in experiments[0].variants if name in experiments[1].variants]
    warm_ups = (
        {
            name: experiment.variants[name].model_dump(include={"warmup_s", "warmup_bursts"})
            for name in both
        }
        for experiment in experiments
    )
    claims = (experiment.asks.one_sided for experiment in experiments)
    return [
        *surroundings(before, after),
        *(
            difference
            for difference in _unequal("measure", *measures)
            if difference.what != "measure.seed"
        ),
        *_unequal("variants", *warm_ups),
        *_unequal("one_sided", *({"claim": claim.words} if claim else {} for claim in claims)),
    ]


def surroundings(
    before: RunHead | SessionRecord, after: RunHead | SessionRecord
) -> list[Difference]:
    """Return what differs of machines, servers, load generator and webdyno."""
    hosts = [
        difference
        for name in before.hosts.keys() & after.hosts.keys()
        if before.hosts[name] != before.machine
        for difference in machine_differences(
            before.hosts[name], after.hosts[name], f"hosts.{name}"
        )
    ]
    return (
        machine_differences(before.machine, after.machine)
        + hosts
        + [
            difference
            for name in ("versions", "load_generator", "webdyno_version")
            for difference in _unequal(name, getattr(before, name), getattr(after, name))
        ]
    )


def machine_differences(before: Machine, after: Machine, name: str = "machine") -> list[Difference]:
    """Return what differs of two machines, or of one before and after it was changed."""
    if abs(after.memory_bytes - before.memory_bytes) <= SAME_MEMORY * before.memory_bytes:
        after = after.replace(memory_bytes=before.memory_bytes)
    return _unequal(name, before, after)


def _unequal(name: str, before: object, after: object) -> list[Difference]:
    first, second = _flat(name, before), _flat(name, after)
    return [
        Difference(what=what, before=first.get(what, ABSENT), after=second.get(what, ABSENT))
        for what in first | second
        if first.get(what) != second.get(what)
    ]


def _flat(name: str, value: object) -> dict[str, str]:
    """Return the leaves of a value, by dotted name."""
    if isinstance(value, Model):
        return _flat(name, dict(value))
    if isinstance(value, Mapping):
        return {
            leaf: text
            for key, inner in value.items()
            for leaf, text in _flat(f"{name}.{key}", inner).items()
        }
    return {name: str(value)}
