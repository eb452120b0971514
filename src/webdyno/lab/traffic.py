"""What is requested, as other programs wrote it: curl's commands, HAR files, files of requests."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdyno.definitions import Override
from webdyno.definitions.entries import open_secrets
from webdyno.definitions.traffic import read_curl, read_har, read_request_file, read_workload_file
from webdyno.lab.caller import spelled


@dataclass(frozen=True)
class AskedTraffic:
    """What is requested, instead of what the experiment says: docs/requests.md."""

    curl: Sequence[str] = ()
    har: Path | None = None
    requests: Path | None = None
    """A .http file, one with a JSON object a line, or what `webdyno workload` wrote."""
    by_keyword: bool = False

    @property
    def words(self) -> str:
        """How it was given, without curl's commands; empty where it wasn't."""
        return " ".join(self._given())

    def _given(self) -> Iterator[str]:
        if self.curl:
            yield "curl" if self.by_keyword else "--curl"
        for flag, file in (("--har", self.har), ("--requests", self.requests)):
            if file is not None:
                yield spelled(flag, str(file), by_keyword=self.by_keyword)

    def overrides(self, own: Sequence[Override], tell: Callable[[str], None]) -> Iterator[Override]:
        """Give the requests, and what a file says beside them, as settings of the experiment.

        What the caller's `own` settings are about, a file doesn't change.
        """
        if not self.words:
            return
        set_here = {override.sets for override in own}
        entries = [read_curl(command) for command in self.curl]
        beside: list[Override] = []
        if self.har is not None:
            recorded, told = read_har(self.har)
            entries += recorded
            if told:
                tell(told)
        if self.requests is not None and self.requests.suffix == ".toml":
            traffic = read_workload_file(self.requests)
            entries += traffic["requests"]
            flag = spelled("--requests", str(self.requests), by_keyword=self.by_keyword)
            load = traffic.get("load", {})
            beside += [Override(("load", key), value, flag) for key, value in load.items()]
            if (found := traffic.get("workload")) is not None:
                beside.append(Override(("workload",), found, flag))
        elif self.requests is not None:
            entries += read_request_file(self.requests)
        if names := open_secrets(entries):
            tell(
                f"the run's folder will hold {', '.join(names)} as given; ${{env:NAME}} in its "
                "place, filled from the environment, keeps it out"
            )
        yield Override(("requests",), entries, self.words)
        yield from (it for it in beside if it.key[0] != "load" or it.sets not in set_here)
