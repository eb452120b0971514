"""Finds in a user's files where a host stands that their server told of without its line."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from webdyno.model.origin import Origin
from webdyno.own.moved import Wanted
from webdyno.own.names import PassedOn

_WORD = re.compile(r"\[[0-9A-Fa-f:.]+\]|[\w.-]+")


class _Place(NamedTuple):
    at: Origin
    is_likely: bool


def placed(hosts: Iterable[str], wanted: Wanted, likely: re.Pattern[str]) -> list[PassedOn]:
    """Give each host with every line that names it, by itself or by a variable.

    Lines that aren't like `likely` count where no other names it.
    """
    by_word: dict[str, list[str]] = defaultdict(list)
    for host in (known := dict.fromkeys(hosts)):
        for word in _words_for(host, wanted):
            by_word[word].append(host)
    found: dict[str, list[_Place]] = {host: [] for host in known}
    if known:
        for origin, text in _lines(wanted):
            for word in set(_WORD.findall(text)):
                for host in by_word.get(word, []):
                    found[host].append(_Place(origin, bool(likely.search(text))))
    return [PassedOn(host, at) for host, places in found.items() for at in _best(places)]


def _best(places: list[_Place]) -> list[Origin | None]:
    return [it.at for it in places if it.is_likely] or [it.at for it in places] or [None]


def _words_for(host: str, wanted: Wanted) -> Iterator[str]:
    """Give what stands in a file for a host: itself, and variables whose value names it."""
    yield from _WORD.findall(host)[-1:]
    for name, value in wanted.environment.items():
        if host in _WORD.findall(value):
            yield from (name, f"env.{name}")


def _lines(wanted: Wanted) -> Iterator[tuple[Origin, str]]:
    for file, text in wanted.files.texts.items():
        for number, line in enumerate(text.split("\n"), 1):
            if not line.lstrip().startswith("#"):
                yield Origin(str(file), number), line
