"""Configurations of lighttpd are moved as lighttpd reads them: includes, programs and all."""

from pathlib import Path
from typing import Any

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.conf.lighttpd import relocate as relocate_lighttpd
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


def moved(folder: Path, text: str, **wanted: Any) -> RelocatedConfig:  # noqa: ANN401
    file = folder / "lighttpd.conf"
    file.write_text('server.document-root = "/srv"\n' + text)
    return relocate_lighttpd(RelocationRequest(file, **wanted))


def again(folder: Path, found: RelocatedConfig) -> RelocatedConfig:
    """Have lighttpd read what was moved, as it would when it is started."""
    return moved(folder, found.text.replace(PORT, "8099").replace("server.document-root", "var.r"))


def test_all_is_on_the_address_and_in_the_folder_of_the_run(tmp_path: Path) -> None:
    found = moved(
        tmp_path,
        'server.username = "x"\nserver.port = 80\nserver.errorlog-use-syslog = "enable"\n'
        'accesslog.filename = "|/usr/bin/logger"\n'
        '$HTTP["host"] == "a" { accesslog.filename = "/var/log/a"\n server.errorlog = "/x" }\n',
        root=tmp_path,
    )
    for gone in ("username", "syslog", "logger", "/var/log", "/x"):
        assert gone not in found.text
    assert found.text.count(f'accesslog.filename = "{FOLDER}/access.log"') == 2
    for line in (
        f'server.bind = "{HOST}"',
        f"server.port = {PORT}",
        f'server.document-root = "{tmp_path}"',
    ):
        assert found.text.count(line) == 1
    again(tmp_path, found)


def test_what_is_included_is_moved_as_well(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d/a.conf").write_text(
        '$SERVER["socket"] == ":8443" { }\n$SERVER["socket"] == "[::]:80" { }\n'
        '$SERVER["socket"] == "0.0.0.0:81" { }\n'
    )
    text = 'include "conf.d/*.conf"\ninclude_shell "echo server.max-connections = 9"\n'
    found = moved(tmp_path, text)
    for gone in ('8443"', "[::]", "0.0.0.0", "include"):
        assert gone not in found.text
    assert found.text.count(f'== "{FOLDER}/') == 3
    assert "server.max-connections = 9" in found.text
    assert any(it.startswith('runs "echo server') for it in found.changes)


@pytest.mark.parametrize("nested", [False, True])
def test_a_command_without_an_end_is_named_with_its_line(tmp_path: Path, nested: bool) -> None:
    endless, place = 'include_shell "yes"\n', "lighttpd.conf:2"
    if nested:
        (tmp_path / "more.conf").write_text(endless)
        endless, place = 'include "more.conf"\n', "more.conf:1"
    with pytest.raises(UserError, match=rf'/{place}: include_shell "yes": .*too much') as reported:
        moved(tmp_path, endless)
    assert "\n" not in str(reported.value)


@pytest.mark.parametrize(
    ("protocol", "port", "is_socket"),
    [("http", None, False), ("http", 81, True), ("https", None, True), ("http", 80, False)],
)
def test_a_socket_of_its_own_is_measured_where_it_is_asked_for(
    tmp_path: Path, protocol: str, port: int | None, is_socket: bool
) -> None:
    text = (
        'server.modules = ("mod_openssl")\n'
        '$SERVER["socket"] == ":443" { ssl.engine = "enable"\n ssl.pemfile = "/no.pem" }\n'
        '$SERVER["socket"] == ":81" { server.name = "b" }\n'
    )
    found = moved(tmp_path, text, protocol=protocol, port=port)
    assert (f'== "{HERE}"' in found.text) == is_socket
    assert f'ssl.pemfile = "{KEY_AND_CERTIFICATE}"' in found.text


