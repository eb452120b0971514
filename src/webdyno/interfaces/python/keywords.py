"""Keywords of the Python API: what else may be meant, and one thing where several can be."""

from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from typing import Any

from webdyno.core.load import Load
from webdyno.core.measure import Measure


def keyword_hints(unknown: str, known: Iterable[str]) -> Iterator[str]:
    """Say what an unknown keyword is meant to be: a setting, or a keyword whose name comes near."""
    for table, model in (("load", Load), ("measure", Measure)):
        if unknown in model.model_fields:
            yield f'{unknown} is a setting: settings={{"{table}.{unknown}": …}}'
            return
    if near := get_close_matches(unknown, list(known)):
        yield f"did you mean {' or '.join(near)}?"


def several(given: Any) -> list[Any]:  # noqa: ANN401 (texts, paths, levels)
    """Give what a keyword has as a list, where it has one thing as well."""
    is_one = isinstance(given, str | bytes) or not isinstance(given, Iterable)
    return [given] if is_one else list(given)
