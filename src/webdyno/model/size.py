"""Sizes in bytes, written as people write them."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

UNITS = {
    "": 1,
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
}


def read_size(value: object) -> object:
    """Read `512MB` or `1.5 GiB` as bytes; let everything else through for the type to judge."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", value)
    if match is None or match[2].upper() not in UNITS:
        raise ValueError(f"a size looks like 512MB or 1GiB, unlike {value!r}")
    return int(float(match[1]) * UNITS[match[2].upper()])


Size = Annotated[int, BeforeValidator(read_size), Field(gt=0)]
"""A number of bytes; in files also text with a unit."""
