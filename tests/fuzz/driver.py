"""Runs webdyno in this process, up to where something would be started, and watches over it."""

import io
import os
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import webdyno.interfaces.cli
from webdyno.config import catalogue
from webdyno.config.catalogue import BUILT_IN
from webdyno.core.errors import Exit
from webdyno.core.experiment import Experiment
from webdyno.core.service import Service
from webdyno.core.stack import Stack

BUSY_S, HANGS_AFTER_S = 20, 120
"""CPU time, and time by the clock, that no case takes; other programs use the machine as well."""
DEFECT = "this is a defect of webdyno"
"""How an exception is reported that nobody foresaw."""


def seeds() -> range:
    """Give the seeds of this sweep: WEBDYNO_FUZZ_SEED is one of them, or the first and last."""
    first, _, last = os.environ.get("WEBDYNO_FUZZ_SEED", "1").partition("-")
    return range(int(first), int(last or first) + 1)


def sweep(quick: int, whole: int) -> pytest.MarkDecorator:
    """Give a test its `seed` and its `cases`: a quick share, and a `long` one with the others.

    Cases in a process of their own have no quick share: it is made from the test's process, whose
    threads may hold a lock just then, and is waited for in vain.
    """
    shares = {"quick": range(quick), "long": range(quick, whole)}
    return pytest.mark.parametrize(
        ("seed", "cases"),
        [
            pytest.param(
                seed,
                cases,
                id=f"{share}-{seed}",
                marks=[pytest.mark.long] if share == "long" else [],
            )
            for seed in seeds()
            for share, cases in shares.items()
            if cases
        ],
    )


class Accepted(BaseException):
    """Everything was read and checked; servers and load would start now."""


class Hangs(BaseException):
    """A case came to no end."""


class Said(NamedTuple):
    """How webdyno ended."""

    code: int
    printed: str
    experiment: Experiment | None
    """What would have been measured."""


def remembering(read: Callable[..., Any]) -> Callable[..., Any]:
    """Read a file of webdyno's own catalogue once only: no case changes those."""
    known: dict[Path, Any] = {}

    def read_once(model: type, path: Path, services: Mapping[str, Service]) -> object:
        if model is Stack or not path.is_relative_to(BUILT_IN):
            return read(model, path, services)
        if path not in known:
            known[path] = read(model, path, services)
        return known[path]

    return read_once


READS = "_read"
setattr(catalogue, READS, remembering(getattr(catalogue, READS)))


@contextmanager
def nothing_starts() -> Iterator[list[Experiment]]:
    """Stop webdyno where it would start servers or load; collect what it would have measured."""
    found: list[Experiment] = []

    def measure(_: str, experiment: Experiment, *__: object, **___: object) -> Exit:
        found.append(experiment)
        return Exit.OK

    def accept(*_: object, **__: object) -> None:
        raise Accepted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webdyno.interfaces.cli.result.measure_and_show", measure)
        patch.setattr("webdyno.studies.measure_again", accept)
        patch.setattr("webdyno.launch.arrangement.agree_to_use", lambda *_: None)
        patch.setattr("webdyno.launch.consent.provide", accept)
        patch.setattr("webdyno.measure.calibration.measure_calibration", accept)
        yield found


def says(words: Sequence[str]) -> Said:
    """Give how webdyno ends when it is called like that; fail on tracebacks and hangs."""
    output = io.StringIO()
    with (
        nothing_starts() as found,
        redirect_stdout(output),
        redirect_stderr(output),
        no_hang(),
    ):
        try:
            code = webdyno.interfaces.cli.run_command_line(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except Accepted:
            code = Exit.OK
    return Said(code, output.getvalue(), found[0] if found else None)


@contextmanager
def no_hang() -> Iterator[None]:
    """Raise Hangs in whatever takes far too long."""

    def give_up(*_: object) -> None:
        raise Hangs

    clocks = {
        signal.SIGALRM: (signal.ITIMER_REAL, HANGS_AFTER_S),
        signal.SIGPROF: (signal.ITIMER_PROF, BUSY_S),
    }
    before: dict[signal.Signals, Any] = {it: signal.signal(it, give_up) for it in clocks}
    for clock, seconds in clocks.values():
        signal.setitimer(clock, seconds)
    try:
        yield
    finally:
        for which, (clock, _) in clocks.items():
            signal.setitimer(clock, 0)
            signal.signal(which, before[which])


def check_end(said: Said, *, complains: bool = True) -> None:
    """What holds of every end: a known exit code, a message for people if it is a mistake.

    It need not complain where its result, with exit code 2, says what is missing.
    """
    assert said.code in set(Exit), said
    assert "Traceback" not in said.printed, said
    assert DEFECT not in said.printed, said
    assert said.code != Exit.USER_ERROR or said.printed.strip(), said
    if complains and said.code in {Exit.USER_ERROR, Exit.FAILED}:
        assert "webdyno: " in said.printed or "Error" in said.printed, said
    for words in ("Input should", "value_error", "<class", "pydantic", "object at 0x"):
        assert words not in said.printed, said


def each_case(seed: int, cases: Iterable[int], one: Callable[[int], None]) -> None:
    """Run cases; one that fails is named with the seed that makes it again."""
    for case in cases:
        try:
            one(case)
        except (Exception, Hangs) as error:  # noqa: BLE001 (any is a finding)
            lines = traceback.format_exception(error)
            pytest.fail(
                f"case {case} of seed {seed} (WEBDYNO_FUZZ_SEED={seed}):\n{''.join(lines[-12:])}",
                pytrace=False,
            )
