"""Each server's configuration says where it passes requests on, and to whom."""

import json
from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.core.service import Line, Origin
from webdyno.systems.conf import passing
from webdyno.systems.conf.apache_hosts import passed_on as passed_on_by_apache
from webdyno.systems.conf.apache_lines import ApacheLines
from webdyno.systems.conf.caddy import passed_on as passed_on_by_caddy
from webdyno.systems.conf.configuration import relocate
from webdyno.systems.conf.haproxy import passed_on as passed_on_by_haproxy
from webdyno.systems.conf.haproxy_read import sections
from webdyno.systems.conf.nginx import relocate as relocate_nginx
from webdyno.systems.conf.passing import PassedOn
from webdyno.systems.conf.relocation import RelocationRequest

FILES = {
    "nginx": (
        (
            "upstream pool { server 198.51.100.1:80; server 127.0.0.1:81; server unix:/x; }\n"
            "upstream unused { server 198.51.100.99; }\n"
            "map $cookie_a $group {\n default pool;\n b 198.51.100.2:80; }\n"
            "server {\n listen 80;\n location / { proxy_pass http://$group$request_uri; }\n"
            " location /b { set $up api; fastcgi_pass 198.51.100.3:9000; }\n"
            " location /c { grpc_pass grpc://[2001:db8::1]:50; }\n"
            " location /d { proxy_pass http://$arg_to:80; }\n"
            " location /e { proxy_pass http://localhost:82; } }\n"
            "server { listen 81; location / { proxy_pass http://198.51.100.98; } }\n"
        ),
        {
            "198.51.100.1": [1],
            "198.51.100.99": [2],
            "198.51.100.2": [8],
            "198.51.100.3": [9],
            "[2001:db8::1]": [10],
            "$arg_to": [11],
        },
    ),
    "apache": (
        (
            "Listen 80\n<VirtualHost *:80>\n ProxyPass /a http://198.51.100.1:80/ retry=0\n"
            ' ProxyPass /b "balancer://pool"\n <Proxy balancer://pool>\n'
            "  BalancerMember http://198.51.100.2:80\n  BalancerMember http://localhost:81\n"
            " </Proxy>\n RewriteRule ^/(.*)$ http://198.51.100.1/$1 [L,P]\n"
            " RewriteRule ^/s$ https://198.51.100.97/ [R,L]\n"
            ' SetHandler "proxy:fcgi://198.51.100.3:9000"\n'
            ' SetHandler "proxy:unix:/run/x.sock|fcgi://198.51.100.96"\n'
            " ProxyPassReverse / http://198.51.100.95/\n ProxyPassMatch ^/(x.*)$ http://$1/\n"
            "</VirtualHost>\n"
            "<VirtualHost *:81>\n ProxyPass / http://198.51.100.98/\n</VirtualHost>\n"
        ),
        {"198.51.100.1": [3, 9], "198.51.100.2": [6], "198.51.100.3": [11], "$1": [14]},
    ),
    "haproxy": (
        (
            "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n"
            "frontend a\n bind :80\n default_backend b\n"
            "backend b\n server a 198.51.100.1:80 check\n server b ipv4@198.51.100.2:80\n"
            " server c unix@/run/x\n server d 127.0.0.1:81\n server e [2001:db8::1]:80\n"
            " server f /run/y\n server g 0.0.0.0:80\n server-template h 3 198.51.100.3:80\n"
            " http-request set-dst hdr(x-to)\n"
            "listen stats\n bind :81\n server i 198.51.100.98:80\n"
        ),
        {
            "198.51.100.1": [10],
            "198.51.100.2": [11],
            "[2001:db8::1]": [14],
            "198.51.100.3": [17],
            "set-dst hdr(x-to)": [18],
        },
    ),
    "lighttpd": (
        (
            'server.modules = ("mod_proxy", "mod_fastcgi")\nserver.port = 80\n'
            'server.document-root = "/"\n'
            'var.behind = "198.51.100.1"\n'
            'proxy.server = ( "/a" => ( ( "host" => var.behind, "port" => 80 ),\n'
            '  ( "host" => "198.51.100.2" ), ( "host" => "127.0.0.1" ) ) )\n'
            'proxy.forwarded = ( "host" => 1 )\n'
            'FastCGI.Server = ( "/b" => ( ( "Socket" => "/run/x" ),\n'
            '  ( "HOST" => "198.51.100.2", "port" => 9000 ) ) )\n'
        ),
        {"198.51.100.1": [4], "198.51.100.2": [6, 9]},
    ),
    "caddy": (
        (
            ":80 {\n reverse_proxy /a 198.51.100.1:80 unix//run/x localhost:81 :82\n"
            " reverse_proxy /b {\n  to 198.51.100.2:80\n  to 198.51.100.1:81\n }\n"
            " php_fastcgi /c {$PHP}:9000\n reverse_proxy /d {http.request.host}:80\n"
            " reverse_proxy /e {\n  dynamic srv _http._tcp.example.com\n }\n"
            " redir /f https://198.51.100.97\n}\n"
        ),
        {
            "198.51.100.1": [2, 5],
            "198.51.100.2": [4],
            "198.51.100.3": [7],
            "{http.request.host}": [8],
            "SRV _http._tcp.example.com": [10],
        },
    ),
}


