"""Reads studies and checks their claims against the experiments that repeat them."""

from webdyno.definitions.catalogue import BUILT_IN, Catalogue
from webdyno.definitions.refusal import build
from webdyno.definitions.toml_file import TomlFile
from webdyno.model.experiment import Experiment, Level
from webdyno.model.mistake import Mistake
from webdyno.model.study import Publication


def read_studies() -> dict[str, Publication]:
    """Give webdyno's studies by name."""
    files = [TomlFile(path) for path in sorted((BUILT_IN / "studies").glob("*.toml"))]
    return {
        file.path.stem: build(Publication, {**file.data, "name": file.path.stem}, file.place)
        for file in files
    }


def levels_first(study: Publication, name: str, experiment: Experiment) -> dict[str, list[Level]]:
    """Give the levels without which a study's claims about an experiment can't be told.

    A factor that only some claims are confined to keeps its middle level for the others. Last come
    all load generators: the published way stands beside webdyno's own.
    """
    claims = [claim for claim in study.claims if claim.experiment == name]
    first: dict[str, list[Level]] = {}
    for factor in dict.fromkeys(factor for claim in claims for factor in claim.at):
        levels = experiment.factors[factor]
        middle = levels[(len(levels) - 1) // 2]
        wanted = [claim.at.get(factor, middle) for claim in claims]
        first[factor] = [level for level in levels if level in wanted]
    return first | {"generator": experiment.factors.get("generator", [])}


def check_study(study: Publication, catalogue: Catalogue) -> None:
    """Raise Mistake when a study's claims can't be judged by its experiments."""
    for claim in study.claims:
        if claim.experiment not in study.experiments:
            raise Mistake(f"study {study.name}: {claim.experiment} is none of its experiments")
        experiment = catalogue.experiment(claim.experiment)
        for arm in (*claim.arms, *([] if claim.is_figure else [claim.against])):
            if arm not in experiment.arms or claim.against in claim.arms:
                raise Mistake(
                    f"study {study.name}: {claim.says!r}: {claim.experiment} has the arms "
                    f"{', '.join(experiment.arms)}; they can't tell of {arm}"
                )
        for factor, level in claim.at.items():
            if level not in experiment.factors.get(factor, []):
                raise Mistake(
                    f"study {study.name}: {claim.says!r}: {factor} = {level} is no level of "
                    f"{claim.experiment}"
                )
