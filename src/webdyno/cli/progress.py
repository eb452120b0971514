"""Progress of a run on standard error: a live line on a terminal, a line per block elsewhere."""

from collections import Counter
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from webdyno.cli.console import plain_console
from webdyno.cli.interrupts import interrupt_again
from webdyno.model.experiment import Experiment
from webdyno.model.format import count, duration, factor_names, level, ratio_range, times
from webdyno.model.point import Point
from webdyno.model.records import BlockRecord, PilotRecord, Record, SlotRecord
from webdyno.model.run import RunHead


class RunProgress:
    """Shows where a run is and how sure the answer is so far."""

    def __init__(self, head: RunHead) -> None:
        """Begin with nothing measured."""
        self._factors = list(factor_names(head.experiment.factors).values())
        self._console = plain_console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}", markup=False),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        )
        self._task = self._progress.add_task("", doing="", total=None)
        self._block = ""
        self._so_far = ""

    def __enter__(self) -> Self:
        """Begin to show."""
        if self._factors:
            self.notice(f"each line: {', '.join(self._factors)} · block")
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

    def pilot_begins(self, point: Point, arm: str) -> None:
        """Show that an arm is looked at alone."""
        interrupt_again()
        levels = ", ".join(map(level, point.levels.values()))
        self._progress.update(
            self._task, description=levels or "pilot", doing=f"{arm} alone: what times it needs"
        )

    def pilot_ends(self, record: PilotRecord) -> None:
        """Tell what was found."""
        found = record.found
        if not self._console.is_terminal:
            self.notice(
                f"{record.arm} alone ({record.took_s:.1f} s): warm-up {duration(found.warmup_s)}, "
                f"lead-in {duration(found.lead_in_s)}, slots of {duration(found.window_s)}"
            )

    def block_begins(self, point: Point, block: int, slots: int) -> None:
        """Show the new block."""
        interrupt_again()
        self._block = block_name(point, block)
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

    def slot_ends(self, record: SlotRecord) -> None:  # noqa: ARG002 (the run's interface)
        """Move the bar on."""
        self._progress.advance(self._task)

    def notice(self, text: str) -> None:
        """Tell what the user should read."""
        self._console.print(text, soft_wrap=True)

    def block_ends(self, block: BlockRecord, experiment: Experiment, records: list[Record]) -> None:
        """Tell how sure the answer is by now."""
        so_far = so_far_words(experiment, records)
        self._so_far = f"· {so_far}"
        if not self._console.is_terminal:
            self.notice(f"{self._block} ({block.took_s:.1f} s): {so_far}")


def block_name(point: Point, block: int) -> str:
    """Name a block, of several points by the levels alone: `64, always · block 3`."""
    levels = ", ".join(map(level, point.levels.values()))
    return f"{levels} · block {block}" if levels else f"block {block}"


def so_far_words(experiment: Experiment, records: Sequence[Record]) -> str:
    """Give the ratios on the deciding metric in one short line, or say why there are none."""
    from webdyno.judge.judgement import ratios_so_far

    compared = ratios_so_far(experiment, records)
    told = [
        f"{found.a} ÷ {found.b} {times(found.ratio)} ({ratio_range(found.ratio)})"
        for found in compared
        if found.ratio
    ]
    return ", ".join(told) or _why_none(records, min(len(found.by_block) for found in compared))


def _why_none(records: Sequence[Record], valid: int) -> str:
    """Say that valid blocks are missing, and which rule most of the slots broke."""
    from webdyno.judge.measured import Measured
    from webdyno.judge.validity import left_out_slots

    measured = Measured.of(records)
    if valid == len(measured.blocks):
        return "an interval needs a second block"
    rules = Counter(slot.rule for slot in left_out_slots(measured)).most_common(1)
    cause = f": most slots broke the rule {rules[0][0]}" if rules else ""
    return f"no ratio yet, {count(valid, 'valid block')} of {len(measured.blocks)}{cause}"
