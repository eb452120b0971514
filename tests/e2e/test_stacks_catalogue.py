"""Every stack with the sites that it can serve: right bodies, load without a failure, no trace."""

import http.client
import json
import os
import re
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from variants import further
from webdyno.config import Catalogue
from webdyno.core.paths import spell_out
from webdyno.core.setting import SettingValue
from webdyno.core.testbed import TestbedSettings
from webdyno.host.netns import open_testbed
from webdyno.host.this_machine import Testbed
from webdyno.host.workspace import home_folder
from webdyno.load.engine import find_loadgen
from webdyno.servers.ready import connect
from webdyno.servers.running import RunningStack
from webdyno.servers.starting import open_stack

CATALOGUE = Catalogue.load()
WITH_DATABASE = {"frontpage", "wordpress", "mediawiki"}
ASKED_FOR_THEM = {"apache-prefork-modphp", "apache-event-phpfpm", "nginx-phpfpm", "varnish-front"}
"""One stack of each way to PHP: the others run the same PHP, and seconds for each add up."""
BY_ONE = {
    "frontpage": "nginx-phpfpm",
    "spin": "node",
    "static-20": "nginx",
}
"""Sites that one stack serves in each run of the tests, and all that can with --full."""
LONG = {"mediawiki", "wordpress"}
"""They are installed first; `frontpage` is PHP with a database as well."""
OF_FILES = {
    (name, "static") for name in ("nginx", "apache-event", "apache-worker", "apache-prefork")
}
"""What the kernel sends from files."""
PAIRS = [
    (stack.name, site.name)
    if site.name not in LONG and BY_ONE.get(site.name, stack.name) == stack.name
    else further(stack.name, site.name)
    for stack in CATALOGUE.stacks.values()
    for site in CATALOGUE.sites_for(stack)
    if site.name not in WITH_DATABASE or stack.name in ASKED_FOR_THEM
    if not any(part.service.build for part in stack.services.values())  # see test_programs.py
]


@pytest.mark.parametrize(("stack", "site"), PAIRS)
def test_it_serves_its_site(tmp_path: Path, stack: str, site: str) -> None:
    wanted = CATALOGUE.site(site)
    with open_stack(
        CATALOGUE.stack(stack), {}, wanted, folder=tmp_path, testbed=Testbed()
    ) as running:
        if running.url.startswith("http:"):
            check_bodies(running)
            check_load(running)
        else:
            check_redis(running)
        running.check_alive()
        assert all(re.match(r"\d+\.\d+", version) for version in running.versions().values())
        pids = [*running.pids(), *running.wardens()]
        assert not any(0 in psutil.Process(pid).uids() for pid in running.pids())
        assert running.ready_s > 0
        assert (stack, site) not in OF_FILES or running.facts()["sendfile"] == "on"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", running.port)) != 0
    role = running.stack.front
    assert (tmp_path / f"{role}.log").exists()
    if (stack, site) in OF_FILES:
        (configuration,) = (tmp_path / role).glob("*.conf")
        assert re.search(r"^\s*(root|DocumentRoot) ", configuration.read_text(), re.MULTILINE)
    assert not any(psutil.pid_exists(pid) for pid in pids)
    live = str(home_folder() / "live" / running.name)
    assert not Path(live).exists()
    assert live not in Path("/proc/net/unix").read_text()
    assert live not in Path("/proc/self/mounts").read_text()
    assert running.group is None or not running.group.path.exists()


