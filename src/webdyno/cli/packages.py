"""Missing packages: named, and installed where the user agrees."""

import sys
from collections.abc import Sequence

from rich.console import Console
from rich.prompt import Confirm

from webdyno.model.site import Site
from webdyno.model.stack import Stack


def provide_packages(stacks: Sequence[Stack], sites: Sequence[Site], *, yes: bool) -> None:
    """Install what stacks and sites need and the machine lacks; raise Trouble if that fails.

    Asks first, unless `yes` was given or nobody is there to answer.
    """
    from webdyno.stack import install_packages, missing_packages

    console = Console(stderr=True)

    def agreed(question: str) -> bool:
        if yes or not sys.stdin.isatty():
            console.print(f"{question} yes; this can take a minute …")
            return True
        return Confirm.ask(question, default=True, console=console)

    install_packages(missing_packages(stacks, sites), agreed)
