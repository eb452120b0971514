"""Quantities as people write them: one grammar in files, flags and settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from webdyno.config import Catalogue, read_overrides
from webdyno.config.reading import TomlFile
from webdyno.core.base import (
    RATE,
    SHARE,
    SIZE,
    TIME,
    Budget,
    Kind,
    Pause,
    Seconds,
    Size,
    memory_words,
)

SIZE_TYPE: TypeAdapter[int] = TypeAdapter(Size)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (TIME, "500ms", 0.5),
        (TIME, "1.5 min", 90),
        (TIME, "20us", 2e-5),
        (TIME, "20µs", 2e-5),
        (TIME, "2H", 7200),
        (TIME, "0.02", 0.02),
        (SIZE, "512MB", 512_000_000),
        (SIZE, "1.5 GiB", 1_610_612_736),
        (SIZE, "64kib", 65_536),
        (SIZE, "7", 7),
        (RATE, "100mbit", 1e8),
        (RATE, "1 Gbit/s", 1e9),
        (RATE, "5000", 5000),
        (SHARE, "2%", 0.02),
        (SHARE, "0.1%", 0.001),
        (SHARE, "0.02", 0.02),
    ],
)
def test_a_number_and_its_unit(kind: Kind, text: str, value: float) -> None:
    assert kind.read(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "s", "5 weeks", "-1s", "1e3s", "1s/s", "٣s", "inf", "1,5s"])
def test_what_is_no_length_of_time(text: str) -> None:
    assert TIME.read(text) is None


@given(st.integers(1, 10**6), st.sampled_from([*TIME.units, *SIZE.units, *RATE.units, "%"]))
def test_number_and_unit_multiply_in_every_kind(number: int, unit: str) -> None:
    for kind in (TIME, SIZE, RATE, SHARE):
        if unit in kind.units:
            assert kind.read(f"{number}{unit}") == pytest.approx(number * kind.units[unit])
            assert kind.read(f" {number} {unit.upper()}".replace("µ".upper(), "µ")) is not None


@given(st.sampled_from([TIME, SIZE, RATE, SHARE]), st.text())
def test_any_text_is_read_or_is_none_of_it(kind: Kind, text: str) -> None:
    value = kind.read(text)
    assert value is None or value >= 0


@given(st.integers(1, 10**13))
def test_a_size_in_words_reads_back(size: int) -> None:
    assert SIZE.read(SIZE.words(size)) == pytest.approx(size, rel=1e-3)


@pytest.mark.parametrize("wrong", ["", "MB", "-1MB", "12 parsecs", "0", 0, None, True, 1.5, "1.5B"])
def test_what_is_no_size(wrong: object) -> None:
    with pytest.raises(ValidationError):
        SIZE_TYPE.validate_python(wrong)


@pytest.mark.parametrize("kind", [Seconds, Pause, Budget])
@pytest.mark.parametrize(
    "wrong", [float("inf"), float("nan"), 1e18, 1e9, -1, True, "1", "10 weeks"]
)
def test_lengths_of_time_are_bounded_and_finite(kind: type[float], wrong: object) -> None:
    reader: TypeAdapter[float] = TypeAdapter(kind)
    if wrong == "1":
        assert reader.validate_python(wrong) == 1.0
        return
    with pytest.raises(ValidationError):
        reader.validate_python(wrong)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (32_000_000, "32 MB"),
        (512 * 2**20, "512 MiB"),
        (2**30, "1 GiB"),
        (1_500_000_000, "1500 MB"),
        (123_456_789, "123.5 MB"),
    ],
)
def test_a_limit_is_shown_as_it_was_asked_for(asked: int, words: str) -> None:
    kept_by_the_kernel = asked // 4096 * 4096
    assert memory_words(asked) == words
    assert memory_words(kept_by_the_kernel) == words


def test_files_and_flags_mean_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same words behind = in a file, in --set and in a flag of their own."""
    catalogue = Catalogue.load()
    path = tmp_path_factory.mktemp("files") / "mine.toml"
    path.write_text(
        'title = "t"\nquestion = "q"\nsite = "static"\nload.timeout_s = "500ms"\n'
        'measure = { budget_s = "5m", precision = "1%", slot_s = 1 }\n'
        'testbed = { kind = "netns", link = "100mbit", delay = "20ms" }\n'
        '[variants.a]\nstack = "nginx"\nmemory = "32MB"\n[variants.b]\nstack = "nginx"\n'
    )
    assert TomlFile(path).data["load"] == {"timeout_s": "500ms"}
    given_in_file = catalogue.experiment(str(path))
    texts = [
        *("load.timeout_s=0.5", "measure.budget_s=300", "measure.precision=0.01"),
        *(
            "measure.slot_s=1s",
            "testbed.link=100000000",
            "testbed.delay=0.02",
            "variants.a.memory=32000000",
        ),
    ]
    assert catalogue.experiment(str(path), read_overrides(texts)) == given_in_file
