"""Experiments with systems of the user's own among their arms."""

from pathlib import Path

from webdyno.cli.agreement import agree_to_own
from webdyno.cli.measure import tell
from webdyno.definitions import Catalogue, Draft
from webdyno.model.experiment import Experiment


def checked_with_own(
    draft: Draft, catalogue: Catalogue, folder: Path
) -> tuple[Experiment, Catalogue]:
    """Give an experiment, checked, and the catalogue that all of its arms are in.

    `folder` is where relative paths begin. What its user wrote himself needs no other yes.
    """
    from webdyno.own import resolve

    resolved, joined = resolve(draft, catalogue, folder, tell)
    experiment = resolved.checked(joined)
    if joined is not catalogue:
        new = joined.stacks.keys() - catalogue.stacks.keys()
        agree_to_own([joined.stacks[name] for name in new])
    return experiment, joined
