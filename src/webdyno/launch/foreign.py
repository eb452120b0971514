"""Catalogs and runs that somebody else may have made: code, which is asked about once.

Whoever agrees trusts it like a program. A yes is for the content of all its files, and holds for
the user who gave it. What you named yourself, and runs that you began, aren't asked about.
"""

import hashlib
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from webdyno.config import Catalogue
from webdyno.config.catalogue import content_of, files_of
from webdyno.config.reading import TomlFile
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.core.service import Service, Version
from webdyno.core.variant import key_parts
from webdyno.core.whose import sudo_caller
from webdyno.host.users import name_of
from webdyno.launch.caller import Caller, agreed, keep
from webdyno.launch.consent import agree, keyed_texts, not_allowed, own_systems
from webdyno.launch.sending import read_of_yours

AROUND_ROUNDS = ("before_round", "after_round")
"""Keys of the commands of `[state]`."""
SENDS = "sends "
MOST_SHOWN = 5
SHOWN_LETTERS = 160
LINE_BREAK = "⏎"


class _Foreign(NamedTuple):
    """A folder or file that isn't webdyno's own."""

    place: Path
    does: Iterable[str]
    """What it runs and sends, for people: looked for where somebody is asked."""
    agreements: list[str]
    """What a yes is kept as."""


def agree_to_use(
    catalogue: Catalogue,
    caller: Caller,
    said: Experiment | TomlFile | None = None,
    place: Path = Path(),
) -> None:
    """Ask before catalogs are used, and what a run said, in one question for each content.

    `place` is where that experiment is from. Nothing of all that may be built, run or sent before.
    Raise UserError where nobody agrees.
    """
    new = _not_agreed_to(catalogue, said, place)
    if not new:
        return
    what = _described(new)
    if not caller.allows_commands:
        raise UserError(f"{what}\nnobody has agreed to that in a terminal; nothing was run")
    agree(what, "trust that?", caller)
    keep((text for each in new for text in each.agreements), caller)


def is_agreed_to(catalogue: Catalogue, said: Experiment) -> bool:
    """Whether nobody has to be asked: you began or named it, or agreed to it before."""
    return not _not_agreed_to(catalogue, said, Path())


def _not_agreed_to(
    catalogue: Catalogue, said: Experiment | TomlFile | None, place: Path
) -> list[_Foreign]:
    known = agreed()
    foreign = [*_catalogs(catalogue), *_said(said, place)]
    return [each for each in foreign if not known.issuperset(each.agreements)]


def know_as_yours(experiment: Experiment, caller: Caller) -> None:
    """Ask no more about what an experiment runs and sends, which you named or agreed to."""
    keep((text for each in _said(experiment, Path()) for text in each.agreements), caller)


def know_run(folder: Path, experiment: Experiment, catalogue: Catalogue, caller: Caller) -> None:
    """Ask no more about a run that was begun, with what it has kept of a catalog.

    Raise OperationError where somebody has changed that meanwhile.
    """
    from webdyno.measure.repeat import files_to_keep, kept_folder

    content = content_of(files_to_keep(experiment, catalogue))
    if content_of(files_of(kept_folder(folder))) != content:
        raise OperationError(
            f"{folder}: others have changed what is kept there of the catalog: begin the run where "
            "only you can write (-o)"
        )
    if content is not None:
        keep([_agreement(content)], caller)


def refuse_commands(experiment: Experiment, catalogue: Catalogue, caller: Caller) -> None:
    """Raise UserError where an experiment runs commands of its author's, and may not."""
    if caller.allows_commands:
        return
    for command in _commands_around_rounds(experiment):
        raise not_allowed(command, "is a command")
    for variant in experiment.variants.values():
        for role in catalogue.stack(variant.stack).services.values():
            if role.service.own and not role.service.runs_already:
                raise not_allowed(role.service.own.written, "runs what its author wrote")


def _catalogs(catalogue: Catalogue) -> Iterator[_Foreign]:
    for folder in catalogue.folders:
        if (content := content_of(files_of(folder))) is not None:
            yield _Foreign(folder, _commands_in(folder, catalogue), [_agreement(content)])


