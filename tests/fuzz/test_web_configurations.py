"""Damaged configurations of Apache, Caddy and lighttpd: refused, or moved and all stays here."""

import json
import re
from pathlib import Path
from random import Random

import jinja2
import pytest

from fuzz.driver import each_case, no_hang, sweep
from fuzz.moving import HERE, damaged, moved
from webdyno.systems.target import OwnKeys

APACHE = """
Define PORT 8080
ServerRoot "/usr/local/apache2"
LoadModule mpm_event_module modules/mod_mpm_event.so
LoadModule dir_module modules/mod_dir.so
LoadModule proxy_module modules/mod_proxy.so
LoadModule proxy_fcgi_module modules/mod_proxy_fcgi.so
<IfModule !proxy_http_module>
    Include part.conf
</IfModule>
Listen 80
Listen ${PORT}
Listen 443 https
User www-data
ErrorLog "|/usr/bin/logger -n 192.0.2.1"
ForensicLog "|/bin/sh -c true"
LogFormat "%h \\"%r\\" %>s" common
<VirtualHost *:80>
    DocumentRoot public
    CustomLog "|/usr/bin/nc 192.0.2.1 514" common
    <FilesMatch "\\.php$">
        SetHandler "proxy:unix:/run/php/fpm.sock|fcgi://localhost"
    </FilesMatch>
    RewriteMap a "prg:/opt/map.pl"
</VirtualHost>
<VirtualHost *:443 *:8443>
    SSLEngine on
    SSLCertificateFile /etc/a.pem
    SSLCertificateKeyFile /etc/a.key
    SSLSessionCache "shmcb:/run/x(512000)"
    TransferLog /var/log/apache2/x.log
    Include /etc/letsencrypt/options.conf
</VirtualHost>
<IfDefine NOPE>
    Include none.conf
</IfDefine>
"""
CADDY = """
{
    email me@example.org
    log {
        output net 192.0.2.1:514
    }
}
(part) {
    header X {args.0}
}
www.example.org {
    redir https://example.org{uri}
}
example.org, *.example.org {
    root * {$ROOT:/srv}
    import part.conf
    file_server
    log {
        output file /var/log/caddy/a.log
    }
}
:8080 {
    reverse_proxy 127.0.0.1:9000
    log {
        output net udp/192.0.2.1:514
    }
}
http:// {
    respond "up"
    import part one
}
"""
LIGHTTPD = """
server.modules = ( "mod_access", "mod_accesslog", "mod_openssl", "mod_fastcgi" )
var.base = "/srv"
server.document-root = var.base + "/public"
server.port = 80
server.username = "www-data"
server.errorlog = "/var/log/lighttpd/error.log"
accesslog.filename = "|/usr/bin/nc 192.0.2.1 514"
index-file.names = ( "index.php", "index.html" )
include "part.conf"
include_shell "echo server.max-connections = 9"
$SERVER["socket"] == ":443" {
    ssl.engine = "enable"
    ssl.pemfile = "/etc/a.pem"
}
$SERVER["socket"] == "[::]:80" { }
$HTTP["host"] =~ "^www\\.(.*)$" {
    url.redirect = ( "^/(.*)" => "http://%1/$1" )
    accesslog.filename = "/var/log/x"
} else $HTTP["host"] == "b \\"c" {
    server.document-root = "/b"
}
fastcgi.server = ( ".php" => (( "bin-path" => "/usr/bin/php-cgi", "socket" => "/run/p.sock" )) )
"""
PARTS = {"apache": "Timeout 5\n", "caddy": "encode gzip\n", "lighttpd": 'server.tag = "a#b"\n'}
TEXTS = {"apache": APACHE, "caddy": CADDY, "lighttpd": LIGHTTPD}
PIECES = [
    *("{", "}", "(", ")", "\n", "\r\n", " ", '"', "'", "\\", "\\\n", "#", "$", "${", "${A}", "\0"),
    *(
        "<",
        ">",
        "</VirtualHost>\n",
        "<IfModule x>\n",
        "</IfDefine>\n",
        "<IfDefine A>\n",
        "Listen\n",
    ),
    *("Listen 99999999\n", "Listen ::\n", "Include *\n", "Include /\n", "Include part.conf\n"),
    *("Define A\n", "Define A ${A}\n", "SetHandler x\n", "LoadModule\n", "LoadModule a b c\n"),
    *(
        "CustomLog\n",
        "DocumentRoot\n",
        "Alias\n",
        "<Directory\n",
        "<VirtualHost>\n",
        "ServerRoot /\n",
    ),
    *(
        "import Caddyfile\n",
        "import *\n",
        "import /dev/zero\n",
        "{$A}",
        "{$A:",
        "respond\n",
        "log\n",
    ),
    *("import part\n", "{env.A}", "tls internal\n", "bind 0.0.0.0\n", "@a host b\n", ":0 {\n}\n"),
    *(
        'include "lighttpd.conf"\n',
        'include_shell "exit 1"\n',
        "env.A",
        '$SERVER["socket"] == "" {',
    ),
    *("else {", " => ", ":= ", "+= ", "server.port = 0\n", 'server.bind = "/x"\n', "include\n"),
    *(
        "\ufeff",
        "\u20ac",
        "9" * 400,
        "a" * 3000,
        "@webdyno-port@",
        "${settings.x}",
        "{{ 7 * 7 }}",
        "{#",
    ),
]


