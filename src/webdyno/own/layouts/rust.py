"""Applications that Cargo builds: which of a package's or workspace's programs listens."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.own.layouts.app import FoundApp
from webdyno.own.layouts.files import MOST_MEMBERS, matching, read_text, read_toml, table

MANIFEST = "Cargo.toml"
LISTENS = re.compile(
    r"TcpListener::bind|HttpServer::new|axum::serve|rocket::build|warp::serve|Server::bind"
    r"|#\[launch\]|#\[rocket::main\]|poem::Server|salvo::|tide::|\.listen\("
)
ROCKET = re.compile(
    r"rocket::build|#\[launch\]|#\[rocket::main\]|#\[macro_use\] extern crate rocket"
)


def find_in(folder: Path) -> FoundApp | None:
    """Find the program that listens."""
    top = read_toml(folder / MANIFEST)
    if top is None:
        return None
    packages = [folder, *matching(folder, table(top, "workspace").get("members"))]
    programs = {
        name: path
        for each in packages
        for name, path in _programs(each, read_toml(each / MANIFEST) or {})
    }
    has_lock = (folder / "Cargo.lock").is_file()
    doubts = () if has_lock else ("there is no Cargo.lock: each build may take other versions",)
    locked = " --locked" if has_lock else ""
    apps = {
        name: FoundApp(
            MANIFEST,
            f"./target/release/{name}",
            f"cargo build --release{locked} --bin {name}",
            doubts=doubts,
            notes=("built with --release",),
        )
        for name in programs
    }
    texts = {name: "\n".join(_texts(path)) for name, path in programs.items()}
    chosen = [name for name, text in texts.items() if LISTENS.search(text)] or list(programs)
    apps = {name: _listening(apps[name], texts[name]) for name in chosen}
    if len(chosen) == 1:
        return apps[chosen[0]]
    several = f"{MANIFEST} has several programs" if chosen else ""
    return FoundApp(MANIFEST, several=several, choices=apps)


def _listening(app: FoundApp, text: str) -> FoundApp:
    """Give a program of Rocket its port by Rocket's own variables."""
    if not ROCKET.search(text):
        return app
    start = f"ROCKET_ADDRESS=127.0.0.1 ROCKET_PORT=$PORT ROCKET_LOG_LEVEL=critical {app.start}"
    return replace(app, start=start)


def _programs(folder: Path, manifest: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """Give the names of a package's programs, each with its main file."""
    bins = manifest.get("bin")
    named = (
        [binary for binary in bins if isinstance(binary, dict)] if isinstance(bins, list) else []
    )
    for binary in named:
        if isinstance(binary.get("name"), str):
            usual = f"src/bin/{binary['name']}.rs"
            main = usual if (folder / usual).is_file() else "src/main.rs"
            yield binary["name"], folder / str(binary.get("path", main))
    name = table(manifest, "package").get("name")
    if not named and isinstance(name, str) and (folder / "src/main.rs").is_file():
        yield name, folder / "src/main.rs"
    known = {binary.get("name") for binary in named}
    for path in sorted((*folder.glob("src/bin/*.rs"), *folder.glob("src/bin/*/main.rs"))):
        own = path.stem if path.stem != "main" else path.parent.name
        if own not in known:
            yield own, path


def _texts(main: Path) -> Iterator[str]:
    """Give the text of a program, and of the modules next to its main file."""
    top = main.parent
    others = [] if top.name == "bin" else sorted(top.rglob("*.rs"))
    modules = [other for other in others if "bin" not in other.relative_to(top).parts]
    for path in (main, *modules[:MOST_MEMBERS]):
        yield read_text(path) or ""
