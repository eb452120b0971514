"""How much time a run and its points have used up, and what limits leave of it."""

import time
from math import inf
from typing import Self


class Stopwatch:
    """Counts seconds while it runs, which is from `with` to its end.

    One that is a part of a whole has the whole count as well.
    """

    def __init__(self, used_s: float = 0.0, whole: "Stopwatch | None" = None) -> None:
        self._used_s, self._whole = used_s, whole
        self._began_s: float | None = None
        self.limit_s = inf
        """Seconds that may be used up in all; a point's own limit is its experiment's."""

    @property
    def used_s(self) -> float:
        """What was counted so far, up to now where it runs."""
        running_s = 0.0 if self._began_s is None else time.monotonic() - self._began_s
        return self._used_s + running_s

    @property
    def left_s(self) -> float:
        """What limits leave, its own and that of the whole."""
        whole_s = inf if self._whole is None else self._whole.left_s
        return min(self.limit_s - self.used_s, whole_s)

    def leave_out(self, took_s: float) -> None:
        """Take seconds off that don't count."""
        self._used_s -= took_s
        if self._whole is not None:
            self._whole.leave_out(took_s)

    def __enter__(self) -> Self:
        """Begin to count."""
        self._began_s = time.monotonic()
        if self._whole is not None:
            self._whole.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        """Count no more."""
        self._used_s, self._began_s = self.used_s, None
        if self._whole is not None:
            self._whole.__exit__()
