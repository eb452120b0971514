"""Whoever has something measured: how they hear of it and are asked, and what they agreed to."""

import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self

from webdyno.core.errors import OperationError
from webdyno.core.files import append_text, state_folder
from webdyno.core.format import count, duration, factor_names, latency, level, number, percent
from webdyno.core.records import LongLookRecord, PilotRecord, RoundRecord, SlotRecord
from webdyno.core.registry import keyword_of, spell_flag
from webdyno.core.run import RunHead
from webdyno.core.sweep import Point
from webdyno.core.whose import others_place
from webdyno.host.users import make_closed
from webdyno.launch.ending import interrupt_again

if TYPE_CHECKING:  # numpy takes a while to import
    from webdyno.evidence.point_data import PointData
    from webdyno.measure.point import Progress

logger = logging.getLogger(__name__)


class AskPerson(Protocol):
    """Asks a person something."""

    def __call__(self, question: str, *, usual: bool) -> bool:
        """Return the answer; `usual` is what a bare return key means."""


@dataclass(frozen=True)
class Caller:
    """Whoever has something measured."""

    notify: Callable[[str], None]
    """Says what is no result."""
    progress: "Callable[[RunHead], AbstractContextManager[Progress]]"
    """Gives what shows the progress of a run."""
    asks: AskPerson | None = None
    """None where nobody is there to answer."""
    yes: bool = False
    """Whether all that would be asked is agreed to beforehand."""
    loads_other_machines: bool = False
    """Whether configurations may pass requests on to other machines, which are loaded then."""
    target_is_mine: bool = False
    """Whether who calls vouches for the machines that `url:` names, which are loaded then."""
    allows_commands: bool = True
    """Whether what is named may run commands of its author's; not where somebody else names it."""
    cluster: str | None = None
    """The head of the cluster that has the hosts; else the environment names it."""
    quiet: bool = False
    """Whether only what goes wrong is reported."""
    by_keyword: bool = False
    """Whether `yes` and the like are given as keywords of Python, not as flags."""

    @property
    def is_alone(self) -> bool:
        """Whether nobody is there to answer."""
        return self.asks is None

    def ask(self, question: str, *, usual: bool) -> bool:
        """Ask; no is the answer where nobody is there to give one."""
        logger.debug("asks: %s", question)
        agreed = self.asks is not None and self.asks(question, usual=usual)
        logger.debug("the answer is %s", "yes" if agreed else "no")
        return agreed

    def named(self, flag: str) -> str:
        """Return a flag as this caller knows it: `--fail-if`, or `fail_if`."""
        return keyword_of(flag) if self.by_keyword else flag

    def spelled(self, flag: str, value: object = True) -> str:
        """Spell a flag as this caller gives it: `--site static`, or `site='static'`."""
        return spell_flag(flag, value, by_keyword=self.by_keyword)


