"""What users hand over as files, by the command line: each case in a process with limits."""

import copy
import gzip
import json
import os
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import tomli_w

from audit.texts import RECORDED
from evidence.histories import history_of
from fuzz import nasty, test_configurations, test_logs, test_web_configurations
from fuzz.child import typed
from fuzz.driver import check_end, each_case, sweep
from fuzz.moving import damaged

PROJECT = """
title = "t"
site = "static"

[app]
build = "true"
start = "./server --port $PORT"
dir = "."
ready = "/"
environment = { A = "b" }

[load]
connections = 8
paths = ["/hello.txt"]

[measure]
slot_s = 0.5
precision = "2%"

[[requests]]
path = "/a"
method = "GET"
"""
PROJECT_KEYS = [
    "app",
    "start",
    "settings",
    "requests",
    "needs",
    "variants",
    "secret",
    "version",
    "setup",
]
LAUGHS = {
    "nginx": ("include {};\n", "events {} http { server { listen 80; } }\n"),
    "apache": ("Include {}\n", "Listen 80\n"),
    "haproxy": ("#{}\n", "frontend a\n  bind :80\n"),
    "caddy": ("import {}\n", ":80 {\n}\n"),
    "lighttpd": ('include "{}"\n', "server.port = 80\n"),
}
"""How each server includes a file, and the least that it listens with."""
SITES: Mapping[str, str] = {
    "nginx": "server {{ listen {port}; server_name {name}; location / {{ return 200; }} }}\n",
    "apache": "<VirtualHost *:{port}>\n ServerName {name}\n DocumentRoot /srv\n</VirtualHost>\n",
    "haproxy": "listen {name}{at}\n mode http\n bind :{port}\n server a 127.0.0.1:9\n",
    "caddy": "http://{name}:{port} {{\n respond ok\n}}\n",
    "lighttpd": '$SERVER["socket"] == ":{port}" {{ $HTTP["host"] == "{name}" {{ }} }}\n',
}
"""One more site of a configuration."""
TEXTS = {
    "nginx": test_configurations.NGINX,
    "haproxy": test_configurations.HAPROXY,
    **test_web_configurations.TEXTS,
}
PIECES = [*test_configurations.PIECES, *test_web_configurations.PIECES]
TEMPLATES = [
    "{{ port }}",
    "{% for a in b %}",
    "${PORT}",
    "$PORT",
    "{$PORT}",
    "{env.PORT}",
    "<%= x %>",
]
LAYOUTS = {
    "nginx": ["/etc/nginx/sites-enabled/*", "/usr/local/etc/nginx/x", "/etc/nginx/conf.d/*.conf"],
    "apache": ["/etc/apache2/mods-enabled/*.load", "conf/extra/*.conf", "/etc/httpd/conf.d/*.conf"],
    "haproxy": ["/etc/haproxy/conf.d/*.cfg"] * 3,
    "caddy": ["/etc/caddy/conf.d/*", "sites/*.caddy", "/usr/share/caddy/x"],
    "lighttpd": ["/etc/lighttpd/conf-enabled/*.conf", "conf.d/*.conf", "/usr/share/lighttpd/x"],
}


def _configuration(folder: Path, random: Random, server: str) -> str:
    """Write a configuration of several files; give the name of the first."""
    include, least = LAUGHS[server]
    kind = random.randrange(6)
    text = TEXTS[server] if server != "haproxy" or kind != 0 else least
    name = "mine.conf"
    if kind == 0:  # each file includes the next several times, or itself
        depth, times = random.choice([(18, 3), (1, 1), (40, 2), (300, 1)])
        for level in range(depth):
            following = (
                f"part{level + 1}.conf"
                if level + 1 < depth
                else random.choice([name, "part0.conf", "/dev/zero", "pipe", "none.conf", "*", "."])
            )
            (folder / f"part{level}.conf").write_text(include.format(following) * times)
        os.mkfifo(folder / "pipe")
        text = include.format("part0.conf") + least
    elif kind == 1:
        wide = [
            SITES[server].format(
                port=random.choice([80, 81, 8080, 443, 0, 70000]),
                at=at,
                name=random.choice(["a.example", "*.b", "_", "é", "[::1]"]),
            )
            for at in range(random.choice([2, 50, 3000]))
        ]
        text = least + "".join(wide)
        if server == "nginx":
            text = f"events {{}} http {{ {''.join(wide)} }}\n"
    elif kind == 2:
        text = random.choice(["\n", " ", "# x\n", "a", "{", '"', "\\\n", "x;\n"]) * 200_000
    elif kind == 3:
        text += include.format(random.choice(LAYOUTS[server]))
    elif kind == 4:
        for _ in range(random.randint(1, 4)):
            at = random.randrange(len(text))
            text = text[:at] + random.choice(TEMPLATES) + text[at:]
        name = random.choice(["mine.conf", "mine.conf.template", "mine.conf.j2"])
    text = damaged(random, text, PIECES, random.choice([0, 0, 2]))
    (folder / name).write_text(text, encoding="utf-8")
    return name


