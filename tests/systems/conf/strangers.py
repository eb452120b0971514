"""Configurations as strangers have them: small ones of our own with what made theirs hard."""

from dataclasses import dataclass, field
from typing import Any

PUBLIC = {"public/index.html": "<p>hello</p>\n"}


@dataclass(frozen=True)
class Case:
    """A configuration and what should become of it."""

    name: str
    files: dict[str, str]
    """By path; the first is the configuration."""
    keys: dict[str, Any] = field(default_factory=dict)
    """What the user gives: `environment`, `backends`, `root`; `protocol`, `host` and `port`."""
    refused: str = ""
    """A pattern of the message; its flags are followed then, VALUE as in `values`."""
    values: dict[str, str] = field(default_factory=dict)
    instead: dict[str, str] = field(default_factory=dict)
    """Files in the place of others where the message asks for a change of them."""
    there: tuple[str, ...] = ()
    """What the configuration has in the end, or what is reported."""
    ends_there: bool = False
    """Whether the remedy is another image or server, which nobody can follow here."""


NGINX = (
    Case(
        "names of services, several upstreams",
        {
            "nginx.conf": "events {}\nhttp {\n upstream relay {\n  server relay:3000;\n"
            "  keepalive 2;\n }\n upstream web { server web:9000; }\n server {\n  listen 80;\n"
            "  location /api { proxy_pass http://relay; }\n"
            "  location / { proxy_pass http://web; }\n }\n}\n"
        },
        refused=r"relay \(\S+nginx.conf:4\), web \(\S+nginx.conf:7\)",
        there=("keepalive 2", "relay is cmd:x", "web is cmd:x"),
    ),
    Case(
        "TLS without a certificate",
        {
            "site.conf": "server { listen 80; server_name a.example; "
            "return 301 https://$host$request_uri; }\n"
            "server { listen 443 ssl http2; server_name a.example; root /srv; }\n"
        },
        {"protocol": "h2"},
        there=("ssl_certificate @run/certificate.pem", "there was none"),
    ),
    Case(
        "TLS alone, asked without",
        {"site.conf": "server { listen 443 ssl; root /srv; }\n"},
        refused="listens nowhere for HTTP without TLS.*--set load.protocol=https",
        there=("ssl_certificate @run",),
    ),
    Case(
        "a default server that closes",
        {
            "nginx.conf": "http { server { listen 80 default_server; return 444; }\n"
            "server { listen 80; server_name shop.example; root public; } }\n",
            **PUBLIC,
        },
        there=("server shop.example answers", "--host NAME asks for another"),
    ),
    Case(
        "a site by its name, on its port",
        {
            "nginx.conf": "http { server { listen 80; server_name a.example; root /a; }\n"
            "server { listen 8080; server_name *.b.example; root /b; } }\n"
        },
        {"host": "www.b.example"},
        there=(
            "measured is port 8080, of 80 and 8080",
            "measured is site www.b.example",
            "root /b",
        ),
    ),
    Case(
        "types and parameters of the system",
        {
            "nginx.conf": "http { include mime.types; server { listen 80; "
            "location ~ [.]php$ { include snippets/fastcgi-php.conf; "
            "fastcgi_pass unix:/run/php/none.sock; } } }\n"
        },
        there=("includes of this machine: /etc/nginx/mime.types", "--backend /run/php/none.sock="),
    ),
    Case(
        "a module that isn't here",
        {"nginx.conf": "http {\n server {\n  listen 80;\n  brotli on;\n }\n}\n"},
        refused="",
        ends_there=True,
    ),
    Case(
        "an image's template",
        {
            "default.conf.template": "server {\n  listen ${PORT};\n  server_name ${NGINX_HOST};\n"
            "  resolver ${NGINX_LOCAL_RESOLVERS};\n  location / {\n    proxy_pass ${API_URL};\n"
            "    proxy_set_header Host $host;\n  }\n}\n"
        },
        {"backends": {"api": "cmd:x"}},
        refused=r"PORT \(\S+:2\), NGINX_HOST \(\S+:3\), NGINX_LOCAL_RESOLVERS \(\S+:4\), API_URL",
        values={
            "API_URL": "http://api:3000/v1",
            "NGINX_HOST": "a.example",
            "NGINX_LOCAL_RESOLVERS": "127.0.0.11",
        },
        there=("proxy_pass http://127.0.0.1:9/v1", "resolver 127.0.0.11"),
    ),
    Case(
        "a status page first",
        {
            "nginx.conf": "http { server { listen 8081; location / { stub_status; } }\n"
            "server { listen 3000; root public; } }\n",
            **PUBLIC,
        },
        there=("measured is port 3000, of 8081 and 3000",),
    ),
    Case(
        "a status page that is wanted",
        {
            "nginx.conf": "http { server { listen 8081; location / { stub_status; } }\n"
            "server { listen 3000; root public; } }\n"
        },
        {"port": 8081},
        there=("measured is port 8081 (its page is the server's status), of 8081 and 3000",),
    ),
    Case(
        "reuseport beside it, two defaults",
        {
            "nginx.conf": "http { server { listen 10.0.0.1:80 default_server; root /a; }\n"
            "server { listen 10.0.0.2:80 default_server; root /b; }\n"
            "server { listen 443 ssl reuseport; ssl_certificate x.pem; } }\n"
        },
        there=("excluded: server on 443",),
    ),
    Case(
        "Certbot's lines",
        {
            "site.conf": "server { listen 443 ssl; root /srv;\n"
            "ssl_certificate /etc/letsencrypt/live/a/fullchain.pem;\n"
            "ssl_certificate_key /etc/letsencrypt/live/a/privkey.pem;\n"
            "ssl_dhparam /etc/letsencrypt/ssl-dhparams.pem;\n"
            "ssl_trusted_certificate certs/chain.pem; }\n"
        },
        {"protocol": "https"},
        there=("ssl_certificate @run", "excluded: ssl_dhparam"),
    ),
    Case(
        "a log that would leave the machine",
        {"nginx.conf": "http { access_log syslog:server=10.0.0.9; server { listen 80; } }\n"},
        there=("access_log @run/access.log",),
    ),
    Case(
        "a semicolon that is missing",
        {"nginx.conf": "http {\n server {\n  listen 80\n }\n}\n"},
        refused=r'nginx.conf:3: directive "listen" is not terminated',
        instead={"nginx.conf": "http { server { listen 80; root /srv; } }\n"},
    ),
    Case(
        "a variable for the address, Docker's resolver",
        {
            "nginx.conf": "http { resolver 127.0.0.11 valid=30s; server { listen 80;\n"
            "set $up app; location / { proxy_pass http://$up:3000; } } }\n"
        },
        {"backends": {"app": "cmd:x"}},
        there=("proxy_pass http://127.0.0.1:9",),
    ),
    Case(
        "four of the same behind it",
        {
            "nginx.conf": "http { upstream b { server b-1:5050; server b-2:5050; }\n"
            "server { listen 80; location / { proxy_pass http://b/; } } }\n"
        },
        refused=r"b-1 \(\S+:1\), b-2 \(\S+:1\)",
        there=("b-1 is cmd:x", "b-2 is cmd:x"),
    ),
)
OTHERS = (
    Case(
        "nobody's",
        {"mine.conf": "hello\n"},
        refused="looks like no known server's.*conf:nginx:mine.conf",
        instead={"mine.conf": "server { listen 80; }\n"},
    ),
    Case(
        "a port that isn't there",
        {"nginx.conf": "http { server { listen 80; } server { listen 81; } }\n"},
        {"port": 82},
        refused="nginx.conf#82: it listens on port 80 and 81",
        values={"port": "81"},
        there=("measured is port 81, of 80 and 81",),
    ),
    Case(
        "a part of a configuration with a byte order mark",
        {"nginx.conf": "\ufeffserver { listen 80; root /srv; }\n"},
        there=("put into http { }",),
    ),
)


def of_nginx() -> dict[str, tuple[Case, ...]]:
    """Give those of nginx, and those of nobody in particular."""
    return {"nginx": NGINX, "any": OTHERS}