def places(server: str, folder: Path, text: str) -> dict[str, list[int]]:
    """Give the lines at which a configuration names other machines."""
    file = folder / server
    file.write_text(text)
    moved = relocate(server, RelocationRequest(file, environment={"PHP": "198.51.100.3"}))
    others = passing.not_here(it.host for it in moved.passed_on)
    found: dict[str, list[int]] = {}
    for host, at in moved.passed_on:
        if host in others:
            assert at
            assert at.file == str(file)
            found.setdefault(host, []).append(at.line)
    return found


@pytest.mark.parametrize("server", FILES)
def test_each_place_that_names_another_machine_is_found(tmp_path: Path, server: str) -> None:
    text, expected = FILES[server]
    assert places(server, tmp_path, text) == expected


def test_only_groups_that_a_target_names_are_asked(tmp_path: Path) -> None:
    text, _ = FILES["nginx"]
    fixed = "".join(it for it in text.splitlines(keepends=True) if "$arg_to" not in it)
    assert "198.51.100.99" not in places("nginx", tmp_path, fixed)


@pytest.mark.parametrize(
    "target",
    ["$a", "http://$a", "$scheme://$a/x", "http://${a}:80", "http://$a$request_uri"],
)
def test_variables_of_nginx_are_followed(tmp_path: Path, target: str) -> None:
    a = "http://$b" if target == "$a" else "$b"
    text = (
        f"map $host $b {{ default 127.0.0.1; x 198.51.100.1; }} server {{ listen 80; set $a {a};\n"
        f"location / {{ proxy_pass {target}; }} }}"
    )
    assert places("nginx", tmp_path, text) == {"198.51.100.1": [2]}


@pytest.mark.parametrize(
    ("target", "host"),
    [
        *((f"http://{name}", name) for name in ("$args", "$uri", "$document_uri")),
        *((f"http://localhost{name}", f"localhost{name}") for name in ("$args", "$uri")),
        ("http://localhost$is_args.other", "localhost.other"),
        ("$uri", "$uri"),
    ],
)
def test_a_variable_that_may_begin_or_end_a_host_is_one(
    tmp_path: Path, target: str, host: str
) -> None:
    """`set` changes $args, and `rewrite` changes $uri."""
    text = f"server {{ listen 80; rewrite ^ x; location / {{ proxy_pass {target}; }} }}"
    assert places("nginx", tmp_path, text) == {host: [1]}


def test_what_a_configuration_makes_of_its_arguments_is_a_host(tmp_path: Path) -> None:
    text = "server { set $args 127.0.0.1;\nlocation / { proxy_pass http://$args; } }"
    assert places("nginx", tmp_path, text) == {"$args": [2]}


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("set $H 198.51.100.1;", "198.51.100.1"),
        ("if ($arg_a ~ ^(?<h>.*)$) { }", "$h"),
        ("location ~ ^/(?P<h>.*)$ { }", "$h"),
        ("location ~ \"^/(?'h'.*)$\" { }", "$h"),
        ("auth_request_set $h $arg_a;", "$h"),
        ("set_by_lua $x 'ngx.var.h = 1';", "$h"),
        ("js_content main.content;", "$h"),
        ("location /x { set $y .localhost; } proxy_pass http://198.51.100.1$y;", "198.51.100.1"),
    ],
)
def test_a_variable_that_anything_else_may_set_is_a_host(
    tmp_path: Path, text: str, host: str
) -> None:
    of_server = f"set $h 127.0.0.1; {text}\nlocation / {{ proxy_pass http://$h; }}"
    assert host in places("nginx", tmp_path, f"server {{ {of_server} }}")


