"""What a terminal shows during a run: where it is, how sure it is by now, who is busy."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import exp, expm1, log
from typing import TYPE_CHECKING, Self

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from webdyno.core.format import count, duration, level, percent
from webdyno.core.records import RoundRecord, SlotRecord
from webdyno.core.run import RunHead
from webdyno.core.sweep import Point
from webdyno.interfaces.cli.flags import RunFlags, Verbosity
from webdyno.launch.caller import Caller, LineProgress
from webdyno.media.console import notify, plain_console, print_notice

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.evidence.point_data import PointData

DRAWN_PER_S = 2
"""How often the live view is drawn: it must not cost what is measured next to it."""
WIDTH = 100
BAR = 18
SCALE = 41
"""Letters of the interval's scale, an odd number: the estimate stands in its middle."""
WIDEST = log(4)
"""ln: an interval that reaches beyond this is drawn to the scale's ends."""


def at_terminal(how: RunFlags) -> Caller:
    """Return who sits at the terminal, or has left it to a script, and called with these flags."""
    return Caller(
        notify=notify,
        progress=partial(_progress, verbosity=how.verbosity),
        asks=ask_person if sys.stdin.isatty() else None,
        yes=how.yes,
        loads_other_machines=how.loads_other_machines,
        target_is_mine=how.target_is_mine,
        cluster=how.cluster,
        quiet=how.verbosity.quiet,
    )


def ask_person(question: str, *, usual: bool) -> bool:
    """Ask who sits at the terminal; a question may name what others wrote, which is no markup."""
    try:
        return Confirm.ask(Text(question), default=usual, console=plain_console(stderr=True))
    except EOFError:  # Ctrl-D
        return False


def _progress(head: RunHead, verbosity: Verbosity) -> LineProgress:
    if plain_console(stderr=True).is_terminal and not verbosity.quiet:
        return LiveProgress(head, verbose=verbosity.verbose)
    return LineProgress(head, notify, quiet=verbosity.quiet, verbose=verbosity.verbose)


class LiveProgress(LineProgress):
    """Draws where a run is; of what is over it says what people should read."""

    a_line_each = False

    def __init__(self, head: RunHead, *, verbose: bool = False) -> None:
        console = plain_console(stderr=True)
        super().__init__(head, partial(print_notice, console), verbose=verbose)
        self._view = LiveView(head)
        self._live = Live(
            self._view, console=console, transient=True, refresh_per_second=DRAWN_PER_S
        )

    def __enter__(self) -> Self:
        super().__enter__()
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def pilot_begins(self, point: Point, variant: str) -> None:
        """Show that a variant is looked at alone."""
        super().pilot_begins(point, variant)
        self._show(point, f"warming up {variant}")

    def round_begins(self, point: Point, round_number: int, slots: int) -> None:
        """Show the new round."""
        super().round_begins(point, round_number, slots)
        self._show(point, "starting servers")
        self._view.round_begins(round_number, slots)

    def slot_begins(self, variant: str, phase: str) -> None:
        """Show which variant is under load."""
        super().slot_begins(variant, phase)
        self._view.doing = f"warming up {variant}" if phase in ("warmup", "wake-up") else variant

    def slot_ends(self, record: SlotRecord) -> None:
        """Move the bars on."""
        self._view.slot_ends(record)
        super().slot_ends(record)

    def long_look_begins(self, point: Point, variant: str, look_s: float) -> None:
        """Show which variant is under load, and for how long."""
        super().long_look_begins(point, variant, look_s)
        self._show(point, f"{variant}, for {duration(look_s)} without a break")

    def round_ends(self, this_round: RoundRecord, data: "PointData") -> None:
        """Show how sure the answer is by now."""
        from webdyno.comparison import question_of

        super().round_ends(this_round, data)
        self._view.round_ends(question_of(data.experiment).so_far(data), data)

    def _show(self, point: Point, doing: str) -> None:
        self._view.point = ", ".join(map(level, point.levels.values()))
        self._view.doing = doing


@dataclass
class Usage:
    """How busy servers and client were in a variant's last slot, as shares of their CPUs."""

    servers: float
    client: float


