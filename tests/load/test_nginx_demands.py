"""The load generator against an nginx that wants certificates, passwords and the like."""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from webdyno.load.engine import find_loadgen
from webdyno.servers.service_graph import certificate, free_port

CONFIG = """\
{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/temporary;
    proxy_temp_path {folder}/temporary;
    fastcgi_temp_path {folder}/temporary;
    uwsgi_temp_path {folder}/temporary;
    scgi_temp_path {folder}/temporary;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate {folder}/server.pem;
        ssl_certificate_key {folder}/server.key;
        ssl_client_certificate {folder}/client.pem;
        ssl_verify_client on;
        root {folder};
        gzip on;
        gzip_types text/plain;
        location = /page.txt {{ default_type text/plain; }}
        location = /moved {{ return 302 /page.txt; }}
        location = /host {{ return 200 "$ssl_server_name $host"; }}
        location = /who {{ return 200 $http_authorization; }}
        location = /private.txt {{ auth_basic "us"; auth_basic_user_file {folder}/users; }}
    }}
}}
"""
COUNT = 6


class Demanding(NamedTuple):
    """An nginx, and what it knows its clients by."""

    folder: Path
    port: int

    def url(self, path: str) -> str:
        return f"https://127.0.0.1:{self.port}{path}"

    @property
    def ours(self) -> list[str]:
        """Flags with the certificate that it wants, which take its own for granted."""
        return [
            "--tls-verify=off",
            "--cert",
            f"{self.folder}/client.pem",
            "--key",
            f"{self.folder}/client.key",
        ]


@pytest.fixture(scope="module")
def nginx(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demanding]:
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    for name, kind in (("server", "ec"), ("client", "rsa")):
        made = certificate("127.0.0.1", kind)
        (folder / f"{name}.pem").write_text(made.certificate)
        (folder / f"{name}.key").write_text(made.key)
    for page in ("page.txt", "private.txt"):
        (folder / page).write_text("Hello, World! " * 100)
    (folder / "users").write_text("me:{PLAIN}secret\n")
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=port, user=user))
    program = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    assert program
    with subprocess.Popen([program, "-e", "stderr", "-p", folder, "-c", "nginx.conf"]) as process:
        while process.poll() is None and _is_free(port):
            time.sleep(0.01)
        yield Demanding(folder, port)
        process.terminate()


def _is_free(port: int) -> bool:
    """Whether nobody does yet."""
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) != 0


def ran(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`loadgen run` with such flags."""
    return subprocess.run(
        [find_loadgen(), "run", *words],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def result(*words: str, **environment: str) -> dict[str, Any]:
    """What it measured."""
    done = ran("--json", "-n", str(COUNT), "-c", "2", *words, **environment)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


@pytest.mark.parametrize(
    ("version", "secret"), [("1.2", "CLIENT_RANDOM"), ("1.3", "CLIENT_TRAFFIC_SECRET_0")]
)
def test_a_certificate_is_shown_to_who_wants_one(
    nginx: Demanding, tmp_path: Path, version: str, secret: str
) -> None:
    """In each version of TLS; without one nginx answers 400. The keys of connections are logged."""
    keys, url = tmp_path / "keys.log", nginx.url("/page.txt")
    its = ("--tls-version", version)
    known = result(*nginx.ours, *its, url, SSLKEYLOGFILE=str(keys))
    assert known["requests"]["completed"] == COUNT
    assert secret in keys.read_text()
    assert result("--tls-verify=off", *its, url)["by_status"] == {"400": COUNT}


def test_users_and_tokens_are_let_in(nginx: Demanding) -> None:
    private = nginx.url("/private.txt")
    assert result(*nginx.ours, "-u", "me:secret", private)["by_status"] == {"200": COUNT}
    assert result(*nginx.ours, "-u", "me:wrong", private)["by_status"] == {"401": COUNT}
    once = ran(*nginx.ours, "--once", "--bearer", "a-token", nginx.url("/who"))
    assert "Bearer a-token" in once.stdout.partition("\n\n")[2]


def test_where_a_redirect_leads_is_named(nginx: Demanding) -> None:
    moved = result(*nginx.ours, nginx.url("/moved"))
    assert moved["failures"]["status"] == COUNT
    assert "/page.txt" in " ".join(moved["failure_samples"])


def test_bodies_come_compressed_where_they_are_asked_for_so(nginx: Demanding) -> None:
    once = ran(*nginx.ours, "--once", "--compressed", nginx.url("/page.txt"))
    assert "content-encoding: gzip" in once.stdout.lower()
    plain = ran(*nginx.ours, "--once", nginx.url("/page.txt"))
    assert "content-encoding" not in plain.stdout.lower()
    assert plain.stdout.count("Hello, World!") == 100


@pytest.mark.parametrize(
    "flags",
    [["--connect-to", "::127.0.0.1:{port}"], ["--resolve", "shop.example:443:127.0.0.1"]],
    ids=["connect-to", "resolve"],
)
def test_a_name_is_served_elsewhere(nginx: Demanding, flags: list[str]) -> None:
    port = "" if flags[0] == "--connect-to" else f":{nginx.port}"
    flags = [flag.replace("443", str(nginx.port)).format(port=nginx.port) for flag in flags]
    once = ran(*nginx.ours, *flags, "--once", f"https://shop.example{port}/host")
    assert "shop.example shop.example" in once.stdout, once.stderr


def test_addresses_of_one_kind_are_used(nginx: Demanding) -> None:
    named = ["--resolve", f"shop.example:{nginx.port}:::1,127.0.0.1"]
    url = f"https://shop.example:{nginx.port}/page.txt"
    assert result(*nginx.ours, *named, "-4", url)["requests"]["completed"] == COUNT
    unanswered = result(*nginx.ours, *named, "-6", "--timeout", "300ms", url)
    assert not unanswered["requests"]["completed"]
