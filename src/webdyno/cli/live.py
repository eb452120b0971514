"""What a terminal shows while a run goes on: where it is, how sure it is by now, who is busy."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import exp, expm1, log
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from webdyno.model.format import count, duration, percent
from webdyno.model.records import SlotRecord
from webdyno.model.run import RunHead

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.judge.point_data import PointData

WIDTH = 100
BAR = 18
SCALE = 41
"""Letters of the interval's scale, an odd number: the estimate stands in its middle."""
WIDEST = log(4)
"""ln: an interval that reaches beyond this is drawn to the scale's ends."""


@dataclass
class Usage:
    """How busy servers and client were in an arm's last slot, as shares of their CPUs."""

    servers: float
    client: float


@dataclass
class LiveView:
    """Drawn anew some times a second; whoever measures says what has changed."""

    head: RunHead
    began_s: float = field(default_factory=time.monotonic)
    point: str = ""
    doing: str = "starting"
    slots: int = 0
    ended: int = 0
    block: int = 0
    ratios: str = ""
    left: str = ""
    """How many blocks and how much time it will take, about."""
    scale: Text | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    left_out: str = ""

    def block_begins(self, block: int, slots: int) -> None:
        """A block's servers are started."""
        self.block, self.slots, self.ended, self.doing = block, slots, 0, "starting servers"

    def slot_ends(self, record: SlotRecord) -> None:
        """A slot was measured."""
        self.ended += 1
        length_s = record.load.all_of_it.length_s
        cpus = self.head.experiment.arms[record.arm].cpus or len(self.head.machine.split.servers)
        if length_s:
            servers = record.servers.cpu_s / (length_s * cpus)
            self.usage[record.arm] = Usage(min(servers, 1.0), min(record.load.client.busy, 1.0))

    def block_ends(self, ratios: str, data: "PointData") -> None:
        """A block was measured: see how sure the answer is by now, and what is still lacking."""
        from webdyno.judge import foresee
        from webdyno.judge.validity import left_out_words

        self.ratios, self.left_out = ratios, left_out_words(data)
        foreseen = foresee(data)
        if foreseen is None:
            self.left, self.scale = f"{count(len(data.blocks), 'block')} so far", None
            return
        self.left = f"of about {foreseen.blocks} · {duration(round(foreseen.left_s))} left"
        found, wanted = foreseen.found, foreseen.wanted
        self.scale = interval_scale(found.low - found.centre, found.high - found.centre, wanted)
        self.scale.append(
            f"  {foreseen.arm}: known to ±{percent(expm1(found.half_width))}, "
            f"asked for are ±{percent(expm1(wanted))}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw."""
        yield from self._lines(min(options.max_width, WIDTH))

    def _lines(self, width: int) -> Iterator[Table | Text]:
        passed = duration(round(time.monotonic() - self.began_s))
        first = Table.grid(expand=False)
        first.width = width
        first.add_column(ratio=1, no_wrap=True)
        first.add_column(justify="right", no_wrap=True)
        where = " · ".join(filter(None, (self.point, f"block {self.block}" if self.block else "")))
        first.add_row(Text(f"{where or 'pilot'} {self.left}"), Text(passed, style="dim"))
        yield first
        now = Table.grid(padding=(0, 1))
        done = ProgressBar(total=max(self.slots, 1), completed=self.ended, width=BAR)
        now.add_row(done, Text(self.doing))
        yield now
        for arm, used in list(self.usage.items()):  # another thread draws
            busy = Table.grid(padding=(0, 1))
            busy.add_row(
                *_bar("servers", used.servers), *_bar("client", used.client), Text(arm, style="dim")
            )
            yield busy
        if self.ratios:
            yield Text(self.ratios, no_wrap=True, overflow="ellipsis")
        if self.scale is not None:
            yield self.scale
        if self.left_out:
            yield Text(f"slots left out: {self.left_out}", style="yellow")


def _bar(name: str, share: float) -> tuple[Text, ProgressBar, Text]:
    return (
        Text(name),
        ProgressBar(total=1.0, completed=share, width=BAR),
        Text(f"{100 * share:3.0f} %"),
    )


def interval_scale(low: float, high: float, wanted: float) -> Text:
    """Draw an interval (ln, about its estimate) beside the width that is asked for.

    `░` is what it may span for the run to stop. The scale grows with the interval, up to fourfold
    each way.
    """
    middle = SCALE // 2
    widest = min(max(-low, high, 3 * wanted), WIDEST)

    def place(at: float) -> int:
        return middle + round(max(-1.0, min(1.0, at / widest)) * middle)

    signs = [" "] * SCALE
    for at in range(place(-wanted), place(wanted) + 1):
        signs[at] = "░"
    for at in range(place(low), place(high) + 1):
        signs[at] = "━" if signs[at] == "░" else "─"
    signs[place(low)], signs[place(high)], signs[middle] = "├", "┤", "●"
    return Text(f"{exp(-widest):4.2f}× {''.join(signs)} {exp(widest):.2f}×")
