"""What lets clients run code never listens where other accounts of the machine reach it."""

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.core.service import Service
from webdyno.core.setting import ChoiceSetting
from webdyno.servers.service_graph import (
    WITHOUT_PASSWORD,
    Placement,
    Role,
    is_asked_from_elsewhere,
    on_ports,
    refuse_open_port,
    resolve_stack,
)

CATALOGUE = Catalogue.load()
FRONTPAGE = CATALOGUE.site("frontpage")
OPEN = [it for it in CATALOGUE.services.values() if it.protocol in WITHOUT_PASSWORD]


def roles(fastcgi: str) -> list[Role]:
    stack = CATALOGUE.stack("nginx-phpfpm")
    return resolve_stack(stack, FRONTPAGE, {"fastcgi": fastcgi}, server_cpus=1).roles


def placement(*mine: str) -> Placement:
    addresses = dict.fromkeys(("nginx", "phpfpm", "mariadb"), ("10.0.0.1", 80))
    return Placement(frozenset(mine), addresses, b"", "x")


TOGETHER = placement("nginx", "phpfpm", "mariadb")
APART = placement("phpfpm")


def test_by_tcp_takes_a_network_of_its_own() -> None:
    stack = CATALOGUE.stack("nginx-phpfpm")
    for role in [*roles("unix"), *roles("tcp")]:
        refuse_open_port(role, stack, is_private=True)
    for role in roles("unix"):
        refuse_open_port(role, stack, is_private=False)
    (by_tcp,) = (role for role in roles("tcp") if role.name == "phpfpm")
    with pytest.raises(UserError, match=r"could run PHP as .* or leave fastcgi at unix"):
        refuse_open_port(by_tcp, stack, is_private=False)


def test_on_one_host_of_a_cluster_it_keeps_its_socket() -> None:
    """Data services don't: who asks them no link says."""
    sockets = {role.name for role in on_ports(roles("unix"), TOGETHER) if role.by_socket}
    assert sockets == {"phpfpm"}
    assert not any(role.by_socket for role in on_ports(roles("unix"), APART))
    (php,) = (role for role in roles("unix") if role.name == "phpfpm")
    assert is_asked_from_elsewhere(php, roles("unix"), APART)


@pytest.mark.parametrize("service", OPEN, ids=lambda service: service.name)
def test_nothing_tries_tcp_by_itself(service: Service) -> None:
    listen = service.settings["listen"]
    assert isinstance(listen, ChoiceSetting)
    assert listen.default == "unix"
    assert listen.tune is None
    assert listen.cause is None or listen.cause.better == ["unix"]
