"""A user's own configurations of servers as variants."""

import os
import re
from pathlib import Path

import pytest

from e2e.commands import FEW, run_rounds, statuses, webdyno
from variants import further
from webdyno.core.records import PreflightRecord
from webdyno.measure.folder import RunFolder
from webdyno.servers import service_graph

NGINX = """
user nginx;
pid /run/nginx.pid;
error_log /var/log/nginx/error.log warn;
events { worker_connections 256; }
http {
    access_log /var/log/nginx/access.log;
    server {
        listen 80; listen [::]:80;
        root /var/www/html;
        location ~ "^/a{2,3}$" { return 204; }
    }
    server { listen 8080; return 301 http://example.org/; }
}
"""
APACHE = """
<VirtualHost *:80>
    DocumentRoot /var/www/html
    CustomLog ${APACHE_LOG_DIR}/access.log combined
    User root
</VirtualHost>
<VirtualHost *:443>
    SSLEngine on
</VirtualHost>
"""
LIGHTTPD = """
server.document-root = "/var/www/html"
server.port = 80
server.username = "www-data"
index-file.names = ( "index.html" )
"""
CADDY = """
{
    email me@example.org
    log {
        output file /var/log/caddy/caddy.log
    }
}
example.org {
    root * /var/www/html
    file_server
    log {
        output file /var/log/caddy/access.log
    }
}
:8080 {
    respond "another"
}
"""
HAPROXY = """
global
    log /dev/log local0
    user haproxy
    chroot /var/lib/haproxy
    stats socket /run/haproxy/admin.sock mode 660
    daemon
defaults
    mode http
    log global
    option httplog
    timeout connect 5s
    timeout client 5s
    timeout server 5s
frontend clients
    bind *:80
    bind :443 ssl crt /etc/haproxy/mine.pem alpn h2,http/1.1
    http-request return status 200 content-type text/html string "<p>hello</p>"
listen stats
    bind :8404
    stats enable
"""


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("nginx", NGINX, ["listen 127.0.0.1:$PORT, not listen 80", "excluded: user nginx"]),
        (
            "apache",
            APACHE,
            ["<VirtualHost *:$PORT>, not <VirtualHost *:80>", "excluded: User root"],
        ),
        ("lighttpd", LIGHTTPD, ["server.port = $PORT"]),
        (
            "caddy",
            CADDY,
            [
                "listen 127.0.0.1:$PORT, not :443",
                "no TLS, since what is requested is HTTP without it",
                "log RUN/access.log, not /var/log/caddy/access.log",
                "example.org answers, whatever host is requested",
            ],
        ),
        (
            "haproxy",
            HAPROXY,
            [
                "bind 127.0.0.1:$PORT, not bind *:80",
                "excluded: listen stats (it isn't requested)",
                "log ring@webdyno local0, not log /dev/log local0",
                "excluded: user haproxy (an ordinary user has no other)",
            ],
        ),
    ],
)
def test_a_configuration_is_moved_and_measured(
    open_folder: Path, name: str, text: str, says: list[str]
) -> None:
    home = open_folder  # the servers' user has to get there
    (home / "public").mkdir()
    (home / "public/index.html").write_text("<p>hello</p>")
    (home / "mine.conf").write_text(text)
    served = f"http {{ server {{ listen 80; root {home}/public; }} }}"
    (home / "other.conf").write_text(f"events {{}} {served}")
    root = () if name == "haproxy" else ("--root=public",)
    words = ("compare", "conf:mine.conf", "conf:nginx:other.conf", *root, *FEW)
    reported = run_rounds(1, *words, folder=home)
    assert f"conf:mine.conf, as {name} runs it here:" in reported
    for change in says:
        assert change in reported
    assert statuses(home) == {"200"}
    kept = [*(home / "run/catalog/services").glob("conf-mine*/*[!l]")]
    assert kept
    assert all(it.stat().st_mode & 0o077 == 0 for it in kept)


