"""Configurations of Apache are moved: modules, layouts of distributions, logs and programs."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.conf import apache_lines, apache_modules
from webdyno.systems.conf.apache import relocate as relocate_apache
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    MODULES,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    port_of,
)

HERE = f"{HOST}:{PORT}"


@pytest.fixture(autouse=True)
def _debians_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have all tests see the same modules, whatever this machine has."""
    folder = tmp_path / "of-this-machine"
    folder.mkdir()
    for module in apache_modules.DIRECTIVES.keys() - apache_modules.BUILT_IN:
        (folder / f"mod_{module}.so").touch()
    (folder / "libphp8.2.so").touch()
    monkeypatch.setattr(apache_modules, "FOLDERS", (folder,))
    monkeypatch.setattr("webdyno.systems.conf.apache.SYSTEM", tmp_path / "no-debian")


def whole(
    folder: Path,
    text: str,
    root: Path | None = None,
    protocol: str = "http",
    **given: str,
) -> RelocatedConfig:
    file = folder / "httpd.conf"
    file.write_text(text)
    return relocate_apache(RelocationRequest(file, root, protocol, given=given, folder=folder))


def apache(folder: Path, text: str, root: Path | None = None, **more: str) -> str:
    return whole(folder, text, root, **more).text


def loaded(text: str) -> set[str]:
    lines = text.splitlines()
    return {it.split()[1] for it in lines if it.lstrip().startswith("LoadModule")}


def test_apache_serves_the_measured_hosts_alone(tmp_path: Path) -> None:
    moved = apache(
        tmp_path,
        "Listen 80\nListen 443 https\nUser www-data\nPidFile /run/x\n<VirtualHost *:80>\n"
        '  DocumentRoot "/old"\n  CustomLog "|rotate /x" common\n</VirtualHost>\n'
        "<VirtualHost *:443>\n  SSLEngine on\n</VirtualHost>\n<VirtualHost *>\n</VirtualHost>\n",
        tmp_path,
    )
    assert moved.count("Listen") == 1
    assert f"Listen {HERE}" in moved
    assert "SSLEngine" not in moved
    assert "User" not in moved
    assert moved.count(f"<VirtualHost *:{PORT}>") == 2
    assert f'CustomLog "{FOLDER}/access.log" common' in moved
    assert f'DocumentRoot "{tmp_path}"' in moved
    assert "/old" not in moved


def test_apache_has_its_includes_inside(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more/a.conf").write_text(
        "LoadModule dir_module mod_dir.so\nErrorLog ${APACHE_LOG_DIR}/e\n"
    )
    moved = whole(tmp_path, "Include more/*.conf\nIncludeOptional none/*.conf\nTimeout \\\n  5\n")
    assert f"LoadModule dir_module {MODULES}/mod_dir.so" in moved.text
    assert "ErrorLog /dev/stderr" in moved.text
    assert "ErrorLog /dev/stderr, not ErrorLog RUN/e" in moved.changes
    assert loaded(moved.text) == {"dir_module"}
    lines = moved.text.splitlines()
    origins = {text: origin for text, origin in zip(lines, moved.origins, strict=True) if origin}
    assert str(origins["Timeout 5"]) == f"{tmp_path}/httpd.conf:3"
    assert str(origins["ErrorLog /dev/stderr"]) == f"{tmp_path}/more/a.conf:2"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Include none.conf", r"httpd\.conf:1 includes none\.conf, but there is no "),
        ("Include none.d/*.conf", r"httpd\.conf:1 includes none\.d/\*\.conf, and there is no "),
        ("Include httpd.conf", "include each other in a circle"),
        ("Listen 443 https\n<VirtualHost *:443>\n</VirtualHost>", "nowhere for HTTP without TLS"),
        ("Listen\nListen 443 https", "nowhere for HTTP without TLS"),
        ("Timeout 5\n<IfDefine A>\nTimeout 6", r":2: <IfDefine> has no end"),
        ("</IfModule>", r":1: </IfModule> closes no <IfModule>"),
        ("Listen ${PORT}\nInclude ${MORE}", r"PORT \(.*:1\), MORE \(.*:2\).*--env PORT=VALUE"),
    ],
)
def test_an_apache_that_cannot_be_measured_is_reported(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(UserError, match=says):
        apache(tmp_path, text)


PHP_FPM = 'SetHandler "proxy:unix:/run/php/fpm.sock|fcgi://localhost"'


@pytest.mark.parametrize(
    ("line", "modules"),
    [
        (PHP_FPM, ["proxy_module", "proxy_fcgi_module", "mpm_event_module"]),
        ("SetHandler application/x-httpd-php", ["php_module", "mpm_prefork_module"]),
        ("AddType application/x-httpd-php .php", ["php_module"]),
        ("ProxyPass / http://127.0.0.1:9000/", ["proxy_http_module"]),
        ("<Proxy *>\n</Proxy>", ["proxy_module"]),
        ("RewriteRule ^ ws://127.0.0.1:9000/ [L,P]", ["proxy_wstunnel_module"]),
        ("RewriteRule x y [H=cgi-script]", ["cgid_module"]),
        ("ProxyPass / balancer://a", ["lbmethod_byrequests_module", "slotmem_shm_module"]),
        ("AuthType Basic", ["auth_basic_module", "authn_file_module"]),
        ("Satisfy any", ["access_compat_module"]),
        (f"<IfModule proxy_fcgi_module>\n{PHP_FPM}\n</IfModule>", ["proxy_fcgi_module"]),
    ],
)
def test_a_part_of_a_configuration_has_the_modules_that_it_needs(
    tmp_path: Path, line: str, modules: list[str]
) -> None:
    moved = apache(tmp_path, f"<VirtualHost *:80>\n{line}\n</VirtualHost>\n")
    assert loaded(moved) >= {*modules, "dir_module"}
    assert moved.index("proxy_module") < moved.index("proxy_fcgi") if "proxy_fcgi" in moved else 1


@pytest.mark.parametrize(
    "text",
    [
        "SetHandler application/x-httpd-ea-php81",
        "AddHandler no-such-handler .x",
        f"LoadModule dir_module mod_dir.so\n{PHP_FPM}",
        "LoadModule dir_module mod_dir.so\nAddType application/x-httpd-php .php",
        "LoadModule dir_module mod_dir.so\nRewriteRule x y [H=cgi-script]",
    ],
)
def test_a_handler_that_nobody_serves_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UserError, match=r"httpd\.conf:\d: the handler .* as their source"):
        apache(tmp_path, text)


