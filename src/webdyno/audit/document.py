"""What is kept of a text for the rules that look at several things at once."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from webdyno.audit.prose import ClientCpu, CountedLoop, PageCache, Pipelined
from webdyno.audit.tables import Table
from webdyno.audit.unread import UnreadPart
from webdyno.readers.output import Command, Output

Item = Output | Table | Command | CountedLoop | PageCache | ClientCpu | Pipelined | UnreadPart

MOST_KEPT = 2000
"""Outputs, tables and so on that are compared with each other: a text of any length is read, and
each output in it is judged by itself, but the memory that this takes is bounded."""


@dataclass
class Document:
    """The beginning of a text: as much of it as can be compared."""

    outputs: list[Output] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    loops: list[CountedLoop] = field(default_factory=list)
    page_caches: list[PageCache] = field(default_factory=list)
    client_cpu: list[ClientCpu] = field(default_factory=list)
    pipelined: list[Pipelined] = field(default_factory=list)
    unread: list[UnreadPart] = field(default_factory=list)
    """What looks like measurements and wasn't read; parts of it may have been after all."""
    left_out: int = 0
    """Outputs and tables that are not kept."""

    def keep(self, item: Item) -> None:
        """Keep an item, as long as there is room."""
        kept = self._like(item)
        if len(kept) < MOST_KEPT:
            kept.append(item)
        elif isinstance(item, Output | Table | Command):
            self.left_out += 1

    def _like(self, item: object) -> list[object]:
        kinds: dict[type, list[object]] = {
            Output: self.outputs,  # type: ignore[dict-item]
            Table: self.tables,  # type: ignore[dict-item]
            Command: self.commands,  # type: ignore[dict-item]
            CountedLoop: self.loops,  # type: ignore[dict-item]
            PageCache: self.page_caches,  # type: ignore[dict-item]
            ClientCpu: self.client_cpu,  # type: ignore[dict-item]
            Pipelined: self.pipelined,  # type: ignore[dict-item]
            UnreadPart: self.unread,  # type: ignore[dict-item]
        }
        return kinds[type(item)]

    @property
    def web_outputs(self) -> Iterator[Output]:
        """Outputs about HTTP."""
        return (each for each in self.outputs if each.tool != "redis-benchmark")
