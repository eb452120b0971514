"""Lays services out in a workspace: folders, configurations, addresses, environment."""

import hmac
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import make_folder, write_whole, writing
from webdyno.core.service import PERF_NAMES, Service
from webdyno.core.stack import Site
from webdyno.core.text import SECRET, with_secrets
from webdyno.host.copies import copy_own
from webdyno.host.netns import CLIENT, Namespace
from webdyno.host.server_process import PLAIN_ENVIRONMENT
from webdyno.host.this_machine import Testbed
from webdyno.host.users import (
    ServerUser,
    hand_over,
    make_private,
    programs_user,
    stranger_of,
    uid_of,
)
from webdyno.host.workspace import Workspace
from webdyno.servers.needs import folder_of_program, needs_of, paths_of_needs
from webdyno.servers.ready import Address
from webdyno.servers.render import fill_in
from webdyno.servers.service import RunningService
from webdyno.servers.service_graph import (
    HOST,
    Placement,
    Role,
    certificate,
    free_port,
    own_network_host,
)
from webdyno.servers.templates import Job, RenderedJob, service_job, without_empty

CERTIFICATE_FILE, KEY_FILE = "certificate.pem", "key.pem"
BOTH_FILE = "key-and-certificate.pem"
"""In the folder of a service that speaks TLS."""


class Secrets(dict[str, str]):
    """Passwords by name: the same as long as a stack runs, on all of its hosts."""

    def __init__(self, seed: bytes | None = None) -> None:
        """Make them from a secret seed; a new one unless given."""
        super().__init__()
        self._seed = seed or secrets.token_bytes(32)

    def __missing__(self, name: str) -> str:
        self[name] = hmac.digest(self._seed, name.encode(), "sha256").hex()[:32]
        return self[name]


@dataclass(frozen=True)
class Deployment:
    """Where services are laid out, and what all their templates may name."""

    testbed: Testbed
    workspace: Workspace
    keep: Path
    """Logs and copies of configurations stay here."""
    site: Site
    site_view: Mapping[str, Any]
    """The site as templates see it: root, app, state, settings and so on."""
    kept_data: Mapping[str, Path] = field(default_factory=dict)
    """By role: data of an earlier run, of which each service gets a copy."""
    set_up_needs: Mapping[str, str | None] | None = None
    """Paths of what the site needs; given when its set-up is to be run."""
    placement: Placement | None = None
    """None where all services run here."""
    network: Namespace | None = None
    """Where services are that containers find on their loopback interface; None without such."""

    def testbed_of(self, service: Service) -> Testbed:
        """Return the testbed of a service, whose user and network are its own."""
        testbed = testbed_of(service, self.testbed)
        is_container = service.own is not None and service.own.container_port is not None
        return testbed if self.network is None or is_container else testbed.inside(self.network)


@dataclass(frozen=True)
class LaidOut:
    """Services that are ready to be started, and what the site's own commands need."""

    services: dict[str, RunningService]
    """By role, in the order in which they start."""
    environment: Mapping[str, str]
    """The site's variables, and those by which its data services are found."""
    setup: list[list[str]]
    """The site's set-up commands, if requested."""