@pytest.mark.parametrize(
    "text",
    [
        "SetHandler none",
        "LoadModule cgid_module mod_cgid.so\nAddHandler cgi-script .cgi",
        "Action mine /cgi-bin/mine\nAddHandler mine .mine",
    ],
)
def test_a_handler_that_is_served_is_kept(tmp_path: Path, text: str) -> None:
    assert text.splitlines()[-1] in apache(tmp_path, text)


def test_modules_that_this_machine_lacks_are_named_together(tmp_path: Path) -> None:
    (tmp_path / "of-this-machine/libphp8.2.so").unlink()
    (tmp_path / "of-this-machine/mod_lua.so").unlink()
    text = "LoadModule a_module mod_a.so\nLoadModule php_module /opt/libphp.so\n"
    with pytest.raises(
        UserError, match=r":1 loads a_module and .*:2 loads php_module; install lib"
    ):
        apache(tmp_path, text)
    with pytest.raises(UserError, match=r":2 needs lua_module"):
        apache(tmp_path, "Listen 80\nLuaScope once\n")


def test_modules_of_another_layout_are_those_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "mine.so").touch()
    text = (
        "ServerRoot /no/where\nLoadModule log_config_module modules/mod_log_config.so\n"
        "LoadModule dir_module /no/where/modules/mod_dir.so\n"
        "LoadModule systemd_module modules/mod_systemd.so\n"
        f"LoadModule mine_module {tmp_path}/mine.so\n"
        "LoadModule mime_module modules/mod_mime.so\nTypesConfig conf/mime.types\n"
    )
    moved = whole(tmp_path, text)
    assert f"LoadModule dir_module {MODULES}/mod_dir.so" in moved.text
    assert "<IfModule !log_config_module>" in moved.text
    assert "systemd" not in moved.text
    assert 'TypesConfig "/etc/mime.types"' in moved.text
    assert any(it.startswith(f"runs {tmp_path}/mine.so") for it in moved.changes)
    assert "/no/where" not in " ".join(moved.start)


def test_types_are_found_also_where_the_module_comes_later(tmp_path: Path) -> None:
    moved = apache(tmp_path, "LoadModule mime_module mod_mime.so\n")
    assert moved.index("TypesConfig /etc/mime.types") > moved.index("LoadModule mime_module")