def test_who_says_at_requests_where_a_name_is_is_another_machine(tmp_path: Path) -> None:
    head = "server { listen 80; resolver 127.0.0.53 198.51.100.1 [2001:db8::1]:5353 valid=9s;"
    asked = {"198.51.100.1": [1], "[2001:db8::1]": [1]}
    target = "location / { proxy_pass http://localhost$request_uri; } }"
    assert places("nginx", tmp_path, f"{head} {target}") == asked
    of_group = target.replace("localhost", "app")
    group = f"upstream app {{ server localhost resolve; }} {head} {of_group}"
    assert places("nginx", tmp_path, group) == asked
    assert places("nginx", tmp_path, group.replace(" resolve", "")) == {}
    assert places("nginx", tmp_path, f"{head} {target}".replace("localhost", "127.0.0.1")) == {}
    servers = "resolvers r\n nameserver n 198.51.100.1:53\n nameserver m 127.0.0.1:53\n"
    modes = "defaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n"
    back = "listen a\n bind :80\n server a localhost:81 resolvers r\n"
    assert places("haproxy", tmp_path, f"{servers}{modes}{back}") == {"198.51.100.1": [2]}


def test_a_group_has_its_name_in_whichever_letters(tmp_path: Path) -> None:
    text = (
        "upstream LocalHost { server 198.51.100.1; }\n"
        "server { location / { proxy_pass http://localHost; } }"
    )
    assert places("nginx", tmp_path, text) == {"198.51.100.1": [1]}
    twice = f"{text}\nupstream localhost {{ server 127.0.0.1; }}"
    assert places("nginx", tmp_path, twice) == {"198.51.100.1": [1]}


@pytest.mark.parametrize(
    "text",
    [
        "set $h 127.0.0.1; proxy_set_header Host $h; proxy_pass http://$h$request_uri;",
        "set $h 127.0.0.1:80; if ($arg_a) { set $h [::1]:80; } proxy_pass http://$h/x;",
    ],
)
def test_a_variable_that_is_this_machine_alone_is_no_other(tmp_path: Path, text: str) -> None:
    table = "types { application/json json; } map $host $up { default 127; js 127; } "
    text = f"{table} server {{ listen 80; location / {{ {text} }}\n"
    text += "location /b { proxy_pass http://$up.0.0.1; } }"
    assert places("nginx", tmp_path, text) == {}


@pytest.mark.parametrize("rest", ["$request_uri", "$is_args$args", "/$args", "/$uri", "/x?$args"])
def test_what_comes_after_a_host_is_none(tmp_path: Path, rest: str) -> None:
    text = f"server {{ listen 80; location / {{ proxy_pass http://127.0.0.1:80{rest}; }} }}"
    assert places("nginx", tmp_path, text) == {}
    assert places("nginx", tmp_path, text.replace(":80", "")) == {}


