"""Applications that are compiled first: of Go, Rust, .NET, Elixir and the JVM."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.systems.layouts.app import (
    FOR_MEASURING,
    MOST_MEMBERS,
    FoundApp,
    first_of,
    matching,
    sources,
)
from webdyno.systems.tables import as_list, is_table, read_text, read_toml, table

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
GO_NAMES = ("server", "api", "web", "app", "http", "serve", "httpd", "site", "backend")
"""Of folders whose program serves, the likeliest first."""


def find_go(folder: Path) -> FoundApp | None:
    """Find the programs of a module, and choose the one that listens."""
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
    likely = listening or [name for name in folders if name.rpartition("/")[2] in GO_NAMES]
    if len(likely) == 1:
        app = programs[likely[0]]
        how = "it alone listens" if listening else "by its name"
        note = f"of {len(folders)} programs ({', '.join(folders)}) {likely[0]} is taken: {how}"
        return replace(app, notes=(note, *app.notes))
    several = likely or folders
    choices = {program: programs[program] for program in several}
    return FoundApp("go.mod", several="go.mod has several programs", choices=choices)


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
        return FoundApp("go.mod", f"./{out}", build, heeds_port=bool(GIN.search(text)))
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


CARGO = "Cargo.toml"
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
    texts = {
        name: "\n".join(_rust_texts(main))
        for package in packages
        for name, main in _cargo_programs(package)
    }
    chosen = [name for name, text in texts.items() if RUST_LISTENS.search(text)] or list(texts)
    has_lock = (folder / "Cargo.lock").is_file()
    locked = " --locked" if has_lock else ""
    doubts = () if has_lock else ("there is no Cargo.lock: each build may take other versions",)
    apps = {}
    for name in chosen:
        start, build = f"./target/release/{name}", f"cargo build --release{locked} --bin {name}"
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


def _rust_texts(main: Path) -> Iterator[str]:
    top = main.parent
    others = [] if top.name == "bin" else sorted(top.rglob("*.rs"))
    modules = [other for other in others if "bin" not in other.relative_to(top).parts]
    for path in (main, *modules[:MOST_MEMBERS]):
        yield read_text(path) or ""


DOTNET_WEB = re.compile(r'Sdk="Microsoft\.NET\.Sdk\.Web"')
ASSEMBLY = re.compile(r"<AssemblyName>([\w.-]+)</AssemblyName>")


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
    return FoundApp(
        file,
        f"ASPNETCORE_URLS=http://127.0.0.1:$PORT dotnet out/{name}.dll",
        f"dotnet publish {file} --configuration Release --output out --nologo",
        environment={"ASPNETCORE_ENVIRONMENT": "Production", "DOTNET_CLI_TELEMETRY_OPTOUT": "1"},
        notes=("what `dotnet publish` makes is started, not `dotnet run`",),
    )


MIX_APP = re.compile(r"\bapp:\s*:(\w+)")
WANTS_DATABASE = re.compile(r"DATABASE_URL|DATABASE_PATH")
PHOENIX = {"PHX_SERVER": "true", "PHX_HOST": "localhost"}


def find_elixir(folder: Path) -> FoundApp | None:
    """Build a release, and start its server."""
    text = read_text(folder / "mix.exs")
    if text is None or ":phoenix," not in text or (app := MIX_APP.search(text)) is None:
        return None
    steps = ["mix deps.get --only prod", "mix compile"]
    steps += ["mix assets.deploy"] if "assets.deploy" in text else []
    build = " && ".join(["export MIX_ENV=prod", *steps, "mix release --quiet --overwrite"])
    program = f"_build/prod/rel/{app[1]}/bin/{app[1]}"
    config = read_text(folder / "config/runtime.exs") or ""
    wants = sorted(set(WANTS_DATABASE.findall(config)))
    return FoundApp(
        "mix.exs",
        f"{program} start",
        build,
        environment=PHOENIX | {"SECRET_KEY_BASE": FOR_MEASURING},
        notes=("a release serves it: `mix phx.server` is for development",),
        doubts=tuple(
            f"config/runtime.exs wants {want}: environment.{want} gives it" for want in wants
        ),
        heeds_port=True,
    )


OF_OTHER_PROJECTS = re.compile(
    r"<(parent|dependencies|dependencyManagement|build|profiles)>.*?</\1>", re.DOTALL
)
JIT = "a JVM gets faster for many seconds after its start: give minutes, as by --time 5m"
STARTS_WITHIN_S = 90
NO_JVM_SERVER = (
    "a war without Spring Boot needs a servlet container: build an image with one, and "
    "webdyno init --image ."
)
NO_JVM_FRAMEWORK = (
    "neither Spring Boot, Quarkus, Micronaut nor Ktor is in it, so how it starts isn't known"
)
SPRING, QUARKUS, MICRONAUT = "spring-boot|springframework.boot", "io.quarkus", "io.micronaut"
KTOR = "io.ktor"
GRADLE_TASKS = {
    QUARKUS: "quarkusBuild",
    KTOR: "installDist",
    MICRONAUT: "shadowJar",
    SPRING: "bootJar",
}
ANY_PROGRAM = "$(ls {out}/install/*/bin/* | grep -v bat$)"
JVM_MODULES = re.compile(r"<module>\s*([\w./-]+)\s*</module>")
GRADLE_MODULES = re.compile(r"""["']:?([\w:-]+)["']""")


class _JvmModule(NamedTuple):
    folder: Path
    file: str
    """Maven's or Gradle's."""
    inside: str
    """Its folder, in the whole build; empty for that."""
    text: str


def find_jvm(folder: Path) -> FoundApp | None:
    """Read how Maven or Gradle build a program, in one of the build's modules perhaps."""
    top = _jvm_module(folder, "")
    if top is None:
        return None
    apps = [
        app for module in (top, *_jvm_modules(folder, top)) if (app := _jvm_app(folder, module))
    ]
    starting = {app.start or "": app for app in apps}
    if len(starting) == 1:
        return apps[0]
    if starting:
        modules = {start: re.search(r"(\S+?)/(?:target|build)/", start) for start in starting}
        choices = {
            match[1] if match else start: starting[start] for start, match in modules.items()
        }
        return FoundApp(top.file, several=f"{top.file} has several programs", choices=choices)
    is_war = "<packaging>war</packaging>" in top.text
    return FoundApp(top.file, doubts=(NO_JVM_SERVER if is_war else NO_JVM_FRAMEWORK,))


def _jvm_module(folder: Path, inside: str) -> _JvmModule | None:
    place = folder / inside
    file = first_of(place, "pom.xml", "build.gradle.kts", "build.gradle")
    return _JvmModule(place, file, inside, read_text(place / file) or "") if file else None


def _jvm_modules(folder: Path, top: _JvmModule) -> Iterator[_JvmModule]:
    names = JVM_MODULES.findall(top.text)
    for settings in ("settings.gradle.kts", "settings.gradle"):
        text = read_text(folder / settings) or ""
        for included in re.findall(r"include[\s(]+([^\n)]*)", text):
            names += [name.replace(":", "/") for name in GRADLE_MODULES.findall(included)]
    for name in dict.fromkeys(names):
        if ".." not in name and (module := _jvm_module(folder, name.strip("/"))):
            yield module


def _jvm_app(folder: Path, module: _JvmModule) -> FoundApp | None:
    """Return how a module is built and started; None where it is no program that serves."""
    frameworks = (
        name for name in (QUARKUS, MICRONAUT, KTOR, SPRING) if re.search(name, module.text)
    )
    framework = next(frameworks, None)
    is_maven = module.file == "pom.xml"
    is_lib = framework == SPRING and not _is_spring_program(module)
    if framework is None or is_lib or "<packaging>pom</packaging>" in module.text:
        return None
    inside = f"{module.inside}/" if module.inside else ""
    out = f"{inside}{'target' if is_maven else 'build'}"
    name = _gradle_name(module)
    jar = _maven_jar(module.text) if is_maven else _gradle_jar(module, name)
    start = {
        QUARKUS: f"java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        f"{out}/quarkus-app/quarkus-run.jar",
        MICRONAUT: f"MICRONAUT_SERVER_PORT=$PORT java -jar {out}/{jar}",
        SPRING: f"java -jar {out}/{jar} --server.address=127.0.0.1 --server.port=$PORT",
    }.get(framework)
    if framework == KTOR:
        program = f"{out}/install/{name}/bin/{name}" if name else ANY_PROGRAM.format(out=out)
        start = f"java -jar {out}/{jar}" if is_maven else program
    wrapper = "mvnw" if is_maven else "gradlew"
    has_wrapper = (folder / wrapper).is_file()
    if is_maven:
        tool = "sh ./mvnw" if has_wrapper else "mvn"
        of = f" --projects {module.inside} --also-make" if module.inside else ""
        build = f"{tool} --quiet --batch-mode -DskipTests{of} package"
    else:
        tool = "sh ./gradlew" if has_wrapper else "gradle"
        project = f":{module.inside.replace('/', ':')}:" if module.inside else ""
        build = f"{tool} --quiet --no-daemon {project}{GRADLE_TASKS[framework]}"
    notes = (f"{wrapper} builds it", JIT) if has_wrapper else (JIT,)
    return FoundApp(module.file, start, build, notes=notes, ready_within_s=STARTS_WITHIN_S)


def _is_spring_program(module: _JvmModule) -> bool:
    """Whether a module that names Spring Boot makes a program; its parts name it as well."""
    plugin = r"spring-boot-maven-plugin|org\.springframework\.boot[\"']|plugins\.spring\.boot"
    if re.search(r"springframework\.boot.*apply[( ]false", module.text):
        return False
    return not module.inside or bool(re.search(plugin, module.text))


def _maven_jar(text: str) -> str:
    own = OF_OTHER_PROJECTS.sub("", text)
    final = re.search(r"<finalName>([\w.-]+)</finalName>", text)
    named = re.search(r"<artifactId>([\w.-]+)</artifactId>", own)
    version = re.search(r"<version>([\w.-]+)</version>", own)
    ending = "war" if "<packaging>war</packaging>" in own else "jar"
    if final:
        return f"{final[1]}.{ending}"
    return f"{named[1]}-{version[1]}.{ending}" if named and version else f"*.{ending}"


def _gradle_jar(module: _JvmModule, name: str | None) -> str:
    version = re.search(r"""^version\s*=?\s*["']([\w.-]+)["']""", module.text, re.MULTILINE)
    if not name or (not version and module.inside):
        return "libs/*.jar"
    return f"libs/{name}-{version[1]}.jar" if version else f"libs/{name}.jar"


def _gradle_name(module: _JvmModule) -> str | None:
    """Return the name of what Gradle makes; None where it is the folder's, which changes."""
    if module.inside:
        return module.folder.name
    settings = first_of(module.folder, "settings.gradle.kts", "settings.gradle")
    text = read_text(module.folder / settings) if settings else None
    named = re.search(r"""rootProject\.name\s*=\s*["']([\w.-]+)["']""", text or "")
    return named[1] if named else None