SECURE = {
    "nginx": "http { server { listen 81; } server { listen 443 ssl http2; root public; "
    "ssl_certificate mine.pem; ssl_certificate_key mine.pem; } }",
    "apache": "<VirtualHost *:80>\n</VirtualHost>\n<VirtualHost *:443>\nSSLEngine on\n"
    "Protocols h2 http/1.1\nDocumentRoot /var/www\n"
    "SSLCertificateFile /etc/mine.pem\nSSLCertificateKeyFile /etc/mine.pem\n</VirtualHost>\n",
    "lighttpd": 'server.modules = ("mod_openssl")\nindex-file.names = ("index.html")\n'
    'server.document-root = "/var"\n$SERVER["socket"] == ":443" {\nssl.engine = "enable"\n'
    'ssl.pemfile = "/etc/mine.pem"\n}\n',
    "caddy": CADDY,
    "haproxy": HAPROXY,
}


@pytest.mark.parametrize(
    ("name", "protocol"),
    [
        ("apache", "https"),
        *(further(name, "https") for name in ("nginx", "lighttpd", "caddy", "haproxy")),
        further("nginx", "h2"),
        ("haproxy", "h2"),
    ],
)
def test_a_configuration_is_measured_over_tls(open_folder: Path, name: str, protocol: str) -> None:
    home = open_folder
    (home / "public").mkdir()
    (home / "public/index.html").write_text("<p>hello</p>")
    (home / "mine.conf").write_text(SECURE[name])
    root = () if name == "haproxy" else ("--root=public",)
    variant = f"conf:{name}:mine.conf"
    words = ("compare", variant, variant, *root, *FEW, f"--set=load.protocol={protocol}")
    reported = run_rounds(1, *words, folder=home)
    assert "(the run's own)" in reported
    assert statuses(home) == {"200"}


@pytest.mark.parametrize("name", ["haproxy", further("caddy")])
def test_a_certificate_that_can_be_read_is_kept(open_folder: Path, name: str) -> None:
    home = open_folder
    (home / "public").mkdir()
    (home / "public/index.html").write_text("<p>hello</p>")
    caddy = CADDY.replace("file_server", f"file_server\ntls {home}/mine.pem {home}/mine.pem")
    haproxy = HAPROXY.replace("/etc/haproxy/mine.pem", f"{home}/mine.pem")
    (home / "mine.conf").write_text({"caddy": caddy, "haproxy": haproxy}[name])
    made = service_graph.certificate("192.0.2.1", "ec")
    (home / "mine.pem").write_text(made.certificate + made.key)
    variant, root = f"conf:{name}:mine.conf", ("--root=public",) if name == "caddy" else ()
    words = ("compare", variant, variant, *root, *FEW, "--set=load.protocol=https")
    assert "the run's own" not in run_rounds(1, *words, folder=home)
    assert statuses(home) == {"200"}


