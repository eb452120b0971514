"""What answers in the place of hosts that configurations pass requests on to."""

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.conf import apache, caddy, haproxy, lighttpd, nginx
from webdyno.systems.conf.passing import Backends
from webdyno.systems.conf.relocation import RelocationRequest

APP, SECOND = "127.251.113.1:61001", "127.251.113.2:61002"
GIVEN = {"app": "cmd:x", "second:3000": "127.0.0.1:9000", "/run/app.sock": "unix:/run/real.sock"}
HAPROXY = """
defaults
  mode http
  timeout connect 1s
  timeout client 1s
  timeout server 1s
frontend f
  bind :80
  default_backend b
backend b
"""


def moved(folder: Path, server: ModuleType, text: str, **given: str) -> tuple[str, Backends]:
    file = folder / ("Caddyfile" if server is caddy else "server.conf")
    file.write_text(text)
    backends = Backends.of(given or GIVEN, "here")
    found = server.relocate(RelocationRequest(file, backends=backends))
    return found.text, backends


@pytest.mark.parametrize(
    ("server", "text", "there"),
    [
        (nginx, "upstream u { server app:3000 weight=3; }", [f"server {APP} weight=3;"]),
        (
            nginx,
            "upstream app { server second:3000; } server { proxy_pass http://app; }",
            [f"server {SECOND};", "proxy_pass http://app;"],
        ),
        (
            nginx,
            "upstream app { server app:3000; } server { proxy_pass http://app; }",
            [f"server {APP};", "proxy_pass http://app;"],
        ),
        (
            nginx,
            "server { location / { proxy_pass http://app/sub/; } }",
            [f"proxy_pass http://{APP}/sub/;"],
        ),
        (nginx, "server { set $u http://APP:80; proxy_pass $u$request_uri; }", [f"http://{APP};"]),
        (nginx, "server { set $h app; proxy_pass http://$h:3000; }", [f"proxy_pass http://{APP};"]),
        (
            nginx,
            "map $http_x $u { default app:1; two second:3000; } server { proxy_pass http://$u; }",
            [f"default {APP};", f"two {SECOND};", "proxy_pass http://$u;"],
        ),
        (nginx, "server { fastcgi_pass unix:/run/app.sock; }", ["unix:/run/real.sock;"]),
        (
            nginx,
            "server { location / { proxy_pass http://unix:/run/app.sock:/x; } }",
            ["proxy_pass http://unix:/run/real.sock:/x;"],
        ),
        (apache, "ProxyPass /a http://app:3000/b retry=0", [f"ProxyPass /a http://{APP}/b retry"]),
        (
            apache,
            (
                '<Proxy "balancer://app">\nBalancerMember http://second:3000\n</Proxy>\n'
                "ProxyPass / balancer://app/"
            ),
            ['<Proxy "balancer://app">', f"BalancerMember http://{SECOND}"],
        ),
        (apache, "ProxyPassReverse / http://app/\nProxyPass / http://app/", [f"http://{APP}/"]),
        (
            apache,
            '<FilesMatch x>\nSetHandler "proxy:unix:/run/app.sock|fcgi://localhost"\n</FilesMatch>',
            ['"proxy:unix:/run/real.sock|fcgi://localhost"'],
        ),
        (apache, "RewriteEngine on\nRewriteRule ^/(.*) http://app/$1 [P]", [f"http://{APP}/$1"]),
        (caddy, ":80 {\n  reverse_proxy app second:3000\n}", [f'"{APP}"', f'"{SECOND}"']),
        (caddy, ":80 {\n  reverse_proxy {\n    dynamic a app 3000\n  }\n}", [f'"dial": "{APP}"']),
        (caddy, ":80 {\n  php_fastcgi unix//run/app.sock\n}", ['"unix//run/real.sock"']),
        (haproxy, f"{HAPROXY}  server a app:3000 check", [f"server a {APP} check"]),
        (haproxy, f"{HAPROXY}  server a ipv4@app:3000", [f"server a {APP}"]),
        (haproxy, f"{HAPROXY}  server a /run/app.sock", ["server a unix@/run/real.sock"]),
        (haproxy, f"{HAPROXY}  server-template a 2 app:3000", [f"server-template a 2 {APP}"]),
        (
            lighttpd,
            (
                'server.modules = ("mod_proxy")\nserver.document-root = "/"\n'
                'proxy.server = ( "" => (( "host" => "app", "port" => 3000 )) )'
            ),
            ['"host" => "127.251.113.1"', '"port" => @webdyno-port-1@'],
        ),
        (
            lighttpd,
            (
                'server.modules = ("mod_fastcgi")\nserver.document-root = "/"\n'
                'fastcgi.server = ( ".php" => (( "socket" => "/run/app.sock" )) )'
            ),
            ['"socket" => "/run/real.sock"'],
        ),
    ],
)
def test_backends_take_the_place_of_hosts(
    tmp_path: Path, server: ModuleType, text: str, there: list[str]
) -> None:
    if server is nginx and "server {" not in text:
        text += " server { location / { proxy_pass http://u; } }"
    if server is apache:
        text = f"<VirtualHost *:80>\n{text}\n</VirtualHost>\n"
    found, backends = moved(tmp_path, server, text)
    for each in there:
        assert each in found
    assert backends.used
    assert not backends.seen


def test_each_server_of_several_is_one_of_its_own(tmp_path: Path) -> None:
    text = "upstream u { server 10.0.0.1:80; server 10.0.0.2:80; } server { proxy_pass http://u; }"
    given = {"10.0.0.1:80": "cmd:a", "10.0.0.2": "cmd:b"}
    found, backends = moved(tmp_path, nginx, text, **given)
    assert f"server {APP};" in found
    assert f"server {SECOND};" in found
    assert list(backends.used) == ["at-10-0-0-1-80", "at-10-0-0-2"]


def test_names_of_this_machine_are_the_same(tmp_path: Path) -> None:
    text = "server { proxy_pass http://localhost:3000; }"
    _, backends = moved(tmp_path, nginx, text, **{"127.0.0.1:3000": "cmd:x"})
    assert backends.used


def test_names_become_roles_that_are_not_taken() -> None:
    given: dict[str, Any] = dict.fromkeys(("web", "lock", "a.b", "a-b", "[::1]:80", "ö"), "cmd:x")
    roles = [it.role for it in Backends.of(given, "here").every]
    assert roles == ["web-1", "lock-2", "a-b", "a-b-4", "at-1-80", "at-"]


def test_who_does_not_listen_is_reported_with_what_to_do(tmp_path: Path) -> None:
    text = "server { proxy_pass http://localhost:1; } server { fastcgi_pass unix:/none.sock; }"
    _, backends = moved(tmp_path, nginx, text)
    first, second = backends.silent()
    assert first.startswith("nobody listens at localhost:1, ")
    assert first.endswith("--backend localhost:1=cmd:'COMMAND'")
    assert "/none.sock=cmd:" in second


@pytest.mark.parametrize(
    ("name", "system", "says"),
    [
        ("http://app", "cmd:x", "no host, as in app or app:3000.*without http://"),
        ("", "cmd:x", "no host"),
        ("a b", "cmd:x", "no host"),
        ("app", "nginx", r"is a command \(cmd:COMMAND\), an address of this machine"),
        ("app", "image:x", "is a command"),
        ("app", "9000", "is a command"),
    ],
)
def test_what_is_no_backend_is_refused(name: str, system: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        Backends.of({name: system}, "here")