def test_the_layout_of_red_hat_is_read_as_a_whole(tmp_path: Path) -> None:
    for folder in ("conf", "conf.d", "conf.modules.d"):
        (tmp_path / folder).mkdir()
    (tmp_path / "conf.modules.d/00-mpm.conf").write_text(
        "LoadModule mpm_event_module modules/mod_mpm_event.so\n"
    )
    (tmp_path / "conf.modules.d/01-cgi.conf").write_text(
        "<IfModule mpm_event_module>\nLoadModule cgid_module modules/mod_cgid.so\n</IfModule>\n"
        "<IfModule mpm_prefork_module>\nLoadModule cgi_module modules/mod_cgi.so\n</IfModule>\n"
    )
    (tmp_path / "conf.d/ssl.conf").write_text(
        "Listen 443 https\nSSLPassPhraseDialog exec:/no/where\nSSLCipherSuite PROFILE=SYSTEM\n"
        "SSLSessionCache shmcb:/run/httpd/sslcache(512000)\n"
    )
    moved = apache(
        tmp_path / "conf",
        "ServerRoot /no/where\nListen 80\nInclude conf.modules.d/*.conf\n"
        "IncludeOptional conf.d/*.conf\n<IfModule userdir_module>\nInclude none.conf\n</IfModule>\n"
        "<IfModule mime_magic_module>\nMIMEMagicFile conf/magic\n</IfModule>\n",
    )
    assert loaded(moved) == {"mpm_event_module", "cgid_module"}
    assert f"SSLSessionCache shmcb:{FOLDER}/sslsessioncache(512000)" in moved
    for gone in ("PassPhrase", "none.conf", "/run", "MIMEMagic"):
        assert gone not in moved


def test_modules_that_other_distributions_load_by_files_are_this_machines(tmp_path: Path) -> None:
    moved = whole(tmp_path, "Include conf.modules.d/*.conf\nTimeout 5\n")
    said = "excluded: Include conf.modules.d/*.conf (this machine's modules instead)"
    assert said in moved.changes
    assert "Timeout 5" in moved.text


def test_what_is_defined_has_a_limit(tmp_path: Path) -> None:
    """Forty lines would otherwise define a text of a terabyte."""
    lines = ["Define A0 aaaaaaaaaa", *(f"Define A{n + 1} ${{A{n}}}${{A{n}}}" for n in range(40))]
    with pytest.raises(UserError, match=r"A\d+: what is defined has more than 1,000,000"):
        apache(tmp_path, "\n".join(lines) + "\n")


def test_variables_are_filled_from_the_configuration_and_from_what_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.conf").write_text("Timeout ${SECONDS}\n")
    moved = apache(
        tmp_path,
        'Define MORE "a.conf"\nListen ${PORT}\nInclude ${MORE}\nDocumentRoot ${ROOT}\n'
        "<IfDefine MORE>\nKeepAlive On\n</IfDefine>\n<IfDefine NONE>\nInclude b.conf\n</IfDefine>\n"
        'SetEnv TOKEN "${TOKEN}"\nRewriteRule x ${map:$1}\n',
        PORT="8080",
        SECONDS="7",
        ROOT="/srv",
        TOKEN="${env:MINE}",  # noqa: S106 (the name of a secret, and none)
    )
    assert f"Listen {HERE}" in moved
    for line in ("Timeout 7", "DocumentRoot /srv", "KeepAlive On", 'SetEnv TOKEN "${TOKEN}"'):
        assert line in moved
    assert "b.conf" not in moved