@sweep(quick=10, whole=80)
@pytest.mark.parametrize("server", TEXTS)
def test_a_damaged_configuration_is_moved_or_refused(
    open_folder: Path, server: str, seed: int, cases: range
) -> None:
    accepted = 0

    def check(case: int) -> None:
        nonlocal accepted
        random = Random(seed * 1_000_003 + case)
        mine, part = damaged(random, TEXTS[server], PIECES, 2), PARTS[server]
        (open_folder / "mine.conf").write_text(mine, encoding="utf-8")
        part = part if random.randrange(4) else damaged(random, part, PIECES, 2)
        (open_folder / "part.conf").write_text(part, encoding="utf-8")
        keys = OwnKeys(
            environment=random.choice([{}, {"A": "80", "PORT": "80"}]),
            root=random.choice([None, None, "."]),
        )
        with no_hang():
            files = moved(open_folder, f"{server}:mine.conf", random, keys, "example.org")
        if files is None:
            return
        accepted += 1
        name = next(it for it in files if it.endswith((".conf", "caddy.json")))
        there = {"host": "127.0.0.1", "port": "18000", "folder": "/run-of-mine"}
        stays_here(server, jinja2.Template(files[name]).render(server=there, needs={}))

    each_case(seed, cases, check)
    assert accepted > len(cases) / 20


def stays_here(server: str, text: str) -> None:
    """Assert that a moved configuration listens at the run's address, and logs into its folder."""
    if server == "caddy":
        config = json.loads(text)
        (only,) = config["apps"]["http"]["servers"].values()
        assert only["listen"] == [HERE]
        writers = [
            it.get("writer", {}) for it in config.get("logging", {}).get("logs", {}).values()
        ]
        assert all(it.get("output") != "net" for it in writers)
        names = [it["filename"] for it in writers if "filename" in it]
        assert all(it.startswith("/run-of-mine/") for it in names)
    elif server == "apache":
        lines = [it.strip() for it in text.splitlines()]
        assert [it for it in lines if it.lower().startswith("listen ")] == [f"Listen {HERE}"]
        logs = [it for it in lines if re.match(r"(?i)(custom|transfer|forensic|error)log\b", it)]
        assert all('"/run-of-mine/' in it or it.endswith("/dev/stderr") for it in logs)
        assert not [it for it in lines if it.lower().startswith("user ")]
    else:
        assert text.count('\nserver.bind = "127.0.0.1"\n') == 1
        assert text.count("\nserver.port = 18000\n") == 1
        sockets = re.findall(r'(?m)^\s*(?:else )?\$SERVER\["socket"\] == "(.*)" \{$', text)
        assert all(it.startswith("/run-of-mine/") or it == HERE for it in sockets)
        logs = re.findall(r'(?m)^\s*accesslog\.filename\s*=\s*"(.*)"', text)
        assert all(it.startswith("/run-of-mine/") for it in logs)
