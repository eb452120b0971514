"""Missing packages: named, and installed where the user agrees."""

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.prompt import Confirm

from webdyno.model.service import Need
from webdyno.model.site import Site
from webdyno.model.stack import Stack


def provide_packages(
    stacks: Sequence[Stack], sites: Sequence[Site], tools: Iterable[Need] = (), *, yes: bool
) -> None:
    """Install what stacks, sites and tools need and isn't there; raise Trouble if that fails.

    Asks first, unless `yes` was given or nobody is there to answer.
    """
    from webdyno.stack import install_packages, missing_packages
    from webdyno.stack.needs import find

    console = Console(stderr=True)

    def agreed(question: str) -> bool:
        if yes or not sys.stdin.isatty():
            console.print(f"{question} yes; this can take a minute …")
            return True
        return Confirm.ask(question, default=True, console=console)

    packages = missing_packages(stacks, sites)
    packages += [tool.apt for tool in tools if find(tool) is None]
    install_packages(packages, agreed)
