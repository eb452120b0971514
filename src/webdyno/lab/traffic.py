"""What is requested, as other programs wrote it: curl's commands, HAR files, files of requests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webdyno.definitions import Override
from webdyno.definitions.entries import Entry, open_secrets
from webdyno.definitions.http_file import LOGIN
from webdyno.definitions.traffic import (
    is_curl,
    read_curl,
    read_har,
    read_request_file,
    read_workload_file,
)
from webdyno.lab.caller import spelled


@dataclass(frozen=True)
class AskedTraffic:
    """What is requested, instead of what the experiment says: docs/how-to/traffic.md."""

    sources: Sequence[str] = ()
    """Each a file (HAR, .http, JSON lines, curl commands, or what `webdyno traffic` wrote), or a
    curl command itself."""
    by_keyword: bool = False

    @property
    def words(self) -> str:
        """How it was given; of curl commands, which may hold secrets, that they are ones."""
        shown = ["curl …" if is_curl(source) else source for source in self.sources]
        return " ".join(self._spelled(word) for word in dict.fromkeys(shown))

    def _spelled(self, source: str) -> str:
        return spelled("--traffic", source, by_keyword=self.by_keyword)

    def overrides(self, own: Sequence[Override], tell: Callable[[str], None]) -> Iterator[Override]:
        """Give the requests, and what a file says beside them, as settings of the experiment.

        What the caller's `own` settings are about, a file doesn't change.
        """
        if not self.sources:
            return
        set_here = {override.sets for override in own}
        entries, login = list[Entry](), list[Entry]()
        beside: list[Override] = []
        for source in self.sources:
            if source.endswith(".toml") and not is_curl(source):
                traffic = read_workload_file(Path(source))
                entries += traffic["requests"]
                login += traffic.get("login", [])
                beside += self._beside(traffic, self._spelled(source))
            else:
                for entry in _read(source, tell):
                    (login if entry.pop(LOGIN, False) else entries).append(entry)
        if names := open_secrets([*login, *entries]):
            tell(
                f"the run's folder will hold {', '.join(names)} as given; ${{env:NAME}} in its "
                "place, filled from the environment, keeps it out"
            )
        yield Override(("requests",), entries, self.words)
        if login:
            yield Override(("login",), login, self.words)
        yield from (
            setting
            for setting in beside
            if setting.key[0] != "load" or setting.sets not in set_here
        )

    @staticmethod
    def _beside(traffic: dict[str, Any], flag: str) -> Iterator[Override]:
        """Give what a file of `webdyno traffic` says beside its requests."""
        for key, value in traffic.get("load", {}).items():
            yield Override(("load", key), value, flag)
        for key in ("workload", "values"):
            if (table := traffic.get(key)) is not None:
                yield Override((key,), table, flag)


def _read(source: str, tell: Callable[[str], None]) -> list[Entry]:
    """Read what isn't a workload."""
    if is_curl(source):
        return [read_curl(source)]
    path = Path(source)
    if path.suffix == ".har":
        recorded, note = read_har(path)
        if note:
            tell(note)
        return recorded
    return read_request_file(path)