def _commands_in(folder: Path, catalogue: Catalogue) -> Iterator[str]:
    """Yield what parts of a catalog run, but for what webdyno's own of that name does."""
    ours = Catalogue.load().services
    for service in catalogue.services.values():
        if service.folder.is_relative_to(folder):
            known = [*_commands_of(ours[service.name])] if service.name in ours else []
            new = (words for words in _commands_of(service) if words and words not in known)
            yield from map(shlex.join, new)
    for site in catalogue.sites.values():
        if site.folder.is_relative_to(folder):
            yield from map(shlex.join, site.setup)
    for file in catalogue.experiments.values():
        if file.is_relative_to(folder):
            with suppress(UserError):  # whoever asks for it hears of that
                said = TomlFile(file)
                yield from (*_systems_of(said), *_said_by(said.data, said.folder))


def _commands_of(service: Service) -> Iterator[list[str]]:
    yield service.start
    yield from service.build.commands if service.build else []
    yield from (service.check, *service.initialise, *service.before_start)
    versions = [service.version, *service.modules.values()]
    yield from (each.command for each in versions if isinstance(each, Version))
    yield from (service.own.setup, service.own.removed_by) if service.own else ()
    yield from (service.ready, service.tidy, service.snapshot, service.restore)
    yield from (service.query, service.counts)


def _said(said: Experiment | TomlFile | None, place: Path) -> Iterator[_Foreign]:
    """Yield what an experiment runs and sends of yours.

    A file that names systems is known as a whole, since the rest says how these are run. Commands
    run in the current folder, and are others in another one: `./reset.sh` is what lies there.
    """
    if isinstance(said, TomlFile):
        place, does = said.path, [*_said_by(said.data, said.folder)]
        if systems := [*_systems_of(said)]:
            yield _Foreign(place, systems + does, [_agreement(f"{Path.cwd()}\0{said.data}")])
            return
    else:
        does = [*_said_by(said, Path.cwd())] if said else []
    if does:
        yield _Foreign(place, does, [_agreement(f"{_where(text)}\0{text}") for text in does])


def _where(said: str) -> str:
    return "" if said.startswith(SENDS) else str(Path.cwd())


def _systems_of(file: TomlFile) -> Iterator[str]:
    return iter(dict.fromkeys(text for text, _ in own_systems(file.data)))


def _said_by(said: object, folder: Path) -> Iterator[str]:
    """Yield the commands around rounds, and what is sent of yours, by paths from a folder."""
    yield from _commands_around_rounds(said)
    yield from dict.fromkeys(
        f"{SENDS}{text}, which {why}" for text, why in read_of_yours(said, folder)
    )


def _commands_around_rounds(said: object) -> Iterator[str]:
    commands = (
        f"state.{key_parts(key)[-1]}: {text}"
        for key, text in keyed_texts(said)
        if "_round" in key and key_parts(key)[-1] in AROUND_ROUNDS
    )
    return iter(dict.fromkeys(commands))


def _described(foreign: Sequence[_Foreign]) -> str:
    name = name_of(None)
    trust = "this isn't webdyno's own, and is code, to be trusted like a program that you start:"
    lines = [f"{trust} it can run commands as {name}, read and send files and variables of {name}"]
    for each in foreign:
        lines.append(f"  {each.place}{_whose(each.place)}")
        does = [*each.does]
        lines += [f"    {_in_one_line(text)}" for text in does[:MOST_SHOWN]]
        if (more := len(does) - MOST_SHOWN) > 0:
            lines.append(f"    and {more:,} more")
    return "\n".join(lines)


def _whose(place: Path) -> str:
    try:
        return f" (of {place.owner()})"
    except (KeyError, OSError):  # a user without a name; a run that isn't there yet
        return ""


def _in_one_line(text: str) -> str:
    """Return a text without its line breaks, of a long one both ends: a path's last is the file."""
    shown = " ".join(text.replace("\n", f" {LINE_BREAK} ").split())
    if (cut := len(shown) - SHOWN_LETTERS) <= 0:
        return shown
    half = SHOWN_LETTERS // 2
    return f"{shown[:half]} … {cut:,} letters … {shown[-half:]}"


def _agreement(content: str) -> str:
    """Return what a yes is kept as: for another user, as for root, it is another one."""
    summed_up = hashlib.sha256(content.encode()).hexdigest()
    return f"{summed_up}:{os.geteuid()}:{sudo_caller() or ''}"
