"""Which services run, in which order, with which settings."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.core.service import Service
from webdyno.core.stack import Stack
from webdyno.servers.service_graph import resolve_stack


def service(name: str, **more: object) -> Service:
    return Service.model_validate(
        {
            "name": name,
            "folder": Path("/nowhere"),
            "title": name,
            "protocol": "http",
            "needs": {},
            "start": [name],
            "version": {"command": [name], "pattern": "(.*)"},
            **more,
        }
    )


WORKERS = {"type": "whole", "min": 1, "max": 64, "default": "server-cpus", "help": "How many."}
LISTEN = {"type": "choice", "choices": ["unix", "tcp"], "default": "unix", "help": "How."}


def stack(**more: object) -> Stack:
    web = service("web", links={"app": "runs pages"}, settings={"workers": WORKERS})
    app = service("app", settings={"workers": WORKERS, "listen": LISTEN})
    return Stack.model_validate(
        {
            "name": "mine",
            "folder": Path("/nowhere"),
            "title": "mine",
            "serves": ["static"],
            "front": "web",
            "services": {
                "web": {"service": web, "links": {"app": "backend"}},
                "backend": {"service": app},
            },
            **more,
        }
    )


def test_links_start_first_and_defaults_follow_the_cpus() -> None:
    backend, web = resolve_stack(stack(), None, {}, server_cpus=3).roles
    assert (backend.name, web.name) == ("backend", "web")
    assert web.settings == {"workers": 3}
    assert backend.by_socket
    assert not web.by_socket


def test_a_default_may_be_twice_the_cpus_and_one_more() -> None:
    many = {**WORKERS, "default": "2 * server-cpus + 1"}
    web = service("web", settings={"workers": many})
    (role,) = resolve_stack(
        stack(services={"web": {"service": web}}), None, {}, server_cpus=3
    ).roles
    assert role.settings == {"workers": 7}


def test_a_name_that_two_services_share_is_the_fronts() -> None:
    assert set(stack().exposed_settings()) == {"workers", "backend_workers", "listen"}
    backend, web = resolve_stack(
        stack(), None, {"workers": 1, "backend_workers": 9}, server_cpus=3
    ).roles
    assert (web.settings["workers"], backend.settings["workers"]) == (1, 9)


def test_a_stacks_own_setting_changes_several_at_once() -> None:
    both = stack(settings={"size": {"sets": ["web.workers", "backend.workers"], "default": 5}})
    assert set(both.exposed_settings()) == {"size", "listen"}
    backend, web = resolve_stack(both, None, {}, server_cpus=3).roles
    assert (web.settings["workers"], backend.settings["workers"]) == (5, 5)
    backend, web = resolve_stack(both, None, {"size": 7, "listen": "tcp"}, server_cpus=3).roles
    assert (web.settings["workers"], backend.settings["workers"]) == (7, 7)
    assert not backend.by_socket


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(UserError, match="no setting 'nope'"):
        resolve_stack(stack(), None, {"nope": 1}, server_cpus=1)
    with pytest.raises(UserError, match=r"listen should be one of unix, tcp, not 'udp'"):
        resolve_stack(stack(), None, {"listen": "udp"}, server_cpus=1)


def test_services_that_link_in_a_circle_are_refused() -> None:
    web = service("web", links={"app": "runs pages"})
    roles = {
        "a": {"service": web, "links": {"app": "b"}},
        "b": {"service": web, "links": {"app": "a"}},
    }
    with pytest.raises(UserError, match="in a circle"):
        resolve_stack(stack(services=roles, front="a"), None, {}, server_cpus=1)
