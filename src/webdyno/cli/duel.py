"""`webdyno duel`: two stacks against each other, without writing an experiment's file."""

from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.exits import Exit
from webdyno.cli.flags import AS_WRITTEN, CatalogDirs, ExperimentFlags, Out, Yes
from webdyno.cli.measure import measure
from webdyno.definitions import Catalogue, CommandLine, read_experiment
from webdyno.model.mistake import Mistake
from webdyno.model.site import Site


def duel(
    stack: Annotated[str, Parameter(help="The stack that the question is about.")],
    baseline: Annotated[str, Parameter(help="The stack that it is compared with.")],
    *,
    site: Annotated[
        str | None, Parameter(help="What both serve; else the first that both can serve.")
    ] = None,
    path: Annotated[
        str | None, Parameter(help="The path that is asked for; else the site's first.")
    ] = None,
    flags: ExperimentFlags = AS_WRITTEN,
    out: Out = None,
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> Exit:
    """Compare two stacks: both serve the same site under the same load, and take turns.

    For example

        webdyno duel nginx apache-event

        webdyno duel nginx apache-prefork --site static --path /100KB.txt

        webdyno duel nginx apache-event --path /100KB.txt --bench netns --link 100mbit

        webdyno duel nginx apache-event --question "not-slower-by 5%"

        webdyno duel nginx nginx        # how small a difference can be seen here?
    """
    catalogue = Catalogue.load(catalog)
    spoken = _experiment(catalogue, stack, baseline, site, path)
    experiment = read_experiment(spoken, flags.overrides(), catalogue)
    return measure(f"{stack}-{baseline}", experiment, catalogue, out, yes=yes)


def _experiment(
    catalogue: Catalogue, stack: str, baseline: str, site: str | None, path: str | None
) -> CommandLine:
    served = catalogue.site(site) if site else common_site(catalogue, stack, baseline)
    asked = path or served.ready_path
    # In a duel of a stack with itself the two arms still need two names.
    names = (baseline, stack) if stack != baseline else (f"{stack} (A)", f"{stack} (B)")
    return CommandLine(
        data={
            "title": f"{stack} against {baseline}",
            "question": f"How does {stack} compare with {baseline} at {asked} of {served.name}?",
            "site": served.name,
            "load": {"paths": [asked]},
            "arms": {names[0]: {"stack": baseline}, names[1]: {"stack": stack}},
        },
        flags={
            ("site",): f"--site {served.name}",
            ("load", "paths"): f"--path {asked}",
            ("arms", names[0]): baseline,
            ("arms", names[1]): stack,
        },
    )


def common_site(catalogue: Catalogue, stack: str, baseline: str) -> Site:
    """Give the first site that both can serve; raise Mistake where there is none."""
    theirs = catalogue.sites_for(catalogue.stack(baseline))
    for site in catalogue.sites_for(catalogue.stack(stack)):
        if site in theirs:
            return site
    raise Mistake(f"there is no site that both {stack} and {baseline} can serve")
