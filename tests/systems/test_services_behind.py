"""What stands behind own systems: services of a catalogue, and backends of a configuration."""

from pathlib import Path
from typing import Any

import pytest

from systems.test_variants import CMD, resolved
from webdyno.config import Catalogue, CommandLine, Draft
from webdyno.core.errors import UserError
from webdyno.servers.service_graph import resolve_stack
from webdyno.systems.variants import resolve


def test_backends_are_services_of_their_own_for_each_variant(tmp_path: Path) -> None:
    (tmp_path / "nginx.conf").write_text("server { listen 80; proxy_pass http://app:3000; }")
    conf: dict[str, Any] = {"stack": "conf:nginx.conf"}
    variants = {
        "a": {**conf, "backends": {"app": CMD}},
        "b": {**conf, "backends": {"app:3000": f"{CMD} --other"}, "environment": {"X": "1"}},
    }
    draft, catalogue = resolved(tmp_path, variants)
    experiment = draft.check(catalogue)
    first, second = (catalogue.stack(variant.stack) for variant in experiment.variants.values())
    assert list(first.services) == ["web", "app"]
    assert first.services["app"].service.start[-1] == CMD.removeprefix("cmd:")
    backend = second.services["app-3000"].service
    assert backend.start[-1].endswith("--other")
    assert backend.environment["X"] == "1"


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ({"stack": CMD, "backends": {"app": CMD}}, "backends are for a configuration"),
        ({"backends": {"other": CMD, "app": CMD}}, "nothing passes requests on to other; .*: app"),
        ({"backends": {"app": "nginx"}}, "a backend is a command"),
    ],
)
def test_a_backend_that_makes_no_sense_is_reported(
    tmp_path: Path, variant: dict[str, Any], says: str
) -> None:
    (tmp_path / "nginx.conf").write_text("server { listen 80; proxy_pass http://app:3000; }")
    with pytest.raises(UserError, match=says):
        resolved(tmp_path, {"a": {"stack": "conf:nginx.conf", **variant}, "b": {"stack": CMD}})


def test_services_of_the_catalogue_stand_behind_a_command(tmp_path: Path) -> None:
    services, prepare = {"db": "mariadb", "my-cache": "redis"}, "fill $DB_NAME"
    variants = {
        "a": {
            "stack": CMD,
            "services": services,
            "prepare": prepare,
            "settings": {"buffer_pool_mb": 64, "db_listen": "unix"},
        },
        "b": {"stack": CMD},
    }
    draft, catalogue = resolved(tmp_path, variants)
    experiment = draft.check(catalogue)
    first, second = (catalogue.stack(variant.stack) for variant in experiment.variants.values())
    assert list(second.services) == ["web"]
    assert {role: it.service.name for role, it in first.services.items() if role != "web"} == (
        services
    )
    web = first.services["web"].service
    assert web.initialise == [["/bin/sh", "-c", prepare]]
    assert web.environment["MY_CACHE_PORT"]
    roles = {it.name: it for it in resolve_stack(first, None, {}, 1).roles}
    assert list(roles)[-1] == "web"
    assert {roles[role].settings["listen"] for role in services} == {"tcp"}


def test_a_service_of_a_users_catalogue_stands_behind_a_command(tmp_path: Path) -> None:
    service = tmp_path / "services/lines"
    service.mkdir(parents=True)
    (service / "service.toml").write_text(
        'title = "x"\nprotocol = "lines"\nstart = ["x"]\ncredentials.TOKEN = "{{ secrets.x }}"\n'
    )
    variants = {"a": {"stack": CMD, "services": {"db": "lines"}}, "b": {"stack": CMD}}
    draft = Draft.of(CommandLine({"title": "t", "question": "q", "variants": variants}, {}), [])
    given = Catalogue.load([tmp_path])
    draft, catalogue = resolve(draft, given, tmp_path, lambda _: None, lambda _: None)
    stack = catalogue.stack(draft.check(catalogue).variants["a"].stack)
    assert "secrets.x" in stack.services["web"].service.environment["DB_TOKEN"]
    assert stack.settings == {}


@pytest.mark.parametrize(
    ("variant", "says"),
    [
        ({"services": {"db": "mariadbb"}}, "no service 'mariadbb'; did you mean mariadb"),
        (
            {"services": {"db": "nginx"}},
            "nginx serves sites itself.* are mariadb, memcached, .* and images: image:mongo:7",
        ),
        ({"services": {"db": "image:"}}, "there is no service 'image:'"),
        (
            {"stack": "image:x", "services": {"db": "image:mongo:7"}},
            "image:mongo:7 can't stand behind a container, which finds others by its Compose file",
        ),
        ({"services": {"web": "redis"}}, "web is your own program"),
        ({"services": {"a b": "redis"}}, "is no name for a role"),
        ({"stack": "url:http://127.0.0.1:9", "services": {"db": "redis"}}, "services stand behind"),
        ({"stack": "image:x", "prepare": "true"}, "prepare is for what stands behind"),
        ({"stack": "nginx", "services": {"db": "redis"}}, "services is for a system of your own"),
        ({"services": {"db": "redis"}, "environment": {"DB_HOST": "x"}}, r"\$DB_HOST names"),
        (
            {"services": {"db": "redis"}, "settings": {"db_port": {"type": "switch"}}},
            r"\$DB_PORT names a service behind it",
        ),
    ],
)
def test_a_service_that_cannot_stand_behind_is_reported(
    tmp_path: Path, variant: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        resolved(tmp_path, {"a": {"stack": CMD}, "b": {"stack": CMD, **variant}})
