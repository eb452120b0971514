"""A configuration of nginx, moved: what is measured of it, and that nginx takes it."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.servers.service_graph import certificate
from webdyno.systems.conf.nginx import relocate
from webdyno.systems.conf.passing import elsewhere
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    KEY,
    PORT,
    RelocatedConfig,
    RelocationRequest,
)

HERE = f"{HOST}:{PORT}"
SECURE = "ssl_certificate no.pem; ssl_certificate_key no.pem;"


def wanted(where: Path, text: str, name: str = "nginx.conf", **more: Any) -> RelocationRequest:  # noqa: ANN401
    file = where / name
    file.write_text(text)
    return RelocationRequest(file, **more)


def accepted(folder: Path, it: RelocatedConfig) -> str:
    """Have nginx itself read a moved configuration."""
    run = folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    for each in it.folders:
        (run / each).mkdir(parents=True)
    made = certificate("127.0.0.1", "ec")
    (run / "cert.pem").write_text(made.certificate)
    (run / "key.pem").write_text(made.key)
    text = it.text.replace(CERTIFICATE, f"{run}/cert.pem").replace(KEY, f"{run}/key.pem")
    (run / "nginx.conf").write_text(text.replace(FOLDER, str(run)).replace(PORT, "18099"))
    done = subprocess.run(
        ["nginx", "-t", "-e", "stderr", "-c", run / "nginx.conf"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return it.text


@pytest.mark.parametrize(
    ("text", "more", "there", "gone"),
    [
        # what isn't measured is excluded, and with it what couldn't be moved
        (
            "server { listen 80; } server { listen 443 ssl reuseport; }",
            {},
            [HERE],
            ["443", "reuse"],
        ),
        ("server { listen 80; listen 443 quic reuseport; }", {}, [HERE], ["quic"]),
        ("server { listen 80 proxy_protocol; }", {}, [f"listen {HERE};"], ["proxy_protocol"]),
        # one address for all: each option once, one default
        (
            (
                "server { listen 10.0.0.1:80 default_server; } "
                "server { listen 10.0.0.2:80 default_server backlog=9; } "
                "server { listen 80 backlog=5; }"
            ),
            {},
            [f"{HERE} default_server;", f"{HERE} backlog=9;"],
            ["backlog=5"],
        ),
        (
            "server { listen 80 reuseport; } server { server_name a; listen [::]:80 reuseport; }",
            {},
            [f"{HERE} reuseport;"],
            ["[::]"],
        ),
        # certificates: none named, not readable, and what goes with them
        (
            "server { listen 443 ssl http2; }",
            {"protocol": "h2"},
            [
                f"{HERE} ssl http2;",
                f"ssl_certificate {CERTIFICATE};",
                f"ssl_certificate_key {KEY};",
            ],
            [],
        ),
        (
            (
                "server { listen 443 ssl; ssl_dhparam /etc/letsencrypt/ssl-dhparams.pem; "
                "ssl_trusted_certificate certs/ca.pem; ssl_client_certificate /no/ca.pem; "
                f"ssl_verify_client on; {SECURE} }}"
            ),
            {"protocol": "https"},
            [CERTIFICATE],
            ["dhparam", "trusted", "client_certificate", "verify_client", "no.pem"],
        ),
        (f"server {{ listen 80; listen 443 ssl; {SECURE} }}", {}, [HERE], ["ssl"]),
        # log lines stay here
        (
            (
                "access_log syslog:server=127.0.0.1:5,tag=a combined; error_log syslog:server=x; "
                "server { listen 80; location / { access_log syslog:server=unix:/dev/log; } }"
            ),
            {},
            [f"access_log {FOLDER}/access.log combined;", "error_log stderr;"],
            ["syslog"],
        ),
        ("\ufeffserver { listen 80; }", {}, [HERE], ["\ufeff"]),
        ("stream { server { listen 1; } } http { server { listen 80; } }", {}, [HERE], ["stream"]),
    ],
)
def test_what_is_moved_is_taken_by_nginx(
    tmp_path: Path, text: str, more: dict[str, Any], there: list[str], gone: list[str]
) -> None:
    found = accepted(tmp_path, relocate(wanted(tmp_path, text, **more)))
    for each in there:
        assert each in found
    assert found.count("default_server") <= 1
    for each in gone:
        assert each not in found


@pytest.mark.parametrize(
    ("text", "more", "measured", "note"),
    [
        (
            "server { listen 8081; location /s { stub_status; } } server { listen 3000; root /x; }",
            {},
            "root /x",
            "measured is port 3000, of 8081 and 3000; conf:nginx.conf#PORT",
        ),
        (
            "server { listen 8081; location /s { stub_status; } } server { listen 3000; root /x; }",
            {"port": 8081},
            "stub_status",
            r"measured is port 8081 (its page is the server's status), of 8081 and 3000",
        ),
        (
            "server { listen 80; return 301 https://$host$request_uri; } server { listen 81; }",
            {},
            "",
            "measured is port 81, of 80 and 81",
        ),
        (
            "server { listen 80; location / { return 301 https://$host; } }",
            {},
            "return 301",
            "port 80 (it only redirects), the only one; --set load.protocol=https asks with TLS",
        ),
        (
            "server { listen 80 default_server; return 444; } server { server_name a.b; }",
            {},
            f"listen {HERE} default_server;\n        server_name a.b;",
            "server a.b answers, whatever host is requested",
        ),
        (
            (
                "server { listen 443 ssl default_server; ssl_reject_handshake on; } "
                "server { listen 443 ssl; server_name a.b; }"
            ),
            {"protocol": "https"},
            f"listen {HERE} default_server ssl;\n        server_name a.b;",
            "server a.b answers, whatever host is requested",
        ),
        (
            "server { listen 80; return 444; } server { listen 80; server_name a.b; }",
            {"host": "a.b"},
            f"listen {HERE};\n        server_name a.b;",
            "",
        ),
    ],
)
def test_what_is_measured_serves_pages(
    tmp_path: Path, text: str, more: dict[str, Any], measured: str, note: str
) -> None:
    asked = wanted(tmp_path, text, **more)
    assert measured in relocate(asked).text
    assert note in "\n".join(asked.notes)


def test_a_port_that_nothing_listens_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nginx\.conf#81: it listens on port 80 .*without TLS"):
        relocate(wanted(tmp_path, "server { listen 80; listen 81 ssl; }", port=81))


TEMPLATE = (
    "# ${IN_A_COMMENT}\nmap $host $OWN { default 1; }\nserver {\n  listen ${PORT};\n"
    "  add_header A $OWN$host${scheme};\n  location / { proxy_pass $API_URL; }\n}\n"
)


def test_a_template_is_filled_before_anything_else(tmp_path: Path) -> None:
    given = {"PORT": "8080", "API_URL": "http://127.0.0.1:9"}
    asked = wanted(tmp_path, TEMPLATE, "a.conf.template", given=given)
    found = accepted(tmp_path, relocate(asked))
    assert "proxy_pass http://127.0.0.1:9;" in found
    with pytest.raises(UserError) as reported:
        relocate(wanted(tmp_path, TEMPLATE, "a.conf.template"))
    assert f"PORT ({tmp_path}/a.conf.template:4), API_URL ({tmp_path}/a.conf.template:6)" in str(
        reported.value
    )
    for other in ("IN_A_COMMENT", "OWN", "host", "scheme"):
        assert f"{other} (" not in str(reported.value)


def test_what_is_no_template_has_its_own_variables(tmp_path: Path) -> None:
    text = 'server { listen ${PORT}; set $X 1; return 200 "$X $UNKNOWN ${host}"; }'
    with pytest.raises(UserError, match=r"no value: PORT \(\S*nginx\.conf:1\); give"):
        relocate(wanted(tmp_path, text))
    assert "$X $UNKNOWN ${host}" in relocate(wanted(tmp_path, text, given={"PORT": "80"})).text


def test_includes_are_looked_for_where_nginx_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, home = tmp_path / "etc", tmp_path / "home"
    (system / "snippets").mkdir(parents=True)
    home.mkdir()
    (system / "snippets/php.conf").write_text("add_header X there;")
    monkeypatch.setattr("webdyno.systems.conf.nginx_read.SYSTEM", system)
    text = "server { listen 80; include snippets/php.conf; }"
    asked = wanted(home, text)
    assert "add_header X there;" in relocate(asked).text
    assert asked.notes == [f"includes of this machine: {system}/snippets/php.conf"]
    (home / "snippets").mkdir()
    (home / "snippets/php.conf").write_text("add_header X here;")
    asked = wanted(home, text)
    assert "add_header X here;" in relocate(asked).text
    assert asked.notes == []


def test_parts_and_templates_include_as_in_the_folder_of_the_whole(tmp_path: Path) -> None:
    for folder in ("conf.d", "includes"):
        (tmp_path / folder).mkdir()
    (tmp_path / "includes/cors.conf.template").write_text("add_header X ${X};")
    text = "server { listen 80; include includes/cors.conf; }"
    asked = wanted(tmp_path / "conf.d", text, "default.conf.template", given={"X": "a"})
    assert "add_header X a;" in relocate(asked).text
    assert asked.notes == []
    with pytest.raises(
        UserError, match=f"there is no {tmp_path}/conf.d/includes/cors.conf and no "
    ):
        relocate(wanted(tmp_path / "conf.d", text))


def test_a_relative_root_begins_where_webdyno_is_called(tmp_path: Path) -> None:
    (tmp_path / "public").mkdir()
    (tmp_path / "conf").mkdir()
    asked = wanted(
        tmp_path / "conf", "server { listen 80; root public; alias none; }", folder=tmp_path
    )
    found = relocate(asked)
    assert f"root {tmp_path}/public;" in found.text
    assert "alias none;" in found.text
    assert f"root {tmp_path}/public, not root public" in found.changes


def test_all_hosts_that_nobody_knows_are_named_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"known": ["127.0.0.1"], "10.0.0.1": ["10.0.0.1"]}
    monkeypatch.setattr("webdyno.systems.conf.passing._addresses", lambda host: known.get(host, []))
    text = (
        "upstream relay { server relay:3000;\n server known:80;\n server 10.0.0.1; "
        "server unix:/x; }\nserver { listen 80; location / { proxy_pass http://relay; }\n"
        "location /b { fastcgi_pass web:9000; } location /c { proxy_pass http://$host; } }"
        "server { listen 81; location / { proxy_pass http://elsewhere; } }"
    )
    with pytest.raises(UserError) as reported:
        relocate(wanted(tmp_path, text))
    file = tmp_path / "nginx.conf"
    assert f"machine: relay ({file}:1), web ({file}:5). Say" in str(reported.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server {\n listen 80\n}", r'nginx\.conf:2: directive "listen" is not terminated by ";"'),
        ("server { }\nroot x", r'nginx\.conf:2: directive "root" is not terminated'),
        ("server { listen 80; root 'x; }", r"nginx\.conf:1: unexpected end of file"),
        ("}", r"nginx\.conf:1: unexpected \"}\""),
        ("a {" * 150 + "}" * 150, r"nginx\.conf:1: more than 100 blocks"),
        ("a {" * 20_000 + "}" * 20_000, "blocks are nested too deep"),
        ("include nginx.conf;", "in a circle"),
        ("include /dev/zero;", "nginx.conf:1 includes /dev/zero, which is no regular file"),
    ],
)
def test_what_is_no_configuration_is_refused_with_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        relocate(wanted(tmp_path, text))


def test_files_that_include_each_other_end_in_one_message(tmp_path: Path) -> None:
    for number in range(18):
        following = [f"include {number + each}.conf;" for each in (1, 2, 3)]
        (tmp_path / f"{number}.conf").write_text("\n".join(following))
    for number in (18, 19, 20):
        (tmp_path / f"{number}.conf").touch()
    with pytest.raises(UserError, match="one file too many: more than 2,000"):
        relocate(wanted(tmp_path, "http { include 0.conf; server { listen 80; } }"))


def test_each_line_knows_the_users(tmp_path: Path) -> None:
    (tmp_path / "b.conf").write_text("\nrewrite /a /b;\n")
    text = "events { }\nhttp {\n  server {\n    listen 80;\n    include b.conf;\n  }\n}\n"
    found = relocate(wanted(tmp_path, text))
    lines = dict(zip(found.text.splitlines(), found.origins, strict=True))
    assert str(lines[f"        listen {HERE};"]) == f"{tmp_path}/nginx.conf:4"
    assert str(lines["        rewrite /a /b;"]) == f"{tmp_path}/b.conf:2"
    assert lines["daemon off;"] is None


@pytest.mark.parametrize("file", ["/etc/nginx/nginx.conf", "/etc/nginx/sites-available/default"])
def test_the_distributions_own_files_are_right(tmp_path: Path, file: str) -> None:
    if not Path(file).is_file():
        pytest.skip("nginx isn't installed")
    asked = RelocationRequest(Path(file))
    found = accepted(tmp_path, relocate(asked))
    assert len(re.findall(re.escape(HERE), found)) == 1
    assert asked.notes == []


RED_HAT = """
user nginx;
worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /run/nginx.pid;
include MODULES/*.conf;
events { worker_connections 1024; }
http {
    log_format main '$remote_addr - "$request" $status';
    access_log /var/log/nginx/access.log main;
    types_hash_max_size 4096;
    include mime.types;
    include conf.d/*.conf;
    server {
        listen 80;
        listen [::]:80;
        server_name _;
        root /usr/share/nginx/html;
        include default.d/*.conf;
    }
}
"""


def test_red_hats_own_file_is_right(tmp_path: Path) -> None:
    (tmp_path / "mime.types").write_text("types { text/html html; }")
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/php.conf").write_text("upstream php { server unix:/run/php.sock; }")
    found = accepted(tmp_path, relocate(wanted(tmp_path, RED_HAT)))
    assert "upstream php" in found
    assert "root /usr/share/nginx/html;" in found


def test_other_machines_that_get_requests_are_named(tmp_path: Path) -> None:
    text = (
        "upstream a { server 198.51.100.1:80; server 127.0.0.1; server unix:/x; } "
        "server { listen 80; location / { proxy_pass http://a; } "
        "location /b { proxy_pass http://[2001:db8::1]:81; } }"
    )
    (change,) = elsewhere(relocate(wanted(tmp_path, text)).passed_on)
    assert change.startswith(
        "passes requests on to 198.51.100.1 and [2001:db8::1], which isn't this"
    )
    here = "server { listen 80; location / { proxy_pass http://localhost:81; } }"
    assert elsewhere(relocate(wanted(tmp_path, here)).passed_on) == []