def test_conditions_and_texts_stay_as_they_were(tmp_path: Path) -> None:
    text = (
        'server.tag = "a\\"b#c"\n'
        '$HTTP["url"] =~ "x\\"y\\.z$" { server.name = "{" }\n'
        'else $HTTP["url"] == "/# } a" { server.name = "c" }\nelse { server.name = "d" }\n'
    )
    first = moved(tmp_path, text)
    second = again(tmp_path, first)
    kept = ("server.tag", "server.name", "$HTTP", "else", "}")
    shown = [
        [" ".join(it.split()) for it in found.text.splitlines() if it.strip().startswith(kept)]
        for found in (first, second)
    ]
    assert shown[0] == shown[1]
    assert 'server.tag = "a\\"b#c"' in shown[0]


def test_each_variant_starts_programs_of_its_own(tmp_path: Path) -> None:
    found = moved(
        tmp_path,
        'fastcgi.server = ( ".php" => (( "bin-path" => "/usr/bin/php-cgi", '
        '"socket" => "/run/php.sock" )), ".py" => (( "socket" => "/run/py.sock" )) )\n',
    )
    assert "/run/php.sock" not in found.text
    assert '"/run/py.sock"' in found.text
    assert "runs /usr/bin/php-cgi, as bin-path says" in found.changes


def test_variables_are_filled_and_secrets_are_not(tmp_path: Path) -> None:
    given = {"NAME": "mine", "TOKEN": "${env:MINE}"}
    text = 'server.name = env.NAME\nserver.tag = "a" + env.TOKEN\n'
    found = moved(tmp_path, text, given=given, environment=given).text
    assert '"mine"' in found
    assert '"a" + env.TOKEN + ""' in found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("server.port = \n", r"lighttpd says: .*lighttpd\.conf line: \d"),
        ('include "none.conf"\n', "lighttpd says: .*none.conf"),
        ("server.name = env.NOT_GIVEN\n", "lighttpd says: .*NOT_GIVEN"),
        ('ssl.engine = "enable"\n', "nowhere for HTTP without TLS"),
    ],
)
def test_what_lighttpd_refuses_is_reported_in_its_words(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        moved(tmp_path, text)


def test_a_folder_that_was_copied_includes_what_lies_in_it(tmp_path: Path) -> None:
    (tmp_path / "modules.conf").write_text('server.modules = ( "mod_access" )\n')
    gone = f'var.conf_dir = "{tmp_path}/gone"\ninclude conf_dir + "/modules.conf"\n'
    found = moved(tmp_path, gone)
    assert '"mod_access"' in found.text
    assert any(it.startswith(f'var.conf_dir = "{tmp_path}", not') for it in found.changes)
    stays = moved(tmp_path, gone.replace("/gone", ""))
    assert not any("conf_dir" in it for it in stays.changes)


def test_a_profile_of_red_hats_openssl_is_excluded(tmp_path: Path) -> None:
    found = moved(tmp_path, 'ssl.cipher-list = "PROFILE=SYSTEM"\n')
    assert CRYPTO_POLICIES.is_dir() == ("PROFILE" in found.text)


def test_a_relative_root_begins_where_webdyno_is_called(tmp_path: Path) -> None:
    file = tmp_path / "lighttpd.conf"
    file.write_text('server.document-root = "public"\n')
    found = relocate_lighttpd(RelocationRequest(file, folder=tmp_path / "here"))
    assert f'server.document-root = "{tmp_path}/here/public"' in found.text


@pytest.mark.parametrize(
    "text",
    [
        '$HTTP["url"] =^ "/\\" {\nproxy.server += (( \\"host\\" => \\"192.0.2.9\\" ))\n#" {\n}\n',
        'setenv.add-response-header = ( "K\\" => \\"v\\" )\nserver.tag = \\"x" => "v" )\n',
        'server.tag = "a\nserver.name = 1"\n',
    ],
)
def test_a_text_of_several_lines_is_no_settings(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match="would be read as something else"):
        moved(tmp_path, text)
