"""What distributions give as the configurations of their servers is measured as it is."""

import shutil
from pathlib import Path

import pytest

from e2e.commands import FEW, run_blocks, statuses, webdyno
from webdyno.model.records import CertificateRecord
from webdyno.run.folder import RunFolder

DEBIANS_APACHE = Path(__file__).parents[2] / ".dyno/debian/apache2/etc/apache2"
ENABLED_MODULES = (
    *("mpm_event", "authz_core", "authz_host", "authn_core", "access_compat", "alias", "dir"),
    *("autoindex", "env", "mime", "negotiation", "setenvif", "filter", "deflate", "status"),
    "reqtimeout",
)
"""Of those that Debian enables when the package is installed."""
ENABLED_PARTS = ("charset", "other-vhosts-access-log", "security", "serve-cgi-bin")
RED_HATS_APACHE = {
    "conf/httpd.conf": """
ServerRoot "/etc/httpd"
Listen 80
Include conf.modules.d/*.conf
User apache
Group apache
<Directory />
    AllowOverride none
    Require all denied
</Directory>
DocumentRoot "/var/www/html"
<IfModule dir_module>
    DirectoryIndex index.html
</IfModule>
ErrorLog "logs/error_log"
<IfModule log_config_module>
    LogFormat "%h %l %u %t \\"%r\\" %>s %b" common
    CustomLog "logs/access_log" common
</IfModule>
<IfModule alias_module>
    ScriptAlias /cgi-bin/ "/var/www/cgi-bin/"
</IfModule>
<IfModule mime_module>
    TypesConfig /etc/mime.types
    AddOutputFilter INCLUDES .shtml
</IfModule>
<IfModule mime_magic_module>
    MIMEMagicFile conf/magic
</IfModule>
IncludeOptional conf.d/*.conf
""",
    "conf.modules.d/00-base.conf": "\n".join(
        f"LoadModule {it}_module modules/mod_{it}.so"
        for it in (
            *("access_compat", "alias", "auth_basic", "authn_core", "authz_core", "authz_host"),
            *("autoindex", "deflate", "dir", "env", "filter", "headers", "include", "log_config"),
            *("logio", "mime_magic", "mime", "setenvif", "socache_shmcb", "status", "unixd"),
            *("suexec", "version", "watchdog"),
        )
    ),
    "conf.modules.d/00-mpm.conf": "LoadModule mpm_event_module modules/mod_mpm_event.so",
    "conf.modules.d/00-systemd.conf": "LoadModule systemd_module modules/mod_systemd.so",
    "conf.modules.d/00-ssl.conf": "LoadModule ssl_module modules/mod_ssl.so",
    "conf.modules.d/01-cgi.conf": "<IfModule mpm_event_module>\n"
    "LoadModule cgid_module modules/mod_cgid.so\n</IfModule>\n<IfModule mpm_prefork_module>\n"
    "LoadModule cgi_module modules/mod_cgi.so\n</IfModule>",
    "conf.d/ssl.conf": """
Listen 443 https
SSLPassPhraseDialog exec:/usr/libexec/httpd-ssl-pass-dialog
SSLSessionCache shmcb:/run/httpd/sslcache(512000)
<VirtualHost _default_:443>
    ErrorLog logs/ssl_error_log
    TransferLog logs/ssl_access_log
    SSLEngine on
    SSLCipherSuite PROFILE=SYSTEM
    SSLCertificateFile /etc/pki/tls/certs/localhost.crt
    SSLCertificateKeyFile /etc/pki/tls/private/localhost.key
</VirtualHost>
""",
}


def debians_apache(home: Path) -> str:
    """Set Debian's Apache up in a folder, as installing it does."""
    if not DEBIANS_APACHE.is_dir():
        pytest.skip("Debian's package apache2 could not be got")
    shutil.copytree(DEBIANS_APACHE, home / "apache2", symlinks=True)
    enabled = [
        *(("mods", f"{it}.{kind}") for it in ENABLED_MODULES for kind in ("load", "conf")),
        *(("conf", f"{it}.conf") for it in ENABLED_PARTS),
        ("sites", "000-default.conf"),
    ]
    for what, name in enabled:
        if (home / f"apache2/{what}-available/{name}").exists():
            (home / f"apache2/{what}-enabled/{name}").symlink_to(f"../{what}-available/{name}")
    return "apache2/apache2.conf"


def red_hats_apache(home: Path) -> str:
    """Set Red Hat's layout of Apache up in a folder."""
    for name, text in RED_HATS_APACHE.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    return "conf/httpd.conf"


@pytest.mark.parametrize(
    ("server", "protocol"),
    [
        ("debians-apache", "http"),
        ("red-hats-apache", "http"),
        ("red-hats-apache", "https"),
        ("lighttpd", "http"),
        ("caddy", "http"),
    ],
)
def test_what_a_distribution_gives_is_measured(
    open_folder: Path, server: str, protocol: str
) -> None:
    home = open_folder
    (home / "public").mkdir()
    (home / "public/index.html").write_text("<p>hello</p>")
    match server:
        case "debians-apache":
            file = debians_apache(home)
        case "red-hats-apache":
            file = red_hats_apache(home)
        case "lighttpd":
            file = "/etc/lighttpd/lighttpd.conf"
        case _:
            file = "/etc/caddy/Caddyfile"
    words = ("duel", f"conf:{file}", f"conf:{file}", "--root=public", *FEW)
    run_blocks(1, *words, f"--set=load.protocol={protocol}", folder=home)
    assert statuses(home) == {"200"}


def test_a_host_with_php_runs_it(open_folder: Path) -> None:
    (open_folder / "public").mkdir()
    (open_folder / "public/hello.php").write_text('<?php echo "dynamic ", 6 * 7;')
    (open_folder / "site.conf").write_text(
        '<VirtualHost *:80>\nDocumentRoot public\n<Directory "public">\nRequire all granted\n'
        '</Directory>\n<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n'
        "</VirtualHost>\n"
    )
    arm = "conf:site.conf"
    run_blocks(1, "duel", arm, arm, "--path=/hello.php", *FEW, folder=open_folder)
    records = RunFolder.open(open_folder / "run").records()
    certificate = next(it for it in records if isinstance(it, CertificateRecord))
    bodies = {it.body_start for its in certificate.answers.values() for it in its}
    assert bodies == {"dynamic 42"}


def test_a_php_file_is_never_measured_as_its_source(open_folder: Path) -> None:
    (open_folder / "hello.php").write_text('<?php echo "dynamic ", 6 * 7;')
    (open_folder / "nginx.conf").write_text(
        f"events {{}} http {{ server {{ listen 80; root {open_folder}; }} }}"
    )
    arm = "conf:nginx.conf"
    done = webdyno("duel", arm, arm, "--path=/hello.php", *FEW, folder=open_folder)
    assert done.returncode == 1
    assert "with the source of a program" in " ".join(done.stdout.split())
