"""One service of a stack: its configuration and its process."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from webdyno.bench import Bench, ServerProcess
from webdyno.bench.workspace import Workspace
from webdyno.model.mistake import Trouble
from webdyno.model.service import Version
from webdyno.stack.commands import CommandError, run_command, version_output
from webdyno.stack.ready import Address, wait_for_listener
from webdyno.stack.render import Renderer
from webdyno.stack.roles import Role
from webdyno.stack.trouble import StackDied

SIGNALS_FROM = 128
"""Exit codes above this tell the signal that ended a process."""


@dataclass
class RunningService:
    """A service in its role; it is running between `start` and `stop`."""

    role: Role
    address: Address
    home: Path
    """Where its live files are."""
    log: Path
    renderer: Renderer
    environment: Mapping[str, str]
    bench: Bench
    workspace: Workspace
    process: ServerProcess | None = field(default=None, init=False)

    def start(self, groups_to_join: Sequence[Path] = ()) -> None:
        """Check the configuration and start the process; it isn't ready yet.

        Raise Trouble with the server's own words when it refuses its configuration.
        """
        service = self.role.service
        if words := self.renderer.words(service.check):
            self._run(words, f"refuses its configuration (kept in {self._kept()})")
        if service.data and not any((self.home / service.data).iterdir()):
            for command in service.initialise:
                self._run(self.renderer.words(command), "can't be set up")
        self.process = self.bench.spawn(
            self.renderer.words(service.start),
            cwd=self.home,
            env=self.environment,
            log=self.log,
            workspace=self.workspace,
            groups_to_join=groups_to_join,
            stop_signal=service.stop_signal,
            stop_within_s=service.stop_within_s,
        )

    def wait_until_it_listens(self) -> None:
        """Wait until it accepts connections; raise StackDied if that doesn't happen in time."""
        if not wait_for_listener(self.address, self.check_alive, self.bench.servers_socket):
            raise self.died("has not accepted connections in time")

    def check_alive(self, why: str = "") -> None:
        """Raise StackDied, with `why` in its message, when the process has ended."""
        code = self.process.poll() if self.process else None
        if code is not None:
            raise self.died(f"ended by itself with {_exit_words(code)}{why}")

    def died(self, what: str) -> StackDied:
        """Make the exception that says what happened to this service."""
        return StackDied(self.role.name, f"{self.role.service.title} {what}", self.log)

    def version(self) -> str:
        """What the server says its version is, and those of its modules: `2.4.71, PHP 8.2.36`.

        All that it says, build flags included, is kept beside its configuration.
        """
        service = self.role.service
        main, said = self._ask_version(service.version)
        modules = {name: self._ask_version(version) for name, version in service.modules.items()}
        inside = {name: answer for name, answer in modules.items() if answer[1]}
        texts = [said, *(text for _, text in inside.values())]
        (self._kept() / "version.txt").write_text("\n".join(texts))
        return ", ".join([main, *(f"{name} {version}" for name, (version, _) in inside.items())])

    def _ask_version(self, version: Version) -> tuple[str, str]:
        """Give a version, "unknown" if it can't be made out, and all that the program said."""
        words = self.renderer.words(version.command)
        said = version_output(tuple(words)) if words else ""
        match = re.search(version.pattern, said)
        return (match[1] if match else "unknown"), said

    def settings(self) -> dict[str, str]:
        """What the fairness certificate says of this service."""
        return {
            name: self.renderer.text(value) for name, value in self.role.service.settings.items()
        }

    def pids(self) -> list[int]:
        """Its processes."""
        return self.process.pids() if self.process else []

    def stop(self) -> None:
        """Stop the process and whatever it started; safe to call twice."""
        if self.process is not None:
            self.process.stop()

    def _kept(self) -> Path:
        return self.log.parent / self.role.name

    def _run(self, words: list[str], what_if_it_fails: str) -> None:
        try:
            run_command(
                words,
                cwd=self.home,
                environment=self.environment,
                user=self.bench.user,
                entry=self.bench.servers_entry(self.bench.user),
            )
        except CommandError as error:
            title = self.role.service.title
            raise Trouble(f"{title} {what_if_it_fails}:\n{error}") from None


def _exit_words(code: int) -> str:
    return f"signal {code - SIGNALS_FROM}" if code > SIGNALS_FROM else f"exit code {code}"
