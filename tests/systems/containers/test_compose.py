"""Compose files are read as people write them."""

from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from webdyno.core.errors import UserError
from webdyno.systems.containers.compose import ComposeService, compose_services

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


def read(folder: Path, text: str, wanted: str = "") -> tuple[list[ComposeService], list[str]]:
    reported: list[str] = []
    (folder / "compose.yaml").write_text(text)
    return compose_services([folder / "compose.yaml"], wanted, "here", reported.append), reported


def test_services_in_the_order_of_their_starts_and_the_asked_one_last(folder: Path) -> None:
    services, reported = read(folder, SHOP, "proxy")
    assert [it.name for it in services] == ["db", "web", "proxy"]
    assert reported == []
    db, web, proxy = services
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
    assert web.build.options == ("--build-arg=A", "--target=final")
    assert web.build.variables == {"A": "1"}
    assert web.ports == (3000, 9000)
    assert web.command == ("./server", "--log", "all of it")
    assert web.entrypoint == ("/init", "-v")
    assert set(web.options) == {
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
        ("services: {a: {image: x, ports: 80}}", "", "services.a: ports should be a list, not 80"),
        ("services: {a: {image: x, environment: {A: [1]}}}", "", "environment.A should be text"),
        (
            "services: {a: {image: x, depends_on: {b: {condition: [1]}}}, b: {image: x}}",
            "a",
            "depends_on.b",
        ),
        ("services: {a: {image: x, expose: [0]}}", "", "0 is no port; they go from 1 to 65535"),
        ("services: {a: {image: x, ports: ['80:65536']}}", "", "80:65536 is no port"),
        (f"services: {{a: {{image: x, ports: ['80:{'9' * 5000}']}}}}", "", "is no single port"),
        ("services: {a: {image: x, user: [[1]]}}", "", r"services.a: user.0 should be text"),
        ("services: {a/b: {image: x}}", "", "services.a/b is no service"),
        ("services: {a: {image: x, env_file: none}}", "", "none: there is no such file"),
        ("services: {a: {image: x, volumes: ['./none.ini:/x']}}", "", "there is no .*none.ini"),
        ("services: {a: {image: x, volumes: ['~none/a:/x']}}", "", "there is no .*~none/a"),
        ("services: {a: {image: x, ports: ['1:x-6']}}", "", "'1:x-6' is no single port"),
        (
            "services: {a: {image: '${NONE:?say it}', user: '${NO:?too}'}}",
            "",
            r"to be set, in the environment or in .env: NONE \(say it\), NO \(too\)",
        ),
        (
            "services: {a: {image: x, depends_on: [b]}, b: {image: x, depends_on: [a]}}",
            "a",
            "a and b depend on each other",
        ),
    ],
)
def test_what_is_wrong_is_reported(folder: Path, text: str, wanted: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read(folder, text, wanted)


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (LAUGHS, "6", "it has more than 100000 values"),
        ("x: &a [*a]", "1", "it contains itself"),
        ("x: 1\ny: !!int abc", "2", "'abc' is no !!int"),
        ("x: !!timestamp abc", "1", "!!timestamp is no kind of value that is read here"),
        ("x: !!bool x", "1", "'x' is no !!bool"),
        ('x: !!float ""', "1", "'' is no !!float"),
        ("x: !reset []", "1", "!reset is no kind of value that is read here"),
        ('x: "\\ud800"', "1", "has characters that no text has"),
        ('x: "\\0"', "1", "has characters that no text has"),
        ("[" * 150 + "]" * 150, "1", "it is nested too deep"),
    ],
)
def test_yaml_without_measure_is_refused_with_its_line(
    folder: Path, text: str, line: str, says: str
) -> None:
    with pytest.raises(UserError, match=rf"compose.yaml:{line} is no YAML: .*{says}"):
        read(folder, text)


def test_numbers_are_those_of_yaml_1_2(folder: Path) -> None:
    many = "9" * 5000
    text = f"services: {{a: {{image: x, environment: {{A: 08, B: {many}}}, ports: [08]}}}}"
    (service,) = read(folder, text)[0]
    assert service.environment == {"A": "8", "B": many}
    assert service.ports == (8,)


def test_a_file_that_never_ends_is_refused(tmp_path: Path) -> None:
    (tmp_path / "compose.yaml").symlink_to("/dev/zero")
    with pytest.raises(UserError, match="is not a regular file"):
        compose_services([tmp_path / "compose.yaml"], "", "here", lambda _: None)


BASE = """
services:
  web:
    image: one
    command: [a, b]
    ports: ["80:80"]
    environment: [A=1, B=2]
    volumes: ["./data:/x", "named:/y"]
    depends_on: [db]
  db: {image: db}
"""
OVERRIDE = """
services:
  web:
    image: two
    command: [c]
    ports: ["81:81"]
    environment: {B: 3}
    volumes: ["other:/x"]
    depends_on: {cache: {condition: service_healthy}}
  cache: {image: cache, healthcheck: {test: [CMD, ping, -c1]}}
"""


