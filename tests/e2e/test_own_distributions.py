"""What distributions give as the configurations of their servers is measured as it is."""

import shutil
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from e2e.commands import FEW, run_rounds, statuses, webdyno
from variants import further
from webdyno.core.records import PreflightRecord
from webdyno.measure.folder import RunFolder

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
RED_HATS_NGINX = {
    "nginx.conf": """
user nginx;
worker_processes auto;
error_log /var/log/nginx/error.log notice;
pid /run/nginx.pid;
events { worker_connections 1024; }
http {
    log_format main '$remote_addr - "$request" $status';
    access_log /var/log/nginx/access.log main;
    sendfile on;
    keepalive_timeout 65;
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
""",
    "mime.types": "types { text/html html; }",
    "conf.d/php-fpm.conf": "upstream php { server unix:/run/php-fpm/www.sock; }",
    "default.d/php.conf": "index index.php index.html;",
}
FEDORAS_HAPROXY = {
    "haproxy.cfg": """
global
    log         127.0.0.1 local2
    chroot      /var/lib/haproxy
    pidfile     /var/run/haproxy.pid
    maxconn     4000
    user        haproxy
    group       haproxy
    daemon
    stats socket /var/lib/haproxy/stats
    ssl-default-bind-ciphers PROFILE=SYSTEM
    ssl-default-server-ciphers PROFILE=SYSTEM
defaults
    mode                    http
    log                     global
    option                  httplog
    option                  dontlognull
    option http-server-close
    option forwardfor       except 127.0.0.0/8
    option                  redispatch
    retries                 3
    timeout connect         10s
    timeout client          1m
    timeout server          1m
    maxconn                 3000
frontend main
    bind *:5000
    acl url_static path_end -i .jpg .gif .png .css .js
    use_backend static if url_static
    default_backend app
backend static
    balance roundrobin
    server static 127.0.0.1:@port@ check
backend app
    balance roundrobin
    server app1 127.0.0.1:@port@ check
    server app2 127.0.0.1:@port@ check
""",
    "conf.d/site.cfg": """
frontend site
    bind :443 ssl crt /etc/pki/tls/private/site.pem
    default_backend app
""",
}
"""Its unit starts HAProxy with the file, then the folder next to it."""
FEDORAS_LIGHTTPD = {
    "lighttpd.conf": """
var.log_root    = "/var/log/lighttpd"
var.server_root = "/var/www"
var.state_dir   = "/run"
var.home_dir    = "/var/lib/lighttpd"
var.conf_dir    = "/etc/lighttpd"
var.vhosts_dir  = server_root + "/vhosts"
var.cache_dir   = "/var/cache/lighttpd"
var.socket_dir  = state_dir + "/sockets"
include conf_dir + "/modules.conf"
server.port = 80
server.username  = "lighttpd"
server.groupname = "lighttpd"
server.document-root = server_root + "/lighttpd"
server.pid-file = state_dir + "/lighttpd.pid"
server.errorlog = log_root + "/error.log"
include conf_dir + "/conf.d/access_log.conf"
include conf_dir + "/conf.d/debug.conf"
index-file.names += ( "index.xhtml", "index.html", "index.php" )
url.access-deny = ( "~", ".inc" )
static-file.exclude-extensions = ( ".php", ".pl", ".fcgi", ".scgi" )
include conf_dir + "/conf.d/mime.conf"
include conf_dir + "/conf.d/dirlisting.conf"
include conf_dir + "/vhosts.d/*.conf"
""",
    "modules.conf": """
server.modules = ( "mod_access", )
include conf_dir + "/conf.d/ssl.conf"
""",
    "conf.d/access_log.conf": """
server.modules += ( "mod_accesslog" )
accesslog.filename = log_root + "/access.log"
""",
    "conf.d/debug.conf": '#debug.log-request-header = "enable"\n',
    "conf.d/dirlisting.conf": """
dir-listing.activate = "disable"
dir-listing.exclude = ( "~$" )
""",
    "conf.d/mime.conf": """
mimetype.assign = ( ".html" => "text/html", ".css" => "text/css; charset=utf-8" )
mimetype.assign += ( "" => "application/octet-stream" )
""",
    "conf.d/ssl.conf": """
server.modules += ( "mod_openssl" )
ssl.pemfile = "/etc/pki/tls/certs/localhost.pem"
ssl.cipher-list = "PROFILE=SYSTEM"
$SERVER["socket"] == "*:443" { ssl.engine = "enable" }
""",
}
FEDORAS_CADDY = {
    "Caddyfile": """
http:// {
\troot * /usr/share/caddy
\tfile_server
}
import Caddyfile.d/*.caddyfile
""",
    "Caddyfile.d/site.caddyfile": "example.org {\n\troot * /var/www/html\n\tfile_server\n}\n",
}
FRONTEND = """
frontend web
    bind :8080
    http-request return status 200 content-type text/html string "<p>hello</p>"
"""


