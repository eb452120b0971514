"""`webdyno duel`: two stacks against each other, without writing an experiment's file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.experiment_flags import AS_WRITTEN, ExperimentFlags
from webdyno.cli.flags import PLAIN_NEW_RUN, NewRunFlags, Out, Why
from webdyno.cli.measure import measure
from webdyno.cli.own_systems import NO_FLAGS, OwnFlags, checked_with_own, flag_of
from webdyno.cli.why import why_afterwards
from webdyno.definitions import Catalogue, CommandLine, Draft
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.experiment import Experiment
from webdyno.model.mistake import Mistake
from webdyno.model.stack import Site

LONGEST_NAME = 48
"""Letters of an arm's name, which stands in each line of the report."""


@Parameter(name="*")
@dataclass(frozen=True)
class AskedFlags:
    """What systems that are named on the command line serve, and what they are asked for."""

    site: Annotated[
        str | None, Parameter(help="What all of them serve; else the first that all can serve.")
    ] = None
    path: Annotated[
        str | None, Parameter(help="The path that is asked for; else the site's first.")
    ] = None
    own: OwnFlags = NO_FLAGS
    flags: ExperimentFlags = AS_WRITTEN


NOTHING_SAID = AskedFlags()


def duel(
    stack: Annotated[
        str,
        Parameter(
            help="What the question is about: a stack of the catalogue, or a system of your own "
            "(cmd:COMMAND, rev:REVISION, conf:FILE, image:NAME, url:URL)."
        ),
    ],
    baseline: Annotated[str, Parameter(help="What it is compared with, likewise.")],
    *,
    asked: AskedFlags = NOTHING_SAID,
    why: Why = False,
    out: Out = None,
    run: NewRunFlags = PLAIN_NEW_RUN,
) -> Exit:
    """Compare two stacks: both serve the same site under the same load, and take turns.

    For example

        webdyno duel nginx apache-event

        webdyno duel nginx apache-prefork --site static --path /100KB.txt

        webdyno duel nginx apache-event --path /100KB.txt --bench netns --link 100mbit

        webdyno duel nginx apache-event --question "not-slower-by 5%"

        webdyno duel nginx nginx        # how small a difference can be seen here?

    Systems of your own, see docs/own.md:

        webdyno duel 'cmd:gunicorn app:app -b 127.0.0.1:$PORT' 'cmd:uvicorn app:app --port $PORT'

        webdyno duel rev:. rev:main --path /api/items      # as webdyno.toml says how to start it

        webdyno duel conf:new.conf conf:old.conf --root public

        webdyno duel image:app:2.0 image:app:1.9

        webdyno duel url:http://127.0.0.1:9000 url:http://127.0.0.1:9001
    """
    name, experiment, catalogue = arranged([baseline, stack], asked, run)
    afterwards = why_afterwards(experiment, run.how) if why else None
    return measure(
        name, experiment, catalogue, out, run.how, fail_on=run.fail_on, afterwards=afterwards
    )


NOTHING_MORE = CommandLine({}, {})


