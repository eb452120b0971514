"""Who is asked for a yes, and a catalogue that isn't webdyno's own."""

from pathlib import Path

from webdyno.config import Catalogue
from webdyno.interfaces.cli.flags import RunFlags
from webdyno.interfaces.cli.progress import at_terminal
from webdyno.launch.caller import Caller

SERVICE = """
title = "Mine"
protocol = "http"
check = ["sh", "-c", "echo checking"]
start = ["{{ needs.binary }}", "--foreground"]
needs.binary = { command = ["sh"], apt = "dash" }
version = { command = ["sh", "-v"], pattern = "(.*)" }
"""


STACK = 'title = "t"\nserves = ["static"]\nfront = "m"\n[services.m]\nservice = "mine"\n'


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