def test_a_secret_in_a_caddyfile_is_filled_in_by_caddy(
    open_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "s3cr3t-0f-mine")
    (open_folder / "Caddyfile").write_text(':80 {\n    respond "{$SAYS}"\n}\n')
    variant = "conf:caddy:Caddyfile"
    run_rounds(1, "compare", variant, variant, "--env=SAYS=${env:MINE}", *FEW, folder=open_folder)
    records = RunFolder.open(open_folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert {it.body_start for its in preflight.responses.values() for it in its} == {"…hidden…"}
    files = [it for it in (open_folder / "run").rglob("*") if it.is_file()]
    assert not [it for it in files if b"s3cr3t" in it.read_bytes()]


BY_NAME = """
server { listen 80 default_server; listen 443 ssl default_server;
    ssl_certificate mine.pem; ssl_certificate_key mine.pem; return 444; }
server { listen 80; listen 443 ssl http2; server_name shop.example;
    return 200 "$host $ssl_server_name";
    ssl_certificate mine.pem; ssl_certificate_key mine.pem; }
"""


@pytest.mark.parametrize(
    ("flags", "response"),
    [
        (("--host=shop.example",), "shop.example "),
        further(("--set=load.headers.Host=shop.example:81",), "shop.example "),
        further(("--traffic=curl -H 'Host: shop.example' http://x/",), "shop.example "),
        further(("--host=shop.example", "--set=load.protocol=https"), "shop.example shop.example"),
        further(("--host=shop.example", "--set=load.protocol=h2"), "shop.example shop.example"),
    ],
    ids=["host", "header", "curl", "https", "h2"],
)
def test_the_host_that_is_asked_for_is_the_one_measured(
    open_folder: Path, flags: tuple[str, ...], response: str
) -> None:
    (open_folder / "nginx.conf").write_text(BY_NAME)
    variant = "conf:nginx.conf"
    run_rounds(1, "compare", variant, variant, *flags, *FEW, folder=open_folder)
    assert statuses(open_folder) == {"200"}
    records = RunFolder.open(open_folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    assert {it.body_start for its in preflight.responses.values() for it in its} == {response}


SITES = """
server { listen 80 default_server; return 444; }
server { listen 80; server_name a.example; return 200 "site a"; }
server { listen 80; server_name b.example; return 200 "site b"; }
"""


def test_each_request_may_ask_for_a_site_of_its_own(open_folder: Path) -> None:
    (open_folder / "nginx.conf").write_text(SITES)
    (open_folder / "both.http").write_text(
        "GET /\nHost: a.example\n\n###\nGET /b\nHost: b.example\n"
    )
    variant, flags = "conf:nginx.conf", ("--traffic=both.http", *FEW)
    reported = run_rounds(1, "compare", variant, variant, *flags, folder=open_folder)
    assert "measured is site a.example" in reported
    records = RunFolder.open(open_folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    bodies = {it.body_start for its in preflight.responses.values() for it in its}
    assert bodies == {"site a", "site b"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_a_root_that_the_servers_user_cannot_enter_is_reported(open_folder: Path) -> None:
    (open_folder / "private/public").mkdir(parents=True)
    (open_folder / "private").chmod(0o700)
    (open_folder / "mine.conf").write_text(NGINX)
    words = ("compare", "conf:mine.conf", "conf:mine.conf", "--root=private/public")
    done = webdyno(*words, folder=open_folder)
    assert done.returncode == 2
    assert re.search(r"as whom it runs, may not enter .*/private; allow it", done.stderr)


@pytest.mark.parametrize(
    ("variant", "written", "code", "said"),
    [
        (
            "conf:wrong.conf",
            "events {}\nhttp {\n server { listen 80;\n rot /srv; } }",
            2,
            r'unknown directive "rot" in /.*/wrong\.conf:4\n(?s:.*)version 1\.\d+.*image:NAME',
        ),
        (
            "conf:wrong.conf",
            "events {}\nhttp { server { listen 80;",
            2,
            r"wrong\.conf:2: unexpected end of file",
        ),
        (
            "conf:caddy:Caddyfile",
            ":80 {\n    rot /srv\n}\n",
            2,
            r"caddy says: .*Caddyfile:2.*unrecognized directive: rot",
        ),
        (
            "conf:h.cfg",
            HAPROXY.replace("http-request", "http-requst"),
            2,
            r"parsing \[/.*/h\.cfg:18\] : unknown keyword 'http-requst' in 'frontend' section",
        ),
    ],
    ids=["directive", "end", "caddy", "haproxy"],
)
def test_a_configuration_that_is_wrong_is_reported_in_the_servers_words(
    variant: str, written: str, code: int, said: str, tmp_path: Path
) -> None:
    (tmp_path / variant.rpartition(":")[2]).write_text(written)
    done = webdyno("compare", variant, variant, folder=tmp_path)
    assert done.returncode == code
    assert re.search(said, done.stderr)