def lay_out(
    roles: Sequence[Role],
    deployment: Deployment,
    front: str | None = None,
    front_port: int | None = None,
) -> LaidOut:
    """Make services ready to start; nothing of the catalogue has run as ourselves by then."""
    workspace, testbed = deployment.workspace.path, deployment.testbed
    placement = deployment.placement
    testbeds = {role.name: deployment.testbed_of(role.service) for role in roles}
    addresses = _addresses(roles, deployment, front, front_port)
    views = {
        role.name: _view(role, addresses[role.name], workspace, deployment.network)
        for role in roles
    }
    common = {
        "services": views,
        "site": deployment.site_view,
        "secrets": Secrets(placement.seed if placement else None),
        "cpus": len(testbed.split.servers),
    }
    jobs = [
        service_job(
            role.service,
            {
                **common,
                "server": views[role.name],
                "settings": role.settings,
                "links": {link: views.get(role.links.get(link, "")) for link in role.service.links},
                "needs": dict.fromkeys(role.service.needs)
                | paths_of_needs(role.service.title, needs_of(role)),
                "build": views[role.name]["build"],
            },
        )
        for role in roles
    ]
    of_site, *of_roles = fill_in([_site_job(deployment, common), *jobs], testbed.user)
    # `DATABASE_URL` and its like, by which programs find the site's data services.
    known_by = {
        name: text
        for role, filled in zip(roles, of_roles, strict=True)
        if role.name in deployment.site.services
        for name, text in filled.texts["variables"].items()
    }
    of_programs = PLAIN_ENVIRONMENT | known_by | of_site.texts["environment"]
    of_servers = PLAIN_ENVIRONMENT | of_site.texts["environment"]
    here = placement.mine if placement else {role.name for role in roles}
    services = {}
    for role, filled in zip(roles, of_roles, strict=True):
        is_program = role.service.build is not None or role.service.own is not None
        environment = of_programs if is_program else of_servers
        if role.name in here:
            users = [testbeds[role.name].user, *(testbed.user for testbed in testbeds.values())]
            _write_files(role, filled, workspace / role.name, deployment, users)
            environment = environment | filled_variables(role, filled)
        services[role.name] = RunningService(
            role=role,
            address=addresses[role.name],
            home=workspace / role.name,
            log=deployment.keep / f"{role.name}.log",
            filled=filled,
            environment=environment,
            testbed=testbeds[role.name],
            workspace=deployment.workspace,
        )
    setup = [without_empty(words) for words in of_site.texts["setup"]]
    return LaidOut(services, of_programs, setup)


def testbed_of(service: Service, testbed: Testbed) -> Testbed:
    """Return the testbed with the user whom a service runs as: a user's own program as its caller.

    Where root goes on with a run of somebody else, his programs run as himself, whatever the run
    says.
    """
    own = service.own
    if own and own.container_port:
        if stranger := stranger_of(service.folder):
            raise OperationError(
                f"{own.written}: who starts containers can do what root can, and {service.folder} "
                f"belongs to {stranger}; run webdyno as {stranger}, or copy the run"
            )
        return testbed.with_user(None)
    if own is None or not own.folder:
        return testbed
    folder = Path(own.folder)
    if not folder.is_dir():
        raise OperationError(f"{own.written}: its folder {folder} is gone; begin the run again")
    user = programs_user(service.folder, folder, own.owner)
    return testbed if user is None and not own.may_be_root else testbed.with_user(user)


def _addresses(
    roles: Sequence[Role], deployment: Deployment, front: str | None, front_port: int | None
) -> dict[str, Address]:
    """No two have the same port."""
    testbed, placement = deployment.testbed, deployment.placement
    hosts_and_ports: Mapping[str, tuple[str, int]]
    by_socket = [role.name for role in roles if role.by_socket]
    programs = [role.name for role in roles if role.by_socket and role.service.own]
    if deployment.network and by_socket:
        raise UserError(
            f"{by_socket[0]} listens on a Unix socket, which containers don't see: have it listen "
            f"on a port, by {by_socket[0]}_listen=tcp"
        )
    if placement is None:
        hosts_and_ports = _hosts_and_ports(roles, testbed, front, front_port)
    elif programs:
        raise UserError(
            f"{programs[0]} listens on a Unix socket, by which no other host reaches it: have it "
            "listen on $PORT"
        )
    else:
        hosts_and_ports = placement.addresses
    addresses = {}
    for role in roles:
        own, home = role.service.own, deployment.workspace.path / role.name
        addresses[role.name] = Address(
            *hosts_and_ports[role.name],
            socket=home / role.service.socket if role.by_socket else None,
            uid=uid_of(testbed_of(role.service, testbed).user),
            protocol=role.speaks,
            asked_host=(own.host or own.called or "") if own else "",
        )
    return addresses


