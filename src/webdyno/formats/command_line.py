"""What an audit reads of a tool's command line, which says what an output may not."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LENGTH = {"d": "time_limit_s", "duration": "time_limit_s"}
OF_HTTP = LENGTH | dict.fromkeys(("c", "connections", "concurrency"), "concurrency")
COUNTED = {"n": "requests", "requests": "requests"}

BODY = "H header headers m method b body d data t timeout"
TLS = "k insecure cert key cacert"


@dataclass(frozen=True)
class CommandLine:
    """A tool's options, and what it does without any."""

    options: Mapping[str, str]
    """Option without its dashes -> attribute of Command, or `minutes`, `script` and `url`."""
    no_matter: str
    """Options that change nothing of what an audit looks at. All others are named as unread."""
    other_names: tuple[str, ...] = ()
    """Programs that take the same options."""
    defaults: Mapping[str, int] = field(default_factory=dict)
    """Connections and requests of a tool that doesn't print them."""
    open_loop: bool = False
    """Whether it always keeps to a timetable."""
    users_vary: bool = False
    """Whether there may be more or fewer users than the command says, as they come and go."""

    @property
    def known(self) -> frozenset[str]:
        return frozenset({*self.options, *self.no_matter.split()})
