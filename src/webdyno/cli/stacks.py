"""`webdyno stacks`: what can be compared, and with which knobs."""

from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from webdyno.cli.console import plain_console, print_table
from webdyno.cli.flags import CatalogDirs
from webdyno.definitions import Catalogue
from webdyno.model.format import setting_value
from webdyno.model.knob import Knob, NumberKnob
from webdyno.model.stack import Stack


def stacks(
    name: Annotated[str | None, Parameter(help="A stack; all of them when omitted.")] = None,
    *,
    catalog: CatalogDirs = (),
) -> None:
    """List all stacks, or show one with its knobs and the sites that it can serve.

    For example

        webdyno stacks

        webdyno stacks apache-event
    """
    catalogue = Catalogue.load(catalog)
    console = plain_console()
    if name is None:
        rows = [(it.name, it.title, _sites(catalogue, it)) for it in catalogue.stacks.values()]
        print_table(("stack", "what it is", "sites"), rows)
        console.print("\n'webdyno stacks NAME' shows a stack's knobs.", style="dim")
    else:
        _show_stack(catalogue, catalogue.stack(name), console)


def _show_stack(catalogue: Catalogue, stack: Stack, console: Console) -> None:
    from webdyno.stack.needs import packages_of

    services = ", ".join(f"{role} ({part.service.name})" for role, part in stack.services.items())
    console.print(Text.assemble((stack.name, "bold"), f": {stack.title}"))
    console.print(f"services  {services}")
    console.print(f"packages  {', '.join(packages_of(stack))}")
    console.print(f"sites     {_sites(catalogue, stack)}\n")
    knobs = {name: target.knob for name, target in stack.exposed_knobs().items()}
    print_table(
        ("knob", "values", "default", "tuned", "what it does"),
        [
            (name, it.range(), setting_value(it.default), _tuned(it), it.help)
            for name, it in knobs.items()
        ],
    )


def _sites(catalogue: Catalogue, stack: Stack) -> str:
    return ", ".join(site.name for site in catalogue.sites_for(stack))


def _tuned(knob: Knob) -> str:
    """Say where `webdyno tune` looks."""
    if knob.tune is None:
        return ""
    if not isinstance(knob, NumberKnob):
        return ", ".join(knob.tune.choices or ["yes"])
    low, high = knob.tuned_range
    return f"{low:g} to {high:g}"
