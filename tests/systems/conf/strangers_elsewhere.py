"""Configurations of the other servers as strangers have them."""

from systems.conf.strangers import PUBLIC, Case

HAPROXY = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n"
PAGES = "http-request return status 200 content-type text/plain string hello"
APACHE = (
    Case(
        "a proxy without its modules",
        {
            "site.conf": "<VirtualHost *:80>\n  ProxyPreserveHost On\n"
            "  ProxyPass / http://127.0.0.1:1/\n  ProxyPassReverse / http://127.0.0.1:1/\n"
            "</VirtualHost>\n"
        },
        there=("the modules", "nobody listens at 127.0.0.1:1, "),
    ),
    Case(
        "a websocket beside it",
        {
            "site.conf": "<VirtualHost *:80>\n  RewriteEngine on\n"
            "  RewriteCond %{HTTP:Upgrade} websocket [NC]\n"
            "  RewriteRule .* ws://app:8000%{REQUEST_URI} [P,L]\n"
            "  ProxyPass / http://app:8000/ retry=0\n</VirtualHost>\n"
        },
        refused=r"app \(\S+site.conf:4\)",
        there=("ws://127.0.0.1:9%{REQUEST_URI} [P,L]", "http://127.0.0.1:9/ retry=0"),
    ),
    Case(
        "PHP that nobody runs",
        {"site.conf": "<VirtualHost *:80>\n  AddHandler application/x-none .php\n</VirtualHost>\n"},
        refused="application/x-none",
        instead={"site.conf": "<VirtualHost *:80>\n  DocumentRoot /srv\n</VirtualHost>\n"},
    ),
    Case(
        "a buildpack's variables",
        {
            "heroku.conf": "Listen ${PORT}\nDocumentRoot ${APP_ROOT}\n"
            "Include ${EXTRA}\n<Directory />\n Require all granted\n</Directory>\n",
            "extra.conf": "Timeout 5\n",
        },
        refused=r"PORT \(\S+:1\), APP_ROOT \(\S+:2\), EXTRA",
        values={"APP_ROOT": "/srv", "EXTRA": "extra.conf"},
        there=("Listen 127.0.0.1:$PORT", "Timeout 5"),
    ),
    Case(
        "modules of another layout",
        {
            "httpd.conf": "ServerRoot /usr/local/apache2\n"
            "LoadModule mpm_event_module modules/mod_mpm_event.so\n"
            "LoadModule authz_core_module modules/mod_authz_core.so\n"
            "LoadModule log_config_module modules/mod_log_config.so\n"
            "LoadModule unixd_module modules/mod_unixd.so\n"
            "LoadModule mime_module modules/mod_mime.so\nListen 80\nDocumentRoot /srv\n"
        },
        there=("modules of this machine's Apache",),
    ),
    Case(
        "a module that isn't here",
        {
            "httpd.conf": "LoadModule mpm_event_module modules/mod_mpm_event.so\n"
            "LoadModule pagespeed_module modules/mod_pagespeed.so\nListen 80\n"
        },
        refused="httpd.conf:2 loads .*pagespeed",
        ends_there=True,
    ),
    Case(
        "a first host that only redirects, defined names",
        {
            "site.conf": "Define site shop.example\n<VirtualHost *:80>\n  ServerName www.${site}\n"
            "  Redirect permanent / http://shop.example/\n</VirtualHost>\n<VirtualHost *:80>\n"
            "  ServerName ${site}\n  DocumentRoot public\n</VirtualHost>\n",
            **PUBLIC,
        },
        there=("shop.example answers, not the first host",),
    ),
    Case(
        "a host by its name, on its port",
        {
            "site.conf": "Listen 80\nListen 8080\n<VirtualHost *:80>\n  ServerName a.example\n"
            "</VirtualHost>\n<VirtualHost *:8080>\n  ServerName b.example\n"
            "  ServerAlias *.b.example\n</VirtualHost>\n"
        },
        {"host": "www.b.example"},
        there=("measured is port 8080, of 80 and 8080", "measured is site www.b.example"),
    ),
    Case(
        "a word with a typo",
        {"site.conf": "<VirtualHost *:80>\n  RewriteEngin on\n</VirtualHost>\n"},
        ends_there=True,
    ),
)
CADDY = (
    Case(
        "www that redirects",
        {
            "Caddyfile": "example.com {\n  root * public\n  file_server\n}\n"
            "www.example.com {\n  redir https://example.com{uri}\n}\n",
            **PUBLIC,
        },
        there=("example.com answers, whatever host is requested",),
    ),
    Case(
        "TLS by itself, a status page beside",
        {
            "Caddyfile": "shop.example.org {\n  root * public\n  file_server\n}\n"
            "http://status.example.org {\n  respond up\n}\n",
            **PUBLIC,
        },
        {"host": "shop.example.org"},
        there=("measured is site shop.example.org", "excluded: what listens on :80"),
    ),
    Case(
        "a site that isn't there",
        {"Caddyfile": "a.example {\n  respond a\n}\nb.example {\n  respond b\n}\n"},
        {"host": "c.example"},
        refused="has no site c.example; those there are a.example and b.example",
        instead={"Caddyfile": "c.example {\n  respond c\n}\n"},
    ),
    Case(
        "an option of a plugin",
        {"Caddyfile": "{\n  frankenphp\n}\n:80 {\n  respond a\n}\n"},
        refused="Caddyfile:2.*frankenphp.*image:NAME",
        ends_there=True,
    ),
    Case(
        "an address from the environment",
        {"Caddyfile": "{$SITE_ADDRESS} {\n  reverse_proxy {$UPSTREAM}\n}\n"},
        {"backends": {"app:8000": "cmd:x"}},
        refused=r"SITE_ADDRESS \(\S+Caddyfile:1\) and UPSTREAM",
        values={"SITE_ADDRESS": ":80", "UPSTREAM": "app:8000"},
        there=('"dial": "127.0.0.1:9"',),
    ),
    Case(
        "snippets, paths and balancing",
        {
            "Caddyfile": "(common) {\n  encode gzip\n  header -Server\n}\n:80 {\n  import common\n"
            "  handle_path /api/* {\n    reverse_proxy api-1:80 api-2:80 {\n"
            "      lb_policy least_conn\n      header_up Host {upstream_hostport}\n    }\n  }\n"
            "  handle {\n    respond hello\n  }\n}\n"
        },
        refused="api-1 .*api-2 ",
        there=("api-1 is cmd:x", "least_conn"),
    ),
    Case(
        "a word with a typo",
        {"Caddyfile": "a.example {\n  file_servr\n}\n"},
        refused="Caddyfile:2",
        instead={"Caddyfile": "a.example {\n  file_server\n}\n"},
    ),
)
HAPROXIES = (
    Case(
        "an address from the environment",
        {
            "haproxy.cfg": f'global\n  log stdout format raw daemon "${{LOG_LEVEL}}"\n{HAPROXY}'
            f'frontend f\n  bind "${{BIND_CONFIG}}"\n  {PAGES}\n'
        },
        refused=r"LOG_LEVEL \(\S+:2\), BIND_CONFIG",
        values={"LOG_LEVEL": "info", "BIND_CONFIG": ":2375"},
        there=("bind 127.0.0.1:$PORT",),
    ),
    Case(
        "statistics first",
        {
            "haproxy.cfg": f"{HAPROXY}frontend stats\n  bind :8404\n  stats enable\n  stats uri /\n"
            f"frontend web\n  bind :8080\n  {PAGES}\n"
        },
        there=("measured is port 8080, of 8404 and 8080",),
    ),
    Case(
        "a database's port first",
        {
            "haproxy.cfg": f"{HAPROXY}listen db\n  mode tcp\n  bind :3306\n"
            f"  server a 127.0.0.1:3307\nfrontend web\n  bind :8080\n  {PAGES}\n"
        },
        there=("measured is port 8080, of 3306 and 8080",),
    ),
    Case(
        "names that Docker resolves",
        {
            "haproxy.cfg": f"resolvers docker\n  nameserver dns1 127.0.0.11:53\n{HAPROXY}"
            "frontend f\n  bind *:80\n  default_backend b\nbackend b\n"
            "  server one api-1:5000 check resolvers docker init-addr none\n"
            "  server two api-2:5000 check backup resolvers docker\n"
        },
        refused=r"api-1 \(\S+:12\), api-2 \(\S+:13\)",
        there=("server one 127.0.0.1:9 check resolvers docker", "api-2 is cmd:x"),
    ),
    Case(
        "error pages that aren't here",
        {
            "haproxy.cfg": f"{HAPROXY}  errorfile 503 /etc/haproxy/errors/none.http\n"
            f"frontend f\n  bind :80\n  {PAGES}\n"
        },
        there=("excluded: errorfile 503",),
    ),
    Case(
        "a word with a typo",
        {"haproxy.cfg": f"{HAPROXY}frontend f\n  bind :80\n  defalt_backend b\n"},
        ends_there=True,
    ),
)
LIGHTTPD = (
    Case(
        "a program that prints a line",
        {
            "lighttpd.conf": 'server.document-root = "/srv"\n'
            'include_shell "echo server.port = 8080"\n'
        },
        there=("runs ", "as include_shell says"),
    ),
    Case(
        "another socket in an include",
        {
            "lighttpd.conf": 'server.document-root = "/srv"\ninclude "conf.d/*.conf"\n',
            "conf.d/tls.conf": '$SERVER["socket"] == ":8443" { server.document-root = "/b" }\n',
        },
        there=("8443-1.sock",),
    ),
    Case(
        "names in the environment, a proxy",
        {
            "lighttpd.conf": 'server.modules = ( "mod_proxy" )\nserver.document-root = "/srv"\n'
            'proxy.server = ( "" => (( "host" => env.APP_HOST, "port" => 3000 )) )\n'
        },
        {"environment": {"APP_HOST": "app"}, "backends": {"app": "cmd:x"}},
        there=('"host" => "127.0.0.1"', "app is cmd:x"),
    ),
    Case(
        "hosts by conditions",
        {
            "lighttpd.conf": 'server.document-root = "/srv"\n'
            '$HTTP["host"] == "a.example" { server.document-root = "/a" }\n'
            '$HTTP["host"] =~ "^b" { server.document-root = "/b" }\n'
        },
        {"host": "b.example"},
        there=("measured is site b.example",),
    ),
)


def of_others() -> dict[str, tuple[Case, ...]]:
    """Give them by server."""
    return {"apache": APACHE, "caddy": CADDY, "haproxy": HAPROXIES, "lighttpd": LIGHTTPD}