def test_variables_that_name_each_other_in_a_circle_come_to_an_end(tmp_path: Path) -> None:
    text = "server { listen 80; set $a $b$b; set $b $a$a; location / { proxy_pass http://$a; } }"
    assert any("$" in host for host in places("nginx", tmp_path, text))


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ('ProxyPass "/x" "!"', []),
        ('ProxyPassMatch "unix:|^/" http://a/', ["a"]),
        ("ProxyPassMatch ! http://a/ nocanon", ["a"]),
        ("RewriteRule ^ http://a/ [P=1]", ["a"]),
        ("RewriteRule '^|x http://localhost/' http://a/ [P]", ["a"]),
        ("RewriteRule ^|x\\ http://localhost/ http://a/ [P]", ["a"]),
        ("ProxyPass unix:/x|http://localhost/", []),
        ("ProxyPass / http://a/ stickysession=http://127.0.0.1", ["a"]),
        ("ProxyPass / ws://user:word@a:1/", ["a"]),
        ("ProxyPass / http://[::2]:80/", ["[::2]"]),
        ("ProxyPass / ${target}", ["${target}"]),
        ("ProxyPass / http://@host:80/", ["@host"]),
        ("ProxyRemote * http://a:3128", ["a"]),
        ("RewriteRule ^ %{ENV:to} [P]", ["%{ENV:to}"]),
        ("RewriteRule ^/x /y [PT]", []),
        ("RewriteRule ^(.*[.]php)$ - [H=proxy:fcgi://a:9000,L]", ["a"]),
        ("RewriteRule ^/(.*)$ unix:/run/x|http://h/$1 [P]", []),
        ('AddHandler "proxy:fcgi://a:9000" .php', ["a"]),
        ("ForceType proxy:http://a:80/", ["a"]),
        ('SetHandler "%{env:x}"', ["%{env:x}"]),
        ('SetHandler "%{unbase64:cHJveHk6}"', ["%{unbase64:cHJveHk6}"]),
        ("SetHandler pro$x", ["pro$x"]),
        ("ForceType ${x}", ["${x}"]),
        ('SetHandler "proxy:unix:/run/$x.sock|fcgi://h"', []),
        ("RewriteRule ^ - [L,H=%{ENV:x}]", ["%{ENV:x}"]),
        ("RewriteRule . - [T=%1]", ["%1"]),
        ("RewriteRule ^ %{REQUEST_URI} [E=HTTP_X:%{HTTP:x},L]", []),
        ("RewriteRule ^(.*)$ /$1 [L]", []),
        ("Use served proxy:http://a:80/", ["a"]),
        ("Use served $x", []),
        ("Define handler proxy:http://a:80/", ["a"]),
        ("CacheSocache memcache:a:11211,b", ["a", "b"]),
        ('AuthLDAPURL "ldap://a:389 b/ou=x?uid"', ["a", "b"]),
        ('DBDParams "host=a user=x"', ["a"]),
        ("JkWorkersFile /etc/workers", ["what /etc/workers says"]),
    ],
)
def test_directives_of_apache(line: str, hosts: list[str]) -> None:
    assert [it.host for it in passed_on_by_apache(Line(line, None))] == hosts


@pytest.mark.parametrize(
    ("line", "hosts"),
    [
        ("server a abns@x", []),
        ("server a tcp4@b:80", ["b"]),
        ("server a 2001:db8::1:80", ["2001:db8::1"]),
        ("server a rhttp@b", ["rhttp@b"]),
        ("server a :80", []),
        ("server a 127.0.0.1:80 socks4 b:1080", ["127.0.0.1", "b"]),
        ("default-server check socks4 b:1080", ["b"]),
        ("\\x73erver a \\x62:80", ["b"]),
        ('"\\x73erver" a "\\x62":80', ["b"]),
        ("http-request set-d\\x73t str(b)", ["set-dst str(b)"]),
        ("dispatch b:80", ["b"]),
        ("default-server init-addr last,192.0.2.9,libc", ["192.0.2.9"]),
    ],
)
def test_lines_of_haproxy(tmp_path: Path, line: str, hosts: list[str]) -> None:
    file = tmp_path / "haproxy.cfg"
    file.write_text(f"backend x\n {line}\n")
    read = sections(RelocationRequest(file))[-1].lines[1]
    assert [it.host for it in passed_on_by_haproxy(read)] == hosts


def test_what_caddys_json_dials() -> None:
    text = (
        '{"a": [{"dial": "tcp/b:80"}, {"dial": ["c:1", "[::2]:3"]}, {"dial": "unix+h2c//x"}],'
        ' "dynamic_upstreams": {"source": "multi", "sources": [{"source": "a", "name": "d"}]},'
        ' "resolver": {"addresses": ["f:53"]},'
        ' "network_proxy": {"from": "url", "url": "HTTP://u@e:3128"}}'
    )
    assert sorted(passed_on_by_caddy(json.loads(text))) == ["[::2]", "b", "c", "d", "e", "f"]


