"""Whose configuration it is, is known by its content or by its file's name."""

from pathlib import Path

import pytest

from webdyno.core.errors import UserError
from webdyno.systems.conf.configuration import server_of


@pytest.mark.parametrize(
    ("name", "text", "server"),
    [
        ("any", "events {}\nhttp {\n}", "nginx"),
        ("any", "<VirtualHost *:80>", "apache"),
        ("own.conf", '<Directory "/srv">\nAlias /shop /srv/shop', "apache"),
        ("Caddyfile", "x.org {\n\ttls internal\n}", "caddy"),
        ("any", "a.org {\n\tredir https://b.org\n}", "caddy"),
        ("haproxy.cfg", "\n# nothing yet\n", "haproxy"),
        ("Caddyfile.dev", "a.org {\n file_servr\n}", "caddy"),
        ("my-nginx.txt", "location / { }", "nginx"),
        ("httpd.conf", "Timeout 5", "apache"),
        ("any", "frontend a\nbackend b", "haproxy"),
    ],
)
def test_content_counts_before_the_name(name: str, text: str, server: str) -> None:
    assert server_of(text, Path(name), "x") == server


def test_what_is_nobodys_is_refused_at_once() -> None:
    with pytest.raises(UserError, match="no known server's"):
        server_of("\n" * 200_000, Path("x.conf"), "x")


@pytest.mark.parametrize(
    ("name", "text", "instead"),
    [
        ("gunicorn.conf.py", "workers = 4", "gunicorn's.*cmd:gunicorn --config gunicorn.conf.py"),
        ("config/puma.rb", "threads 5, 5", "Puma's.*cmd:puma -C config/puma.rb -b"),
        ("uwsgi.ini", "[uwsgi]", "uWSGI's.*cmd:uwsgi uwsgi.ini --http-socket"),
        ("traefik.yml", "entryPoints:", r"Traefik's.*--entryPoints\.web\.address="),
        ("envoy.yaml", "static_resources:", "Envoy's.*envoy --config-yaml"),
        ("php-fpm.conf", "[www]", "PHP-FPM's.*conf:nginx.conf"),
        ("www.conf", "[www]", "PHP-FPM's.*conf:nginx.conf"),
    ],
)
def test_a_server_that_is_not_configured_is_named_with_what_to_type(
    name: str, text: str, instead: str
) -> None:
    with pytest.raises(UserError, match=instead):
        server_of(text, Path(name), "x")
