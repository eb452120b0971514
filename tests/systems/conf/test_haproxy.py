"""A configuration of HAProxy, moved: what is measured of it, and that HAProxy takes it."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.servers.service_graph import certificate
from webdyno.systems.conf.haproxy import relocate
from webdyno.systems.conf.passing import elsewhere
from webdyno.systems.conf.relocation import (
    CRYPTO_POLICIES,
    FOLDER,
    HOST,
    KEY_AND_CERTIFICATE,
    PORT,
    RelocatedConfig,
    RelocationRequest,
)

HERE = f"{HOST}:{PORT}"
DEFAULTS = "defaults\n mode http\n timeout connect 5s\n timeout client 5s\n timeout server 5s\n"
BACKEND = "backend b\n server s 127.0.0.1:1\n"
FRONT = f"{DEFAULTS}frontend a\n"
WEB = "frontend web\n bind :8080\n default_backend b\n"


def wanted(folder: Path, text: str, **more: Any) -> RelocationRequest:  # noqa: ANN401
    file = folder / "haproxy.cfg"
    file.write_text(text)
    return RelocationRequest(file, **more)


def accepted(folder: Path, it: RelocatedConfig, environment: Mapping[str, str]) -> str:
    """Have HAProxy itself read a moved configuration."""
    made = certificate("127.0.0.1", "ec")
    (folder / "both.pem").write_text(made.certificate + made.key)
    text = it.text.replace(KEY_AND_CERTIFICATE, f"{folder}/both.pem")
    (folder / "moved.cfg").write_text(text.replace(FOLDER, str(folder)).replace(PORT, "18098"))
    done = subprocess.run(
        ["haproxy", "-c", "-f", folder / "moved.cfg"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return it.text


def test_it_has_as_many_connections_as_files_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (1_024, 20_000))
    rest = f"{FRONT} bind :80\n maxconn 30000\n default_backend b\n{BACKEND}"
    found = relocate(wanted(tmp_path, f"global\n maxconn 10000\n{rest}"))
    assert "maxconn 9900, not maxconn 10000" in found.changes
    assert "maxconn 30000" in found.text, "of a frontend, which needs no files of its own"
    assert "maxconn 900\n" in relocate(wanted(tmp_path, f"global\n maxconn 900\n{rest}")).text


@pytest.mark.parametrize(
    ("text", "more", "there", "gone"),
    [
        (
            (
                "global\n  chroot /x  # a comment\n  stats socket /run/x\n  log 10.0.0.1:5 local0\n"
                f"{DEFAULTS} log global\nfrontend a\n bind :80,:81\n bind :80\n bind :1 ssl crt no"
                f"\n default_backend b\npeers p\n peer a 10.0.0.1:1024\n{BACKEND}"
            ),
            {},
            [f"bind {HERE}\n", "log ring@webdyno local0", "log global", "server s 127.0.0.1:1"],
            ["chroot", "stats", "peer", "10.0.0.1", "ssl"],
        ),
        (
            (f"{FRONT} bind :80\n bind :443 ssl crt no.pem alpn h2\n default_backend b\n{BACKEND}"),
            {"protocol": "h2"},
            [f"bind {HERE} ssl crt {KEY_AND_CERTIFICATE} alpn h2\n"],
            ["no.pem"],
        ),
        (
            f"{FRONT} bind :443 ssl\n default_backend b\n{BACKEND}",
            {"protocol": "https"},
            [f"bind {HERE} ssl crt {KEY_AND_CERTIFICATE}\n"],
            [],
        ),
        (
            (
                f"{FRONT} bind :443 ssl crt-list /no ca-file /no2 verify required "
                f"interface eth0 accept-proxy\n default_backend b\n{BACKEND}"
            ),
            {"protocol": "https"},
            [f"bind {HERE} ssl crt {KEY_AND_CERTIFICATE}\n"],
            ["/no"],
        ),
        # quotes, and the variables in them, stay as they are
        (
            (
                'global\n log "${SYSLOG}" local0 "${LEVEL}"\n'
                f"{FRONT} bind ${{BIND}}\n default_backend b\nbackend b\n"
                ' server s "$WHERE"\n http-request set-header A "a b ${LEVEL} \\"c\\""\n'
            ),
            {
                "given": {
                    "SYSLOG": "127.0.0.1",
                    "LEVEL": "info",
                    "BIND": ":2375",
                    "WHERE": "127.0.0.1:1",
                }
            },
            [
                'log ring@webdyno local0 "${LEVEL}"',
                f"bind {HERE}\n",
                ' server s "$WHERE"',
                '"a b ${LEVEL} \\"c\\""',
            ],
            ["SYSLOG"],
        ),
        (
            f'{FRONT} bind *:"$PORT"\n default_backend b\n{BACKEND}',
            {"given": {"PORT": "8080"}},
            [f"bind {HERE}\n"],
            [],
        ),
        # nothing of it speaks with other machines
        (
            (
                f"{DEFAULTS} email-alert mailers m\n email-alert from a@b.c\n"
                f" email-alert to a@b.c\n{WEB}{BACKEND}"
                " stick-table type ip size 1m expire 9s store gpc0 peers p\n"
                "peers p\n peer a 10.0.0.1:1\nmailers m\n mailer x 10.0.0.2:25\n"
                "ring r\n server y 10.0.0.3:514\n"
            ),
            {},
            ["stick-table type ip size 1m expire 9s store gpc0\n"],
            ["10.0.0", "email", "peers"],
        ),
        (
            f"{DEFAULTS}{WEB}{BACKEND} errorfile 503 /usr/local/etc/haproxy/errors/503.http\n",
            {},
            [],
            ["errorfile"],
        ),
        # addresses of servers are those that it names
        (
            (
                "global\n server-state-base /tmp\n"
                f"{DEFAULTS} load-server-state-from-file local\n{WEB}{BACKEND}"
                " server-state-file-name x\n"
            ),
            {},
            [],
            ["server-state"],
        ),
        # who passes to a section by its name needs it
        (
            (
                f"{DEFAULTS}{WEB}listen b\n bind :9 interface x\n server s 127.0.0.1:1\n"
                "listen other\n bind :10\n server s 127.0.0.1:1\n"
            ),
            {"port": 8080},
            ["listen b\n server"],
            ["listen other", "interface"],
        ),
    ],
)
def test_what_is_moved_is_taken_by_haproxy(
    tmp_path: Path, text: str, more: dict[str, Any], there: list[str], gone: list[str]
) -> None:
    asked = wanted(tmp_path, text, **more)
    found = accepted(tmp_path, relocate(asked), asked.given)
    assert found.count(HERE) == 1
    for each in there:
        assert each in found
    for each in gone:
        assert each not in found


STATISTICS = "frontend stats\n bind :8404\n stats enable\n stats uri /stats\n"
SQL = "frontend sql\n mode tcp\n bind :3306\n default_backend b\n"
REDIRECT = "frontend r\n bind :80\n redirect scheme https if !{ ssl_fc }\n default_backend b\n"
DENY = "frontend d\n bind :80\n http-request deny\n"
SOMETIMES = "frontend d\n bind :80\n http-request deny if { path /x }\n default_backend b\n"


@pytest.mark.parametrize(
    ("text", "port", "section", "note"),
    [
        (STATISTICS + WEB, None, "frontend web", "measured is port 8080, of 8404 and 8080"),
        (SQL + WEB, None, "frontend web", "measured is port 8080, of 3306 and 8080"),
        (REDIRECT + WEB, None, "frontend web", "measured is port 8080, of 80 and 8080"),
        (DENY + WEB, None, "frontend web", "measured is port 8080, of 80 and 8080"),
        (SOMETIMES + WEB, None, "frontend d", "measured is port 80, of 80 and 8080"),
        (STATISTICS, None, "frontend stats", "port 8404 (its pages are statistics), the only one"),
        (STATISTICS + WEB, 8404, "frontend stats", "measured is port 8404 (its pages are"),
        (
            DENY + REDIRECT,
            None,
            "frontend d",
            "measured is port 80 (it refuses requests), the only",
        ),
        (DENY + SOMETIMES.replace("frontend d", "frontend e"), None, "frontend e", ""),
    ],
)
def test_what_is_measured_serves_pages(
    tmp_path: Path, text: str, port: int | None, section: str, note: str
) -> None:
    asked = wanted(tmp_path, DEFAULTS + text + BACKEND, port=port)
    found = relocate(asked).text
    before, _, after = found.partition(section + "\n")
    assert HERE not in before
    assert HERE in after
    assert found.count("frontend") == 1
    assert note in "\n".join(asked.notes)


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        ("global\n daemon\n", {}, "has no frontend and no listen, so it serves nothing"),
        (f"{FRONT} bind unix@/run/x\n", {}, "listens nowhere for HTTP without TLS"),
        (f"{DEFAULTS}{WEB}", {"protocol": "h2"}, "listens nowhere for HTTP with TLS"),
        (f"{DEFAULTS}{WEB}", {"port": 81}, "haproxy.cfg#81: it listens on port 8080"),
        (f"{DEFAULTS}{WEB}", {"root": Path("/srv")}, "leave --root out"),
        (
            (
                f'{FRONT} bind "${{A}}":80\n# "${{NO}}"\n log $B local0\n'
                ' http-request set-header X "$C$HAPROXY_LOCALPEER${D-x}"\nfrontend b\n bind $A\n'
            ),
            {},
            r"no value: A \(.*/haproxy\.cfg:7\), B \(.*:9\), C \(.*:10\); give each one, as in --",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(
    tmp_path: Path, text: str, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(UserError, match=says):
        relocate(wanted(tmp_path, text, **more))


def test_each_line_knows_the_users(tmp_path: Path) -> None:
    found = relocate(wanted(tmp_path, f"# mine\n{DEFAULTS}{STATISTICS}{WEB}{BACKEND}"))
    lines = dict(zip(found.text.splitlines(), found.origins, strict=False))
    assert str(lines[f"    bind {HERE}"]) == f"{tmp_path}/haproxy.cfg:12"
    assert str(lines[" default_backend b"]) == f"{tmp_path}/haproxy.cfg:13"


RED_HAT = """
global
    log         127.0.0.1 local2
    chroot      /var/lib/haproxy
    pidfile     /var/run/haproxy.pid
    maxconn     4000
    user        haproxy
    group       haproxy
    daemon
    stats socket /var/lib/haproxy/stats
