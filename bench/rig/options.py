"""Readers of values on the command lines of the benchmark scripts."""

import argparse
import math
from collections.abc import Callable, Iterable


def some_of(known: Iterable[str]) -> Callable[[str], list[str]]:
    """Make a reader of comma-separated names that refuses unknown ones."""
    names = list(known)

    def read(text: str) -> list[str]:
        chosen = list(dict.fromkeys(text.split(",")))
        if unknown := [name for name in chosen if name not in names]:
            raise argparse.ArgumentTypeError(
                f"unknown: {', '.join(unknown)}; there are {', '.join(names)}"
            )
        return chosen

    return read


def seconds(text: str) -> float:
    """Read a positive number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number <= 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0 to 3600")
    return number


def count(text: str) -> int:
    """Read a whole number from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)
