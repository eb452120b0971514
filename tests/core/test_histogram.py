"""Histograms as load generators encode them, decoded, merged and read at a quantile."""

import struct
import tracemalloc
import zlib
from base64 import b64decode, b64encode

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from webdyno.core import histogram
from webdyno.core.errors import UserError
from webdyno.core.histogram import Histogram, merge, merge_encoded

times_us = st.lists(st.integers(1, 5_000_000), min_size=1, max_size=200)


def hdr(values: list[int], longest: int = 60_000_000, digits: int = 3) -> HdrHistogram:
    """A histogram made by the reference implementation."""
    histogram = HdrHistogram(1, longest, digits)
    for value in values:
        histogram.record_value(value)
    return histogram


def encoded(values: list[int], longest: int = 60_000_000, digits: int = 3) -> str:
    """The compressed V2 encoding in base64."""
    text: bytes = hdr(values, longest, digits).encode()
    return text.decode()


def uncompressed(text: str) -> str:
    """The plain V2 encoding of a compressed one: eight bytes of header, then zlib."""
    return b64encode(zlib.decompress(b64decode(text)[8:])).decode()


@given(times_us, st.sampled_from([1, 2, 3]))
@settings(max_examples=60)
def test_every_time_lies_in_its_bucket(values: list[int], digits: int) -> None:
    found = Histogram.decode(encoded(values, digits=digits))
    assert found.total == len(values)
    for value in values:
        assert ((found.low <= value) & (value < found.low + found.width)).any()


@given(times_us)
@settings(max_examples=40)
def test_both_encodings_say_the_same(values: list[int]) -> None:
    text = encoded(values)
    first, second = Histogram.decode(text), Histogram.decode(uncompressed(text))
    assert (first.low == second.low).all()
    assert (first.counts == second.counts).all()


@given(times_us, times_us)
@settings(max_examples=40)
def test_merging_is_the_histogram_of_all_times(first: list[int], second: list[int]) -> None:
    parts = [Histogram.decode(encoded(first, 10_000_000)), Histogram.decode(encoded(second))]
    together = Histogram.decode(encoded(first + second))
    merged = merge(parts)
    assert (merged.low == together.low).all()
    assert (merged.counts == together.counts).all()


@given(times_us, st.sampled_from([0.5, 0.9, 0.99]))
@settings(max_examples=60)
def test_a_quantile_lies_where_the_reference_puts_it(values: list[int], share: float) -> None:
    theirs = hdr(values).get_value_at_percentile(share * 100)
    ours = Histogram.decode(encoded(values)).quantile(share)
    assert ours is not None
    below = sum(value <= ours * 1.002 + 1 for value in values)
    assert below >= share * len(values) - 0.5
    if abs(share * len(values) % 1 - 0.5) > 0.49:
        assert ours <= theirs + 1


def test_quantiles_see_less_than_a_buckets_width() -> None:
    slower = Histogram.decode(encoded([50] * 40 + [51] * 60)).quantile(0.5)
    faster = Histogram.decode(encoded([50] * 60 + [51] * 40)).quantile(0.5)
    assert slower is not None
    assert faster is not None
    assert 50 < faster < 51 < slower < 52


def test_no_text_and_no_times_hold_nothing() -> None:
    assert Histogram.decode("").quantile(0.5) is None
    assert merge([]).total == 0
    assert merge([Histogram.decode(encoded([])), Histogram.decode("")]).quantile(0.99) is None


@pytest.mark.parametrize("text", ["?", "AAAA", "aGVsbG8gd29ybGQ=", "HISTFAAAA"])
def test_something_else_is_refused(text: str) -> None:
    with pytest.raises(UserError, match=r"histogram .* is damaged"):
        Histogram.decode(text)


def test_a_cut_off_histogram_is_refused() -> None:
    text = encoded([1, 2, 3])
    with pytest.raises(UserError, match=r"histogram .* is damaged"):
        Histogram.decode(b64encode(b64decode(text)[:-6]).decode())


@pytest.mark.parametrize(
    ("digits", "lowest", "more"), [(3, 1, 20_000_000), (6, 1, 0), (5, 1, 0), (3, 0, 0)]
)
def test_none_takes_more_memory_than_a_load_generators(digits: int, lowest: int, more: int) -> None:
    head = struct.pack(">IIIIQQd", histogram.V2_PLAIN, more, 0, digits, lowest, 2**62, 1.0)
    packed = zlib.compress(head + b"\1" * more)
    compressed = struct.pack(">II", histogram.V2_COMPRESSED | 0x10, len(packed)) + packed
    tracemalloc.start()
    with pytest.raises(UserError, match=r"histogram .* is damaged"):
        Histogram.decode(b64encode(compressed).decode())
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_merged_histograms_are_remembered_in_a_limit_of_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A crafted run has histograms with every bucket in use."""
    remembered = histogram._Merged()
    monkeypatch.setattr(histogram, "_merged", remembered)
    monkeypatch.setattr(histogram, "MOST_REMEMBERED_BYTES", 1_000_000)
    wide = [encoded([*range(1, 30_000), more]) for more in range(40_000, 80_000, 5_000)]
    kept = {text: merge_encoded([text]) for text in wide}
    assert sum(it.counts.nbytes for it in kept.values()) * 3 > 1_000_000
    assert 500_000 < remembered.bytes <= 1_000_000
    assert merge_encoded([wide[-1]]) is kept[wide[-1]]
    assert merge_encoded([wide[0]]) is not kept[wide[0]]
    monkeypatch.setattr(histogram, "MOST_REMEMBERED_BYTES", 1_000)
    assert merge_encoded([wide[1]]).total == kept[wide[1]].total
    assert remembered.bytes == 0
