"""A replay: the requests of a log with their times, and the stretch of it that a slot gets."""

import base64
import binascii
import io
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate, islice, pairwise
from math import inf
from pathlib import Path
from typing import NamedTuple, Self

from webdyno.core.files import open_named

MOST_LINE_BYTES = 10_000
"""A longer one is read as several, none of which is right."""
FEWEST_REPLAYED, MOST_REPLAYED = 2, 2_000_000
MICRO = 1_000_000
_GAP, _NUMBER = "Q", "I"
"""Types of `array`, 8 and 4 bytes long: a gap in microseconds, a number of a request."""


class Stretch(NamedTuple):
    """A part of a timetable."""

    times_s: list[float]
    """After its beginning, ascending."""
    numbers: list[int]
    """For each time: which of the requests, from 0."""

    def due_between(self, begin_s: float, end_s: float) -> int:
        """Count what is due from the one time up to but not with the other."""
        return bisect_left(self.times_s, end_s) - bisect_left(self.times_s, begin_s)

    def part(self, of: int, index: int) -> "Stretch":
        """Return one client's requests, where `of` clients take turns.

        Its last request is that of the whole stretch, which is due after its time, whosever it is:
        no client's load ends before.
        """
        last = len(self.times_s) - 1
        places = range(index, last, of)
        return Stretch(
            [*(self.times_s[place] for place in places), self.times_s[last]],
            [*(self.numbers[place] for place in places), self.numbers[last]],
        )


@dataclass(frozen=True)
class Replay:
    """All requests of a log."""

    times_s: list[float]
    """After the first, ascending."""
    numbers: list[int]
    """For each: which of the experiment's requests, from 0."""

    @property
    def span_s(self) -> float:
        """How long one repetition takes: a gap of mean length follows the last request."""
        return self.times_s[-1] * len(self.times_s) / (len(self.times_s) - 1)

    @cached_property
    def last_number(self) -> int:
        """The largest of the numbers."""
        return max(self.numbers)

    @property
    def rate_per_s(self) -> float:
        return len(self.times_s) / self.span_s

    def stretch(
        self, begin: float, window_s: float, rate_per_s: float, *, ramp_up_s: float = 0.0
    ) -> Stretch:
        """Return the part for a slot: its window begins at the share `begin` of the log.

        It is played so fast that the whole log would have the mean rate `rate_per_s`; after its end
        comes its beginning. It holds one request more than is due in its time, so that the load
        doesn't end before. Where nothing is due in the window, that begins with the next request.
        """
        speed = rate_per_s / self.rate_per_s
        window_at_s = begin * self.span_s
        first_s, _ = next(self._from(window_at_s))
        if first_s >= window_at_s + window_s * speed:
            window_at_s = first_s
        from_s = (window_at_s - ramp_up_s * speed) % self.span_s
        until_s = from_s + (ramp_up_s + window_s) * speed
        times_s, numbers = list[float](), list[int]()
        for at_s, number in self._from(from_s):
            times_s.append(round((at_s - from_s) / speed, 6))
            numbers.append(number)
            if at_s >= until_s:
                break
        return Stretch(times_s, numbers)

    def _from(self, begin_s: float) -> Iterator[tuple[float, int]]:
        """Return what is due from then on, without an end."""
        place, around_s = bisect_left(self.times_s, begin_s), 0.0
        while True:
            for index in range(place, len(self.times_s)):
                yield around_s + self.times_s[index], self.numbers[index]
            place, around_s = 0, around_s + self.span_s

    def pack(self) -> str:
        """Return it as text of a few bytes a request."""
        micros = [round(at_s * MICRO) for at_s in self.times_s]
        gaps = array(_GAP, (b - a for a, b in pairwise([0, *micros])))
        content = gaps.tobytes() + array(_NUMBER, self.numbers).tobytes()
        return base64.b64encode(zlib.compress(content)).decode()

    @classmethod
    def unpack(cls, text: str) -> Self:
        """Read what `packed` gave; raise ValueError for anything else."""
        gaps, numbers = array(_GAP), array(_NUMBER)
        size = gaps.itemsize + numbers.itemsize
        try:
            unpacking = zlib.decompressobj()
            content = unpacking.decompress(
                base64.b64decode(text, validate=True), MOST_REPLAYED * size
            )
        except (binascii.Error, zlib.error):
            raise ValueError("is not what webdyno makes of a replay_file") from None
        many, rest = divmod(len(content), size)
        if rest or unpacking.unconsumed_tail:
            raise ValueError("is not what webdyno makes of a replay_file")
        gaps.frombytes(content[: many * gaps.itemsize])
        numbers.frombytes(content[many * gaps.itemsize :])
        return cls._of_checked([time_us / MICRO for time_us in accumulate(gaps)], numbers.tolist())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of lines with a time in seconds and a request's number, from 1.

        Raise ValueError, with the line, where one is something else.
        """
        times_s, numbers = list[float](), list[int]()
        with io.BufferedReader(open_named(path, str(path))) as file:
            lines = iter(lambda: file.readline(MOST_LINE_BYTES).decode(errors="replace"), "")
            for line, text in enumerate(islice(lines, MOST_REPLAYED + 2), 1):
                if text.startswith("#"):
                    continue
                try:
                    at_s, number = text.split()
                    times_s.append(float(at_s))
                    numbers.append(int(number) - 1)
                except ValueError:
                    raise ValueError(
                        f"line {line}: should be a time in seconds and the number of one of the "
                        f"[[requests]], such as `12.5 3`, and is {text.strip()!r:.60}"
                    ) from None
        return cls._of_checked(times_s, numbers)

    def written(self) -> Iterator[str]:
        """Return the lines of such a file."""
        yield "# seconds after the first, number of the [[requests]] entry\n"
        for at_s, number in zip(self.times_s, self.numbers, strict=True):
            yield f"{at_s:.6f} {number + 1}\n"

    @classmethod
    def _of_checked(cls, times_s: list[float], numbers: list[int]) -> Self:
        if len(times_s) < FEWEST_REPLAYED or not times_s[-1] > 0:
            raise ValueError("has fewer than two requests, or all at the same time")
        if len(times_s) > MOST_REPLAYED:
            raise ValueError(f"has more than {MOST_REPLAYED:,} requests; choose some hours")
        if times_s[0] < 0 or not all(a <= b < inf for a, b in pairwise(times_s)):
            raise ValueError("has times that go back")
        if min(numbers) < 0:
            raise ValueError("has a request's number below 1")
        return cls(times_s, numbers)


@lru_cache(maxsize=2)
def unpack_replay(text: str) -> Replay:
    """Read a packed replay, once for all of a run's slots."""
    return Replay.unpack(text)
