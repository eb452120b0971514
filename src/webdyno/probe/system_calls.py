"""How often the servers' CPUs call the kernel, counted by `perf stat` on the kernel's tracepoints.

Each call costs a little more while it is counted. Calls of other programs on these CPUs count as
well. Where tracepoints can't be had, as without root or a kernel that has none, nothing is counted.
"""

import re
import signal
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import ExitStack, suppress
from functools import cache
from types import TracebackType
from typing import Self

from webdyno.model.mistake import Trouble
from webdyno.probe.perf import Perf, read_by_perf
from webdyno.probe.profile import OF_CALL

ALL = "raw_syscalls:sys_enter"
OTHERS = "others"
ENTERED = re.compile(r"\bsyscalls:sys_enter_(\w+)")


class SystemCalls:
    """Counts while it is entered; `counts` are there afterwards, by call, if any can be had."""

    def __init__(self, cpus: Collection[int], beside: Collection[int]) -> None:
        """Look at some CPUs, working on others."""
        self._cpus, self._beside = cpus, beside
        self._perf: Perf | None = None
        self.counts: dict[str, int] | None = None

    def __enter__(self) -> Self:
        """Begin; give back when the kernel counts."""
        self._exits = ExitStack()
        with suppress(Trouble):
            events = ",".join([ALL, *(f"syscalls:sys_enter_{call}" for call in known_calls())])
            options = ("stat", "--field-separator=;", f"--event={events}", "--all-cpus")
            self._perf = self._exits.enter_context(Perf(options, self._cpus, self._beside))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End, and read what was counted."""
        with self._exits:
            if kind is None and self._perf is not None:
                self._perf.say("disable")
                self._perf.finish(signal.SIGINT)
                self.counts = counts_of(self._perf.output.read_text().splitlines())


@cache
def known_calls() -> list[str]:
    """Name the calls that have a meaning to profiles and a tracepoint of their own."""
    listed = read_by_perf("list", "syscalls:sys_enter_*")
    return sorted(OF_CALL.keys() & set(ENTERED.findall(listed)))


def counts_of(lines: Iterable[str]) -> dict[str, int]:
    """Read `count;;event;…` of each event; those not named by a call are others."""
    counted = Counter[str]()
    for line in lines:
        fields = line.split(";")
        if len(fields) > 2 and fields[0].isdigit():
            counted[fields[2]] += int(fields[0])
    named = {
        event.partition("sys_enter_")[2]: count
        for event, count in counted.items()
        if event != ALL and count
    }
    rest = counted[ALL] - sum(named.values())
    return named | ({OTHERS: rest} if rest > 0 else {})
