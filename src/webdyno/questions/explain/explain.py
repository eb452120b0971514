"""Why a run came out as it did, found by experiment.

Variants are measured with one thing changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from webdyno.config import Catalogue
from webdyno.config.reading import shown_value
from webdyno.core.base import memory_words
from webdyno.core.errors import UserError
from webdyno.core.experiment import OWN_GENERATOR, Experiment
from webdyno.core.findings import Advice
from webdyno.core.run import EXPLAIN_FOLDER, variant_folder
from webdyno.core.variant import Variant
from webdyno.launch.caller import Caller
from webdyno.launch.measure import MeasuredRun, measure_or_go_on
from webdyno.measure.folder import RunFolder
from webdyno.questions.explain.settings import DesignSettings

EXPLAIN, SETTINGS, PROFILE, ADVICE = "explain", "settings", "profile", "advice"

UNSET = "its default"
LONGEST_NAME = 60
MOST_SETTINGS = 15
FULL = 3
"""So many settings have all of their combinations measured."""


@dataclass(frozen=True)
class AskedExplanation:
    """What is asked of a run, of some of its variants."""

    run: RunFolder
    variants: Sequence[str]
    """Those that were named; all of them where none was."""
    catalogue: Catalogue
    folder: Path
    """Has a folder for each run."""
    time_s: float | None

    @classmethod
    def of(
        cls, path: Path, variants: Sequence[str], time_s: float | None, output: Path | None
    ) -> "AskedExplanation":
        """Read the run; raise UserError for a variant that it doesn't have."""
        from webdyno.measure.repeat import kept_catalogue

        run = RunFolder.open(path)
        named = [named_variant(run.head.experiment, variant) for variant in variants]
        return cls(run, named, kept_catalogue(path), output or path / EXPLAIN_FOLDER, time_s)

    def experiment(self, runs: int = 1) -> Experiment:
        """Return the run's, with the time of each of so many new runs."""
        experiment = self.run.head.experiment
        if self.time_s is None:
            return experiment
        return experiment.with_measure(
            budget_s=self.time_s / max(runs, 1), budget_is_limit=True, patience=1.0
        )

    @property
    def all_variants(self) -> Sequence[str]:
        return self.variants or list(self.run.head.experiment.variants)


def measure_limits(asked: AskedExplanation, caller: Caller) -> Iterator[MeasuredRun]:
    """Measure each variant next to itself with less of one thing, in a folder of its own."""
    from webdyno.host.control_group import CpuLimit
    from webdyno.questions.explain.experiments import limits_experiment

    experiment = asked.experiment(len(asked.all_variants))
    check_load(experiment)
    cpu_time_is_ours = CpuLimit.possible()
    if not cpu_time_is_ours:
        caller.notify(
            "CPU time can't be taken here, from servers or client: that takes root and the "
            "kernel's control groups; the rest is tried"
        )
    for name in asked.all_variants:
        limited = limits_experiment(
            name,
            experiment,
            asked.catalogue,
            asked.run.head.machine.split,
            cpu_time_is_ours=cpu_time_is_ours,
        )
        path = asked.folder / variant_folder(name)
        yield measure_or_go_on(f"{EXPLAIN}: {name}", limited, asked.catalogue, path, caller)


def suspected_settings(asked: AskedExplanation) -> dict[str, list[Advice]]:
    """Return what is known to make servers slow, by variant, of all that a run shows."""
    from webdyno.questions.explain.decide import advice_evidence
    from webdyno.questions.explain.experiments import advice_for

    experiment, split = asked.run.head.experiment, asked.run.head.machine.split
    data = asked.run.data().points[0]
    return {
        name: advice_for(name, experiment, asked.catalogue, split, advice_evidence(data, name))
        for name in asked.all_variants
    }


def measure_advice(
    asked: AskedExplanation, suspected: Mapping[str, list[Advice]], caller: Caller
) -> Iterator[MeasuredRun]:
    """Measure each variant next to itself with the settings that are thought to be better."""
    from webdyno.questions.explain.experiments import advice_experiment

    experiment = asked.experiment(sum(map(bool, suspected.values())))
    for name, advice in suspected.items():
        if advice:
            better = advice_experiment(name, experiment, advice)
            path = asked.folder / f"{ADVICE}-{variant_folder(name)}"
            title = f"{EXPLAIN} --advice: {name}"
            yield measure_or_go_on(title, better, asked.catalogue, path, caller)


def measure_samples(asked: AskedExplanation, caller: Caller) -> MeasuredRun:
    """Measure again while the servers' CPUs are sampled."""
    from webdyno.measure.planned import sampled_experiment

    sampled = sampled_experiment(asked.experiment(), asked.catalogue)
    path = asked.folder / PROFILE
    return measure_or_go_on(f"{EXPLAIN} --profile", sampled, asked.catalogue, path, caller)


def measure_settings(asked: AskedExplanation, caller: Caller) -> MeasuredRun:
    """Measure variants that have each setting as in the one of two variants, or as in the other."""
    if len(asked.all_variants) != 2:
        raise UserError(
            f"--settings compares two variants, and these are {', '.join(asked.all_variants)}; "
            "name two with --variant"
        )
    one, other = asked.all_variants
    crossed = factorial_experiment(one, other, asked.experiment())
    path = asked.folder / SETTINGS
    return measure_or_go_on(f"{EXPLAIN} --settings", crossed, asked.catalogue, path, caller)


