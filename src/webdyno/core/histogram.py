"""Distributions of times: HDR V2 histograms, decoded, merged, and read at a quantile.

Format: https://hdrhistogram.github.io/HdrHistogram/ (V2 encoding, base64).
"""

import struct
import zlib
from base64 import b64decode, b64encode
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Self

import numpy as np
from hdrh.codec import HdrCookieException, HdrLengthException
from hdrh.histogram import HdrHistogram
from numpy.typing import NDArray

from webdyno.core.errors import UserError

MERGED_AT_ONCE = 64
MOST_REMEMBERED_BYTES = 64_000_000
"""Of merged histograms: some 800 of 3,000 buckets each, which is many."""
ENTRY_BYTES = 1_000
"""What the objects of one take next to its numbers and texts."""
V2_PLAIN = 0x1C849303
V2_COMPRESSED = 0x1C849304
COOKIE_MASK = 0xFFFFFF0F
HEADER_BYTES, DIGITS_AT = 8, 12
"""Of what is compressed, and where in it the precision of times stands."""
MOST_BYTES, MOST_DIGITS = 1_000_000, 3
"""Of one that is unpacked: an hour in microseconds takes 23,000 counts, of 9 bytes at most."""
_DAMAGED = (
    *(ValueError, ArithmeticError, LookupError, RuntimeError, struct.error, zlib.error),
    *(HdrCookieException, HdrLengthException),
)


@dataclass(frozen=True)
class Histogram:
    """Counts of times in buckets; bucket i holds times from `low[i]` up to `low[i] + width[i]`."""

    low: NDArray[np.float64]
    width: NDArray[np.float64]
    counts: NDArray[np.int64]

    @classmethod
    def decode(cls, encoded: str) -> Self:
        """Read an HDR V2 histogram in base64, compressed or not; an empty text holds no times.

        Raise UserError when the text is something else.
        """
        if not encoded:
            return cls(np.empty(0), np.empty(0), np.empty(0, np.int64))
        hdr = _decode(encoded)
        counts = np.frombuffer(hdr.counts, dtype=np.int64)
        used = np.flatnonzero(counts)
        magnitude: int = hdr.sub_bucket_half_count_magnitude
        half: int = hdr.sub_bucket_half_count
        bucket = (used >> magnitude) - 1
        position = (used & (half - 1)) + np.where(bucket < 0, 0, half)
        shift = np.maximum(bucket, 0) + hdr.unit_magnitude
        unit = hdr.int_to_double_conversion_ratio
        return cls(
            low=(position << shift) * unit,
            width=(np.int64(1) << shift) * unit,
            counts=counts[used].copy(),
        )

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def quantile(self, share: float) -> float | None:
        """Return the time below which this share of all times lies; None when there are none.

        Times are taken as spread evenly over their bucket, so that small differences are not lost
        to the buckets' width.
        """
        if not self.total:
            return None
        reached = np.cumsum(self.counts)
        target = share * self.total
        bucket = min(int(np.searchsorted(reached, target)), len(reached) - 1)
        into = (target - (reached[bucket] - self.counts[bucket])) / self.counts[bucket]
        return float(self.low[bucket] + into * self.width[bucket])

    def at_most(self, permille: int) -> float | None:
        """Return the time that so many thousandths of all times don't exceed; None without times.

        It is the highest whole number of the bucket that holds it, as load generators report it.
        """
        if not self.total:
            return None
        rank = -(-permille * self.total // 1000)
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank))
        return float(self.low[bucket] + self.width[bucket] - 1)


def merge(histograms: Iterable[Histogram]) -> Histogram:
    """Return the distribution of all times together. Percentiles are never averaged."""
    left = iter(histograms)
    merged = Histogram.decode("")
    # Some at a time: there may be thousands, with thousands of buckets each.
    while some := list(islice(left, MERGED_AT_ONCE)):
        parts = [merged, *some]
        buckets = np.concatenate([np.stack([part.low, part.width]) for part in parts], axis=1)
        counts = np.concatenate([part.counts for part in parts])
        # A complex number for each bucket: whole columns take np.unique ten times as long.
        distinct, place = np.unique(buckets[0] + 1j * buckets[1], return_inverse=True)
        sums = np.zeros(len(distinct), np.int64)
        np.add.at(sums, place, counts)
        merged = Histogram(low=distinct.real, width=distinct.imag, counts=sums)
    return merged


def add_encoded(encoded: Sequence[str]) -> str:
    """Return encoded histograms of one kind, at least one, as a single one: HDR V2 in base64.

    Raise UserError when one of them is damaged.
    """
    total, *others = map(_decode, encoded)
    try:
        for other in others:
            total.add(other)
        text: bytes = total.encode()
    except _DAMAGED as error:
        raise UserError(f"histograms don't fit together ({error})") from None
    return text.decode()


def merge_encoded(encoded: Iterable[str | None]) -> Histogram:
    """Return the distribution of all times in encoded histograms together; None holds no times.

    Raise UserError when one of them is damaged.
    """
    return _merged.of(tuple(each for each in encoded if each))


class _Merged:
    """Merged histograms, remembered as each percentile and each bound asks for the same again.

    Those that nobody asked for the longest are forgotten where all together take too much memory.
    """

    def __init__(self) -> None:
        self.bytes = 0
        self._known: OrderedDict[tuple[str, ...], Histogram] = OrderedDict()
        self._lock = Lock()  # pages are drawn by several threads

    def of(self, encoded: tuple[str, ...]) -> Histogram:
        """Return the distribution of all times in encoded histograms together."""
        with self._lock:
            if known := self._known.get(encoded):
                self._known.move_to_end(encoded)
                return known
        made = merge(map(Histogram.decode, encoded))
        with self._lock:
            if encoded not in self._known:
                self._known[encoded] = made
                self.bytes += _bytes_of(encoded, made)
            while self.bytes > MOST_REMEMBERED_BYTES:
                self.bytes -= _bytes_of(*self._known.popitem(last=False))
        return made


def _bytes_of(encoded: tuple[str, ...], merged: Histogram) -> int:
    texts = sum(map(len, encoded))
    arrays = merged.low.nbytes + merged.width.nbytes + merged.counts.nbytes
    return ENTRY_BYTES + texts + arrays


_merged = _Merged()


def _decode(encoded: str) -> HdrHistogram:
    try:
        return HdrHistogram.decode(_compress(encoded))
    except _DAMAGED as error:
        raise UserError(
            f"a histogram of the run's slots.jsonl is damaged ({error}); restore the file from "
            "a copy"
        ) from error


def _compress(encoded: str) -> bytes:
    """Return the compressed encoding, which hdrh reads, of either V2 encoding.

    Raise ValueError for one that takes more memory than any of a load generator's.
    """
    raw = b64decode(encoded, validate=True)
    (cookie,) = struct.unpack_from(">I", raw)
    is_plain = cookie & COOKIE_MASK == V2_PLAIN
    unpacker = zlib.decompressobj()
    plain = raw if is_plain else unpacker.decompress(raw[HEADER_BYTES:], MOST_BYTES)
    if unpacker.unconsumed_tail or len(plain) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES:,} bytes")
    (digits,) = struct.unpack_from(">I", plain, DIGITS_AT)
    if digits > MOST_DIGITS:
        raise ValueError(f"times of {digits} digits")
    if not is_plain:
        return encoded.encode()
    payload = zlib.compress(raw, level=1)
    return b64encode(struct.pack(">II", V2_COMPRESSED | 0x10, len(payload)) + payload)
