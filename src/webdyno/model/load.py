"""The load: what the clients do during a slot, at a rate, in turns, or by a log's own timetable.

What is said of each key here is what `docs/reference/experiment-file.md` says.
"""

import base64
import binascii
import io
import zlib
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice, pairwise
from math import inf
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, Strict, model_validator

from webdyno.model.base import Model
from webdyno.model.files import opened
from webdyno.model.quantities import SIZE, Lag, Pause, Quantity, Seconds
from webdyno.model.request import Headers, WrittenPaths

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
        """Give one client's requests, where `of` clients take turns.

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

    @property
    def rate_per_s(self) -> float:
        return len(self.times_s) / self.span_s

    def stretch(
        self, begin: float, window_s: float, rate_per_s: float, *, ramp_up_s: float = 0.0
    ) -> Stretch:
        """Give the part for a slot: its window begins at the share `begin` of the log.

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
        """Give what is due from then on, without an end."""
        place, around_s = bisect_left(self.times_s, begin_s), 0.0
        while True:
            for index in range(place, len(self.times_s)):
                yield around_s + self.times_s[index], self.numbers[index]
            place, around_s = 0, around_s + self.span_s

    def packed(self) -> str:
        """Give it as text of a few bytes a request."""
        micros = [round(at_s * MICRO) for at_s in self.times_s]
        gaps = array(_GAP, (b - a for a, b in pairwise([0, *micros])))
        content = gaps.tobytes() + array(_NUMBER, self.numbers).tobytes()
        return base64.b64encode(zlib.compress(content)).decode()

    @classmethod
    def unpacked(cls, text: str) -> Self:
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
        return cls._checked([time_us / MICRO for time_us in accumulate(gaps)], numbers.tolist())

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file of lines with a time in seconds and a request's number, from 1.

        Raise ValueError, with the line, where one is something else.
        """
        times_s, numbers = list[float](), list[int]()
        with io.BufferedReader(opened(path, follow=True)) as file:
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
        return cls._checked(times_s, numbers)

    def written(self) -> Iterator[str]:
        """Give the lines of such a file."""
        yield "# seconds after the first, number of the [[requests]] entry\n"
        for at_s, number in zip(self.times_s, self.numbers, strict=True):
            yield f"{at_s:.6f} {number + 1}\n"

    @classmethod
    def _checked(cls, times_s: list[float], numbers: list[int]) -> Self:
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
def unpacked(text: str) -> Replay:
    """Read a packed replay, once for all of a run's slots."""
    return Replay.unpacked(text)


MOST_CONNECTIONS = 1_000_000

Connections = Annotated[int, Strict(), Field(ge=1, le=MOST_CONNECTIONS)]
Requests = Annotated[int, Field(ge=1, le=1_000_000_000)]

KeepAlive = Literal["always", "never"] | Requests
"""Whether connections are reused; a number closes each connection after that many requests."""


def _replay(text: str) -> str:
    unpacked(text)
    return text


class SlowReaders(Model):
    """Clients in addition to the load that read their responses slowly, as mobile phones do."""

    connections: Connections
    """How many."""
    bytes_per_s: Annotated[int, Quantity(SIZE, 1, 4 * 10**9)]
    """What each of them reads per second."""


