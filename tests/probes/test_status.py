"""Real servers count what was asked of them, and our own questions are excluded."""

import http.client
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from webdyno.config import Catalogue
from webdyno.core.load import Load
from webdyno.core.readings import ServerStatus
from webdyno.core.setting import SettingValue
from webdyno.core.testbed import TestbedSettings
from webdyno.host.netns import open_testbed
from webdyno.host.this_machine import Testbed
from webdyno.load.engine import find_loadgen
from webdyno.load.interface import Expectation, LoadOrder, Request
from webdyno.load.loadgen import Loadgen
from webdyno.probes.status import read_status
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack

REQUESTS = 30
SETTLE_S = 0.2
"""Servers count a response, and call its worker idle, a little after it has arrived."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


@pytest.fixture
def own_network() -> Iterator[Testbed]:
    with open_testbed(TestbedSettings(kind="netns"), find_loadgen()) as testbed:
        yield testbed


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Next to other tests a server that answers at once may have to wait for a CPU."""
    monkeypatch.setattr("webdyno.probes.status.WITHIN_S", 10.0)


def start(
    catalogue: Catalogue,
    folder: Path,
    name: str,
    site: str,
    settings: Mapping[str, SettingValue],
    testbed: Testbed | None = None,
) -> AbstractContextManager[RunningStack]:
    return open_stack(
        catalogue.stack(name),
        settings,
        catalogue.site(site),
        folder=folder / name,
        testbed=testbed or Testbed(),
    )


def asked(
    running: RunningStack, path: str, testbed: Testbed | None = None
) -> dict[str, ServerStatus]:
    """What the servers counted while they were asked 30 times."""
    services = running.services()
    time.sleep(SETTLE_S)  # a server counts the readiness check a moment after its response
    before = {role: read_status(service) for role, service in services.items()}
    where = urlsplit(running.url)
    connection = http.client.HTTPConnection(where.netloc, timeout=5)
    connection.sock = (testbed or Testbed()).client_socket()
    connection.sock.connect((where.hostname, where.port))
    for _ in range(REQUESTS):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        assert response.status == 200
    connection.close()
    time.sleep(SETTLE_S)
    after = {role: read_status(service) for role, service in services.items()}
    return {
        role: now.since(then)
        for role, now in after.items()
        if now is not None and (then := before[role]) is not None
    }


def test_nginx_and_memcached(catalogue: Catalogue, tmp_path: Path) -> None:
    with start(catalogue, tmp_path, "nginx-memcached", "static", {}) as running:
        counted = asked(running, "/hello.txt")
    assert counted["nginx"] == ServerStatus(requests=REQUESTS, connections=1, dropped=0)
    memcached = counted["memcached"]
    assert (memcached.requests, memcached.hits, memcached.misses) == (REQUESTS, REQUESTS, 0)


@pytest.mark.parametrize("name", ["apache-event", "apache-worker", "apache-prefork"])
@pytest.mark.parametrize("extended", [False, True])
def test_apache(catalogue: Catalogue, tmp_path: Path, name: str, extended: bool) -> None:
    settings = {"extended_status": extended}
    with start(catalogue, tmp_path, name, "static", settings) as running:
        workers = int(running.facts()["connections"])
        counted = asked(running, "/hello.txt")["apache"]
    assert counted.requests == (REQUESTS if extended else None)
    assert 0 < (counted.workers or 0) <= workers  # they start one after the other


@pytest.mark.parametrize("name", ["nginx-phpfpm", "apache-event-phpfpm"])
def test_php_fpm(catalogue: Catalogue, tmp_path: Path, name: str) -> None:
    with start(catalogue, tmp_path, name, "hello-php", {"children": 3}) as running:
        counted = asked(running, "/hello.php")["phpfpm"]
    assert (counted.requests, counted.workers, counted.most_waiting) == (REQUESTS, 3, None)


@pytest.mark.parametrize("name", ["nginx-phpfpm", "apache-event-phpfpm"])
def test_php_fpm_by_tcp(
    catalogue: Catalogue, tmp_path: Path, own_network: Testbed, name: str
) -> None:
    settings: dict[str, SettingValue] = {"fastcgi": "tcp", "children": 3}
    with start(catalogue, tmp_path, name, "hello-php", settings, own_network) as running:
        counted = asked(running, "/hello.php", own_network)["phpfpm"]
    assert (counted.requests, counted.workers) == (REQUESTS, 3)
    assert counted.most_waiting is not None


def test_php_fpm_that_counts_kept_connections_is_not_believed(
    catalogue: Catalogue, tmp_path: Path
) -> None:
    settings = {"upstream_keepalive": 4, "children": 8}
    with start(catalogue, tmp_path, "nginx-phpfpm", "hello-php", settings) as running:
        assert "phpfpm" not in asked(running, "/hello.php")


def test_all_children_of_php_fpm_at_once(
    catalogue: Catalogue, tmp_path: Path, own_network: Testbed
) -> None:
    settings: dict[str, SettingValue] = {"fastcgi": "tcp", "children": 2}
    with (
        start(catalogue, tmp_path, "nginx-phpfpm", "hello-php", settings, own_network) as running,
        Loadgen(own_network.split.client, own_network.client_entry()) as generator,
    ):
        service = running.services()["phpfpm"]
        before = read_status(service)
        request = Request("/hello.php", Expectation(200))
        # php-fpm looks at its queue once a second, on a busy machine later.
        order = LoadOrder("1", running.url, (request,), Load(), duration_s=3.0)
        load = generator.slot(order)
        after = read_status(service)
    assert before
    assert after
    counted = after.since(before)
    assert counted.requests == load.requests.sent
    assert (counted.workers, counted.most_busy) == (2, 2)
    assert (counted.most_waiting or 0) > 0


def test_redis(catalogue: Catalogue, tmp_path: Path) -> None:
    with start(catalogue, tmp_path, "redis", "keys", {}) as running:
        service = running.services()["redis"]
        readings = [read_status(service) for _ in range(3)]
        first, *_, last = readings
    assert first
    assert last
    counted = last.since(first)
    assert counted.dropped == 0
    # The question in the middle is the only one that wasn't asked for the two readings.
    assert (counted.requests, counted.connections) == (1, 1)


def test_clients_of_nginx_do_not_reach_a_status(catalogue: Catalogue, tmp_path: Path) -> None:
    with start(catalogue, tmp_path, "nginx-phpfpm", "hello-php", {}) as running:
        connection = http.client.HTTPConnection(urlsplit(running.url).netloc, timeout=5)
        connection.request("GET", "/webdyno-status")
        assert connection.getresponse().status == 404
        connection.close()


def test_a_server_that_is_gone_has_reported_nothing(catalogue: Catalogue, tmp_path: Path) -> None:
    with start(catalogue, tmp_path, "nginx", "static", {}) as running:
        service = running.services()["nginx"]
        assert read_status(service)
    assert read_status(service) is None