@pytest.mark.parametrize("named", [[], ["compose.prod.yaml"]])
def test_files_are_merged(folder: Path, named: list[str]) -> None:
    """The override file next to a file of the usual name, or those that are named."""
    reported: list[str] = []
    (folder / "compose.yaml").write_text(BASE)
    (folder / (named[0] if named else "compose.override.yaml")).write_text(OVERRIDE)
    files = [folder / name for name in ("compose.yaml", *named)]
    services = compose_services(files, "web", "here", reported.append)
    assert [it.name for it in services] == ["db", "cache", "web"]
    web = services[-1]
    assert (web.image, web.command, web.ports) == ("two", ("c",), (80, 81))
    assert web.environment == {"A": "1", "B": "3"}
    assert web.options == ("--volume=named:/y", "--volume=other:/x")
    assert "is merged into compose.yaml" in reported[0]


def test_services_extend_others_and_files_include_files(folder: Path) -> None:
    """Paths begin in the folder of the file that names them."""
    (folder / "base").mkdir()
    (folder / "base/common.env").write_text("COMMON=yes\n")
    (folder / "base/common.yaml").write_text(
        "services:\n  php:\n    build: .\n    env_file: common.env\n    environment: [A=1, B=2]\n"
        "  worker: {extends: php, command: work}\n"
    )
    (folder / "base/cache.yaml").write_text("services: {cache: {image: redis, expose: [6379]}}\n")
    services, _ = read(
        folder,
        "include: [{path: base/cache.yaml}]\n"
        "services:\n"
        "  web:\n    extends: {file: base/common.yaml, service: worker}\n"
        "    environment: {B: 3}\n    depends_on: [cache]\n",
        "web",
    )
    cache, web = services
    assert (cache.name, cache.image, cache.ports) == ("cache", "redis", (6379,))
    assert web.environment == {"COMMON": "yes", "A": "1", "B": "3"}
    assert web.command == ("work",)
    assert web.build
    assert web.build.context == folder / "base"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("include: [none.yaml]\nservices: {a: {image: x}}", r"none.yaml: there is no such file"),
        ("include: [compose.yaml]\nservices: {a: {image: x}}", "include each other"),
        ("services: {a: {extends: {service: b}}}", r"a.extends: .*compose.yaml has no service b"),
        ("services: {a: {extends: b}, b: {extends: a}}", "services that extend each other"),
        ("services: {a: {image: x, secrets: [key]}}", r"a.secrets: key is no file.*\./key.txt"),
    ],
)
def test_what_is_taken_from_nowhere_is_reported(folder: Path, text: str, says: str) -> None:
    with pytest.raises(UserError, match=says):
        read(folder, text)


def test_secrets_and_configs_are_files_of_a_container(folder: Path) -> None:
    (folder / "key.txt").write_text("k")
    (service,) = read(
        folder,
        "services: {a: {image: x, secrets: [key, {source: key, target: other}],\n"
        "  configs: [{source: conf, target: /etc/conf}]}}\n"
        "secrets: {key: {file: ./key.txt}}\nconfigs: {conf: {file: key.txt}}\n",
    )[0]
    path = folder / "key.txt"
    assert set(service.options) == {
        f"--volume={path}:/run/secrets/key:ro",
        f"--volume={path}:/run/secrets/other:ro",
        f"--volume={path}:/etc/conf:ro",
    }


def test_profiles_are_those_of_the_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "services: {web: {image: x, ports: [80]}, debug: {image: x, profiles: [debug]},\n"
        "  mail: {image: x, profiles: [mail, all]}}\n"
    )
    assert [it.name for it in read(folder, text)[0]] == ["web"]
    (folder / ".env").write_text("COMPOSE_PROFILES=all, other\n")
    assert [it.name for it in read(folder, text)[0]] == ["mail", "web"]
    monkeypatch.setenv("COMPOSE_PROFILES", "*")
    assert [it.name for it in read(folder, text)[0]] == ["debug", "mail", "web"]


def test_files_of_variables_are_read_as_compose_does(folder: Path) -> None:
    (folder / "mine.env").write_text(
        "A=1 # one\nB='$A # all'\nC=\"$A\\n${USER_NAME:-me}\" # two\nD=a#b\nE=\nexport F = x\n"
    )
    (service,) = read(
        folder,
        "services: {a: {image: x, env_file: [mine.env, {path: none.env, required: false}],"
        " ports: ['8000-8002:3000-3002']}}",
    )[0]
    assert service.ports == (3000,)
    assert service.environment == {
        "A": "1",
        "B": "$A # all",
        "C": "1\nme",
        "D": "a#b",
        "E": "",
        "F": "x",
    }


