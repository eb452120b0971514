"""What of yours servers and their clients' requests would hold: your files and variables.

Whoever may have none of it sent is refused; else a yes is for each of these to one stack.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from webdyno.config import Catalogue, Draft
from webdyno.config.catalogue import fingerprint_of
from webdyno.config.requests import files_named
from webdyno.core.errors import UserError
from webdyno.core.experiment import Experiment
from webdyno.core.stack import Stack
from webdyno.core.sweep import plan_points
from webdyno.core.text import SECRET
from webdyno.core.variant import key_parts
from webdyno.launch.caller import Caller, agreed, keep
from webdyno.launch.consent import NAMED_LETTERS, agree, keyed_texts, not_allowed, own_systems

if TYPE_CHECKING:
    from webdyno.systems.project import Project


def agree_to_sending(experiment: Experiment, catalogue: Catalogue, caller: Caller) -> None:
    """Ask before an experiment has files or variables of yours sent, or raise UserError.

    What was agreed to once, or named by yourself, is asked no more.
    """
    known = agreed()
    sent = [each for each in _sendings(experiment, catalogue) if each[-1] not in known]
    if not sent:
        return
    texts = dict.fromkeys(f"  {_cut(text)} {why}" for text, why, _, _ in sent)
    stacks = ", ".join(dict.fromkeys(stack for _, _, stack, _ in sent))
    agree("\n".join(["servers will be sent:", *texts, f"to {stacks}"]), "send that?", caller)
    keep((agreement for *_, agreement in sent), caller)


def _cut(text: str) -> str:
    """Return a text, of a long one begin and end: where a path leads stands last."""
    half = NAMED_LETTERS // 2
    return text if len(text) <= NAMED_LETTERS else f"{text[:half]}…{text[-half:]}"


def agree_to_own_sending(experiment: Experiment, catalogue: Catalogue, caller: Caller) -> None:
    """Remember that you had these sent yourself: a resumed run asks no more."""
    known = agreed()
    sent = (agreement for *_, agreement in _sendings(experiment, catalogue))
    keep((each for each in sent if each not in known), caller)


def _sendings(experiment: Experiment, catalogue: Catalogue) -> Iterator[tuple[str, str, str, str]]:
    """Yield what of yours is sent, what that is, the name of a stack that gets it, an agreement."""
    variants = [
        each for plan in plan_points(experiment) for each in plan.experiment.variants.values()
    ]
    stacks = [catalogue.stack(name) for name in dict.fromkeys(each.stack for each in variants)]
    asked = [*dict.fromkeys(_read_of_yours(experiment))]
    for stack in stacks:
        if sent := [*dict.fromkeys([*asked, *_read_of_yours(_environments(stack))])]:
            fingerprint = fingerprint_of(stack)
            for text, why in sent:
                summed_up = hashlib.sha256(f"{text}\0{fingerprint}".encode()).hexdigest()
                yield text, why, stack.name, f"{summed_up}:sent"


def _environments(stack: Stack) -> list[list[str]]:
    services = (role.service for role in stack.services.values())
    return [[*service.environment.values()] for service in services if service.own]


def refuse_unaskable(draft: Draft, origin: Literal["catalog", "run"]) -> None:
    """Raise UserError for what an experiment that somebody else may have written can't name.

    That is what is built before you are asked; of a catalogue's also files and variables of yours,
    of a run's files whose content a run keeps.
    """
    written = [draft.source.data, draft.data]  # the former still names files
    for text, kind in (system for each in written for system in own_systems(each)):
        if kind.is_built:
            raise _unaskable(text, origin, "it is built before you are asked")
    if origin == "catalog":
        for text, why in _read_of_yours(written):
            raise _unaskable(text, origin, f"it {why}, which servers would be sent")
    for where, name in files_named(draft.source.data):
        if where[0] != "values":
            why = "it is a file of yours, and a run keeps what is in such"
            raise _unaskable(f"{where[-1]} = {name}", origin, why)


def _unaskable(text: str, origin: str, why: str) -> UserError:
    return UserError(
        f"{text:.{NAMED_LETTERS}}: an experiment of a {origin} can't name that, since {why}: copy "
        "the experiment to a file of your own"
    )


def refuse_reading(asked: object, caller: Caller) -> None:
    """Raise UserError where requests would be filled from your files or environment, and may not.

    `asked`: keywords of a call, or an experiment.
    """
    if caller.allows_commands:
        return
    for text, why in _read_of_yours(asked):
        raise not_allowed(text, why)


def _read_of_yours(asked: object) -> Iterator[tuple[str, str]]:
    """Yield the variables and files that requests are filled from, and what each is."""
    for key, text in keyed_texts(asked):
        for secret in SECRET.finditer(text):
            yield secret[0], "is a variable of your environment"
        if "file" in key and re.fullmatch(r"(.+_)?file", key_parts(key)[-1]):
            yield f"{key} = {text}", "is a file of yours"


def project_around(folder: Path, caller: Caller) -> "Project | None":
    """Find the `webdyno.toml` around a folder.

    Raise UserError where it has files or variables of yours sent, and the caller may not: a
    repository that an agent works in could have named them.
    """
    from webdyno.systems.project import APP, Project

    project = Project.around(folder)
    if project is not None:
        data = project.file.data
        refuse_reading({key: value for key, value in data.items() if key != APP}, caller)
    return project
