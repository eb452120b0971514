"""Which services never listen on a port that every account of their machine reaches."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from webdyno.core.errors import UserError
from webdyno.core.stack import Stack
from webdyno.servers.service_graph import Role

if TYPE_CHECKING:
    from webdyno.servers.layout import Placement

WITHOUT_PASSWORD = {"fastcgi": "run PHP"}
"""What clients of a protocol may do as the servers' user, since it knows no password."""


def refuse_open_port(role: Role, stack: Stack, *, is_private: bool) -> None:
    """Raise UserError where any account of this machine could have the servers' user run code.

    `is_private`: no other account reaches the network that the servers are in.
    """
    may = WITHOUT_PASSWORD.get(role.service.protocol)
    if may is None or is_private or role.by_socket:
        return
    targets = stack.exposed_settings().items()
    setting = next(
        (name for name, target in targets if (role.name, "listen") in target.sets), "listen"
    )
    raise UserError(
        f"stack {stack.name}: {role.service.title} would listen on TCP where any account of this "
        f"machine could {may} as the servers' user, since its protocol knows no password; "
        f"measure in a network of its own (--testbed netns, as root), or leave {setting} at unix"
    )


def is_asked_from_elsewhere(role: Role, roles: Sequence[Role], placement: "Placement") -> bool:
    """Whether a service that links to a role is on another host than that role.

    As far as this host is concerned: one of both runs here. Hosts of a test may share an address.
    """
    clients = [client.name for client in roles if role.name in client.links.values()]
    is_mine = role.name in placement.mine
    return any((client in placement.mine) != is_mine for client in clients)


def on_ports(roles: Sequence[Role], placement: "Placement") -> list[Role]:
    """Have services listen on ports, by which other hosts reach them.

    Those that let clients run code keep their Unix sockets unless another host asks them.
    """
    return [
        role
        if role.service.protocol in WITHOUT_PASSWORD
        and not is_asked_from_elsewhere(role, roles, placement)
        else role.on_a_port()
        for role in roles
    ]
