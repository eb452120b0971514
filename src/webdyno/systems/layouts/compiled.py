"""Applications that are compiled first: of Go, Rust, .NET and Elixir."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import as_list, is_table, json_table, read_text, read_toml, table
from webdyno.systems.layouts.app import (
    FOR_MEASURING,
    MOST_MEMBERS,
    FoundApp,
    matching,
    sources,
)
from webdyno.systems.layouts.databases import ROLES

GO_LISTENS = re.compile(
    r"ListenAndServe|\bhttp\.Serve(?:TLS)?\(|\bnet\.Listen\("
    r"|\b(?:app|r|e|router|engine|srv|server|s)\.(?:Listen|Run|Start)\("
)
GO_SERVES = re.compile(
    r'"(?:net/http|github\.com/(?:gin-gonic/gin|labstack/echo[\w/]*|gofiber/fiber[\w/]*'
    r'|go-chi/chi[\w/]*|valyala/fasthttp))"'
)
"""Imports of what serves HTTP."""
GO_FLAG = re.compile(
    r"""\b(?:flag|flags|fs|pflag|\w+\.Flags\(\))\.(?:String|Int|Uint)(?:Var)?P?"""
    r"""\(\s*(?:&[\w.]+,\s*)?"(?P<name>[\w.-]+)",\s*(?:"\w?",\s*)?"?(?P<usual>[\w.:\[\]-]*)"?"""
)
GIN = re.compile(r"\.Run\(\)")
"""Gin's server without an address: it listens on $PORT."""
ADDRESS = re.compile(r"[\w.\[\]:-]*:\d{1,5}")
GO_FLAG_NAMES = (
    *("listen", "listen-addr", "addr", "address", "bind", "http", "http-addr", "port", "p"),
)
"""Of flags that say where clients ask, the most saying first."""
GO_OUTPUTS = ("server", "program", "server.out")
"""Names for what is built, the first that is no folder."""
GO_NAMES = re.compile(
    r"(?:(?:rest|http|web|api)[_-]?)?(?:server|api|web|app|http|serve|httpd|site|backend)"
)
"""Of folders whose program serves."""


GO_COMMANDS = re.compile(r"spf13/cobra|urfave/cli")
GO_SERVES_BY = re.compile(
    r"""\b(?:Use|Name):\s*"(?P<word>serve(?:-(?:http|web|api))?|server|start|run|web|http|api|up)(?:["\s])"""
)
"""A word behind a program's name by which it serves."""
GO_MIGRATES_BY = re.compile(r'\b(?:Use|Name):\s*"(?P<word>migrate|migrations?)"')
"""One by which it makes its tables."""


def find_go(folder: Path) -> FoundApp | None:
    """Find the programs of a module, and choose the one that listens."""
    app = _find_go(folder)
    if app is None or app.start is None:
        return app
    texts = [text for path in sources(folder, {".go"}) if (text := read_text(path))]
    if not any(map(GO_COMMANDS.search, texts)):
        return app
    words = {match["word"] for text in texts for match in GO_SERVES_BY.finditer(text)}
    if len(words) != 1 or " " in app.start.removeprefix("./"):
        return app
    (word,) = words
    migrating = next(filter(None, map(GO_MIGRATES_BY.search, texts)), None)
    setup = f"{app.start} {migrating['word']}" if migrating else None
    return replace(app, start=f"{app.start} {word}", setup=setup)


def _find_go(folder: Path) -> FoundApp | None:
    if not (folder / "go.mod").is_file():
        return None
    mains = filter(_is_go_main, sources(folder))
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", doubts=("go.mod has no program: no package main",))
    out = next(output for output in GO_OUTPUTS if not (folder / output).is_dir())
    texts = {
        program: "\n".join(
            read_text(path) or "" for path in sorted((folder / program).glob("*.go"))
        )
        for program in folders
    }
    programs = {program: _go_program(program, text, out) for program, text in texts.items()}
    if len(folders) == 1:
        return programs[folders[0]]
    listening = [program for program in folders if GO_LISTENS.search(texts[program])]
    listening = listening or [program for program in folders if GO_SERVES.search(texts[program])]
    named = [name for name in listening or folders if GO_NAMES.fullmatch(Path(name).name)]
    of_image = [name for name in listening if _is_built_by_image(folder, name)]
    likely = listening if len(listening) == 1 else named or of_image or listening
    if len(likely) == 1:
        app = programs[likely[0]]
        how = "it alone listens" if len(listening) == 1 else "by its name"
        note = f"of {len(folders)} programs ({', '.join(folders)}) {likely[0]} is taken: {how}"
        return replace(app, notes=(note, *app.notes))
    several = likely or folders
    choices = {program: programs[program] for program in several}
    return FoundApp("go.mod", several="go.mod has several programs", choices=choices)


def _is_built_by_image(folder: Path, program: str) -> bool:
    text = "".join(read_text(folder / name) or "" for name in ("Containerfile", "Dockerfile"))
    return re.search(rf"\bgo build\b[^\n]*[ /]{re.escape(program)}/?(?=\s|$)", text) is not None


def _go_program(folder: str, text: str, out: str) -> FoundApp:
    package = "." if folder == "." else f"./{folder}"
    build = f"go build -o {out} {package}"
    flags = {
        name: usual
        for name, usual in GO_FLAG.findall("" if '"PORT"' in text else text)
        if ADDRESS.fullmatch(usual) or (usual.isdecimal() and name in {"port", "p", "http-port"})
    }
    flag = next((name for name in GO_FLAG_NAMES if name in flags), None)
    if flag is None:
        heeds_port = "gin-gonic/gin" in text and GIN.search(text) is not None
        return FoundApp("go.mod", f"./{out}", build, heeds_port=heeds_port)
    address = "$PORT" if flags[flag].isdecimal() else "127.0.0.1:$PORT"
    start, doubts = [f"./{out}", f"-{flag} {address}"], []
    for name, usual in flags.items():
        if name != flag and ADDRESS.fullmatch(usual):
            start.append(f"-{name} 127.0.0.1:0")
            doubts.append(
                f"-{name} is another listener, on {usual} unless set: both variants run at the "
                "same time, so it gets any free port"
            )
    return FoundApp("go.mod", " ".join(start), build, doubts=tuple(doubts))


def _is_go_main(path: Path) -> bool:
    if path.suffix != ".go" or path.name.endswith("_test.go"):
        return False
    text = read_text(path) or ""
    is_left_out = re.search(r"^//go:build ignore|^// \+build ignore", text, re.MULTILINE)
    return "\npackage main" in f"\n{text}" and not is_left_out


CARGO, RUST_MAIN = "Cargo.toml", "src/main.rs"
RUST_LISTENS = re.compile(
    r"TcpListener::bind|HttpServer::new|axum::serve|rocket::build|warp::serve|Server::bind"
    r"|#\[launch\]|#\[rocket::main\]|poem::Server|salvo::|tide::|\.listen\("
)
ROCKET = re.compile(
    r"rocket::build|#\[launch\]|#\[rocket::main\]|#\[macro_use\] extern crate rocket"
)


def find_rust(folder: Path) -> FoundApp | None:
    """Find the program that listens."""
    top = read_toml(folder / CARGO)
    if top is None:
        return None
    packages = [folder, *matching(folder, table(top, "workspace").get("members"))]
    mains = {name: main for package in packages for name, main in _cargo_programs(package)}
    texts = {name: "\n".join(_rust_texts(main)) for name, main in mains.items()}
    by_themselves = {name: read_text(main) or "" for name, main in mains.items()}
    listening = (
        [name for name, text in each.items() if RUST_LISTENS.search(text)]
        for each in (by_themselves, texts)
    )
    chosen = next(filter(None, listening), list(texts))
    has_lock = (folder / "Cargo.lock").is_file()
    locked = " --locked" if has_lock else ""
    doubts = () if has_lock else ("there is no Cargo.lock: each build may take other versions",)
    apps = {}
    for name in chosen:
        start, build = f"./target/release/{name}", f"cargo build --release{locked} --bin {name}"
        if (folder / ".sqlx").is_dir() or (folder / "sqlx-data.json").is_file():
            build = f"SQLX_OFFLINE=true {build}"
        if ROCKET.search(texts[name]):
            start = f"ROCKET_ADDRESS=127.0.0.1 ROCKET_PORT=$PORT ROCKET_LOG_LEVEL=critical {start}"
        apps[name] = FoundApp(CARGO, start, build, doubts=doubts, notes=("built with --release",))
    if len(chosen) == 1:
        return apps[chosen[0]]
    several = f"{CARGO} has several programs" if chosen else ""
    return FoundApp(CARGO, several=several, choices=apps)


def _cargo_programs(folder: Path) -> Iterator[tuple[str, Path]]:
    manifest = read_toml(folder / CARGO) or {}
    named = list(filter(is_table, as_list(manifest.get("bin"))))
    of_named = set[Path]()
    for binary in named:
        if isinstance(binary.get("name"), str):
            usual = f"src/bin/{binary['name']}.rs"
            main = usual if (folder / usual).is_file() else RUST_MAIN
            place = folder / str(binary.get("path", main))
            of_named.add(place)
            yield binary["name"], place
    name, usual_main = table(manifest, "package").get("name"), folder / RUST_MAIN
    if isinstance(name, str) and usual_main.is_file() and usual_main not in of_named:
        yield name, usual_main
    known = {binary.get("name") for binary in named}
    for path in sorted((*folder.glob("src/bin/*.rs"), *folder.glob("src/bin/*/main.rs"))):
        own = path.stem if path.stem != "main" else path.parent.name
        if own not in known:
            yield own, path


def _rust_texts(main: Path) -> Iterator[str]:
    top = main.parent
    others = [] if top.name == "bin" else sorted(top.rglob("*.rs"))
    modules = [other for other in others if "bin" not in other.relative_to(top).parts]
    for path in (main, *modules[:MOST_MEMBERS]):
        yield read_text(path) or ""


DOTNET_WEB = re.compile(r'Sdk="Microsoft\.NET\.Sdk\.Web"')
ASSEMBLY = re.compile(r"<AssemblyName>([\w.-]+)</AssemblyName>")
SETTINGS = ("appsettings.json", "appsettings.Production.json", "appsettings.Development.json")
OF_DOTNET = {"ConnectionStrings", "Logging"}
OF_DEVELOPMENT = (
    "appsettings.Development.json alone has {names}, which its sources name: environment.NAME__KEY "
    "below [app] gives what Production needs of it"
)
CONNECTIONS = re.compile(r'"ConnectionStrings"\s{0,9}:\s{0,9}\{([^{}]*)\}')
CONNECTION = re.compile(r'"(\w+)"\s{0,9}:\s{0,9}"([^"\n]*)"')
SERVED_BY = {
    "postgresql": (
        re.compile(r"\bhost\s?=|\bport\s?=\s?5432\b", re.IGNORECASE),
        "Host=$DB_HOST;Port=$DB_PORT;Database=$DB_NAME;Username=$DB_USER;Password=$DB_PASSWORD",
    ),
    "mariadb": (
        re.compile(r"\b(?:uid|user)\s?=", re.IGNORECASE),
        "Server=$DB_HOST;Port=$DB_PORT;Database=$DB_NAME;User=$DB_USER;Password=$DB_PASSWORD",
    ),
    "redis": (re.compile(r"[\w-]:6379"), "$CACHE_HOST:$CACHE_PORT,password=$CACHE_PASSWORD"),
}
"""By service: how .NET's connection strings look, and one for the service here."""


def find_dotnet(folder: Path) -> FoundApp | None:
    """Publish the project that serves, and start what that makes."""
    depths = ("*.csproj", "*/*.csproj", "*/*/*.csproj")
    projects = [path for depth in depths for path in sorted(folder.glob(depth))][:MOST_MEMBERS]
    web = {
        project: text for project in projects if DOTNET_WEB.search(text := read_text(project) or "")
    }
    tests = {project for project in web if "test" in project.stem.lower()}
    apps = {
        project.stem: _dotnet_app(folder, project, text)
        for project, text in web.items()
        if project not in tests
    }
    if len(apps) == 1:
        return next(iter(apps.values()))
    several = "there are several projects with Microsoft.NET.Sdk.Web"
    return FoundApp(next(iter(apps)), several=several, choices=apps) if apps else None


def _dotnet_app(folder: Path, project: Path, text: str) -> FoundApp:
    named = ASSEMBLY.search(text)
    name = named[1] if named else project.stem
    file = project.relative_to(folder).as_posix()
    services, connections = _connected(project.parent)
    apart = ", ".join(_of_development_alone(project.parent))
    return FoundApp(
        file,
        f"{connections}ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/{name}.dll",
        f"dotnet publish {file} --configuration Release --output out --nologo",
        environment={"ASPNETCORE_ENVIRONMENT": "Production", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"},
        notes=("what `dotnet publish` makes is started, not `dotnet run`",),
        services=services,
        doubts=(OF_DEVELOPMENT.format(names=apart),) if apart else (),
    )


def _of_development_alone(folder: Path) -> list[str]:
    """Return the settings that sources name and that Production hasn't."""
    *others, own = (read_text(folder / name) or "" for name in SETTINGS)
    texts = "\n".join(read_text(path) or "" for path in sources(folder, {".cs"}))
    known = "\n".join(others)
    return [
        name
        for name in json_table(own)
        if name not in OF_DOTNET and f'"{name}"' not in known
        if re.search(rf'"{re.escape(name)}[":]', texts)
    ]


def _connected(folder: Path) -> tuple[dict[str, str], str]:
    """Return the services that connection strings name, and variables with strings for them."""
    texts = (read_text(folder / name) or "" for name in SETTINGS)
    named = {
        name: value
        for text in texts
        for strings in CONNECTIONS.findall(text)
        for name, value in CONNECTION.findall(strings)
    }
    services: dict[str, str] = {}
    pairs = ""
    for name, value in named.items():
        for service, (looks, string) in SERVED_BY.items():
            if looks.search(value):
                services[ROLES[service]] = service
                pairs += f'ConnectionStrings__{name}="{string}" '
                break
    return services, pairs


MIX_APP = re.compile(r"\bapp:\s*:(\w+)")
MIX_RELEASE = re.compile(r"defmodule ([\w.]+\.Release)\b")
"""What `mix phx.gen.release` makes for migrations."""
PHOENIX = {"PHX_SERVER": "true", "PHX_HOST": "localhost"}


def find_elixir(folder: Path) -> FoundApp | None:
    """Build a release, and start its server."""
    text = read_text(folder / "mix.exs")
    if text is None or ":phoenix," not in text or (app := MIX_APP.search(text)) is None:
        return None
    steps = ["mix deps.get --only prod", "mix compile"]
    package = json_table(read_text(folder / "assets/package.json") or "")
    if table(package, "dependencies") | table(package, "devDependencies"):
        how = "ci" if (folder / "assets/package-lock.json").is_file() else "install"
        steps.insert(1, f"npm {how} --prefix assets --no-audit --no-fund --loglevel=error")
    steps += ["mix assets.deploy"] if "assets.deploy" in text else []
    build = " && ".join(["export MIX_ENV=prod", *steps, "mix release --quiet --overwrite"])
    program = f"_build/prod/rel/{app[1]}/bin/{app[1]}"
    release = MIX_RELEASE.search(read_text(folder / f"lib/{app[1]}/release.ex") or "")
    migrates = f"{program} eval {release[1]}.migrate" if release else None
    if migrates is None and any(folder.glob("priv/*/migrations/*.exs")):
        migrates = "MIX_ENV=prod mix ecto.migrate --quiet"
    return FoundApp(
        "mix.exs",
        f"{program} start",
        build,
        prepare=migrates,
        environment=PHOENIX | {"SECRET_KEY_BASE": FOR_MEASURING},
        notes=("a release serves it: `mix phx.server` is for development",),
        heeds_port=True,
    )
