"""Versions that lock files pin."""

from pathlib import Path

import pytest

from webdyno.config import Catalogue
from webdyno.core.errors import UserError
from webdyno.servers.output import locked_versions

FILES = {
    "requirements.txt": ("uvicorn[standard]==0.38.0 \\\n    --hash=sha256:00\n", "uvicorn"),
    "uv.lock": ('[[package]]\nname = "uvicorn"\nversion = "0.38.0"\n', "uvicorn"),
    "Cargo.lock": ('[[package]]\nname = "axum"\nversion = "0.38.0"\n', "axum"),
    "go.mod": (
        "module x\n\nrequire github.com/go-chi/chi/v5 v0.38.0\n",
        "github.com/go-chi/chi/v5",
    ),
    "package-lock.json": (
        '{"packages": {"node_modules/@hono/node-server": {\n  "version": "0.38.0"}}}',
        "@hono/node-server",
    ),
    "Gemfile.lock": ("GEM\n  specs:\n    rack (0.38.0)\n    rack-test (1.0)\n", "rack"),
    "composer.lock": ('{"name": "slim/slim",\n "version": "v0.38.0"}', "slim/slim"),
    "pom.xml": (
        "<dependency><artifactId>vertx-web</artifactId>\n<version>0.38.0</version></dependency>",
        "vertx-web",
    ),
}


def service(folder: Path, package: str) -> Path:
    mine = folder / "services" / "mine"
    (mine / "program").mkdir(parents=True)
    (mine / "service.toml").write_text(
        'title = "t"\nprotocol = "http"\nstart = ["x"]\n[build]\ncommands = [["true"]]\n'
        f'packages = ["{package}"]\n'
    )
    return mine / "program"


@pytest.mark.parametrize("name", FILES)
def test_the_version_of_a_package(name: str, tmp_path: Path) -> None:
    text, package = FILES[name]
    (service(tmp_path, package) / name).write_text(text)
    assert locked_versions(Catalogue.load([tmp_path]).services["mine"], {}) == {package: "0.38.0"}


def test_several_in_a_block_of_go(tmp_path: Path) -> None:
    text = "module x\n\nrequire (\n\texample.org/a v1.2.3\n\texample.org/ab v4.5.6 // indirect\n)\n"
    (service(tmp_path, "example.org/ab") / "go.mod").write_text(text)
    found = locked_versions(Catalogue.load([tmp_path]).services["mine"], {})
    assert found == {"example.org/ab": "4.5.6"}


def test_a_package_that_no_lock_file_has_is_named(tmp_path: Path) -> None:
    (service(tmp_path, "flask") / "requirements.txt").write_text("flask-login==1.0\n")
    with pytest.raises(UserError, match=r"mine/service.toml: build.packages: .* has flask; lock"):
        locked_versions(Catalogue.load([tmp_path]).services["mine"], {})


def test_a_package_that_a_setting_brings_in(tmp_path: Path) -> None:
    program = service(tmp_path, "flask")
    (program / "requirements.txt").write_text("flask==3.1\ndjango==5.2\n")
    definition = program.parent / "service.toml"
    definition.write_text(
        definition.read_text().replace(
            '["flask"]', '[{ name = "flask", when = { app = "flask" } }, "django"]'
        )
        + '[settings.app]\ntype = "choice"\nchoices = ["flask", "bare"]\ndefault = "flask"\n'
        + 'help = "h"\n'
    )
    mine = Catalogue.load([tmp_path]).services["mine"]
    assert locked_versions(mine, {}) == {"flask": "3.1", "django": "5.2"}
    assert locked_versions(mine, {"app": "bare"}) == {"django": "5.2"}


def test_all_of_ours_are_there() -> None:
    for mine in Catalogue.load().services.values():
        assert all(version[0].isdigit() for version in locked_versions(mine, {}).values()), (
            mine.name
        )
