"""`webdyno setup`: installs what stacks and their sites need, ahead of any run."""

from typing import Annotated

from cyclopts import Parameter

from webdyno.cli.console import plain_console
from webdyno.cli.flags import CatalogDirs, RunFlags, Yes
from webdyno.cli.progress import at_terminal
from webdyno.definitions import Catalogue
from webdyno.lab.consent import provide_packages


def setup(
    *stacks: Annotated[str, Parameter(help="Stacks of the catalogue; all when none is named.")],
    catalog: CatalogDirs = (),
    yes: Yes = False,
) -> None:
    """Install the packages that stacks, and all sites they can serve, need.

    For example

        webdyno setup nginx-phpfpm apache-prefork-modphp

        webdyno setup --yes
    """
    catalogue = Catalogue.load(catalog)
    wanted = [catalogue.stack(name) for name in stacks] or list(catalogue.stacks.values())
    sites = {site.name: site for stack in wanted for site in catalogue.sites_for(stack)}
    provide_packages(wanted, list(sites.values()), [], at_terminal(RunFlags(yes=yes)))
    plain_console().print(f"everything is there for {', '.join(stack.name for stack in wanted)}")
