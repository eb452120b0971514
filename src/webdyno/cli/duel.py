"""`webdyno duel`: two stacks against each other, without writing an experiment's file."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.flags import AS_WRITTEN, CatalogDirs, ExperimentFlags, FailOn, Out, Report, Yes
from webdyno.cli.measure import measure
from webdyno.cli.own_systems import NO_FLAGS, OwnFlags, checked_with_own, flag_of
from webdyno.definitions import Catalogue, CommandLine, Draft
from webdyno.definitions.toml_file import KeyPath
from webdyno.model.mistake import Mistake
from webdyno.model.site import Site

LONGEST_NAME = 48
"""Letters of an arm's name, which stands in each line of the report."""


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
    site: Annotated[
        str | None, Parameter(help="What both serve; else the first that both can serve.")
    ] = None,
    path: Annotated[
        str | None, Parameter(help="The path that is asked for; else the site's first.")
    ] = None,
    own: OwnFlags = NO_FLAGS,
    flags: ExperimentFlags = AS_WRITTEN,
    out: Out = None,
    catalog: CatalogDirs = (),
    yes: Yes = False,
    fail_on: FailOn = (),
    report: Report = True,
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
    from webdyno.own import Project, SpokenOfProject, is_own, is_revision

    catalogue = Catalogue.load(catalog)
    if path is not None and flags.traffic.given:
        raise Mistake(
            f"--path {path}: --curl, --har and --requests say what is asked for; leave it out"
        )
    keys = own.keys()
    arms = [{"stack": name, **(keys if is_own(name) else {})} for name in (baseline, stack)]
    if keys and not any(map(is_own, (stack, baseline))):
        raise Mistake(
            f"{flag_of(next(iter(keys)))} is for a system of your own, such as cmd:COMMAND, and "
            f"neither {stack} nor {baseline} is one"
        )
    served = catalogue.site(site) if site else common_site(catalogue, stack, baseline)
    spoken = _experiment(served, arms, path)
    of_revisions = any(map(is_revision, (stack, baseline)))
    project = Project.around((own.dir or Path.cwd()).absolute()) if of_revisions else None
    source = SpokenOfProject(spoken, project) if project else spoken
    draft = Draft.of(source, flags.overrides())
    experiment, catalogue = checked_with_own(draft, catalogue, Path.cwd(), yes=yes)
    name = _run_name(stack, baseline)
    return measure(name, experiment, catalogue, out, yes=yes, fail_on=fail_on, report=report)


def _experiment(served: Site, arms: Sequence[dict[str, object]], path: str | None) -> CommandLine:
    baseline, stack = (str(arm["stack"]) for arm in arms)
    first, second = names = _names(baseline, stack)
    of_site = f"{path or served.ready_path} of {served.name}"
    where = f" at {of_site if served.paths else path}" if served.paths or path else ""
    flags: dict[KeyPath, str] = {("site",): f"--site {served.name}"}
    if path or served.paths:
        flags["load", "paths"] = f"--path {path or served.ready_path}"
    for name, arm in zip(names, arms, strict=True):
        flags |= {("arms", name, key): flag_of(key) for key in arm}
        flags |= {("arms", name): str(arm["stack"]), ("arms", name, "stack"): str(arm["stack"])}
    return CommandLine(
        data={
            "title": f"{second} against {first}",
            "question": f"How does {second} compare with {first}{where}?",
            "site": served.name,
            **({"load": {"paths": [path]}} if path else {}),
            "arms": dict(zip(names, arms, strict=True)),
        },
        flags=flags,
    )


def _names(baseline: str, stack: str) -> tuple[str, str]:
    """Name the arms: not too long, and unlike each other."""
    first, second = (
        name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1].rstrip()}…"
        for name in (" ".join(it.split()) for it in (baseline, stack))
    )
    return (first, second) if first != second else (f"{first} (A)", f"{second} (B)")


def _run_name(stack: str, baseline: str) -> str:
    """Name the run, whose folder is named like it."""
    plain = re.sub(r"[^A-Za-z0-9._]+", "-", f"{stack}-{baseline}")
    return plain[:LONGEST_NAME].strip("-.")


def common_site(catalogue: Catalogue, stack: str, baseline: str) -> Site:
    """Give the first site that both can serve; raise Mistake where there is none."""
    from webdyno.own import OWN_SITE, is_own

    known = [catalogue.stack(name) for name in (stack, baseline) if not is_own(name)]
    if not known:
        return catalogue.site(OWN_SITE)
    for site in catalogue.sites_for(known[0]):
        if all(site in catalogue.sites_for(other) for other in known):
            return site
    raise Mistake(f"there is no site that both {stack} and {baseline} can serve")
