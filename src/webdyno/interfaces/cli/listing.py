"""`webdyno list`: what there is: stacks, sites, experiments, studies."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

from webdyno.core.errors import OperationError, UserError
from webdyno.core.registry import command
from webdyno.interfaces.cli.flags import CatalogDirs, flag

if TYPE_CHECKING:  # pydantic takes a while to import
    from rich.console import Console

    from webdyno.config import Catalogue
    from webdyno.core.setting import Setting
    from webdyno.core.stack import Site, Stack


HEADINGS = {
    "stacks": ("stack", "installed", "what it is"),
    "sites": ("site", "what it is", "stacks"),
    "experiments": ("experiment", "what it is", "variants"),
    "studies": ("study", "what it is", "claims", "experiments"),
}


def list_known(
    what: Annotated[
        str, flag("WHAT: stacks, sites, experiments, studies; or the name of a stack or site.")
    ] = "stacks",
    *,
    catalog: CatalogDirs = (),
) -> None:
    """List stacks, sites, experiments, studies; a stack's settings; or a site's stacks.

    For example

        webdyno list

        webdyno list apache-event

        webdyno list wordpress

        webdyno list studies
    """
    from webdyno.config import Catalogue
    from webdyno.media.console import plain_console, print_table

    catalogue = Catalogue.load(catalog)
    console = plain_console()
    if what == "stacks":
        _show_stacks(catalogue, console)
    elif what in HEADINGS:
        print_table(HEADINGS[what], _rows(what, catalogue))
        if what == "studies":
            console.print(f"\n'{command('run', 'study:NAME')}' repeats one.", style="dim")
    elif what in catalogue.sites and what not in catalogue.stacks:
        _show_site(catalogue, catalogue.sites[what], console)
    else:
        _show_stack(catalogue, catalogue.stack(what), console)


def _show_stacks(catalogue: "Catalogue", console: "Console") -> None:
    """Print stacks in groups: many serve the same sites."""
    by_sites: dict[str, list[Stack]] = {}
    for stack in catalogue.stacks.values():
        by_sites.setdefault(_sites(catalogue, stack), []).append(stack)
    longest = max(map(len, catalogue.stacks), default=0)
    for sites, stacks in by_sites.items():
        console.print(f"Sites: {sites or 'none'}", style="bold")
        _print_stacks(stacks, longest)
        console.print()
    hint = f"'{command('list', 'NAME')}' shows a stack's settings, or a site's stacks."
    console.print(hint + _by_whom(), style="dim")


def _show_site(catalogue: "Catalogue", site: "Site", console: "Console") -> None:
    from rich.text import Text

    console.print(Text.assemble((site.name, "bold"), f": {site.title}"))
    stacks = [each for each in catalogue.stacks.values() if site in catalogue.sites_for(each)]
    if not stacks:
        console.print("No stack of the catalog serves it by itself.")
        return
    _print_stacks(stacks)
    if len(stacks) > 1:
        names = [stack.name for stack in stacks[:2]]
        compared = command("compare", *names, "--site", site.name)
        console.print(f"\n'{compared}' compares two of them.", style="dim")


def _print_stacks(stacks: Iterable["Stack"], longest: int = 0) -> None:
    from webdyno.media.console import print_table
    from webdyno.servers.needs import is_installed

    rows = (
        (stack.name.ljust(longest), "yes" if is_installed(stack) else "", _with_versions(stack))
        for stack in stacks
    )
    print_table(HEADINGS["stacks"], rows)


def _by_whom() -> str:
    """Say what runs containers, which can be compared with stacks."""
    from webdyno.systems.containers.choice import engine_here

    try:
        return f"\nContainers of your own (image:NAME, image:compose.yaml) run by {engine_here()}."
    except (OperationError, UserError):
        return f"\n'{command('doctor')}' says what containers of your own (image:NAME) need."


def _rows(what: str, catalogue: "Catalogue") -> Iterator[tuple[str, ...]]:
    from webdyno.config.catalogue import read_studies

    stacks = catalogue.stacks.values()
    if what == "sites":
        for site in catalogue.sites.values():
            fitting = [stack.name for stack in stacks if site in catalogue.sites_for(stack)]
            if fitting:
                yield site.name, site.title, ", ".join(fitting)
    elif what == "experiments":
        for name in catalogue.experiments:
            experiment = catalogue.experiment(name)
            yield name, experiment.title, ", ".join(experiment.variants)
    else:
        for study in read_studies().values():
            yield study.name, study.title, str(len(study.claims)), ", ".join(study.experiments)


def _with_versions(stack: "Stack") -> str:
    """Return a stack's title, and what the lock files of its programs pin."""
    from webdyno.servers.output import locked_versions

    locked: list[str] = []
    for part in stack.services.values():
        versions = locked_versions(part.service, part.settings)
        locked += [f"{name} {version}" for name, version in versions.items()]
    return f"{stack.title} ({', '.join(locked)})" if locked else stack.title


def _show_stack(catalogue: "Catalogue", stack: "Stack", console: "Console") -> None:
    from rich.text import Text

    from webdyno.core.format import setting_value
    from webdyno.media.console import print_table
    from webdyno.servers.needs import packages_of

    services = ", ".join(f"{role} ({part.service.name})" for role, part in stack.services.items())
    console.print(Text.assemble((stack.name, "bold"), f": {_with_versions(stack)}"))
    console.print(f"services  {services}")
    console.print(f"packages  {', '.join(packages_of(stack))}")
    console.print(f"sites     {_sites(catalogue, stack)}\n")
    settings = {name: target.setting for name, target in stack.exposed_settings().items()}
    print_table(
        ("setting", "values", "default", "tuned", "what it does"),
        [
            (
                name,
                setting.range(),
                setting_value(setting.default),
                _tuning_range(setting),
                setting.help,
            )
            for name, setting in settings.items()
        ],
    )


def _sites(catalogue: "Catalogue", stack: "Stack") -> str:
    return ", ".join(site.name for site in catalogue.sites_for(stack))


def _tuning_range(setting: "Setting") -> str:
    from webdyno.core.setting import NumberSetting

    if setting.tune is None:
        return ""
    if not isinstance(setting, NumberSetting):
        return ", ".join(setting.tune.choices or ["yes"])
    low, high = setting.tuned_range
    return f"{low:g} to {high:g}"
