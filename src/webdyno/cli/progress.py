"""Progress of a run on standard error: a live line on a terminal, a line per block elsewhere."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from webdyno.cli.interrupts import interrupt_again
from webdyno.model.experiment import Experiment
from webdyno.model.point import Point
from webdyno.model.records import BlockRecord, Record, SlotRecord
from webdyno.model.run import RunHead


class RunProgress:
    """A Watcher that shows where the run is and how sure the answer is so far."""

    def __init__(self, head: RunHead) -> None:
        """Begin with nothing measured."""
        self._head = head
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}"),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("", doing="", total=None)
        self._block = ""
        self._so_far = ""

    def __enter__(self) -> Self:
        """Begin to show."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the live line away."""
        self._progress.stop()

    def block_begins(self, point: Point, block: int, slots: int) -> None:
        """Show the new block."""
        interrupt_again()
        self._block = f"{point.label} · block {block}" if point.levels else f"block {block}"
        self._progress.update(
            self._task,
            description=self._block,
            total=slots,
            completed=0,
            doing=f"starting servers {self._so_far}",
        )

    def slot_begins(self, arm: str, phase: str) -> None:
        """Show which arm is under load."""
        interrupt_again()
        doing = f"warming up {arm}" if phase == "warmup" else arm
        self._progress.update(self._task, doing=f"{doing} {self._so_far}")

    def slot_ends(self, record: SlotRecord) -> None:  # noqa: ARG002 (the watcher's interface)
        """Move the bar on."""
        self._progress.advance(self._task)

    def notice(self, text: str) -> None:
        """Tell what the user should read."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def block_ends(self, block: BlockRecord, experiment: Experiment, records: list[Record]) -> None:
        """Tell how sure the answer is by now."""
        head = self._head.model_copy(update={"experiment": experiment})
        so_far = ratios_so_far(head, records)
        self._so_far = f"· {so_far}"
        if not self._console.is_terminal:
            self._console.print(f"{self._block} ({block.took_s:.1f} s): {so_far}")


def ratios_so_far(head: RunHead, records: list[Record]) -> str:
    """Give the ratios on the deciding metric in one short line."""
    from webdyno.judge import judge

    decide_on = head.experiment.measure.decide_on
    ratios = [
        f"{c.a} / {c.b} {c.ratio.estimate:.3f} ({c.ratio.low:.3f} to {c.ratio.high:.3f})"
        for c in judge(head, records).comparisons
        if c.metric == decide_on and c.ratio is not None
    ]
    return ", ".join(ratios) or "too early for an interval"
