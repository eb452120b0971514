"""Who is asked for a yes, and catalogs and runs that aren't webdyno's own."""

from pathlib import Path

from builders import SimulatedVariant, simulated_run
from webdyno.config import Catalogue
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.caller import Caller
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating

TRUST = "this isn't webdyno's own, and is code"
STOPPED = "stopped before anything is run"

SERVICE = """
title = "Mine"
protocol = "http"
check = ["sh", "-c", "echo checking"]
start = ["{{ needs.binary }}", "--foreground"]
needs.binary = { command = ["sh"], apt = "dash" }
version = { command = ["sh", "-v"], pattern = "(.*)" }
"""
STACK = 'title = "t"\nserves = ["static"]\nfront = "m"\n[services.m]\nservice = "mine"\n'
OF_A_CATALOGUE = """
title = "t"
question = "q?"
site = "own"
state.before_round = ["touch state"]
load.paths = ["/"]
[variants.a]
stack = "{system}"
[variants.b]
stack = "cmd:touch ran"
"""


class Terminal:
    """Standard input, with or without somebody who answers."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        """Whether somebody is there."""
        return self.answer is not None

    def readline(self) -> str:
        """What is typed."""
        return f"{self.answer}\n"


def caller(*, yes: bool = False) -> Caller:
    return at_terminal(RunFlags(yes=yes))


def own(folder: Path, **changes: str) -> Catalogue:
    text = SERVICE
    for old, new in changes.items():
        text = text.replace(old, new)
    for name, content in (("services/mine/service", text), ("stacks/mine/stack", STACK)):
        path = folder / f"{name}.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Catalogue.load([folder])


def make_run(folder: Path, catalogue: Catalogue) -> None:
    """Make a run of stacks of a catalog, as somebody may have left it."""
    variants = {name: SimulatedVariant(stack=name) for name in ("mine", "nginx")}
    run = simulated_run(variants, rounds=1)
    RunFolder.create(folder, run.head).close()
    keep_for_repeating(folder, run.head.experiment, catalogue)