def conf(folder: Path, random: Random) -> list[str]:
    """A configuration of a server."""
    server = random.choice(list(TEXTS))
    name = _configuration(folder, random, server)
    words = ["up", f"conf:{server}:{name}", "--yes"]
    if random.random() < 0.4:
        words += ["--env", f"PORT={nasty.value(random)}".replace("\0", "")[:3000]]
    if random.random() < 0.2:
        words += ["--set", f"workers={nasty.value(random)}".replace("\0", "")]
    return words


def har(folder: Path, random: Random) -> list[str]:
    """A recording of a browser."""
    data = copy.deepcopy(test_logs.HAR)
    for _ in range(random.choice([0, 1, 2, 5])):
        nasty.changed(data, random, ["url", "headers", "timings", "entries"])
    text = json.dumps(data)
    if random.random() < 0.3:
        text = nasty.bent(text, random)
    (folder / "mine.har").write_text(text, encoding="utf-8", errors="surrogatepass")
    _perhaps_no_file(folder / "mine.har", random)
    return random.choice(
        [["run", "static-hello", "--traffic", "mine.har"], ["traffic", "mine.har"]]
    )


def log(folder: Path, random: Random) -> list[str]:
    """A log, perhaps compressed."""
    lines = "\n".join(random.choices(test_logs.LINES, k=random.randint(1, 30))).encode()
    content = test_logs.damaged(random, lines)
    if random.random() < 0.1:
        content = b"\n" * 2**24
    name = random.choice(["mine.log", "mine.log.gz"])
    packed = gzip.compress(content, 1) if name.endswith("gz") else content
    if random.random() < 0.3:
        packed = packed[: random.randrange(len(packed) + 1)]
    (folder / name).write_bytes(packed)
    _perhaps_no_file(folder / name, random)
    return ["traffic", name, *random.choice([[], ["--twin"], ["-o", "out.toml"]])]


def audit(folder: Path, random: Random) -> list[str]:
    """What another program printed."""
    texts = sorted(RECORDED.iterdir())
    text = random.choice(texts).read_text(encoding="utf-8")
    for _ in range(random.choice([1, 2])):
        text = nasty.bent(text, random) or " "
    (folder / "mine.txt").write_text(text, encoding="utf-8", errors="surrogatepass")
    _perhaps_no_file(folder / "mine.txt", random, pipes=False)  # it waits for what comes of one
    return ["audit", "mine.txt", *random.choice([[], ["--format=json"]])]


def history(folder: Path, random: Random) -> list[str]:
    """A history of gates."""
    curves = {("/", "server_cpu_us"): [1.0, 1.1] * 4, ("/a", "throughput_rps"): [0.9] * 8}
    gates = [json.loads(gate.model_dump_json()) for gate in history_of(curves)]
    for _ in range(random.choice([0, 1, 2])):
        nasty.changed(random.choice(gates), random, ["ratios", "head", "machine", "measured_at"])
    text = "\n".join(map(json.dumps, gates))
    if random.random() < 0.3:
        text = nasty.bent(text, random)
    (folder / "mine.jsonl").write_text(text, encoding="utf-8", errors="surrogatepass")
    _perhaps_no_file(folder / "mine.jsonl", random)
    return ["report", "mine.jsonl"]


def project(folder: Path, random: Random) -> list[str]:
    """A webdyno.toml."""
    data: dict[str, Any] = tomllib.loads(PROJECT)
    for _ in range(random.choice([1, 1, 2])):
        nasty.changed(data, random, PROJECT_KEYS)
    text = tomli_w.dumps(data)
    if random.random() < 0.3:
        text = nasty.bent(text, random)
    path = folder / "webdyno.toml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    _perhaps_no_file(path, random)
    (folder / "server").write_text("#!/bin/sh\n")
    for words in (["init", "-q"], ["add", "-f", "server"], [*IDENTITY, "commit", "-qm", "x"]):
        subprocess.run(["/usr/bin/git", *words], cwd=folder, check=True)
    return random.choice(
        [
            ["up", "rev:.", "--yes"],
            ["compare", "rev:.", "rev:.", "--yes"],
            ["gate", "--yes"],
            ["init"],
        ]
    )


IDENTITY = ["-c", "user.name=x", "-c", "user.email=x@example.org"]


def _perhaps_no_file(path: Path, random: Random, *, pipes: bool = True) -> None:
    if random.random() < 0.06:
        path.unlink()
        what = random.choice([*["pipe"] * pipes, "device", "folder", "large"])
        if what == "pipe":
            os.mkfifo(path)
        elif what == "device":
            path.symlink_to("/dev/zero")
        elif what == "folder":
            path.mkdir()
        else:
            path.touch()
            os.truncate(path, 2**42)


@sweep(quick=0, whole=80)
@pytest.mark.parametrize("make", [conf, har, log, audit, history, project])
def test_a_file_is_read_or_refused(
    tmp_path: Path,
    open_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[Path, Random], list[str]],
    seed: int,
    cases: range,
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("webdyno.systems.conf.passing._addresses", lambda _: ["127.0.0.1"])

    def one(case: int) -> None:
        random = Random(f"{seed}/{make.__name__}/{case}")
        folder = open_folder / str(case)
        folder.mkdir()
        check_end(typed(make(folder, random), folder), complains=make is not audit)

    each_case(seed, cases, one)
