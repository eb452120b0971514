"""What systems are called that were given no name."""

import pytest

from webdyno.systems.kinds import LONGEST_NAME, NamedSystem, variant_names


@pytest.mark.parametrize(
    ("systems", "names"),
    [
        (("nginx", "apache-event"), ("nginx", "apache-event")),
        (("nginx", "nginx"), ("nginx (1st)", "nginx (2nd)")),
        (("rev:main", "rev:.", "rev:."), ("main", "working tree (2nd)", "working tree (3rd)")),
        (("rev:.", "rev:main"), ("working tree", "main")),
        (
            ("cmd:gunicorn app:app -b :$PORT", "cmd:uvicorn app:app --port $PORT"),
            ("gunicorn", "uvicorn"),
        ),
        (
            ("cmd:gunicorn -w 2 app:app", "cmd:gunicorn -w 4 app:app"),
            ("gunicorn -w 2", "gunicorn -w 4"),
        ),
        (
            ("cmd:python3 -m http.server $PORT", "cmd:HOME=/ exec node --inspect app/main.js"),
            ("http.server", "main.js"),
        ),
        (("nginx", "cmd:nginx -c mine"), ("nginx", "nginx -c mine")),
        (("conf:new.conf", "conf:old.conf"), ("new.conf", "old.conf")),
        (("conf:new/nginx.conf", "conf:old/nginx.conf"), ("new/nginx.conf", "old/nginx.conf")),
        (
            ("conf:nginx:site.conf", "conf:apache:site.conf"),
            ("nginx:site.conf", "apache:site.conf"),
        ),
        (("image:reg.io/us/app:2.0", "image:app:1.9"), ("app:2.0", "app:1.9")),
        (("image:.", "image:compose.yaml#web"), ("Dockerfile", "web")),
        (("url:http://a:9000", "url:http://a:9001/x"), ("a:9000", "a:9001")),
        (("new=cmd:./server", "old build=cmd:./server"), ("new", "old build")),
        (("cmd:it's open", "nginx"), ("it's", "nginx")),
    ],
)
def test_the_shortest_name_that_no_other_system_has(
    systems: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert variant_names([NamedSystem.of(it) for it in systems]) == list(names)


def test_no_command_line_is_cut() -> None:
    long = "cmd:./server " + " ".join(f"--flag-{number}=on" for number in range(30))
    names = variant_names([NamedSystem.of(long), NamedSystem.of(f"{long} --more")])
    assert names == ["server", "server --more"]
    assert all(len(name) <= LONGEST_NAME for name in names)
