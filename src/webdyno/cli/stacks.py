"""`webdyno stacks`: what can be compared, and with which settings."""

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from webdyno.cli.console import plain_console, print_table
from webdyno.cli.flags import CatalogDirs
from webdyno.definitions import Catalogue
from webdyno.model.format import setting_value
from webdyno.model.setting import NumberSetting, Setting
from webdyno.model.stack import Stack


def stacks(
    name: Annotated[str | None, Parameter(help="A stack; all of them when omitted.")] = None,
    *,
    catalog: CatalogDirs = (),
) -> None:
    """List all stacks, or show one with its settings and the sites that it can serve.

    For example

        webdyno stacks

        webdyno stacks apache-event
    """
    catalogue = Catalogue.load(catalog)
    console = plain_console()
    if name is None:
        rows = [(it.name, it.title, _sites(catalogue, it)) for it in catalogue.stacks.values()]
        print_table(("stack", "what it is", "sites"), rows)
        console.print("\n'webdyno stacks NAME' shows a stack's settings.", style="dim")
    else:
        _show_stack(catalogue, catalogue.stack(name), console)


def _show_stack(catalogue: Catalogue, stack: Stack, console: Console) -> None:
    from webdyno.stack.needs import packages_of

    services = ", ".join(f"{role} ({part.service.name})" for role, part in stack.services.items())
    console.print(Text.assemble((stack.name, "bold"), f": {stack.title}"))
    console.print(f"services  {services}")
    console.print(f"packages  {', '.join(packages_of(stack))}")
    console.print(f"sites     {_sites(catalogue, stack)}\n")
    settings = {name: target.setting for name, target in stack.exposed_settings().items()}
    print_table(
        ("setting", "values", "default", "tuned", "what it does"),
        [
            (name, it.range(), setting_value(it.default), _tuned(it), it.help)
            for name, it in settings.items()
        ],
    )


def _sites(catalogue: Catalogue, stack: Stack) -> str:
    return ", ".join(site.name for site in catalogue.sites_for(stack))


def _tuned(setting: Setting) -> str:
    """Say where `webdyno tune` looks."""
    if setting.tune is None:
        return ""
    if not isinstance(setting, NumberSetting):
        return ", ".join(setting.tune.choices or ["yes"])
    low, high = setting.tuned_range
    return f"{low:g} to {high:g}"