def test_relative_paths_begin_where_webdyno_is_called(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    file = tmp_path / "conf.d/site.conf"
    file.write_text(
        'DocumentRoot public\n<Directory "public">\n</Directory>\nAlias /a "b c"\n'
        "AuthUserFile users\n<Directory /x>\n</Directory>\n"
    )
    moved = relocate_apache(RelocationRequest(file, folder=tmp_path)).text
    for line in (
        f'DocumentRoot "{tmp_path}/public"',
        f'<Directory "{tmp_path}/public">',
        f'Alias /a "{tmp_path}/b c"',
        f'AuthUserFile "{tmp_path}/users"',
        "<Directory /x>",
    ):
        assert line in moved


def test_what_writes_runs_or_asks_other_machines_is_moved_reported_or_excluded(
    tmp_path: Path,
) -> None:
    moved = whole(
        tmp_path,
        'ForensicLog "|/bin/sh -c true"\nGlobalLog /var/log/g common\nErrorLog syslog:local1\n'
        "CacheRoot /var/cache/a\nRewriteMap a prg:/opt/map.pl\nSSLUseStapling on\nMDomain a.org\n"
        'ExtFilterDefine x cmd="/bin/sed s/a/b/"\nHeartbeatAddress 239.0.0.1:27999\n'
        'CustomLog "||/usr/bin/send 10.0.0.1" combined\n',
    )
    for gone in ("/bin/sh", "/var/", "syslog", "Stapling", "MDomain", "239.0", "10.0.0.1"):
        assert gone not in moved.text
    assert f'ForensicLog "{FOLDER}/forensic.log"' in moved.text
    assert "cache" in moved.folders
    reported = [it for it in moved.changes if it.startswith("runs ")]
    assert [it.split(", as ")[0] for it in reported] == ["runs /opt/map.pl", "runs /bin/sed s/a/b/"]


def test_a_host_that_is_not_measured_needs_none_of_its_includes(tmp_path: Path) -> None:
    text = (
        "<VirtualHost *:80>\n</VirtualHost>\n<VirtualHost *:443>\nSSLEngine on\n"
        "Include /no/letsencrypt/options.conf\n</VirtualHost>\n"
    )
    assert "options.conf" not in apache(tmp_path, text)
    with pytest.raises(UserError, match=r"options\.conf"):
        apache(tmp_path, text, protocol="https")


def test_a_host_without_a_certificate_shows_the_runs(tmp_path: Path) -> None:
    text = "<VirtualHost *:443>\nSSLEngine on\n</VirtualHost>\n"
    assert f'SSLCertificateFile "{CERTIFICATE}"' in apache(tmp_path, text, protocol="https")


def test_where_debians_apache_is_set_up_its_modules_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enabled = tmp_path / "etc/mods-enabled"
    enabled.mkdir(parents=True)
    (enabled / "mpm_worker.load").write_text("LoadModule mpm_worker_module mod_mpm_worker.so\n")
    (enabled / "mpm_worker.conf").write_text("ThreadsPerChild 3\n")
    monkeypatch.setattr("webdyno.systems.conf.apache.SYSTEM", tmp_path / "etc")
    moved = whole(tmp_path, f"<VirtualHost *:80>\n{PHP_FPM}\n</VirtualHost>\n")
    expected = {"mpm_worker_module", "proxy_module", "proxy_fcgi_module"}
    assert loaded(moved.text) == expected
    assert "ThreadsPerChild 3" in moved.text
    assert any("mods-enabled (there is no LoadModule)" in it for it in moved.changes)


PAGES = "<VirtualHost *:80>\nServerName a.org\nDocumentRoot /a\n</VirtualHost>\n"


@pytest.mark.parametrize(
    "refusing",
    [
        "Redirect permanent / https://b.org/",
        'RedirectMatch 301 "^/(.*)$" https://b.org/$1',
        "RewriteRule ^ https://%{SERVER_NAME}%{REQUEST_URI} [END,NE,R=permanent]",
        "<Location />\nRequire all denied\n</Location>",
        "Redirect 404 /",
    ],
)
def test_a_first_host_that_only_redirects_or_refuses_gives_way(
    tmp_path: Path, refusing: str
) -> None:
    other = f"<VirtualHost *:80>\nServerName b.org\n{refusing}\n</VirtualHost>\n"
    moved = whole(tmp_path, other + PAGES + "Timeout 5\n")
    assert moved.text.index("a.org") < moved.text.index("ServerName b.org")
    assert "a.org answers, not the first host" in " ".join(moved.changes)
    asked = relocate_apache(RelocationRequest(tmp_path / "httpd.conf", host="b.org"))
    assert asked.text.index("ServerName b.org") < asked.text.index("a.org")


@pytest.mark.parametrize(
    "harmless",
    [
        "Redirect /old /new",
        'RedirectMatch 404 "/\\.git"',
        "RewriteCond %{HTTP_HOST} !^www\nRewriteRule ^(.*)$ https://www.b.org$1 [R,L]",
        "<Directory />\nRequire all denied\n</Directory>",
        "RewriteRule ^/x$ https://b.org/ [R]",
    ],
)
def test_a_first_host_with_pages_stays_the_first(tmp_path: Path, harmless: str) -> None:
    other = f"<VirtualHost *:80>\nServerName b.org\n{harmless}\n</VirtualHost>\n"
    moved = apache(tmp_path, other + PAGES)
    assert moved.index("ServerName b.org") < moved.index("a.org")


def test_a_port_whose_hosts_only_redirect_is_not_the_one_measured(tmp_path: Path) -> None:
    file = tmp_path / "httpd.conf"
    file.write_text(
        "<VirtualHost *:80>\nRedirect / https://a.org/\n</VirtualHost>\n"
        + PAGES.replace("80", "8080")
    )
    notes: list[str] = []
    assert "DocumentRoot /a" in relocate_apache(RelocationRequest(file, notes=notes)).text
    assert notes[0].startswith("measured is port 8080, of 80 and 8080")


def test_thousands_of_hosts_are_looked_at_a_few_times_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []

    def counted(address: str) -> int | None:
        looked.append(address)
        return port_of(address)

    monkeypatch.setattr(apache_lines, "port_of", counted)
    hosts = 500
    apache(
        tmp_path,
        "Listen 80\n"
        + "".join(
            f"<VirtualHost *:{[80, 81][it % 2]}>\nServerName a{it}\n</VirtualHost>\n"
            for it in range(hosts)
        ),
    )
    assert len(looked) < 10 * hosts