defaults
    mode                    http
    log                     global
    option                  httplog
    option forwardfor       except 127.0.0.0/8
    timeout connect         10s
    timeout client          1m
    timeout server          1m
frontend main
    bind *:5000
    acl url_static       path_beg       -i /static /images
    use_backend static          if url_static
    default_backend             app
backend static
    balance     roundrobin
    server      static 127.0.0.1:4331 check
backend app
    server  app1 127.0.0.1:5001 check
"""


def test_red_hats_own_file_is_right(tmp_path: Path) -> None:
    found = accepted(tmp_path, relocate(wanted(tmp_path, RED_HAT)), {})
    assert f"bind {HERE}" in found
    assert "log ring@webdyno local2" in found


def test_the_folder_next_to_it_is_read_as_red_hats_unit_does(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/b.cfg").write_text(WEB)
    (tmp_path / "conf.d/a.cfg").write_text(
        f"global\n ssl-default-bind-ciphers PROFILE=SYSTEM\n{BACKEND}"
    )
    (tmp_path / "conf.d/c.cfg.rpmnew").write_text("nonsense\n")
    asked = wanted(tmp_path, DEFAULTS)
    text = accepted(tmp_path, relocate(asked), {})
    assert text.index("backend b") < text.index("frontend web")
    assert [Path(it.split()[1]).name for it in asked.notes[:2]] == ["a.cfg", "b.cfg"]
    assert CRYPTO_POLICIES.is_dir() == ("PROFILE" in text)


def test_debians_own_file_with_a_frontend_is_right(tmp_path: Path) -> None:
    debians = Path("/etc/haproxy/haproxy.cfg")
    if not debians.is_file():
        pytest.skip("HAProxy isn't installed")
    found = relocate(wanted(tmp_path, debians.read_text() + WEB + BACKEND))
    assert "errorfile 503 /etc/haproxy/errors/503.http" in accepted(tmp_path, found, {})


def test_other_machines_that_get_requests_are_named(tmp_path: Path) -> None:
    servers = (
        " server t 198.51.100.1:80\n server u unix@/run/x\n server v ipv4@203.0.113.2:80 check\n"
    )
    (change,) = elsewhere(relocate(wanted(tmp_path, DEFAULTS + WEB + BACKEND + servers)).passed_on)
    assert change.startswith("passes requests on to 198.51.100.1 and 203.0.113.2, which isn't this")
    assert elsewhere(relocate(wanted(tmp_path, DEFAULTS + WEB + BACKEND)).passed_on) == []
