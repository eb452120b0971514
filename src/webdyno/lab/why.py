"""Why a run came out as it did, found by experiment.

Variants are measured with one thing changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.definitions import Catalogue
from webdyno.lab.caller import Caller
from webdyno.lab.measure import Measured, measure_or_go_on
from webdyno.model.errors import UserError
from webdyno.model.experiment import OWN_GENERATOR, Experiment
from webdyno.model.run import RunHead, variant_folder
from webdyno.model.why import Advice
from webdyno.run.folder import RunFolder

WHY, SETTINGS, PROFILE, ADVICE = "why", "settings", "profile", "advice"


@dataclass(frozen=True)
class AskedWhy:
    """What is asked of a run, of some of its variants."""

    run: RunFolder
    head: RunHead
    """The run's, with the budget of what is measured now."""
    variants: Sequence[str]
    """Those that were named; all of them where none was."""
    catalogue: Catalogue
    folder: Path
    """Has a folder for each run."""

    @classmethod
    def of(
        cls, path: Path, variants: Sequence[str], budget_s: float | None, out: Path | None
    ) -> "AskedWhy":
        """Read the run; raise UserError for a variant that it doesn't have."""
        from webdyno.run.repeat import kept_catalogue

        run = RunFolder.open(path)
        head = run.head
        named = [named_variant(head.experiment, it) for it in variants]
        if budget_s is not None:
            shorter = head.experiment.with_measure(budget_s=budget_s, patience=1.0)
            head = head.replace(experiment=shorter)
        return cls(run, head, named, kept_catalogue(path), out or path / WHY)

    @property
    def all_variants(self) -> Sequence[str]:
        """Those that were named, else all."""
        return self.variants or list(self.head.experiment.variants)


def measure_limits(asked: AskedWhy, caller: Caller) -> Iterator[Measured]:
    """Measure each variant beside itself with less of one thing, in a folder of its own."""
    from webdyno.host.limits import CpuLimit
    from webdyno.run.why import limits_experiment

    head = asked.head
    check_load(head.experiment)
    cpu_time_is_ours = CpuLimit.possible()
    if not cpu_time_is_ours:
        caller.tell(
            "CPU time can't be taken here, from servers or client: that takes root and the "
            "kernel's control groups; the rest is tried"
        )
    for name in asked.all_variants:
        limited = limits_experiment(
            name,
            head.experiment,
            asked.catalogue,
            head.machine.split,
            cpu_time_is_ours=cpu_time_is_ours,
        )
        path = asked.folder / variant_folder(name)
        yield measure_or_go_on(f"{WHY}: {name}", limited, asked.catalogue, path, caller)


def suspected_settings(asked: AskedWhy) -> dict[str, list[Advice]]:
    """Give what is known to make servers slow, by variant, of all that a run shows."""
    from webdyno.judge.questions.interventions import advice_evidence
    from webdyno.run.why import advice_for

    experiment, split = asked.run.head.experiment, asked.run.head.machine.split
    data = asked.run.data().points[0]
    return {
        name: advice_for(name, experiment, asked.catalogue, split, advice_evidence(data, name))
        for name in asked.all_variants
    }


def measure_advice(
    asked: AskedWhy, suspected: Mapping[str, list[Advice]], caller: Caller
) -> Iterator[Measured]:
    """Measure each variant beside itself with the settings that are thought to be better."""
    from webdyno.run.why import advice_experiment

    for name, advice in suspected.items():
        if advice:
            better = advice_experiment(name, asked.head.experiment, advice)
            path = asked.folder / f"{ADVICE}-{variant_folder(name)}"
            title = f"{WHY} --advice: {name}"
            yield measure_or_go_on(title, better, asked.catalogue, path, caller)


def measure_samples(asked: AskedWhy, caller: Caller) -> Measured:
    """Measure again while the servers' CPUs are sampled."""
    from webdyno.run.why import sampled_experiment

    sampled = sampled_experiment(asked.head.experiment, asked.catalogue)
    path = asked.folder / PROFILE
    return measure_or_go_on(f"{WHY} --profile", sampled, asked.catalogue, path, caller)


def measure_settings(asked: AskedWhy, caller: Caller) -> Measured:
    """Measure variants that have each setting as in the one of two variants, or as in the other."""
    from webdyno.run.factorial import factorial_experiment

    if len(asked.all_variants) != 2:
        raise UserError(
            f"--settings compares two variants, and these are {', '.join(asked.all_variants)}; "
            "name two with --variant"
        )
    one, other = asked.all_variants
    crossed = factorial_experiment(one, other, asked.head.experiment)
    path = asked.folder / SETTINGS
    return measure_or_go_on(f"{WHY} --settings", crossed, asked.catalogue, path, caller)


def named_variant(experiment: Experiment, asked: str) -> str:
    """Give the variant of that name, or the only one that has it in its name."""
    having = (
        [asked]
        if asked in experiment.variants
        else [it for it in experiment.variants if asked in it]
    )
    if len(having) == 1:
        return having[0]
    fault = "several variants have that in their names" if having else "the run has no such variant"
    raise UserError(f"--variant {asked}: {fault}; it has {', '.join(experiment.variants)}")


def check_load(experiment: Experiment) -> None:
    """Refuse what no throughput can tell of."""
    if experiment.capacity or any(
        experiment.load_of(name).loop == "open" for name in experiment.variants
    ):
        raise UserError(
            "an open loop's rate is given and tells of no limit: measure a closed loop, then ask "
            "why of that"
        )
    if experiment.generator != OWN_GENERATOR:
        raise UserError(
            f"the run's load was made by {experiment.generator}; measure with webdyno's own "
            "generator, then ask why of that"
        )