def test_what_services_wait_for(folder: Path) -> None:
    services, _ = read(
        folder,
        "services:\n"
        "  web: {image: x, depends_on: {migrate: {condition: service_completed_successfully}}}\n"
        "  migrate: {image: x, depends_on: {db: {condition: service_healthy}}}\n"
        "  db: {image: x, healthcheck: {test: pg_isready -U me}}\n",
        "web",
    )
    found = {it.name: (it.awaits, it.health) for it in services}
    assert found == {
        "db": ("healthy", ("/bin/sh", "-c", "pg_isready -U me")),
        "migrate": ("ended", ()),
        "web": ("", ()),
    }
    with pytest.raises(UserError, match="service_up is no condition"):
        read(
            folder,
            "services: {a: {image: x, depends_on: {b: {condition: service_up}}}, b: {image: x}}",
            "a",
        )


def test_variables_without_a_value_come_from_outside_or_are_named(folder: Path) -> None:
    services, reported = read(
        folder,
        "services: {web: {image: 'x:$TAG', build: {context: ., args: [USER_NAME, NOWHERE]}, "
        "environment: {USER_NAME: }}}",
    )
    assert services[0].build
    assert services[0].build.options == ("--build-arg=USER_NAME",)
    assert services[0].build.variables == {"USER_NAME": "you"}
    assert services[0].environment == {"USER_NAME": "you"}
    assert reported == ["compose.yaml: set by nobody, so empty: TAG"]


def test_a_variable_stands_in_for_another(folder: Path) -> None:
    (service,) = read(folder, "services: {a: {image: 'x:${A:-${B:-1}-${USER_NAME}}'}}")[0]
    assert service.image == "x:1-you"


def test_rights_on_this_machine_are_reported(folder: Path) -> None:
    _, reported = read(
        folder,
        "services:\n"
        "  web: {image: x, privileged: true, volumes: ['/:/host', './data:/d'], ports: ['1:80']}\n"
        "  api: {image: x, cap_add: [ALL], ports: ['2:80']}\n",
        "web",
    )
    (rights,) = reported
    assert "web.privileged, web.volumes /, api.cap_add ALL" in rights


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
        found = compose_services([file], "", "here", lambda _: None)
    except UserError:
        return
    assert {it.name for it in found} <= services.keys()


def test_values_of_arguments_stand_in_no_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for those of names by which the engine itself works, with another value."""
    for name in ("MINE", "DOCKER_HOST", "https_proxy", "DOCKER_PASSWORD"):
        monkeypatch.setenv(name, "already")
    arguments = (
        "{TOKEN: s3cret, MINE: other, a-b: x, DOCKER_HOST: h, https_proxy: p, DOCKER_PASSWORD: pw}"
    )
    (folder / "compose.yaml").write_text(
        f"services: {{web: {{build: {{context: ., args: {arguments}}}}}}}\n"
    )
    (mine,) = compose_services([folder / "compose.yaml"], "", "here", print)
    assert mine.build
    assert mine.build.variables == {"TOKEN": "s3cret", "MINE": "other", "DOCKER_PASSWORD": "pw"}
    assert mine.build.options == (
        "--build-arg=TOKEN",
        "--build-arg=MINE",
        "--build-arg=a-b=x",
        "--build-arg=DOCKER_HOST=h",
        "--build-arg=https_proxy=p",
        "--build-arg=DOCKER_PASSWORD",
    )
    (its,) = compose_services([folder / "compose.yaml"], "", "here", print, folder)
    assert its.build
    assert its.build.variables == {}, "who wrote it would choose what the engine runs with"


def test_files_that_include_each_other_often_come_to_an_end(tmp_path: Path) -> None:
    """19 files that each include the next ten times would be read 10^19 times."""
    for number in range(19):
        names = ", ".join([f"{number + 1}.yaml"] * 10)
        (tmp_path / f"{number}.yaml").write_text(f"include: [{names}]\n")
    (tmp_path / "19.yaml").write_text("services: {web: {image: x}}\n")
    with pytest.raises(UserError, match="include each other"):
        compose_services([tmp_path / "0.yaml"], "", "here", print)


def test_an_example_stands_in_the_place_of_a_file_of_variables(folder: Path) -> None:
    (folder / ".env").unlink(missing_ok=True)
    (folder / ".env.sample").write_text("NAME=shop\n")
    (folder / "web.env.example").write_text("MODE=fast\n")
    text = "services: {web: {image: '${NAME}', env_file: [.env, web.env]}}"
    (service,), notes = read(folder, text)
    assert service.image == "shop"
    assert service.environment == {"NAME": "shop", "MODE": "fast"}
    assert any(".env.sample, web.env.example stands in the place" in note for note in notes)


def test_a_folder_that_is_not_there_begins_empty(folder: Path) -> None:
    (service,), _ = read(folder, "services: {a: {image: x, volumes: ['./data/db:/data:rw']}}")
    assert service.options == ("--volume=/data",)


def test_what_depends_on_the_asked_service_is_not_started(folder: Path) -> None:
    """A proxy ends where nobody has the name that it leads to."""
    services, reported = read(folder, SHOP, "web")
    assert [it.name for it in services] == ["db", "web"]
    assert reported == ["compose.yaml: not started, since it depends on web: proxy"]