def _hosts_and_ports(
    roles: Sequence[Role], testbed: Testbed, front: str | None, front_port: int | None
) -> dict[str, tuple[str, int]]:
    ports: dict[str, int] = {front: front_port} if front and front_port else {}
    hosts: dict[str, str] = {}
    for role in roles:
        own = role.service.own
        if own and own.port:
            ports[role.name] = own.port
            if own.listens_at:
                hosts[role.name] = own.listens_at
        if own and own.container_port:
            ports[role.name] = own.container_port
            hosts[role.name] = own_network_host()
    for role in roles:
        if role.name not in ports:
            ports[role.name] = free_port(testbed.servers_socket, ports.values())
    return {
        role.name: (
            hosts.get(role.name) or (testbed.host if role.name == front else HOST),
            ports[role.name],
        )
        for role in roles
    }


def filled_variables(role: Role, filled: RenderedJob) -> dict[str, str]:
    """Return a service's variables; those of a user's own program may name secrets of his.

    No others are filled in than what it names as it is written, which is what was agreed to.
    """
    variables: dict[str, str] = filled.texts["environment"]
    own = role.service.own
    if own is None:
        return variables
    if role.settings.get(PERF_NAMES):
        added = {
            name: f"{variables.get(name, '')} {value}" for name, value in own.when_sampled.items()
        }
        variables = variables | {name: value.strip() for name, value in added.items()}
    named = {name for text in role.service.environment.values() for name in SECRET.findall(text)}
    known = {name: os.environ[name] for name in named & os.environ.keys()}
    return {name: with_secrets(text, known) for name, text in variables.items()}


def _site_job(deployment: Deployment, common: Mapping[str, Any]) -> Job:
    site = deployment.site
    return Job(
        texts={
            "environment": site.environment,
            "setup": site.setup if deployment.set_up_needs is not None else [],
        },
        where=site.folder / "site.toml",
        context={**common, "needs": deployment.set_up_needs or {}},
    )


def _view(
    role: Role, address: Address, workspace: Path, network: Namespace | None
) -> Mapping[str, Any]:
    return {
        "role": role.name,
        "protocol": role.service.protocol,
        "folder": str(workspace / role.name),
        "host": address.host,
        "client": CLIENT,
        "network": f"/proc/{network.pid}/ns/net" if network else None,
        "port": address.port,
        "socket": str(address.socket) if address.socket else None,
        "settings": role.settings,
        "build": {"folder": str(folder_of_program(role.service))} if role.service.build else {},
        "certificate": str(workspace / role.name / CERTIFICATE_FILE),
        "key": str(workspace / role.name / KEY_FILE),
        "key_and_certificate": str(workspace / role.name / BOTH_FILE),
    }


def _write_files(
    role: Role,
    filled: RenderedJob,
    home: Path,
    deployment: Deployment,
    users: Sequence[ServerUser | None],
) -> None:
    """Fill a service's folder, and keep a copy of it.

    Then it is given to the first of the users, as whom the service runs; the others, who run what
    it works with, get to its sockets.
    """
    make_private(home)
    for folder in role.service.folders:
        (home / folder).mkdir(parents=True, exist_ok=True)
    if role.service.data and role.name in deployment.kept_data:
        copy_own(deployment.kept_data[role.name], home / role.service.data)
    if role.has_certificate:
        made = certificate(deployment.testbed.host, str(role.settings.get("tls_key", "ec")))
        write_whole(home / CERTIFICATE_FILE, made.certificate)
        for name, text in ((KEY_FILE, made.key), (BOTH_FILE, made.certificate + made.key)):
            write_whole(home / name, text, mode=0o600)
    kept = deployment.keep / role.name
    with writing(kept):
        make_folder(kept, deployment.keep)
    for name, text in filled.files.items():
        for place, below in ((home, home), (kept, deployment.keep)):
            write_whole(place / name, text, below=below, mode=0o600)  # passwords may be in it
    # Redis lets everybody read what it writes there.
    closed = [home / role.service.data] if role.service.data else []
    hand_over(home, users[0], closed, among=users)