class Load(Model):
    """What the clients do during a slot."""

    paths: WrittenPaths = ["/"]
    """Requested in equal shares; `/many/{1..2000}.txt` stands for many."""
    zipf: Annotated[float, Field(ge=0, le=10)] | None = None
    """Request the paths by Zipf's law with this exponent, the first most often."""
    headers: Headers = {}
    """Sent with each request; `${env:NAME}` is a secret. With `Accept-Encoding` bodies are checked
    before the load only."""
    loop: Literal["closed", "open"] = "closed"
    """closed: a connection sends its next request after the last response. open: requests are
    scheduled at a rate."""
    rate_per_s: Annotated[float, Field(ge=0.001, le=100_000_000)] | None = None
    """Open loop: the arrival rate, in units of `due`."""
    due: Literal["request", "connection"] = "request"
    """Open loop: a connection is a new one, with `keepalive` requests."""
    arrivals: Literal["poisson", "constant", "replay"] = "poisson"
    """Open loop: random, evenly, or at the times of `replay_file` (pilot runs and warm-ups have
    its rate only)."""
    replay_file: str | None = None
    """What `webdyno traffic --replay` wrote, played at a speed that gives `rate_per_s`."""
    replay: Annotated[str, AfterValidator(_replay)] | None = None
    """Its content, as a run keeps it."""
    send_lag_budget: Lag = 0.0
    """Open loop: requests may be sent so much later, several at a time, which costs the client
    less. 0 is exact."""
    kernel_times: bool = False
    """Time responses by when the kernel got them, as with a budget. The client reads them a wake-up
    later."""
    think_s: Pause = 0.0
    """Closed loop: mean pause before a connection's next request."""
    connections: Connections = 64
    """Over all client threads; in an open loop the most in use."""
    keepalive: KeepAlive = "always"
    """Whether connections are reused; a number closes each after that many requests."""
    protocol: Literal["http", "https", "h2", "h2c"] = "http"
    """HTTP/1.1, the same over TLS, HTTP/2 over TLS, HTTP/2 without TLS (prior knowledge)."""
    streams: Annotated[int, Field(ge=1, le=100)] = 1
    """HTTP/2: requests at a time on each connection."""
    tls_resumption: bool = True
    """Whether new connections resume earlier TLS sessions."""
    tls_verify: bool | None = None
    """Whether a certificate has to be valid; unless given, that of another machine has to."""
    timeout_s: Seconds = 5.0
    """A request without a response by then is a failure."""
    requests: Requests | None = None
    """Closed loop: a slot ends after so many responses, as with `ab -n`, or after `measure.slot_s`
    (60 s)."""
    idle_connections: Annotated[int, Field(ge=0, le=MOST_CONNECTIONS)] = 0
    """Connections held open in addition, without a request."""
    slow_readers: SlowReaders | None = None
    """Clients in addition that read their responses slowly."""

    @model_validator(mode="after")
    def _loop_fits(self) -> "Load":
        if self.loop == "open" and self.rate_per_s is None:
            raise ValueError("an open loop needs rate_per_s, what is due per second")
        if self.loop == "closed" and self.rate_per_s is not None:
            raise ValueError('rate_per_s needs loop = "open"; a closed loop has no rate of its own')
        if self.loop == "closed" and self.send_lag_budget:
            raise ValueError('send_lag_budget needs loop = "open"; in a closed loop nothing is due')
        if self.loop == "open" and self.think_s:
            raise ValueError('think_s needs loop = "closed"; an open loop has its timetable')
        if self.loop == "open" and self.requests:
            raise ValueError('requests needs loop = "closed"; an open loop has its timetable')
        if self.arrivals == "replay" and (self.replay is None or self.due == "connection"):
            raise ValueError('arrivals = "replay" needs a replay_file, and due = "request"')
        if self.due == "connection" and not isinstance(self.keepalive, int):
            raise ValueError('due = "connection" needs keepalive = N, the requests on each')
        beside = self.idle_connections or self.slow_readers
        if beside and self.protocol != "http":
            raise ValueError(
                "idle_connections and slow_readers are there for plain HTTP/1.1 only; leave them "
                'out, or protocol = "http"'
            )
        if self.streams > 1 and self.protocol not in {"h2", "h2c"}:
            raise ValueError('streams needs HTTP/2: protocol = "h2" or "h2c"')
        return self

    def shares(self, paths: int) -> list[float]:
        """Give how often each of so many paths is requested, as shares that add up to 1."""
        weights = [rank ** -(self.zipf or 0.0) for rank in range(1, paths + 1)]
        total = sum(weights)
        return [weight / total for weight in weights]

    @property
    def offered_rps(self) -> float | None:
        """Requests due per second; None in a closed loop."""
        if self.rate_per_s is None:
            return None
        per_connection = self.due == "connection" and isinstance(self.keepalive, int)
        return self.rate_per_s * (int(self.keepalive) if per_connection else 1)
