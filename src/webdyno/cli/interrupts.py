"""Ctrl-C, also where Python loses it."""

import signal
from types import FrameType

_asked: list[int] = []
"""The signals that asked us to end."""


def end_by_signals() -> None:
    """Raise KeyboardInterrupt at Ctrl-C and at SIGTERM, by which service managers end us."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # a shell's job in the background
            signal.signal(number, _interrupt)


def interrupt_again() -> None:
    """Raise the KeyboardInterrupt that got lost, if one did: Python drops what `__del__` raises."""
    if _asked:
        raise KeyboardInterrupt


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _asked.append(number)
    raise KeyboardInterrupt
