"""Compose files are read as people write them."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webdyno.model.mistake import Mistake
from webdyno.own.compose import ComposeService, compose_services

SHOP = """
services:
  proxy: {image: nginx, ports: [22:22, 80:80], depends_on: {web: {condition: service_healthy}}}
  web:
    build: {context: app, dockerfile: Other, args: {A: 1}, target: final}
    ports: ["127.0.0.1:8000:3000/tcp"]
    expose: [9000]
    depends_on: [db]
    command: ./server --log 'all of it'
    entrypoint: ["/init", "-v"]
    environment: {URL: "db://${USER_NAME:-me}@db", ON: true, COUNT: 3, FROM_OUTSIDE: }
    volumes: ["./data:/data:ro", "named:/var", {type: bind, source: ./data, target: /x}]
    user: "1000"
    read_only: true
    healthcheck: {test: x}
    x-mine: 1
  db: {image: "postgres:16", env_file: .env, environment: ["A=b=c", "FROM_OUTSIDE"]}
  debug: {image: x, profiles: [debug]}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the file names."""
    (tmp_path / "data").mkdir()
    (tmp_path / ".env").write_text('# words\nexport SECRET="a b"\nUSER_NAME=you\n')
    monkeypatch.setenv("FROM_OUTSIDE", "outside")
    return tmp_path


def read(folder: Path, text: str, wanted: str = "") -> tuple[list[ComposeService], list[str]]:
    told: list[str] = []
    (folder / "compose.yaml").write_text(text)
    return compose_services(folder / "compose.yaml", wanted, "here", told.append), told


def test_services_in_the_order_of_their_starts_and_the_asked_one_last(folder: Path) -> None:
    services, told = read(folder, SHOP, "web")
    assert [it.name for it in services] == ["db", "proxy", "web"]
    assert told == ["compose.yaml: left out: web.healthcheck"]
    db, proxy, web = services
    assert proxy.ports == (22, 80)
    assert db.environment == {
        "SECRET": "a b",
        "USER_NAME": "you",
        "A": "b=c",
        "FROM_OUTSIDE": "outside",
    }
    assert web.environment == {
        "URL": "db://you@db",
        "ON": "true",
        "COUNT": "3",
        "FROM_OUTSIDE": "outside",
    }
    assert web.build
    assert web.build.file == folder / "app/Other"
    assert web.build.options == ("--build-arg=A=1", "--target=final")
    assert web.ports == (3000, 9000)
    assert web.command == ("./server", "--log", "all of it")
    assert set(web.options) == {
        '--entrypoint=["/init", "-v"]',
        "--read-only",
        "--user=1000",
        f"--volume={folder}/data:/data:ro",
        f"--volume={folder}/data:/x",
        "--volume=named:/var",
    }


@pytest.mark.parametrize(
    ("text", "wanted", "says"),
    [
        (SHOP, "wob", "has no service wob; did you mean web"),
        (SHOP, "", "say which service is asked, such as image:compose.yaml#proxy"),
        ("a: [", "", r"compose.yaml:1 is no YAML"),
        ("a: 1", "", "has no services"),
        ("services: {a: 1}", "", "services.a is no service"),
        ("services: {a: {}}", "", "services.a has neither image nor build"),
        ("services: {a: {image: x, ports: 80}}", "", "services.a.ports: .*list"),
        ("services: {a/b: {image: x}}", "", "services.a/b is no service"),
        ("services: {a: {image: x, env_file: none}}", "", "there is no .*none"),
        ("services: {a: {image: x, volumes: ['./none:/x']}}", "", "there is no .*none"),
        ("services: {a: {image: x, ports: ['1-3:4-6']}}", "", "4-6 is no single port"),
        ("services: {a: {image: '${NONE:?say it}'}}", "", "NONE isn't set: say it"),
        (
            "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}",
            "a",
            "a and b depend on each other",
        ),
    ],
)
def test_what_is_wrong_is_told(folder: Path, text: str, wanted: str, says: str) -> None:
    with pytest.raises(Mistake, match=says):
        read(folder, text, wanted)


SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
)
KEYS = st.sampled_from(
    [
        *("image", "build", "command", "entrypoint", "environment", "env_file", "volumes"),
        *("ports", "expose", "depends_on", "profiles", "user", "tmpfs", "read_only", "other"),
    ]
)


@given(services=st.dictionaries(st.sampled_from("abc"), st.dictionaries(KEYS, ANYTHING)))
def test_whatever_a_file_holds_is_read_or_refused(
    services: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "compose.yaml"
    file.write_text(yaml.safe_dump({"services": services}))
    try:
        found = compose_services(file, "", "here", lambda _: None)
    except Mistake:
        return
    assert {it.name for it in found} <= services.keys()
