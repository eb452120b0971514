"""Sizes as people write them."""

import pytest
from pydantic import TypeAdapter, ValidationError

from webdyno.model.size import Size

SIZE: TypeAdapter[int] = TypeAdapter(Size)


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MB", 512_000_000), ("1.5 GiB", 1_610_612_736), ("64kib", 65_536), ("7", 7), (7, 7)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert SIZE.validate_python(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "12 parsecs", "0", 0, None])
def test_what_is_no_size(text: str | int | None) -> None:
    with pytest.raises(ValidationError):
        SIZE.validate_python(text)
