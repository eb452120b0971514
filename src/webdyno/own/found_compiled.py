"""Applications that Go, Cargo, Maven or Gradle build."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from webdyno.own.found import FoundApp, first_of, read_text, sources

MOST_PACKAGES = 100
LISTENS = re.compile(
    r"TcpListener::bind|HttpServer::new|axum::serve|rocket::build|warp::serve|Server::bind"
)
OF_OTHERS = re.compile(
    r"<(parent|dependencies|dependencyManagement|build|profiles)>.*?</\1>", re.DOTALL
)
BINDS = re.compile(r"""(?:bind|listen)\w*\(.*?["']([\w.\[\]]*:\d{2,5})["']""", re.IGNORECASE)
JIT = "a JVM gets faster for many seconds after its start: give a budget of minutes"
GO_LISTENS = re.compile(
    r"ListenAndServe|\bhttp\.Serve(?:TLS)?\(|\bnet\.Listen\("
    r"|\b(?:app|r|e|router|engine)\.(?:Listen|Run|Start)\("
)
GO_FLAG = re.compile(
    r"""\bflag\.(?:String|Int|Uint)(?:Var)?\(\s*(?:&[\w.]+,\s*)?"""
    r""""(?P<name>[\w.-]+)",\s*"?(?P<usual>[\w.:\[\]-]*)"?"""
)
ADDRESS = re.compile(r"[\w.\[\]:-]*:\d{1,5}")
GO_FLAG_NAMES = ("listen", "addr", "address", "bind", "http", "http-addr", "port")
"""Of flags that say where clients ask, the most telling first."""


def cargo(folder: Path) -> FoundApp | None:
    """Find the program of a Cargo package or workspace that listens."""
    top = _manifest(folder)
    if top is None:
        return None
    packages = [folder, *_members(folder, top)]
    programs = {
        name: path for each in packages for name, path in _programs(each, _manifest(each) or {})
    }
    has_lock = (folder / "Cargo.lock").is_file()
    doubts = () if has_lock else ("there is no Cargo.lock: each build may take other versions",)
    locked = " --locked" if has_lock else ""
    apps = {
        name: FoundApp(
            "Cargo.toml",
            f"./target/release/{name}",
            f"cargo build --release{locked} --bin {name}",
            doubts=doubts,
        )
        for name in programs
    }
    listening = [name for name, path in programs.items() if _listens(path)]
    chosen = listening or list(programs)
    if len(chosen) == 1:
        return apps[chosen[0]]
    several = "Cargo.toml has several programs" if chosen else ""
    return FoundApp("Cargo.toml", several=several, choices={it: apps[it] for it in chosen})


def _manifest(folder: Path) -> dict[str, Any] | None:
    text = read_text(folder / "Cargo.toml")
    if text is None:
        return None
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return {}


def _members(folder: Path, manifest: dict[str, Any]) -> Iterator[Path]:
    workspace = manifest.get("workspace")
    members = workspace.get("members") if isinstance(workspace, dict) else None
    for pattern in members if isinstance(members, list) else ():
        text = str(pattern).rstrip("/")
        if text.strip("./") and not text.startswith("/") and ".." not in text:
            yield from sorted(folder.glob(text))[:MOST_PACKAGES]


def _programs(folder: Path, manifest: dict[str, Any]) -> Iterator[tuple[str, Path]]:
    """Give the names of a package's programs, each with its folder of sources."""
    package, bins = manifest.get("package"), manifest.get("bin")
    named = [it for it in bins if isinstance(it, dict)] if isinstance(bins, list) else []
    for it in named:
        if isinstance(it.get("name"), str):
            yield it["name"], folder / str(it.get("path", "src/main.rs"))
    name = package.get("name") if isinstance(package, dict) else None
    if not named and isinstance(name, str) and (folder / "src/main.rs").is_file():
        yield name, folder / "src/main.rs"


def _listens(main: Path) -> bool:
    texts = [read_text(main), *(read_text(it) for it in main.parent.rglob("*.rs"))]
    return any(LISTENS.search(text or "") for text in texts[:MOST_PACKAGES])


def java(folder: Path) -> FoundApp | None:
    """Read how Maven or Gradle build a program of Spring Boot or Quarkus."""
    gradle = first_of(folder, "build.gradle.kts", "build.gradle")
    name = "pom.xml" if (folder / "pom.xml").is_file() else gradle
    if name is None:
        return None
    text = read_text(folder / name) or ""
    is_maven = name == "pom.xml"
    out = "target" if is_maven else "build"
    jar = _maven_jar(text) if is_maven else _gradle_jar(folder, text)
    start = None
    if "quarkus" in text:
        start = f"java -Dquarkus.http.port=$PORT -jar {out}/quarkus-app/quarkus-run.jar"
    elif "springframework.boot" in text:
        start = f"java -jar {jar} --server.address=127.0.0.1 --server.port=$PORT"
    task = "quarkusBuild" if "quarkus" in text else "bootJar"
    called = "./mvnw" if (folder / "mvnw").is_file() else "mvn"
    if is_maven:
        build = f"{called} --quiet -DskipTests package"
    else:
        called = "./gradlew" if (folder / "gradlew").is_file() else "gradle"
        build = f"{called} --quiet --no-daemon {task}"
    return FoundApp(name, start, build, doubts=(JIT,))


def _maven_jar(text: str) -> str:
    own = OF_OTHERS.sub("", text)
    final = re.search(r"<finalName>([\w.-]+)</finalName>", text)
    named = re.search(r"<artifactId>([\w.-]+)</artifactId>", own)
    version = re.search(r"<version>([\w.-]+)</version>", own)
    if final:
        return f"target/{final[1]}.jar"
    return f"target/{named[1]}-{version[1]}.jar" if named and version else "target/*.jar"


def _gradle_jar(folder: Path, text: str) -> str:
    settings = first_of(folder, "settings.gradle.kts", "settings.gradle")
    said = read_text(folder / settings) if settings else None
    named = re.search(r"""rootProject\.name\s*=\s*["']([\w.-]+)["']""", said or "")
    version = re.search(r"""^version\s*=\s*["']([\w.-]+)["']""", text, re.MULTILINE)
    name = named[1] if named else folder.resolve().name
    return f"build/libs/{name}-{version[1]}.jar" if version else f"build/libs/{name}.jar"


def fixed_address(folder: Path) -> str | None:
    """Name the first address that sources bind to, with its place: `0.0.0.0:3000 in src/x.rs:8`."""
    for path in sources(folder):
        for number, line in enumerate((read_text(path) or "").splitlines(), 1):
            if found := BINDS.search(line):
                return f"{found[1]} in {path.relative_to(folder)}:{number}"
    return None


def go(folder: Path) -> FoundApp | None:
    """Find the programs of a module, and choose the one that listens."""
    if not (folder / "go.mod").is_file():
        return None
    mains = [path for path in sources(folder) if _is_main(path)]
    folders = sorted({path.parent.relative_to(folder).as_posix() for path in mains})
    if not folders:
        return FoundApp("go.mod", None)
    programs = {it: _go_program(it, _go_text(folder / it)) for it in folders}
    listening = [it for it in folders if GO_LISTENS.search(_go_text(folder / it))]
    if len(folders) == 1:
        return programs[folders[0]]
    if len(listening) == 1:
        app = programs[listening[0]]
        doubt = f"of {len(folders)} programs ({', '.join(folders)}) only {listening[0]} listens"
        return replace(app, doubts=(doubt, *app.doubts))
    several = listening or folders
    doubt = f"there are {len(several)} programs: {', '.join(several)}"
    first = programs[several[0]]
    return replace(
        first,
        doubts=(doubt, *first.doubts),
        several="go.mod has several programs",
        choices={it: programs[it] for it in several},
    )


def _go_program(folder: str, text: str) -> FoundApp:
    package = "." if folder == "." else f"./{folder}"
    build = f"go build -o server {package}"
    flags = {} if '"PORT"' in text else dict(_go_flags(text))
    asked = next((name for name in GO_FLAG_NAMES if name in flags), None)
    if asked is None:
        return FoundApp("go.mod", "./server", build)
    address = "$PORT" if flags[asked].isdecimal() else "127.0.0.1:$PORT"
    start, doubts = ["./server", f"-{asked} {address}"], []
    for name, usual in flags.items():
        if name != asked and ADDRESS.fullmatch(usual):
            start.append(f"-{name} 127.0.0.1:0")
            doubts.append(
                f"-{name} is another listener, on {usual} unless set: both variants run at the "
                "same time, so it gets any free port"
            )
    return FoundApp("go.mod", " ".join(start), build, doubts=tuple(doubts))


def _go_flags(text: str) -> Iterator[tuple[str, str]]:
    """Give the flags that take an address or a port, with what they are unless given."""
    for found in GO_FLAG.finditer(text):
        name, usual = found["name"], found["usual"]
        if ADDRESS.fullmatch(usual) or (usual.isdecimal() and "port" in name):
            yield name, usual


def _go_text(folder: Path) -> str:
    return "\n".join(read_text(path) or "" for path in sorted(folder.glob("*.go")))


def _is_main(path: Path) -> bool:
    is_test = path.name.endswith("_test.go")
    return path.suffix == ".go" and not is_test and "\npackage main" in f"\n{read_text(path)}"