def arranged(
    systems: Sequence[str],
    asked: AskedFlags,
    run: NewRunFlags,
    more: CommandLine = NOTHING_MORE,
    names: Sequence[str] = (),
) -> tuple[str, Experiment, Catalogue]:
    """Make the experiment of some stacks, with its name and the catalogue that knows all of them.

    `systems`: the baseline first. `more`: tables of the experiment that the command's own flags
    give. `names`: of the arms, if not as the systems are called.
    """
    from webdyno.own.arms import is_own, is_revision
    from webdyno.own.project import Project, ProjectSource

    site, path, own, flags = asked.site, asked.path, asked.own, asked.flags
    catalogue = Catalogue.load(run.catalog)
    if path is not None and flags.setup.traffic.given:
        raise Mistake(
            f"--path {path}: --curl, --har and --requests say what is asked for; leave it out"
        )
    keys = own.keys()
    arms = [{"stack": name, **(keys if is_own(name) else {})} for name in systems]
    if keys and not any(map(is_own, systems)):
        raise Mistake(
            f"{flag_of(next(iter(keys)))} is for a system of your own, such as cmd:COMMAND, and "
            f"none of {', '.join(systems)} is one"
        )
    served = catalogue.site(site) if site else common_site(catalogue, *systems)
    spoken = _experiment(
        served, arms, path, names or arm_names(systems), own.load, flags.setup.traffic.words
    )
    spoken = CommandLine({**spoken.data, **more.data}, {**spoken.flags, **more.flags})
    of_revisions = any(map(is_revision, systems))
    project = Project.around((own.dir or Path.cwd()).absolute()) if of_revisions else None
    source = ProjectSource(spoken, project) if project else spoken
    draft = Draft.of(source, flags.overrides())
    experiment, catalogue = checked_with_own(draft, catalogue, Path.cwd(), yes=run.how.yes)
    return _run_name(systems, served), experiment, catalogue


def _experiment(
    served: Site,
    arms: Sequence[dict[str, object]],
    path: str | None,
    names: Sequence[str],
    load: Mapping[str, object],
    traffic: str,
) -> CommandLine:
    of_site = f"{path or served.ready_path} of {served.name}"
    where = f" at {of_site if served.paths else path}" if served.paths or path else ""
    if traffic:
        where = f" at what {traffic} asks for"
    flags: dict[KeyPath, str] = {("site",): f"--site {served.name}"}
    load = {**load, **({"paths": [path]} if path else {})}
    if "headers" in load:
        flags["load", "headers", "Host"] = flags["load", "headers"] = "--host"
    if path or served.paths:
        flags["load", "paths"] = f"--path {path or served.ready_path}"
    for name, arm in zip(names, arms, strict=True):
        flags |= {("arms", name, key): flag_of(key) for key in arm}
        flags |= {("arms", name): str(arm["stack"]), ("arms", name, "stack"): str(arm["stack"])}
    title, question = _in_words(names)
    return CommandLine(
        data={
            "title": title,
            "question": f"{question}{where}?",
            "site": served.name,
            **({"load": load} if load else {}),
            "arms": dict(zip(names, arms, strict=True)),
        },
        flags=flags,
    )


def _in_words(names: Sequence[str]) -> tuple[str, str]:
    """Give title and question, the latter without its end."""
    if len(names) > 2:
        which = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"A league of {len(names)}", f"What are the places of {which}"
    if len(names) == 1:
        return f"The capacity of {names[0]}", f"How much can {names[0]} take"
    first, second = names
    return f"{second} against {first}", f"How does {second} compare with {first}"


def arm_names(systems: Sequence[str]) -> list[str]:
    """Name the arms: not too long, and unlike each other."""
    short = [
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"
        for name in (" ".join(it.split()) for it in systems)
    ]
    letters = [chr(ord("A") + short[:at].count(name)) for at, name in enumerate(short)]
    return [
        f"{name} ({letter})" if short.count(name) > 1 else name
        for name, letter in zip(short, letters, strict=True)
    ]


def _run_name(systems: Sequence[str], served: Site) -> str:
    """Name the run, whose folder is named like it."""
    said = "-".join(reversed(systems)) if len(systems) <= 2 else f"league-{served.name}"
    return re.sub(r"[^A-Za-z0-9._]+", "-", said)[:LONGEST_NAME].strip("-.")


def common_site(catalogue: Catalogue, *systems: str) -> Site:
    """Give the first site that all can serve; raise Mistake where there is none."""
    from webdyno.own.arms import OWN_SITE, is_own

    known = [catalogue.stack(name) for name in systems if not is_own(name)]
    if not known:
        return catalogue.site(OWN_SITE)
    for site in catalogue.sites_for(known[0]):
        if all(site in catalogue.sites_for(other) for other in known):
            return site
    together = "both" if len(systems) == 2 else "all"
    raise Mistake(f"there is no site that {' and '.join(systems)} can {together} serve")
