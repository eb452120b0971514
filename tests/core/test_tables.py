"""What others wrote is read up to a limit in all."""

import re
import signal
import tomllib
from pathlib import Path

import pytest

from webdyno.core import tables
from webdyno.core.errors import UserError
from webdyno.core.tables import (
    MOST_DEPTH,
    MOST_PARTS,
    json_table,
    limited_reading,
    read_text,
    toml_data,
)

MANY = 2_000


@pytest.mark.parametrize(("files", "size_bytes"), [(2, 1_000), (1_000, 6)])
def test_no_more_is_read_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: int, size_bytes: int
) -> None:
    (file := tmp_path / "a").write_text("four")
    limit = tables.ReadingLimit(files, size_bytes)
    monkeypatch.setattr(tables, "ReadingLimit", lambda: limit)
    with limited_reading() as limited:
        assert read_text(tmp_path / "none") is None
        assert [read_text(file) for _ in range(4)] == ["four", "four", None, None]
        assert limited.is_reached
    assert read_text(file) == "four"


def test_no_pattern_takes_longer_than_the_limit() -> None:
    with pytest.raises(UserError, match="by hand"), limited_reading(cpu_s=0.1):
        re.search("(a|a)*b", "a" * 100)
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0.0


@pytest.mark.parametrize("part", ["a", '"!"', '"."', "'\"'", r'"\""', "a" + " " * 20, "a" * 300])
@pytest.mark.parametrize(
    "text",
    [
        "{} = 1",
        "[{}]",
        "x = {{ {} = 1 }}",
        'x = {{ z = """s"""", {} = 1 }}',
        "x = {{ z = '''s'''', {} = 1 }}",
        "x = [1, {{ {} = 1 }}]",
        '"" = 1\n{} = 1',
    ],
)
def test_a_key_has_parts_up_to_a_limit_however_it_is_written(part: str, text: str) -> None:
    assert toml_data(text.format(".".join([part, *"abcd"])))
    with pytest.raises(tomllib.TOMLDecodeError, match="parts"):
        toml_data(text.format(".".join([part] * MANY)))


@pytest.mark.parametrize(
    "text", ["# {}", "x = '{}'", 'x = "\\"{}"', 'x = """\n{}\n"""', "x = '''{}'''"]
)
def test_dots_that_are_no_keys_count_for_nothing(text: str) -> None:
    text = text.format("." * MANY)
    assert toml_data(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "unit", ['\\"""\n', "'''\n'", '"""\n\\', '"\\', "#", ("a" * 200 + ".") * 49 + "\n"]
)
@pytest.mark.parametrize("end", ["\n!", "\\"])
def test_what_has_no_end_is_looked_at_once(unit: str, end: str) -> None:
    """Else this takes hours."""
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_data(f"{unit * (4_000_000 // len(unit))}\n!{end}")


def test_what_is_read_is_no_deeper_than_others_can_walk() -> None:
    key = ".".join("a" * (MOST_PARTS - 1))
    for text in ("x = " + f"{{ {key} = " * 50 + "1" + "}" * 50, f"[{key}.b]\n{key}.c = [[[[1]]]]"):
        assert tomllib.loads(text)
        with pytest.raises(tomllib.TOMLDecodeError, match="nested too deeply"):
            toml_data(text)
    assert json_table('{"a": ' * MOST_DEPTH + "1" + "}" * MOST_DEPTH)
    assert json_table('{"a": ' * (MOST_DEPTH + 1) + "1" + "}" * (MOST_DEPTH + 1)) == {}


def test_integers_of_thousands_of_digits_are_no_toml() -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        toml_data("x = " + "9" * 5_000)
