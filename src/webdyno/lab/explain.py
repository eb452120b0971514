"""Why a run came out as it did, found by experiment.

Variants are measured with one thing changed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.definitions import Catalogue
from webdyno.lab.caller import Caller
from webdyno.lab.measure import MeasuredRun, measure_or_go_on
from webdyno.model.errors import UserError
from webdyno.model.experiment import OWN_GENERATOR, Experiment
from webdyno.model.explain import Advice
from webdyno.model.run import EXPLAIN_FOLDER, variant_folder
from webdyno.run.folder import RunFolder

EXPLAIN, SETTINGS, PROFILE, ADVICE = "explain", "settings", "profile", "advice"


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
    """For all that is measured."""

    @classmethod
    def of(
        cls, path: Path, variants: Sequence[str], time_s: float | None, output: Path | None
    ) -> "AskedExplanation":
        """Read the run; raise UserError for a variant that it doesn't have."""
        from webdyno.run.repeat import kept_catalogue

        run = RunFolder.open(path)
        named = [named_variant(run.head.experiment, variant) for variant in variants]
        return cls(run, named, kept_catalogue(path), output or path / EXPLAIN_FOLDER, time_s)

    def experiment(self, runs: int = 1) -> Experiment:
        """Give the run's, with the time of each of so many new runs."""
        experiment = self.run.head.experiment
        if self.time_s is None:
            return experiment
        return experiment.with_measure(budget_s=self.time_s / max(runs, 1), patience=1.0)

    @property
    def all_variants(self) -> Sequence[str]:
        """Those that were named, else all."""
        return self.variants or list(self.run.head.experiment.variants)


def measure_limits(asked: AskedExplanation, caller: Caller) -> Iterator[MeasuredRun]:
    """Measure each variant beside itself with less of one thing, in a folder of its own."""
    from webdyno.host.limits import CpuLimit
    from webdyno.run.explain import limits_experiment

    experiment = asked.experiment(len(asked.all_variants))
    check_load(experiment)
    cpu_time_is_ours = CpuLimit.possible()
    if not cpu_time_is_ours:
        caller.tell(
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
    """Give what is known to make servers slow, by variant, of all that a run shows."""
    from webdyno.judge.questions.interventions import advice_evidence
    from webdyno.run.explain import advice_for

    experiment, split = asked.run.head.experiment, asked.run.head.machine.split
    data = asked.run.data().points[0]
    return {
        name: advice_for(name, experiment, asked.catalogue, split, advice_evidence(data, name))
        for name in asked.all_variants
    }


def measure_advice(
    asked: AskedExplanation, suspected: Mapping[str, list[Advice]], caller: Caller
) -> Iterator[MeasuredRun]:
    """Measure each variant beside itself with the settings that are thought to be better."""
    from webdyno.run.explain import advice_experiment

    experiment = asked.experiment(sum(map(bool, suspected.values())))
    for name, advice in suspected.items():
        if advice:
            better = advice_experiment(name, experiment, advice)
            path = asked.folder / f"{ADVICE}-{variant_folder(name)}"
            title = f"{EXPLAIN} --advice: {name}"
            yield measure_or_go_on(title, better, asked.catalogue, path, caller)


def measure_samples(asked: AskedExplanation, caller: Caller) -> MeasuredRun:
    """Measure again while the servers' CPUs are sampled."""
    from webdyno.run.explain import sampled_experiment

    sampled = sampled_experiment(asked.experiment(), asked.catalogue)
    path = asked.folder / PROFILE
    return measure_or_go_on(f"{EXPLAIN} --profile", sampled, asked.catalogue, path, caller)


def measure_settings(asked: AskedExplanation, caller: Caller) -> MeasuredRun:
    """Measure variants that have each setting as in the one of two variants, or as in the other."""
    from webdyno.run.factorial import factorial_experiment

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
    """Give the variant of that name, or the only one that has it in its name."""
    having = (
        [asked]
        if asked in experiment.variants
        else [variant for variant in experiment.variants if asked in variant]
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
            "an open loop's rate is given and shows no limit: measure a closed loop, then ask "
            "why of that"
        )
    if experiment.generator != OWN_GENERATOR:
        raise UserError(
            f"the run's load was made by {experiment.generator}; measure with webdyno's own "
            "generator, then ask why of that"
        )
