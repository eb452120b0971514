"""Reads studies and checks their claims against the experiments that repeat them."""

from collections.abc import Iterable

from webdyno.definitions.catalogue import BUILT_IN, Catalogue
from webdyno.definitions.refusal import build
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.mistake import Mistake
from webdyno.model.study import Study


def read_studies() -> dict[str, Study]:
    """Give webdyno's studies by name."""
    files = [TomlFile(path) for path in sorted((BUILT_IN / "studies").glob("*.toml"))]
    return {
        file.path.stem: build(Study, {**file.data, "name": file.path.stem}, file.place)
        for file in files
    }


def budget_shares(studies: Iterable[Study]) -> dict[str, float]:
    """Share a budget out among experiments: by the claims that each decides, one at least."""
    weights = {
        name: max(1, sum(claim.experiment == name for claim in study.claims))
        for study in studies
        for name in study.experiments
    }
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def check_study(study: Study, catalogue: Catalogue) -> None:
    """Raise Mistake when a study's claims can't be judged by its experiments."""
    for claim in study.claims:
        if claim.experiment is None:
            continue
        if claim.experiment not in study.experiments:
            raise Mistake(f"study {study.name}: {claim.experiment} is none of its experiments")
        experiment = catalogue.experiment(claim.experiment)
        baseline, *others = experiment.arms
        if claim.against != baseline or claim.arm not in others:
            raise Mistake(
                f"study {study.name}: {claim.says!r}: arm is one of {', '.join(others)}, and "
                f"against is {baseline}, the baseline of {claim.experiment}"
            )
        for factor, level in claim.at.items():
            if level not in experiment.factors.get(factor, []):
                raise Mistake(
                    f"study {study.name}: {claim.says!r}: {factor} = {level} is no level of "
                    f"{claim.experiment}"
                )