@dataclass
class LiveView:
    """Drawn again some times a second; whoever measures says what has changed."""

    head: RunHead
    began_s: float = field(default_factory=time.monotonic)
    point: str = ""
    doing: str = "starting"
    slots: int = 0
    ended: int = 0
    round_number: int = 0
    ratios: str = ""
    left: str = ""
    """How many rounds and how much time it will take, about."""
    scale: Text | None = None
    usage: dict[str, Usage] = field(default_factory=dict)
    excluded: str = ""

    def round_begins(self, round_number: int, slots: int) -> None:
        """A round's servers are started."""
        self.round_number, self.slots, self.ended = round_number, slots, 0

    def slot_ends(self, record: SlotRecord) -> None:
        """A slot was measured, or a variant woken before one."""
        self.ended += record.phase != "wake-up"
        length_s = record.load.all_of_it.length_s
        if length_s:
            servers = record.servers.cpu_s / (length_s * self.head.cpus_of(record.variant))
            self.usage[record.variant] = Usage(min(servers, 1.0), min(record.load.client.busy, 1.0))

    def round_ends(self, ratios: str, data: "PointData") -> None:
        """A round was measured: see how sure the answer is by now, and what is still lacking."""
        from webdyno.comparison import foresee
        from webdyno.validity import excluded_words

        self.ratios, self.excluded = ratios, excluded_words(data)
        foreseen = foresee(data)
        self.left, self.scale = f"{count(len(data.rounds), 'round')} so far", None
        if foreseen is None:
            return
        if foreseen.can_be_kept(data):
            in_all = max(foreseen.rounds, len(data.rounds) + 1)  # those that count are fewer
            self.left = f"of about {in_all} · {duration(round(foreseen.left_s))} left"
        interval, wanted = foreseen.estimate, foreseen.wanted
        low, high = interval.low - interval.centre, interval.high - interval.centre
        self.scale = interval_scale(low, high, wanted, interval.centre)
        self.scale.append(
            f"  {foreseen.variant}: precision ±{percent(expm1(interval.half_width))}, "
            f"target ±{percent(expm1(wanted))}"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from self._lines(min(options.max_width, WIDTH))

    def _lines(self, width: int) -> Iterator[Table | Text]:
        passed = duration(round(time.monotonic() - self.began_s))
        first = Table.grid(expand=False)
        first.width = width
        first.add_column(ratio=1, no_wrap=True)
        first.add_column(justify="right", no_wrap=True)
        where = " · ".join(
            filter(None, (self.point, f"round {self.round_number}" if self.round_number else ""))
        )
        first.add_row(Text(f"{where or 'pilot'} {self.left}"), Text(passed, style="dim"))
        yield first
        now = Table.grid(padding=(0, 1))
        done = ProgressBar(total=max(self.slots, 1), completed=self.ended, width=BAR)
        now.add_row(done, Text(self.doing))
        yield now
        for variant, used in list(self.usage.items()):  # another thread draws
            busy = Table.grid(padding=(0, 1))
            busy.add_row(
                *_bar("servers", used.servers),
                *_bar("client", used.client),
                Text(variant, style="dim"),
            )
            yield busy
        if self.ratios:
            yield Text(self.ratios, no_wrap=True, overflow="ellipsis")
        if self.scale is not None:
            yield self.scale
        if self.excluded:
            yield Text(f"slots excluded: {self.excluded}", style="yellow")


def _bar(name: str, share: float) -> tuple[Text, ProgressBar, Text]:
    bar = ProgressBar(total=1.0, completed=share, width=BAR)
    return Text(name), bar, Text(f"{100 * share:3.0f}%")


def interval_scale(low: float, high: float, wanted: float, centre: float = 0.0) -> Text:
    """Draw an interval (ln, about its estimate) next to the width that is requested.

    `░` is what it may span for the run to stop. The scale grows with the interval, up to fourfold
    each way; its ends are ratios, as the interval around `centre` is.
    """
    middle = SCALE // 2
    widest = min(max(-low, high, 3 * wanted), WIDEST)

    def place(value: float) -> int:
        return middle + round(max(-1.0, min(1.0, value / widest)) * middle)

    signs = [" "] * SCALE
    for column in range(place(-wanted), place(wanted) + 1):
        signs[column] = "░"
    for column in range(place(low), place(high) + 1):
        signs[column] = "━" if signs[column] == "░" else "─"
    signs[place(low)], signs[place(high)], signs[middle] = "├", "┤", "●"
    low_end, high_end = exp(centre - widest), exp(centre + widest)
    return Text(f"{low_end:4.2f}× {''.join(signs)} {high_end:.2f}×")
