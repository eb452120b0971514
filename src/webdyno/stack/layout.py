"""Lays services out in a workspace: folders, configurations, addresses, environment."""

import secrets
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdyno.bench import Bench
from webdyno.bench.users import hand_over
from webdyno.bench.workspace import Workspace
from webdyno.model.mistake import Trouble
from webdyno.model.site import Site
from webdyno.stack.commands import PLAIN_ENVIRONMENT
from webdyno.stack.needs import found, needs_of
from webdyno.stack.ports import HOST, free_port
from webdyno.stack.ready import Address
from webdyno.stack.render import Renderer, render_text
from webdyno.stack.roles import Role
from webdyno.stack.service import RunningService


class Secrets(dict[str, str]):
    """Passwords by name, drawn when they are first asked for; the same as long as a stack runs."""

    def __missing__(self, name: str) -> str:
        """Draw a new one."""
        self[name] = secrets.token_hex(16)
        return self[name]


@dataclass(frozen=True)
class Place:
    """Where services run, and what all their templates may name."""

    bench: Bench
    workspace: Workspace
    keep: Path
    """Logs and copies of configurations stay here."""
    site: Site | None
    site_view: Mapping[str, Any]
    """The site as templates see it: root, app, state, knobs and so on."""
    kept_data: Mapping[str, Path] = field(default_factory=dict)
    """By role: data of an earlier run, of which each service gets a copy."""


def lay_out(
    roles: Sequence[Role], place: Place, front: str | None = None, front_port: int | None = None
) -> tuple[dict[str, RunningService], dict[str, str]]:
    """Make services ready to start, in the order of `roles`; give also the site's environment."""
    workspace = place.workspace.path
    addresses = {
        role.name: Address(
            host=place.bench.host if role.name == front else HOST,
            port=front_port
            if role.name == front and front_port
            else free_port(place.bench.servers_socket),
            socket=workspace / f"{role.name}.sock" if role.by_socket else None,
        )
        for role in roles
    }
    hand_over(workspace, place.bench.user)  # sockets are made in it
    views = {role.name: _view(role, addresses[role.name], workspace) for role in roles}
    common = {
        "services": views,
        "site": place.site_view,
        "secrets": Secrets(),
        "cpus": len(place.bench.split.servers),
    }
    environment = _site_environment(place.site, common)
    laid_out: dict[str, RunningService] = {}
    for role in roles:
        home = workspace / role.name
        needs = dict.fromkeys(role.service.needs) | found(role.service.title, needs_of(role))
        context = {
            **common,
            "server": views[role.name],
            "knobs": role.knobs,
            "links": {link: views.get(role.links.get(link, "")) for link in role.service.links},
            "needs": needs,
        }
        renderer = Renderer(role.service, context)
        _write_files(role, renderer, home, place)
        own = {name: renderer.text(value) for name, value in role.service.environment.items()}
        laid_out[role.name] = RunningService(
            role=role,
            address=addresses[role.name],
            home=home,
            log=place.keep / f"{role.name}.log",
            renderer=renderer,
            environment=environment | own,
            bench=place.bench,
            workspace=place.workspace,
        )
    return laid_out, environment


def _site_environment(site: Site | None, common: Mapping[str, Any]) -> dict[str, str]:
    own = site.environment if site else {}
    where = site.folder / "site.toml" if site else Path()
    return PLAIN_ENVIRONMENT | {
        name: render_text(value, common, where) for name, value in own.items()
    }


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


def _write_files(role: Role, renderer: Renderer, home: Path, place: Place) -> None:
    keep, user = place.keep / role.name, place.bench.user
    home.mkdir()
    keep.mkdir(parents=True, exist_ok=True)
    hand_over(home, user)
    for folder in role.service.folders:
        (home / folder).mkdir(parents=True)
        hand_over(home / folder, user)
    if role.service.data and role.name in place.kept_data:
        copy_tree(place.kept_data[role.name], home / role.service.data)
    for name, template in role.service.files.items():
        text = renderer.file(template)
        for path in (home / name, keep / name):
            path.write_text(text)
            path.chmod(0o600)  # passwords may stand in it
        hand_over(home / name, user)


def copy_tree(source: Path, target: Path) -> None:
    """Copy a folder's content into a folder, owners and holes in files included."""
    command = ["cp", "-a", "--reflink=auto", "--sparse=always", f"{source}/.", str(target)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Trouble(f"can't copy {source} to {target}: {done.stderr.strip()[-500:]}")
