"""What others wrote is read up to a limit in all."""

from pathlib import Path

import pytest

from webdyno.core import tables
from webdyno.core.tables import limited_reading, read_text


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
