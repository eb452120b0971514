"""Short files that would take all time or memory: each is read, or refused, at once.

What takes for ever shows by itself: these tests would not end.
"""

import json
import re
from pathlib import Path

import pytest

from webdyno.config.personal import parsed_json, without_personal
from webdyno.config.reading import TomlFile
from webdyno.core.errors import UserError
from webdyno.core.tables import read_toml
from webdyno.systems import layouts
from webdyno.systems.conf import nginx_read
from webdyno.systems.containers.compose_file import read_compose, variables_of
from webdyno.systems.layouts import (
    cmake,
    compose,
    containers,
    django,
    dockerfile,
    fills,
    jvm,
    logins,
    node_environment,
    packages,
    php_and_ruby,
    python,
    python_fills,
    python_tools,
    settings,
    start_scripts,
    typed_settings,
    variables,
)
from webdyno.systems.layouts.app import FoundApp, matching
from webdyno.systems.layouts.mounted import untried_paths
from webdyno.systems.layouts.routes import routes_of_openapi, routes_of_sources
from webdyno.systems.layouts.variables import fixed_address

MANY = 200_000
"""Characters, as many as are read of a source."""


def test_merged_tables_of_merged_tables() -> None:
    """Of forty, each of the one before twice, YAML would make a table of 2^40."""
    doubled = "".join(f"a{i}: &a{i} {{<<: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 40))
    assert routes_of_openapi(f"openapi: 3.0.0\na0: &a0 {{k: v}}\n{doubled}") == []
    document = "openapi: 3.0.0\nx: &x {get: {}}\npaths: {/a: *x, /b: {<<: *x}}\n"
    assert [route.path for route in routes_of_openapi(document)] == ["/a", "/b"]


def test_variables_of_variables(tmp_path: Path) -> None:
    (file := tmp_path / ".env").write_text(
        "A0=xxxxxxxxxx\n" + "".join(f"A{i}=${{A{i - 1}}}${{A{i - 1}}}\n" for i in range(1, 60))
    )
    with pytest.raises(UserError, match="have them name fewer others"):
        variables_of(file, "here", {})
    file.write_text(f"LONG={'x' * 100_000}\n")
    compose = tmp_path / "compose.yaml"
    compose.write_text(f"services: {{a: {{command: '{'$LONG' * 10_000}'}}}}\n")
    with pytest.raises(UserError, match="have them name fewer others"):
        read_compose([compose], "here")
    file.write_text("A=1\nB=${A}2\nA=3\n")
    assert variables_of(file, "here", {}) == {"A": "3", "B": "12"}


@pytest.mark.parametrize(
    "text",
    [
        *("\n", " ", "a.", "a/", "a-", "CMD x ", "path(", "fastapi[", "@app.cli.command(\n", "/*"),
        *("//", "flask --a ", "cargo run ", "redis:", "npm run "),
    ],
)
def test_sources_of_one_thing(text: str) -> None:
    source = text * (MANY // len(text)) + "y"
    of_python = (django, python, python_fills, python_tools)
    of_node = (fills, node_environment)
    of_containers = (compose, containers, dockerfile, start_scripts)
    others = (jvm, layouts, logins, php_and_ruby, settings, typed_settings, variables)
    for module in (*of_python, *of_node, *of_containers, *others):
        for pattern in vars(module).values():
            if isinstance(pattern, re.Pattern):
                for _ in pattern.finditer(source):
                    pass


@pytest.mark.parametrize(
    ("file", "begins", "text"),
    [
        ("a.ts", "@Controller()\nclass A {", "@Get( "),
        ("a.ts", "@Controller()\nclass A {@Get(", " "),
        ("a.ts", "@Controller()", "@xfinal"),
        ("a.ts", "", "@Controller()"),
        ("a.java", "@RequestMapping('')", "@xfinal"),
        ("a.java", "@Path('/a') class A {", "@GET "),
        ("a.java", "@Path('/a') class A {@GET", "@x("),
        ("a.java", "@Path('/a')", "@xfinal"),
        ("a.php", "#[Route('/a')]", "#[a]"),
        ("a.php", "", "#[Route('/a')]"),
        ("a.php", "", "#[Route('/a')]\n"),
        ("a.js", "get('/", "{a:"),
        ("a.js", "", "run("),
        ("a.js", "", "runrun"),
        ("a.js", "", "serve({port:"),
    ],
)
def test_sources_whose_classes_and_calls_never_end(
    tmp_path: Path, file: str, begins: str, text: str
) -> None:
    (tmp_path / file).write_text(begins + text * (MANY // len(text)) + "'")
    routes_of_sources(tmp_path)
    assert fixed_address(tmp_path) is None


def test_keys_of_very_many_parts(tmp_path: Path) -> None:
    (file := tmp_path / "a.toml").write_text("a." * MANY + "a = 1\n")
    assert read_toml(file) == {}
    with pytest.raises(UserError, match=r"a\.toml.*key of more than 50 parts"):
        TomlFile(file)
    file.write_text("a" + " = {a" * 5_000)
    assert read_toml(file) == {}
    file.write_text('a."b.c".d = [1.0, 2.0]\n' + "x = [" + "1.5, " * 100 + "]")
    assert read_toml(file) == {"a": {"b.c": {"d": [1.0, 2.0]}}, "x": [1.5] * 100}


def test_workspaces_whose_members_lie_anywhere(tmp_path: Path) -> None:
    (inner := tmp_path / "a/b/c/d/e/f/g/h/i/j/k/l").mkdir(parents=True)
    assert matching(tmp_path, ["**/" * 40 + "x", "*/" * 12]) == []
    assert matching(tmp_path, ["a/*/*/*"]) == [tmp_path / "a/b/c/d"]
    assert inner in matching(tmp_path, ["**"])


@pytest.mark.parametrize("text", ["sqlx ", 'sqlx"po', "diesel"])
def test_packages_of_no_database(text: str) -> None:
    for driver in packages.DRIVERS.values():
        assert not driver.search(text * MANY)


@pytest.mark.parametrize("begins", ["#[derive(Deserialize)]", "#[arg(env)]"])
def test_attributes_without_an_end(begins: str) -> None:
    for text in ("#[a]" * 60, "#[a] " * 60, "#[a]\n" * 60):
        assert not list(typed_settings._of_rust(f"envy::from_env {begins}{text}!"))


def test_a_call_of_blanks() -> None:
    assert not cmake.CALL.search("set(" + " " * MANY)


def test_a_procfile_of_blanks() -> None:
    assert layouts.PROCFILE_LINE.findall("web: x" + "\t" * MANY + "y\t\r\n") == [
        ("web", "x" + "\t" * MANY + "y")
    ]


def test_images_of_one_word() -> None:
    assert not compose.OF_OTHERS.fullmatch("kafka" * MANY + " x")


def test_instructions_are_read_as_ever() -> None:
    text = 'FROM a AS b \n  cmd  ["x"]\t\r\nCMD\nENTRYPOINT y'
    found = [match.groups() for match in start_scripts.INSTRUCTION.finditer(text)]
    assert found == [("FROM", "a AS b"), ("cmd", '["x"]'), ("ENTRYPOINT", "y")]


def test_blocks_that_never_begin() -> None:
    """As `map` is a word of comments and paths, too."""
    nginx_read._DEFINED_BY_BLOCK.findall("map " * MANY)


def test_bodies_without_end() -> None:
    def named(field: str) -> str:
        return f"${{{field}}}"

    long = b"a" * MANY * 5
    assert without_personal(long, "text/plain", named) == long
    assert without_personal(b"to a.b@c.d " + long, "text/plain", named).startswith(b"to ${email} ")
    lines = b"name=a\n\n" * MANY
    assert without_personal(lines, "multipart/form-data", named) == lines
    form = b'--x\r\nContent-Disposition: form-data; name="password"\r\n\r\n4711\r\n--x--\r\n'
    assert b'name="password"\r\n\r\n${password}\r\n--x--' in without_personal(
        form, "multipart/form-data; boundary=x", named
    )
    for depth in (150, 300, 600, 900):
        nested = "[" * depth + "]" * depth
        assert without_personal(nested.encode(), "application/json", named) == nested.encode()
        assert (parsed_json(nested) is None) == (depth > 200)


def test_half_a_character_of_an_example_is_no_defect(tmp_path: Path) -> None:
    parameter = {"name": "q\udc00", "in": "query", "required": True, "example": "\ud800"}
    paths = {
        "/x/{q}": {"get": {"parameters": [parameter, {**parameter, "name": "q", "in": "path"}]}}
    }
    (tmp_path / "openapi.json").write_text(json.dumps({"openapi": "3.0.0", "paths": paths}))
    assert untried_paths(FoundApp("x", "start"), tmp_path) is not None