def laid(home: Path, files: dict[str, str]) -> str:
    """Write files into a folder; give the first one's name."""
    for name, text in files.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_text(text)
    return next(iter(files))


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


def haproxy() -> str:
    """Give Debian's configuration of HAProxy, which has no frontend."""
    return Path("/etc/haproxy/haproxy.cfg").read_text(encoding="utf-8")


def behind(files: dict[str, str], port: int) -> dict[str, str]:
    """Give files with the port of what a proxy passes requests on to."""
    return {name: text.replace("@port@", str(port)) for name, text in files.items()}


@pytest.fixture
def backend() -> Iterator[int]:
    """The port of a server that a proxy can pass requests on to."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


class Hello(BaseHTTPRequestHandler):
    """Answers every request alike."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer."""
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize(
    ("server", "protocol"),
    [
        ("debians-apache", "http"),
        further("red-hats-apache", "http"),
        ("red-hats-apache", "https"),
        further("debians-nginx", "http"),
        further("debians-site-of-nginx", "http"),
        further("red-hats-nginx", "http"),
        further("haproxy", "http"),
        further("lighttpd", "http"),
        further("caddy", "http"),
        further("fedoras-haproxy", "http"),
        further("fedoras-haproxy", "https"),
        further("fedoras-lighttpd", "http"),
        further("fedoras-lighttpd", "https"),
        further("fedoras-caddy", "http"),
        further("fedoras-caddy", "https"),
    ],
)
def test_what_a_distribution_gives_is_measured(
    open_folder: Path, backend: int, server: str, protocol: str
) -> None:
    home = open_folder
    (home / "public").mkdir()
    (home / "public/index.html").write_text("<p>hello</p>")
    files: dict[str, Callable[[], str]] = {
        "debians-apache": lambda: debians_apache(home),
        "red-hats-apache": lambda: laid(home, RED_HATS_APACHE),
        "debians-nginx": lambda: "/etc/nginx/nginx.conf",
        "debians-site-of-nginx": lambda: "/etc/nginx/sites-available/default",
        "red-hats-nginx": lambda: laid(home, RED_HATS_NGINX),
        "haproxy": lambda: laid(home, {"haproxy.cfg": haproxy() + FRONTEND}),
        "lighttpd": lambda: "/etc/lighttpd/lighttpd.conf",
        "caddy": lambda: "/etc/caddy/Caddyfile",
        "fedoras-haproxy": lambda: laid(home, behind(FEDORAS_HAPROXY, backend)),
        "fedoras-lighttpd": lambda: laid(home, FEDORAS_LIGHTTPD),
        "fedoras-caddy": lambda: laid(home, FEDORAS_CADDY),
    }
    file = files[server]()
    root = () if "haproxy" in server else ("--root=public",)
    words = ("compare", f"conf:{file}", f"conf:{file}", *root, *FEW)
    run_rounds(1, *words, f"--set=load.protocol={protocol}", folder=home)
    assert statuses(home) == {"200"}


def test_a_host_with_php_runs_it(open_folder: Path) -> None:
    (open_folder / "public").mkdir()
    (open_folder / "public/hello.php").write_text('<?php echo "dynamic ", 6 * 7;')
    (open_folder / "site.conf").write_text(
        '<VirtualHost *:80>\nDocumentRoot public\n<Directory "public">\nRequire all granted\n'
        '</Directory>\n<FilesMatch "\\.php$">\nSetHandler application/x-httpd-php\n</FilesMatch>\n'
        "</VirtualHost>\n"
    )
    variant = "conf:site.conf"
    run_rounds(1, "compare", variant, variant, "--path=/hello.php", *FEW, folder=open_folder)
    records = RunFolder.open(open_folder / "run").records()
    preflight = next(it for it in records if isinstance(it, PreflightRecord))
    bodies = {it.body_start for its in preflight.responses.values() for it in its}
    assert bodies == {"dynamic 42"}


def test_a_php_file_is_never_measured_as_its_source(open_folder: Path) -> None:
    (open_folder / "hello.php").write_text('<?php echo "dynamic ", 6 * 7;')
    (open_folder / "nginx.conf").write_text(
        f"events {{}} http {{ server {{ listen 80; root {open_folder}; }} }}"
    )
    variant = "conf:nginx.conf"
    done = webdyno("compare", variant, variant, "--path=/hello.php", *FEW, folder=open_folder)
    assert done.returncode == 1
    assert "with the source of a program" in " ".join(done.stdout.split())