@pytest.mark.parametrize(
    ("host", "is_here"),
    [
        *(("localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("[::1]", True)),
        *(("0.0.0.0", True), ("[::ffff:127.0.0.1]", True)),
        *(("198.51.100.1", False), ("[2001:db8::1]", False), ("224.0.0.1", False)),
        ("0177.0.0.1", False),  # 127.0.0.1 to the C library, 177.0.0.1 to nginx
        *(("$host", False), ("{env.X}", False), ("what x says", False), ("", False)),
    ],
)
def test_what_isnt_surely_this_machine_is_another(host: str, is_here: bool) -> None:
    assert passing.not_here([host]) == ([] if is_here else [host])


def test_own_addresses_are_here_and_not_on_other_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    own = {"web": ["127.0.0.1"], "me": ["192.0.2.7"], "you": ["192.0.2.8"]}
    monkeypatch.setattr(passing, "_addresses", lambda host: own[host])
    monkeypatch.setattr(passing, "is_here", lambda it: it in {"127.0.0.1", "192.0.2.7"})
    assert passing.not_here(own) == ["you"]
    kept = passing.not_loopback([PassedOn(host, None) for host in own])
    assert [it.host for it in kept] == ["me", "you"]


def test_a_name_that_takes_too_long_to_look_up_is_another_machines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(passing, "LOOKED_UP_WITHIN_S", 0.0)
    monkeypatch.setattr(passing, "MOST_NAMES", 1)
    assert passing.not_here(["localhost", "ip6-localhost"])[-1:] == ["ip6-localhost"]


def test_names_that_nobody_knows_have_a_fix_of_their_own(tmp_path: Path) -> None:
    with pytest.raises(
        UserError,
        match=r"nobody\.invalid \(x:3\)\. .*--backend nobody\.invalid=cmd:.*image:compose",
    ):
        passing.demand_known([PassedOn("nobody.invalid", Origin("x", 3))], tmp_path)


def test_the_compose_file_that_runs_unknown_hosts_is_named_as_it_is_called_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docker-compose.yml").touch()
    (tmp_path / "nginx").mkdir()
    monkeypatch.chdir(tmp_path / "nginx")
    nobody = [PassedOn("nobody.invalid", Origin("x", 3))]
    with pytest.raises(UserError, match=r"image:\.\./docker-compose\.yml#SERVICE"):
        passing.demand_known(nobody, tmp_path / "nginx/nginx.conf")


def test_a_host_that_only_requests_name_needs_no_look_up(tmp_path: Path) -> None:
    file = tmp_path / "nginx.conf"
    file.write_text("server { listen 80; location / { proxy_pass http://$host; } }")
    assert [it.host for it in relocate_nginx(RelocationRequest(file)).passed_on] == ["$host"]


def test_a_directive_s_name_of_apache_is_read_as_it_reads_it(tmp_path: Path) -> None:
    text = (
        'Define N ""\n${N}\n\'Listen\' 80\n"<VirtualHost" *:80>\n'
        '"ProxyPass" / http://198.51.100.1/\n</VirtualHost>\n'
    )
    (file := tmp_path / "httpd.conf").write_text(text)
    read = ApacheLines(RelocationRequest(file)).all([file])
    assert [it.host for line in read for it in passed_on_by_apache(line)] == ["198.51.100.1"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "<Macro m $c>\n$cPass / http://198.51.100.1/\n</Macro>\nUse m Proxy\n",
            r"f:2: \$cPass is",
        ),
        (
            "<Macro m Bar>\nBar / http://198.51.100.1/\n</Macro>\n",
            "f:1: have the macro's parameter",
        ),
        ("<IfModule x>\nDefine p Proxy\n</IfModule>\n${p}Pass / http://x/\n", r"f:4: \$\{p\}Pass"),
        ('"Proxy\\Pass" / http://198.51.100.1/\n', r"f:1: \"Proxy\\Pass\" is no directive's name"),
    ],
)
def test_a_directive_s_name_of_apache_stands_in_its_line(
    tmp_path: Path, text: str, says: str
) -> None:
    """Whom it passes requests on to, and what it runs, is known by it."""
    (file := tmp_path / "httpd.conf").write_text(text)
    with pytest.raises(UserError, match=says):
        ApacheLines(RelocationRequest(file)).all([file])
