"""Damaged configurations of nginx and HAProxy: moved or refused, and what is moved stays here."""

import re
from collections import defaultdict
from pathlib import Path
from random import Random

import jinja2
import pytest

from fuzz.driver import each_case, no_hang, sweep
from fuzz.moving import HERE, damaged, moved
from webdyno.core.service import ORIGINS, Origins
from webdyno.systems.target import OwnKeys

NGINX = """
user nginx;
load_module modules/x.so;
error_log syslog:server=10.0.0.1 warn;
events { worker_connections 256; }
http {
    include mime.types;
    log_format main '$remote_addr - "$request" $status';
    access_log syslog:server=10.0.0.1:514,tag=x main;
    map $http_upgrade $connection { default upgrade; '' close; }
    upstream app { server 127.0.0.1:9000; server unix:/run/app.sock; keepalive 2; }
    proxy_cache_path /var/cache/x keys_zone=a:1m use_temp_path=off;
    server { listen 80 default_server; return 444; }
    server { listen 8080; location /status { stub_status; } }
    server {
        listen 80; listen [::]:80 ipv6only=off; listen 443 ssl http2 reuseport;
        server_name shop.example;
        ssl_certificate certs/a.pem; ssl_certificate_key certs/a.key;
        root public;
        include part.conf;
        if ($request_method = POST) { return 405; }
        location ~ "^/a{2,3}$" { proxy_pass http://app; proxy_set_header Host "$host"; }
        location / { try_files $uri /index.html; access_log /var/log/a.log; }
    }
}
"""
HAPROXY = """
global
    log /dev/log local0
    chroot /var/lib/haproxy
    stats socket /run/x mode 660
    setenv MINE ":8080"
defaults
    mode http
    log global
    errorfile 503 /etc/haproxy/errors/503.http
    timeout connect 5s
frontend stats
    bind :8404
    stats enable
frontend web
    bind :80,:81 accept-proxy
    bind "$MINE"
    bind :443 ssl crt /etc/a.pem ca-file /etc/b.pem verify required alpn h2
    http-request set-header X "a \\"b\\" ${HOSTNAME-x}"
    http-request redirect scheme https unless { ssl_fc }
    use_backend b if { path_beg /b }
    default_backend a
listen a
    bind :82
    server s 127.0.0.1:9000 check
backend b
    stick-table type ip size 1m peers p
    server s 127.0.0.1:9001
peers p
    peer q 10.0.0.1:1024
"""
PIECES = [
    *("{", "}", ";", "\n", "\r\n", " ", "\t", '"', "'", "\\", "#", "$", "${", "${A}", "$B", "\0"),
    *(
        "listen ",
        "listen 443 ssl;",
        "listen ::;",
        "listen [::",
        "listen 99999999;",
        "return 301 x;",
    ),
    *("include nginx.conf;", "include *;", "include /dev/zero;", "include part.conf;", "server {"),
    *("http {", "if (", "location {", "content_by_lua_block { ", "{{ 7 * 7 }}", "{% raw %}", "{#"),
    *("bind ", "bind :", "bind /x", "frontend ", "listen a", "defaults from x\n", "mode tcp\n"),
    *("from", "peers", "default-path config\n", "log ", "crt", "verify", "ssl", "setenv A b\n"),
    *(
        "\ufeff",
        "\u20ac",
        "\ud7ff",
        "9" * 400,
        "a" * 3000,
        "@webdyno-port@",
        "${settings.x}",
        "{" * 150,
    ),
]


@sweep(quick=25, whole=150)
@pytest.mark.parametrize(
    ("server", "name", "text"),
    [("nginx", "nginx.conf", NGINX), ("haproxy", "haproxy.cfg", HAPROXY)],
    ids=["nginx", "haproxy"],
)
def test_a_damaged_configuration_is_moved_or_refused(
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    name: str,
    text: str,
    seed: int,
    cases: range,
) -> None:
    monkeypatch.setattr("webdyno.systems.conf.passing._addresses", lambda _: ["127.0.0.1"])
    (open_folder / "mime.types").write_text("types { text/html html; }")
    accepted = 0

    def check(case: int) -> None:
        nonlocal accepted
        random = Random(seed * 1_000_003 + case)
        (open_folder / name).write_text(damaged(random, text, PIECES, 3), encoding="utf-8")
        (open_folder / "part.conf").write_text(
            damaged(random, "add_header X y;\n", PIECES, 3), encoding="utf-8"
        )
        keys = OwnKeys(environment=random.choice([{}, {"A": ":80", "B": "9"}]))
        with no_hang():
            files = moved(open_folder, f"{server}:{name}", random, keys, "shop.example")
        if files is not None:
            accepted += 1
            there = {"server": defaultdict(str, host="127.0.0.1", port="18000", folder="/run")}
            text_there = jinja2.Template(files[name]).render(there)
            stays_here(server, text_there, Origins.model_validate_json(files[ORIGINS]))

    each_case(seed, cases, check)
    assert accepted > len(cases) / 10


def stays_here(server: str, text: str, origins: Origins) -> None:
    """Assert that a moved configuration listens at the run's address, and logs to nobody."""
    assert HERE in text
    assert not re.search(r"(?m)^\s*(access_log|error_log)\s+syslog", text)
    if server == "nginx":  # elsewhere than in a server it refuses a listen
        for block in re.findall(r"(?ms)^    server \{$(.*?)^    \}$", text):
            (listen,) = re.findall(r"(?m)^ {8}listen (.*)", block)
            assert listen.startswith(HERE)
    assert len(origins.lines) <= text.count("\n") + 1
