"""Configurations of proxies, measured without the rest of their world."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.commands import FEW, left_behind, run_rounds, statuses, webdyno
from e2e.own import SERVER
from variants import further
from webdyno.core.readings import ServiceUse
from webdyno.core.records import SlotRecord
from webdyno.measure.folder import RunFolder

APP = f"cmd:{sys.executable} server.py $PORT"
PROXIES = {
    "nginx": "upstream pool { server shop-app:3000; keepalive 8; }\n"
    "server { listen 80; location / { proxy_pass http://pool; } }\n",
    "apache": '<VirtualHost *:80>\n    ProxyPass "/" "http://shop-app:3000/"\n</VirtualHost>\n',
    "caddy": ":80 {\n    reverse_proxy shop-app:3000\n}\n",
    "haproxy": "defaults\n    mode http\n    timeout connect 5s\n    timeout client 5s\n"
    "    timeout server 5s\nfrontend f\n    bind :80\n    default_backend b\n"
    "backend b\n    server a shop-app:3000\n",
    "lighttpd": 'server.modules = ( "mod_proxy" )\nserver.document-root = "/var/www"\n'
    'proxy.server = ( "" => (( "host" => "shop-app", "port" => 3000 )) )\n',
}


@pytest.fixture
def home(open_folder: Path) -> Path:
    """A folder with an application that the servers' user may read, too."""
    (open_folder / "server.py").write_text(SERVER)
    return open_folder


@pytest.mark.parametrize("server", ["nginx", *(further(it) for it in PROXIES if it != "nginx")])
def test_a_proxy_is_measured_as_the_message_says(home: Path, server: str) -> None:
    """Without its backend it is refused; with the flag that the message gives it is measured."""
    (home / "proxy.conf").write_text(PROXIES[server])
    system = f"conf:{server}:proxy.conf"
    refused = webdyno("compare", system, system, *FEW, folder=home)
    assert refused.returncode == 2, refused.stdout
    found = re.search(r"in their place: (--backend .*?) \(", refused.stderr)
    assert found, refused.stderr
    assert "proxy.conf:" in refused.stderr
    flags = shlex.split(found[1].replace("cmd:'COMMAND'", shlex.quote(APP)))
    reported = run_rounds(1, "compare", system, system, *flags, *FEW, folder=home)
    assert "shop-app is cmd:" in reported
    assert statuses(home) == {"200"}
    slots = [it for it in RunFolder.open(home / "run").records() if isinstance(it, SlotRecord)]
    services = [it.readings.services for it in slots if it.readings]
    assert services
    assert all(set(it) == {"web", "shop-app"} for it in services)
    assert sum(_cpu_s(it["shop-app"]) for it in services) > 0
    assert left_behind(home) == []


def test_what_runs_already_answers_and_its_cpu_time_is_reported_apart(
    home: Path, tmp_path: Path
) -> None:
    (home / "nginx.conf").write_text(PROXIES["nginx"])
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    flags = (f"--backend=shop-app=127.0.0.1:{port}", *FEW)
    done = webdyno("compare", "conf:nginx.conf", "conf:nginx.conf", *flags, folder=home)
    assert done.returncode == 3, done.stdout
    assert "start it first" in done.stderr
    (tmp_path / "server.py").write_text(SERVER)
    with subprocess.Popen([sys.executable, "server.py", str(port)], cwd=tmp_path) as process:
        try:
            run_rounds(1, "compare", "conf:nginx.conf", "conf:nginx.conf", *flags, folder=home)
            assert process.poll() is None, "it isn't ours to stop"
        finally:
            process.terminate()
    slots = [it for it in RunFolder.open(home / "run").records() if isinstance(it, SlotRecord)]
    assert sum(_cpu_s(it.readings.services["shop-app"]) for it in slots if it.readings) > 0


def _cpu_s(used: ServiceUse) -> float:
    return used.cpu_user_s + used.cpu_sys_s


def test_a_proxy_is_compared_with_what_stands_behind_it(home: Path) -> None:
    (home / "nginx.conf").write_text(PROXIES["nginx"])
    flags = (f"--backend=shop-app={APP}", *FEW)
    run_rounds(1, "compare", "conf:nginx.conf", APP, *flags, folder=home)
    assert statuses(home) == {"200"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes network namespaces everywhere")
@pytest.mark.long
@pytest.mark.parametrize("server", PROXIES)
def test_a_proxy_and_its_backend_are_in_a_network_of_their_own(home: Path, server: str) -> None:
    (home / "proxy.conf").write_text(PROXIES[server])
    system = f"conf:{server}:proxy.conf"
    flags = ("--testbed=netns", f"--backend=shop-app={APP}", *FEW)
    run_rounds(1, "compare", system, system, *flags, folder=home)
    assert statuses(home) == {"200"}


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--backend=other=cmd:x"], "nothing passes requests on to other.*: shop-app:3000"),
        (["--backend=shop-app=cmd:exit 4"], r"exit 4 ended by itself with exit code 4"),
        (["--backend=shop-app=10.1.2.3:80"], "another machine than this one"),
        (["--backend=shop-app"], "--backend shop-app: should look like HOST=SYSTEM"),
    ],
)
def test_a_backend_that_is_wrong_is_reported(home: Path, words: list[str], says: str) -> None:
    (home / "nginx.conf").write_text(PROXIES["nginx"].replace("shop-app:3000", "localhost:3000"))
    if "other" not in words[0]:
        (home / "nginx.conf").write_text(PROXIES["nginx"])
    done = webdyno("up", "conf:nginx.conf", *words, folder=home)
    assert done.returncode in {2, 3}
    assert re.search(says.replace("shop-app:3000", "localhost:3000"), done.stderr), done.stderr
    assert "Traceback" not in done.stderr
    assert left_behind(home) == []
