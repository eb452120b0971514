"""Compose files with aliases, tags, numbers, merges and cycles: read or refused, within limits."""

import copy
from pathlib import Path
from random import Random
from typing import Any

import yaml

from fuzz import nasty
from fuzz.child import read
from fuzz.driver import check_end, each_case, sweep
from fuzz.moving import damaged
from webdyno.core.errors import Exit
from webdyno.systems.containers.compose import ComposeService, compose_services

GOOD = """
x-common: &common
  restart: always
  environment: &env {LEVEL: info, COUNT: 3, DEBUG: true}
services:
  db: {image: "postgres:16", environment: {<<: *env, PASSWORD: "${PASSWORD:-x}"}}
  cache: {<<: *common, image: redis, tmpfs: [/tmp], sysctls: {net.core.somaxconn: 1024}}
  web:
    <<: [*common]
    build: {context: ., dockerfile: Dockerfile, args: {A: 1}, target: final}
    ports: ["127.0.0.1:8000:3000/tcp", {target: 9000, published: 9000}]
    expose: [3000]
    depends_on: {db: {condition: service_healthy}, cache: {condition: service_started}}
    command: ["./server", "--log"]
    volumes: ["./data:/data:ro", {type: bind, source: ./data, target: /x}]
    healthcheck: {test: [CMD, "true"], interval: 1s, retries: 3}
    user: "1000"
"""
BOMB = "\n".join(
    f"x-{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 9 if level else ['x'] * 9)}]"
    for level in range(9)
)
PIECES = [
    *(
        "&a ",
        "*a",
        "*common",
        "*env",
        "<<: *common\n",
        "<<: *nobody\n",
        "&a [*a]",
        "!!int abc",
        "08",
    ),
    *(
        '!!timestamp "x"',
        "!!float ''",
        '!!bool "x"',
        "!!binary '%'",
        "!!python/object:os.x {}",
        "!x",
    ),
    *(
        "!!set {a, b}",
        "!!merge x",
        "!reset []",
        "!override {}",
        "9" * 5000,
        "0x" + "f" * 5000,
        ".inf",
    ),
    *(
        "1:2:3",
        "2026-99-99",
        "? [a]\n: b\n",
        "{[a]: b}",
        "---\n",
        "...\n",
        "%YAML 9.9\n---\n",
        "\t",
    ),
    *("\0", "\ufeff", "\u20ac", '"\\ud800"', "${A", "${A:-${A}}", "$$", "{" * 400, "[" * 400, BOMB),
    *("depends_on: [web]\n", "extends: web\n", "include: compose.yaml\n", "env_file: /dev/zero\n"),
    *(
        "- ",
        ": ",
        "\n",
        "\n  ",
        "services: ",
        "image: ",
        "ports: [0, 70000, -1, '1-2:3']\n",
        "null",
    ),
]


def _text(random: Random) -> str:
    if random.random() < 0.5:
        return damaged(random, GOOD, PIECES, 3)
    data: dict[str, Any] = copy.deepcopy(yaml.safe_load(GOOD))
    for _ in range(random.choice([1, 1, 2, 4])):
        nasty.changed(data, random, ["extends", "include", "profiles", "env_file", "cap_add"])
    return yaml.dump(data)


def _checked(services: list[ComposeService]) -> list[str]:
    assert services
    names = [it.name for it in services]
    assert len(names) == len(set(names))
    for it in services:
        assert it.image or it.build
        assert all(0 < port < 65_536 for port in it.ports), it.ports
        texts = [it.name, *it.options, *it.environment, *it.environment.values()]
        assert not [text for text in texts if "\0" in text], it
    return names


@sweep(quick=0, whole=400)
def test_a_damaged_compose_file_is_read_or_refused(tmp_path: Path, seed: int, cases: range) -> None:
    (tmp_path / "data").mkdir()
    path = tmp_path / "compose.yaml"
    ends: list[int] = []

    def one(case: int) -> None:
        random = Random(f"{seed}/compose/{case}")
        path.write_text(_text(random), encoding="utf-8", errors="surrogatepass")
        wanted = random.choice(["web", "web", "db", ""])
        said = read(lambda: _checked(compose_services([path], wanted, "here", lambda _: None)))
        check_end(said)
        ends.append(said.code)

    each_case(seed, cases, one)
    assert len(cases) / 20 < ends.count(Exit.OK) < len(cases)
