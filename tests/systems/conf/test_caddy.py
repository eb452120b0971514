"""Caddyfiles are moved: which of their sites is measured, and where their log lines go."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.host.users import server_user
from webdyno.systems.conf.caddy import relocate as relocate_caddy
from webdyno.systems.conf.config_files import ConfigFiles
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    PORT,
    RelocatedConfig,
    RelocationRequest,
)

HERE = f"{HOST}:{PORT}"


def moved(folder: Path, text: str, **wanted: Any) -> RelocatedConfig:  # noqa: ANN401
    file = folder / "Caddyfile"
    file.write_text(text)
    return relocate_caddy(RelocationRequest(file, **wanted))


def caddy(folder: Path, text: str, protocol: str = "http") -> dict[str, Any]:
    file = folder / "Caddyfile"
    file.write_text(text)
    config: dict[str, Any] = json.loads(
        relocate_caddy(RelocationRequest(file, protocol=protocol)).text
    )
    (server,) = config["apps"]["http"]["servers"].values()
    assert server["listen"] == [HERE]
    assert server["automatic_https"] == {"disable": True}
    assert config["admin"]["disabled"]
    assert "automation" not in config["apps"].get("tls", {})
    return config | {"server": server}


def test_caddy_serves_its_main_site_to_whoever_asks(tmp_path: Path) -> None:
    text = "b.org, c.org {\n respond b\n}\na.org {\n respond a\n}\n:8080 {\n respond x\n}\n"
    server = caddy(tmp_path, text)["server"]
    assert "tls_connection_policies" not in server
    hosts = [it.get("match") for it in server["routes"]]
    assert hosts == [[{"host": ["a.org"]}], []]
    assert "respond" not in json.dumps(caddy(tmp_path, ":80 {\n}\n")["server"])
    anyone = caddy(tmp_path, "a.org {\n respond a\n}\n:443 {\n respond all\n}\n")["server"]
    assert anyone["routes"][0]["match"] == [{"host": ["a.org"]}]


def test_caddy_shows_its_certificate_or_the_runs(tmp_path: Path) -> None:
    (tmp_path / "mine.pem").touch()
    text = f"a.org {{\n tls {tmp_path}/mine.pem {tmp_path}/mine.pem\n}}\n"
    (own,) = caddy(tmp_path, text, "h2")["apps"]["tls"]["certificates"]["load_files"]
    assert own["certificate"] == f"{tmp_path}/mine.pem"
    other = caddy(tmp_path, text.replace("mine", "no"), "https")
    (ours,) = other["apps"]["tls"]["certificates"]["load_files"]
    assert ours["certificate"] == CERTIFICATE
    assert other["server"]["protocols"] == ["h1", "h2"]
    with pytest.raises(UserError, match="nowhere for HTTP with TLS"):
        caddy(tmp_path, ":80 {\n}\n", "https")


REDIRECT = "{\n redir https://a.example.org{uri}\n}\n"


@pytest.mark.parametrize(
    ("text", "site"),
    [
        (f"www.a.org {REDIRECT}a.org {{\n root * /srv\n file_server\n}}\n", "a.org"),
        (f"a.org {{\n root * /srv\n file_server\n}}\nwww.a.org {REDIRECT}", "a.org"),
        ("status.a.org {\n respond up\n}\na.org {\n reverse_proxy :9000\n}\n", "a.org"),
        ("long.a.org {\n abort\n}\na.org {\n respond up\n}\n", "a.org"),
        ("long.a.org {\n reverse_proxy :1\n}\na.org {\n php_fastcgi :2\n}\n", "a.org"),
        (f"www.a.org {REDIRECT}", "www.a.org"),
    ],
)
def test_a_site_that_serves_something_is_measured_before_one_that_redirects(
    tmp_path: Path, text: str, site: str
) -> None:
    notes: list[str] = []
    changes = moved(tmp_path, text, notes=notes).changes
    assert f"{site} answers, whatever host is requested" in changes
    reported = [it for it in notes if it.startswith(f"measured is site {site}, of ")]
    assert len(reported) == (text.count("a.org {") > 1)


def test_a_port_that_only_redirects_is_not_the_one_measured(tmp_path: Path) -> None:
    wanted: list[str] = []
    text = "http:// {\n redir https://{host}{uri}\n}\na.org {\n respond a\n}\n"
    assert '"body": "a"' in moved(tmp_path, text, notes=wanted).text
    assert wanted == [
        "measured is port 443, of 443 and 80; conf:Caddyfile#PORT measures another one"
    ]


def test_the_site_that_is_asked_for_answers(tmp_path: Path) -> None:
    text = "a.org {\n respond a\n}\n*.b.org:8080 {\n respond b\n}\n"
    assert '"body": "b"' not in moved(tmp_path, text, host="a.org").text
    assert '"body": "b"' in moved(tmp_path, text, port=8080, host="x.b.org").text
    with pytest.raises(UserError, match=r"no site c\.org; those there are a\.org"):
        moved(tmp_path, text, host="c.org")


def test_no_log_line_leaves_the_folder_of_the_run(tmp_path: Path) -> None:
    log = "log {\n output net udp/192.0.2.1:514\n}\n"
    found = moved(tmp_path, f"{{\n{log}}}\n:80 {{\n{log} respond a\n}}\n")
    assert "192.0.2.1" not in found.text
    writers = [it.get("writer") for it in json.loads(found.text)["logging"]["logs"].values()]
    assert writers == [None, {"output": "file", "filename": f"{FOLDER}/access.log"}]
    assert "log RUN/access.log, not net udp/192.0.2.1:514" in found.changes


def test_a_site_without_files_has_no_root(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="serves no files there; leave --root out"):
        moved(tmp_path, ":80 {\n respond up\n}\n", root=tmp_path)


def test_variables_without_a_value_are_named(tmp_path: Path) -> None:
    text = "{$SITE} {\n root * {$ROOT:/srv}\n}\n"
    with pytest.raises(UserError, match=r"caddy says: .*SITE \(.*/Caddyfile:1\); give each one"):
        moved(tmp_path, text)
    assert "empty, since they have no value: MORE" in " ".join(
        moved(tmp_path, ":80 {\n {$MORE}\n respond a\n}\n").changes
    )
    assert (
        '"body": "hello"'
        in moved(tmp_path, ":80 {\n respond {$SAYS}\n}\n", environment={"SAYS": "hello"}).text
    )


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"Caddyfile": "import /dev/zero\n"}, "no regular file"),
        ({"Caddyfile": "import Caddyfile\n"}, "in a circle"),
        ({str(n): f"import {n + 1}\n" * 3 for n in range(18)}, "too many"),
        ({"Caddyfile": "import none\n"}, r"caddy says: .*none"),
        (
            {"Caddyfile": "a.{$TOP} {\n proxy / a:80\n}\n"},
            r"Caddyfile:2.*this is caddy .*TOP \(.*Caddyfile:1\); give each one",
        ),
        ({"Caddyfile": ":80 {\n fil_server\n}\n"}, r"Caddyfile:2.*this is caddy .*\(image:NAME\)"),
        ({"Caddyfile": "{\n}\n"}, "has no site"),
    ],
)
def test_a_caddyfile_that_cannot_be_read_is_reported_soon(
    tmp_path: Path, files: dict[str, str], says: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(UserError, match=says):
        relocate_caddy(RelocationRequest(tmp_path / next(iter(files))))


def test_imports_are_read_and_filled(tmp_path: Path) -> None:
    (tmp_path / "sites").mkdir()
    (tmp_path / "sites/a").write_text(":80 {\n import answer {$WORD}\n}\n")
    text = "(answer) {\n respond {args.0}\n}\nimport sites/*\n"
    assert '"body": "up"' in moved(tmp_path, text, environment={"WORD": "up"}).text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's servers run as somebody else")
def test_a_file_that_only_its_owner_can_read_is_read_but_no_include_like_that(
    open_folder: Path,
) -> None:
    (open_folder / "part").write_text("respond up\n")
    file = open_folder / "Caddyfile"
    file.write_text(":80 {\n import part\n}\n")
    file.chmod(0o600)
    user = server_user()
    files = ConfigFiles(user, None)
    wanted = RelocationRequest(file, user=user, files=files)
    assert '"body": "up"' in relocate_caddy(wanted).text
    (open_folder / "part").chmod(0o600)
    with pytest.raises(UserError, match=r"part, which can't be read by"):
        relocate_caddy(RelocationRequest(file, user=user, files=ConfigFiles(user, None)))