def named_variant(experiment: Experiment, asked: str) -> str:
    """Return the variant of that name, or the only one that has it in its name."""
    if asked in experiment.variants:
        return asked
    having = [variant for variant in experiment.variants if asked in variant]
    if len(having) == 1:
        return having[0]
    fault = "several variants have that in their names" if having else "the run has no such variant"
    raise UserError(f"--variant {asked}: {fault}; it has {', '.join(experiment.variants)}")


def check_load(experiment: Experiment) -> None:
    """Refuse what no throughput can say of."""
    loops = {experiment.load_of(name).loop for name in experiment.variants}
    if experiment.capacity or "open" in loops:
        raise UserError(
            "an open loop's rate is given and shows no limit: measure a closed loop, then ask "
            "why of that"
        )
    if experiment.generator != OWN_GENERATOR:
        raise UserError(
            f"the run's load was made by {experiment.generator}; measure with webdyno's own "
            "generator, then ask why of that"
        )


def factorial_experiment(one: str, other: str, experiment: Experiment) -> Experiment:
    """Return the experiment that says which of two variants' settings make their difference.

    Others have some settings as in the one, some as in the other: all combinations of up to three
    settings; of more, fractions in which no setting's effect is mixed up with another's alone (Box,
    Hunter and Hunter, "Statistics for Experimenters", 2005, chapter 6). Treadmill (Zhang et al.,
    ISCA 2016) found the settings behind tail latencies like that.

    Raise UserError where they differ in nothing, in too much, or not in settings alone.
    """
    before, after = experiment.variants[one], experiment.variants[other]
    for key in ("stack", "site", "paths", "load", "testbed"):
        if getattr(before, key) != getattr(after, key):
            raise UserError(
                f"{one} and {other} differ in their {key}, not in settings of one stack alone"
            )
    changes = _differences(before, after)
    if not 1 <= len(changes) <= MOST_SETTINGS:
        raise UserError(
            f"{one} and {other} differ in {len(changes)} settings; 1 to {MOST_SETTINGS} can be "
            "separated"
        )
    names = list(changes)
    variants, levels = dict[str, Variant](), dict[str, list[bool]]()
    for number, row in enumerate(two_level_design(len(names))):
        changed = [name for name, on in zip(names, row, strict=True) if on]
        variant = f"{one} with {', '.join(changed)}" if changed else one
        variant = variant if len(variant) <= LONGEST_NAME else f"{one}, combination {number}"
        variants[variant] = _with_changed(before, after, changed)
        levels[variant] = list(row)
    words = [f"{name}: {before_} → {after_}" for name, (before_, after_) in changes.items()]
    return experiment.derive(
        f"Which settings make {other} differ from {one}",
        f"What do {', '.join(names)} do to {one}?",
        variants,
        asks=DesignSettings(settings=words, levels=levels),
    )


def _differences(before: Variant, after: Variant) -> dict[str, tuple[str, str]]:
    """Return what differs, by name, in words: what it is in the one, and in the other."""
    differences = {}
    for name in sorted({*before.settings, *after.settings}):
        if before.settings.get(name) != after.settings.get(name):
            differences[name] = (
                shown_value(before.settings[name]) if name in before.settings else UNSET,
                shown_value(after.settings[name]) if name in after.settings else UNSET,
            )
    if before.memory != after.memory:
        differences["memory"] = (
            memory_words(before.memory) if before.memory else "no limit",
            memory_words(after.memory) if after.memory else "no limit",
        )
    if before.cpus != after.cpus:
        differences["cpus"] = (f"{before.cpus or 'all'}", f"{after.cpus or 'all'}")
    return differences


def _with_changed(before: Variant, after: Variant, changed: list[str]) -> Variant:
    settings = dict(before.settings)
    update: dict[str, Any] = {"settings": settings}
    for name in changed:
        if name not in {**after.settings, **before.settings}:  # memory, CPUs
            update[name] = getattr(after, name)
        elif name in after.settings:
            settings[name] = after.settings[name]
        else:
            settings.pop(name, None)
    return before.replace(**update)


def two_level_design(settings: int) -> list[tuple[bool, ...]]:
    """Return the rows of a design, the first with no setting changed, for 1 to 15 settings.

    The basic settings have all combinations; each further one changes with the product of some of
    them, the largest products first, as their effects are the likeliest to be small.
    """
    if not 1 <= settings <= MOST_SETTINGS:
        raise ValueError(f"a design has 1 to {MOST_SETTINGS} settings, not {settings}")
    basic = min(settings, FULL)
    while 2**basic - 1 < settings:
        basic += 1
    several = [chosen for chosen in product((False, True), repeat=basic) if sum(chosen) > 1]
    others = sorted(several, key=sum, reverse=True)[: settings - basic]
    rows = []
    for levels in product((False, True), repeat=basic):
        signs = [1 if level else -1 for level in levels]
        products = [
            prod(sign for sign, taken in zip(signs, chosen, strict=True) if taken)
            # So that the row of no basic setting changes none of the others either.
            * (-1) ** (sum(chosen) + 1)
            > 0
            for chosen in others
        ]
        rows.append((*levels, *products))
    return rows