class LineProgress:
    """Reports a run as it goes on."""

    a_line_each = True
    """Whether pilots and rounds have lines; else they are shown in another way."""

    def __init__(
        self,
        head: RunHead,
        notify: Callable[[str], None],
        *,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.notice = notify
        self._quiet, self._verbose = quiet, verbose
        self._factors = list(factor_names(head.experiment.factors).values())
        self._round = ""

    def __enter__(self) -> Self:
        """Begin to report."""
        if self._factors and not self._quiet:
            self.notice(f"each line: {', '.join(self._factors)} · round")
        return self

    def __exit__(self, *_: object) -> None:
        """Report no more."""

    def detail(self, text: str) -> None:
        """Report it where all is reported."""
        if self._verbose:
            self.notice(text)

    def pilot_begins(self, point: Point, variant: str) -> None:  # noqa: ARG002
        """A variant is looked at alone."""
        interrupt_again()

    def pilot_ends(self, record: PilotRecord) -> None:
        """Report what was found."""
        warmup_s = record.found.warmup_s
        warm_up = f"warm-up {duration(warmup_s)}" if warmup_s else "no warm-up needed"
        if record.bursts and record.bursts.summary:
            self.notice(f"{record.variant}: {record.bursts.summary}")
        if self.a_line_each and not self._quiet:
            self.notice(f"pilot: {record.variant}  {record.took_s:.1f} s  {warm_up}")

    def round_begins(self, point: Point, round_number: int, slots: int) -> None:  # noqa: ARG002
        """Remember which one it is."""
        interrupt_again()
        self._round = round_name(point, round_number)

    def slot_begins(self, variant: str, phase: str) -> None:  # noqa: ARG002
        """A variant comes under load."""
        interrupt_again()

    def slot_ends(self, record: SlotRecord) -> None:
        """Report it where all is reported."""
        if self._verbose:
            self.notice(f"  {slot_words(record)}")

    def answers(self, data: "PointData", looks_s: Sequence[float]) -> None:
        """Report the answer of the rounds, before the long looks, and how long those take."""
        if self._quiet:
            return
        from webdyno.comparison import question_of

        so_far, in_all = question_of(data.experiment).so_far(data), duration(sum(looks_s))
        self.notice(f"{so_far}; now {in_all} of load without restarts, for stalls and leaks")

    def long_look_begins(self, point: Point, variant: str, look_s: float) -> None:  # noqa: ARG002
        """A variant comes under load for so long."""
        interrupt_again()

    def long_look_goes_on(self, part: LongLookRecord) -> None:
        """Report it in one line."""
        if self._verbose:
            from webdyno.evidence.look_course import course_of
            from webdyno.evidence.stalls import stalls_of
            from webdyno.report.around_rounds import part_words

            for figures in course_of([part], stalls_of(part)):
                self.notice(f"  {part.variant}, part {part.part + 1}: {part_words(figures)}")

    def long_look_ends(self, parts: Sequence[LongLookRecord]) -> None:
        """Report what was seen."""
        if self.a_line_each and not self._quiet:
            from webdyno.evidence.long_look import look_at, look_in_short

            look = look_at(*parts)
            self.notice(f"over time: {look.variant}  {look_in_short(look)}")

    def round_ends(self, this_round: RoundRecord, data: "PointData") -> None:
        """Report how sure the answer is by now."""
        if self.a_line_each and not self._quiet:
            from webdyno.comparison import question_of

            so_far = question_of(data.experiment).so_far(data)
            self.notice(f"{self._round}  {this_round.took_s:.1f} s  {so_far}")


def slot_words(record: SlotRecord) -> str:
    """Report a slot in one line."""
    load, failed = record.load, record.load.failures.total
    cpu_us = record.servers.cpu_s / max(load.all_of_it.completed, 1) * 1e6
    words = (
        f"{record.variant}, {record.phase}: {number(load.throughput_rps)} req/s, "
        f"{latency(cpu_us)} CPU per request, client {percent(load.client.busy)} busy"
    )
    if failed:
        words += f", {count(failed, 'failed request')}"
    retried = load.all_of_it.retried
    return f"{words}, {count(retried, 'request')} retried" if retried else words


def round_name(point: Point, round_number: int) -> str:
    """Return a round's name, of several points by the levels alone: `64, always · round 3`."""
    levels = ", ".join(map(level, point.levels.values()))
    return f"{levels} · round {round_number}" if levels else f"round {round_number}"


AGREED_FILE = "agreed-catalogues"
"""Below the state folder: what was agreed to, in this process or in earlier ones, each a line."""
_AGREED = set[str]()
"""In this process."""


def agreed() -> set[str]:
    """Return all that was agreed to: what others may have written there counts as nothing."""
    known = set(_AGREED)
    with suppress(OSError, RuntimeError):  # RuntimeError: there is no home folder
        file = state_folder() / AGREED_FILE
        if others_place(file) is None:
            known.update(file.read_text().splitlines())
    return known


def keep(agreements: Iterable[str], caller: Caller) -> None:
    """Ask no more about these, later either; where they can't be kept, it will be asked again."""
    known = agreed()
    new = [each for each in dict.fromkeys(agreements) if each not in known]
    _AGREED.update(new)
    if not new:
        return
    try:
        file = state_folder() / AGREED_FILE
        make_closed(file.parent)
        append_text(file, "".join(f"{each}\n" for each in new), mode=0o600)
        fault = f"others may change {others}" if (others := others_place(file)) else None
    except (OSError, OperationError, RuntimeError) as error:
        fault = str(error)
    if fault:
        caller.notify(f"what you agreed to can't be kept, and will be asked again: {fault}")
