"""One service of a stack: its folder, its rendered configuration, its process."""

import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from webdyno.bench import Bench, ServerProcess
from webdyno.bench.control_group import ControlGroup
from webdyno.bench.users import hand_over
from webdyno.bench.workspace import Workspace
from webdyno.model.mistake import Trouble
from webdyno.stack.needs import found_needs
from webdyno.stack.ports import HOST, free_port
from webdyno.stack.ready import Address
from webdyno.stack.render import Renderer
from webdyno.stack.roles import Role
from webdyno.stack.trouble import StackDied

CHECK_WITHIN_S = 20.0
PLAIN_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
}
"""The whole environment of a server: its size and content must not depend on the user's shell."""


@dataclass
class RunningService:
    """A service in its role; it is running between `start` and `stop`."""

    role: Role
    address: Address
    home: Path
    """Where its live files are."""
    log: Path
    renderer: Renderer
    bench: Bench
    workspace: Workspace
    process: ServerProcess | None = field(default=None, init=False)

    def check_configuration(self) -> None:
        """Let the server check its configuration; raise Trouble with its own words if it fails."""
        for command in (self.role.service.check, *self.role.service.prepare):
            if words := self.renderer.words(command):
                self._run(words)

    def start(self, group: ControlGroup | None) -> None:
        """Start the process; it isn't ready yet."""
        service = self.role.service
        self.process = self.bench.spawn(
            self.renderer.words(service.start),
            cwd=self.home,
            env=self._environment(),
            log=self.log,
            workspace=self.workspace,
            groups_to_join=[group.entry(self.role.name)] if group else [],
            stop_signal=service.stop_signal,
            stop_within_s=service.stop_within_s,
        )

    def check_alive(self) -> None:
        """Raise StackDied when the process has ended."""
        code = self.process.poll() if self.process else None
        if code is not None:
            raise self.died(f"ended by itself with {_exit_words(code)}")

    def died(self, what: str) -> StackDied:
        """Make the exception that says what happened to this service."""
        return StackDied(self.role.name, f"{self.role.service.title} {what}", self.log)

    def version(self) -> str:
        """What the server says its version is; "unknown" if that can't be made out."""
        version = self.role.service.version
        said = _output(tuple(self.renderer.words(version.command)))
        match = re.search(version.pattern, said)
        return match[1] if match else "unknown"

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

    def _environment(self) -> dict[str, str]:
        own = self.role.service.environment
        return PLAIN_ENVIRONMENT | {name: self.renderer.text(value) for name, value in own.items()}

    def _run(self, words: Sequence[str]) -> None:
        """Run a command to its end as the servers' user; raise Trouble if it fails."""
        user = self.bench.user
        title = self.role.service.title
        try:
            done = subprocess.run(
                words,
                cwd=self.home,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=CHECK_WITHIN_S,
                check=False,
                user=user.uid if user else None,
                group=user.gid if user else None,
                extra_groups=[user.gid] if user else None,
            )
        except subprocess.TimeoutExpired:
            raise Trouble(f"{title}: {words[0]} did not end within {CHECK_WITHIN_S:g} s") from None
        if done.returncode:
            said = done.stdout.decode("utf-8", "replace").strip().splitlines()[-15:]
            configuration = self.log.parent / self.role.name
            raise Trouble(
                f"{title} refuses its configuration (kept in {configuration}):\n"
                + "\n".join(f"    {line}" for line in said)
            )


def lay_out(
    roles: Sequence[Role],
    *,
    front: str,
    front_port: int | None,
    root: Path,
    keep: Path,
    bench: Bench,
    workspace: Workspace,
) -> dict[str, RunningService]:
    """Make folders and configurations of services, ready to start, in the order of `roles`.

    `root` is the site's document root, `keep` the folder for logs and copies of configurations.
    """
    addresses = {
        role.name: Address(
            host=HOST,
            port=front_port if role.name == front and front_port else free_port(),
            socket=workspace.path / f"{role.name}.sock" if role.by_socket else None,
        )
        for role in roles
    }
    hand_over(workspace.path, bench.user)  # sockets are made in it
    views = {role.name: _view(role, addresses[role.name], workspace.path) for role in roles}
    laid_out: dict[str, RunningService] = {}
    for role in roles:
        home = workspace.path / role.name
        context: dict[str, Any] = {
            "server": views[role.name],
            "knobs": role.knobs,
            "links": {
                link: views[role.links[link]] if link in role.links else None
                for link in role.service.links
            },
            "needs": found_needs(role),
            "site": {"root": str(root)},
            "cpus": len(bench.split.servers),
        }
        renderer = Renderer(role.service, context)
        _write_files(role, renderer, home, keep / role.name, bench)
        laid_out[role.name] = RunningService(
            role, addresses[role.name], home, keep / f"{role.name}.log", renderer, bench, workspace
        )
    return laid_out


def _view(role: Role, address: Address, workspace: Path) -> Mapping[str, Any]:
    """What templates see of a service, their own or another one."""
    return {
        "role": role.name,
        "protocol": role.service.protocol,
        "folder": str(workspace / role.name),
        "host": address.host,
        "port": address.port,
        "socket": str(address.socket) if address.socket else None,
        "knobs": role.knobs,
    }


def _write_files(role: Role, renderer: Renderer, home: Path, keep: Path, bench: Bench) -> None:
    home.mkdir()
    keep.mkdir(parents=True, exist_ok=True)
    for folder in role.service.folders:
        (home / folder).mkdir(parents=True)
        hand_over(home / folder, bench.user)
    for name, template in role.service.files.items():
        text = renderer.file(template)
        for place in (home / name, keep / name):
            place.write_text(text)
        hand_over(home / name, bench.user)
    hand_over(home, bench.user)


@cache
def _output(words: tuple[str, ...]) -> str:
    try:
        done = subprocess.run(
            words,
            env=PLAIN_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=CHECK_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def _exit_words(code: int) -> str:
    return f"signal {code - 128}" if code > 128 else f"exit code {code}"