def check_bodies(running: RunningStack) -> None:
    """Ask for each path of the site twice: caches must answer what they were reported."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
    for path, page in [*running.site.paths.items()] * 2:
        connection.request("GET", spell_out(path)[0])
        response = connection.getresponse()
        body = response.read()
        assert page.matches(response.status, body), f"{path}: {response.status} {body[:300]!r}"
    connection.close()


def check_load(running: RunningStack, connections: int = 8, testbed: Testbed | None = None) -> None:
    """Some responses of the site's first page, on each connection one; a cold page takes its time.

    By number: of pages without a length those are left that have only begun when a time is over.
    """
    entry = testbed.client_entry() if testbed else []
    command = [*entry, str(find_loadgen()), "run", running.url + running.site.ready_path]
    options = [f"--connections={connections}", "--count=16", "--timeout=60s", "--json"]
    options += ["--allow-remote"] if testbed else []
    done = subprocess.run([*command, *options], capture_output=True, check=False)
    result = json.loads(done.stdout)
    requests = result["requests"]
    assert requests["completed"] + requests["drained"] > 0
    assert sum(result["failures"].values()) == 0, result["failure_samples"]


def check_redis(running: RunningStack) -> None:
    """Redis answers; without a password it lets nobody say where it writes, or load code."""
    with connect(running.services()[running.stack.front].address) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(100) == b"+PONG\r\n"
        for reported in (
            b"CONFIG SET dir /tmp",
            b"MODULE LOAD /tmp/x.so",
            b"REPLICAOF localhost 1",
            b"MIGRATE localhost 1 key 0 1",
        ):
            connection.sendall(reported + b"\r\n")
            assert connection.recv(200).startswith(b"-ERR unknown command"), reported


@pytest.mark.parametrize(
    ("stack", "settings", "site"),
    [
        ("nginx-front-apache", {"upstream_keepalive": 0}, "hello-php"),
        ("nginx-memcached", {"memcached": "tcp", "upstream_keepalive": 0}, "static"),
        ("nginx-phpfpm", {"listen": "tcp"}, "frontpage"),
        further("nginx-phpfpm", {"wp_page_cache": True}, "wordpress"),
        ("node", {"processes": 2}, "spin"),
        ("puma-redis", {"redis": "tcp", "workers": 1}, "retwis"),
    ],
)
def test_the_other_way_round(
    tmp_path: Path, stack: str, settings: dict[str, str | int | bool], site: str
) -> None:
    """Settings that change how services are wired."""
    with open_stack(
        CATALOGUE.stack(stack), settings, CATALOGUE.site(site), folder=tmp_path, testbed=Testbed()
    ) as running:
        check_bodies(running)
        check_load(running)


@pytest.mark.parametrize("stack", ["nginx-phpfpm", further("apache-event-phpfpm")])
def test_php_fpm_listens_on_tcp_in_a_network_of_its_own(tmp_path: Path, stack: str) -> None:
    settings: dict[str, SettingValue] = {"fastcgi": "tcp", "upstream_keepalive": 64}
    with (
        open_testbed(TestbedSettings(kind="netns"), find_loadgen()) as testbed,
        open_stack(
            CATALOGUE.stack(stack),
            settings,
            CATALOGUE.site("hello-php"),
            folder=tmp_path,
            testbed=testbed,
        ) as running,
    ):
        check_load(running, testbed=testbed)
        fpm = running.services()["phpfpm"].address
        with pytest.raises(OSError, match="refused"), connect(fpm):
            pass


@pytest.mark.parametrize("stack", ["nginx-phpfpm", further("apache-event-phpfpm")])
def test_kept_connections_leave_php_processes_free(tmp_path: Path, stack: str) -> None:
    """However many are requested: else whoever has none would wait for ever."""
    settings: dict[str, SettingValue] = {"upstream_keepalive": 64, "children": 16, "workers": 2}
    site = CATALOGUE.site("hello-php")
    with open_stack(
        CATALOGUE.stack(stack), settings, site, folder=tmp_path, testbed=Testbed()
    ) as running:
        check_load(running, connections=64)
        address = str(running.services()["phpfpm"].address.socket)
        sockets = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
        connected = sum(line[-1] == address and line[5] == "03" for line in sockets)
        assert 0 < connected < 16
        check_bodies(running)


def test_what_one_round_wrote_does_not_reach_the_next(tmp_path: Path) -> None:
    stack, site = CATALOGUE.stack("thin-redis"), CATALOGUE.site("retwis")
    form = "name=zoe&password=long+enough"
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    for start in (1, 2):
        with open_stack(
            stack, {}, site, folder=tmp_path / str(start), testbed=Testbed()
        ) as running:
            connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
            connection.request("GET", "/people/zoe")
            missing = connection.getresponse()
            missing.read()
            assert missing.status == 404
            connection.request("POST", "/sign-up", form, headers)
            signed_up = connection.getresponse()
            signed_up.read()
            assert signed_up.status == 303
            cookie = (signed_up.getheader("Set-Cookie") or "").partition(";")[0]
            connection.request("POST", "/people/ada/follow", "", headers | {"Cookie": cookie})
            connection.getresponse().read()
            connection.request("POST", "/posts", "text=hello+ada", headers | {"Cookie": cookie})
            connection.getresponse().read()
            connection.request("GET", "/people/zoe")
            person = connection.getresponse().read().decode()
            assert "follows 1, is followed by 0" in person
            assert "hello ada" in person
            connection.close()


def test_secrets_differ_from_start_to_start(tmp_path: Path) -> None:
    seen = set()
    for start in (1, 2):
        folder = tmp_path / str(start)
        stack, site = CATALOGUE.stack("nginx-phpfpm"), CATALOGUE.site("frontpage")
        with open_stack(stack, {}, site, folder=folder, testbed=Testbed()):
            text = (folder / "mariadb" / "start.sql").read_text()
            seen.add(re.findall(r"IDENTIFIED BY '(\w+)'", text)[0])
        if os.geteuid() == 0:
            assert (folder / "mariadb" / "start.sql").stat().st_mode & 0o077 == 0
    assert len(seen) == 2


@pytest.mark.parametrize("stack", ["nginx", "apache-prefork"])
@pytest.mark.parametrize("gzip", [False, True])
def test_text_is_compressed_where_asked_for_by_both(tmp_path: Path, stack: str, gzip: bool) -> None:
    wanted, site = CATALOGUE.stack(stack), CATALOGUE.site("static")
    settings: dict[str, SettingValue] = {"gzip": gzip}
    with open_stack(wanted, settings, site, folder=tmp_path, testbed=Testbed()) as running:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=20)
        for asked in ({}, {"Accept-Encoding": "gzip"}):
            connection.request("GET", "/100KB.txt", headers=asked)
            response = connection.getresponse()
            response.read()
            encoding = "gzip" if gzip and asked else None
            assert response.getheader("Content-Encoding") == encoding
        assert running.facts()["compression"] == ("gzip" if gzip else "off")
        connection.close()
