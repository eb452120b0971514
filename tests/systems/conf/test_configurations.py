"""Configurations of nginx, Apache and lighttpd are moved, and nothing else of them is changed."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.conf.apache import relocate as relocate_apache
from webdyno.systems.conf.nginx import relocate as relocate_nginx
from webdyno.systems.conf.relocation import CERTIFICATE, FOLDER, HOST, PORT, RelocationRequest

HERE = f"{HOST}:{PORT}"


def nginx(folder: Path, text: str, root: Path | None = None, protocol: str = "http") -> str:
    file = folder / "nginx.conf"
    file.write_text(text)
    return relocate_nginx(RelocationRequest(file, root, protocol)).text


def apache(folder: Path, text: str, root: Path | None = None, protocol: str = "http") -> str:
    file = folder / "httpd.conf"
    file.write_text(text)
    return relocate_apache(RelocationRequest(file, root, protocol)).text


@pytest.mark.parametrize(
    ("listen", "first"),
    [
        ("listen 80;", f"listen {HERE};"),
        ("", f"listen {HERE};"),
        ("listen 8080 backlog=9;", f"listen {HERE} backlog=9;"),
        ("listen [::]:80 ipv6only=off reuseport;", f"listen {HERE} reuseport;"),
        ("listen 443 ssl; listen localhost;", f"listen {HERE};"),
        ("listen 80; listen [::]:80 default_server;", f"listen {HERE} default_server;"),
        ("listen 80 proxy_protocol;", f"listen {HERE};"),
        ("listen 8000-8010;", f"listen {HERE};"),
        ("listen 10.0.0.1:80; listen [::1]:80;", f"listen {HERE};"),
    ],
)
def test_nginx_listens_on_the_port_of_the_run(tmp_path: Path, listen: str, first: str) -> None:
    moved = nginx(tmp_path, f"events {{}} http {{ server {{ {listen} }} }}")
    assert first in moved
    assert moved.count(HERE) == 1


def test_nginx_keeps_servers_apart_by_their_ports(tmp_path: Path) -> None:
    text = "server { listen 81; } server { listen 80; server_name a; } server { server_name b; }"
    moved = nginx(tmp_path, text)
    assert moved.count(f"listen {HERE};") == 2
    assert "81" not in moved


def test_nginx_writes_into_the_folder_of_the_run(tmp_path: Path) -> None:
    (tmp_path / "my.crt").touch()
    text = (
        "user www-data; pid /run/x.pid; worker_cpu_affinity auto; error_log /var/log/e.log info;"
        "events {} http { access_log off; proxy_temp_path /var/tmp/x;"
        "proxy_cache_path /var/cache/x keys_zone=a:1m; ssl_certificate my.crt;"
        "server { access_log /var/log/a.log; location / { access_log syslog:server=unix:/x; } } }"
    )
    moved = nginx(tmp_path, text)
    assert "/var/" not in moved
    assert "user" not in moved
    assert "affinity" not in moved
    assert "error_log stderr info;" in moved
    assert "access_log off;" in moved
    assert "syslog" not in moved
    assert f"proxy_cache_path {FOLDER}/cache-1 keys_zone=a:1m;" in moved
    assert "ssl_certificate" not in moved  # it would be read, and nobody needs it
    assert f"client_body_temp_path {FOLDER}/temp/client_body;" in moved


def test_nginx_has_its_includes_inside_and_another_root(tmp_path: Path) -> None:
    (tmp_path / "site.inc").write_text("server { listen 80; root /old; location /a { root /b; } }")
    moved = nginx(tmp_path, "events {} http { include *.inc; }", tmp_path)
    assert moved.count(f"root {tmp_path};") == 2
    assert "*.inc" not in moved


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("events {}", "no http and no server"),
        ("http { server { listen 443 ssl; } }", "nowhere for HTTP without TLS"),
        ("http {", r"nginx\.conf:1: unexpected end of file"),
        (
            "http { include none.conf; }",
            r"nginx\.conf:1 includes none\.conf, .*/none\.conf and no /etc/nginx/",
        ),
    ],
)
def test_an_nginx_that_cannot_be_measured_is_reported(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        nginx(tmp_path, text)


def test_servers_are_moved_to_their_port_with_tls(tmp_path: Path) -> None:
    text = "http { server { listen 80; } server { listen 443 ssl; ssl_certificate no.pem; } }"
    moved = nginx(tmp_path, text, protocol="https")
    assert f"listen {HERE} ssl;" in moved
    assert f"ssl_certificate {CERTIFICATE};" in moved
    text = "<VirtualHost *:80>\n</VirtualHost>\n<VirtualHost *:8443>\nSSLEngine on\n</VirtualHost>"
    moved = apache(tmp_path, text, protocol="https")
    assert "SSLEngine on" in moved
    assert "LoadModule ssl_module" in moved
