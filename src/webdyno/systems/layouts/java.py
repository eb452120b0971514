"""Applications of a JVM that Maven or Gradle build: Spring Boot, Quarkus, Micronaut, Ktor."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.files import first_of, read_text

OF_OTHERS = re.compile(
    r"<(parent|dependencies|dependencyManagement|build|profiles)>.*?</\1>", re.DOTALL
)
JIT = "a JVM gets faster for many seconds after its start: give minutes, as by --time 5m"
STARTS_WITHIN_S = 90
NO_SERVER = (
    "a war without Spring Boot needs a servlet container: build an image with one, and "
    "webdyno init --image ."
)
NO_FRAMEWORK = (
    "neither Spring Boot, Quarkus, Micronaut nor Ktor is in it, so how it starts isn't known"
)
SPRING, QUARKUS, MICRONAUT = "spring-boot|springframework.boot", "io.quarkus", "io.micronaut"
KTOR = "io.ktor"
BUILDS = {QUARKUS: "quarkusBuild", KTOR: "installDist"}
"""By framework: Gradle's task; bootJar unless it is here."""
ANY_PROGRAM = "$(ls {out}/install/*/bin/* | grep -v bat$)"
MODULES = re.compile(r"<module>\s*([\w./-]+)\s*</module>")
INCLUDED = re.compile(r"""["']:?([\w:-]+)["']""")


class _Module(NamedTuple):
    """A module of a build, or the whole build."""

    folder: Path
    file: str
    """Maven's or Gradle's."""
    inside: str
    """Its folder, in the whole build; empty for that."""
    text: str


def find_in(folder: Path) -> FoundApp | None:
    """Read how Maven or Gradle build a program, in one of the build's modules perhaps."""
    top = _module(folder, "")
    if top is None:
        return None
    apps = [app for module in (top, *_modules(folder, top)) if (app := _app(folder, module))]
    starting = {app.start or "": app for app in apps}
    if len(starting) == 1:
        return apps[0]
    if starting:
        choices = {_name_of(app): app for app in starting.values()}
        return FoundApp(top.file, several=f"{top.file} has several programs", choices=choices)
    is_war = "<packaging>war</packaging>" in top.text
    return FoundApp(top.file, doubts=(NO_SERVER if is_war else NO_FRAMEWORK,))


def _name_of(app: FoundApp) -> str:
    """Name a program of several by its module."""
    match = re.search(r"(\S+?)/(?:target|build)/", app.start or "")
    return match[1] if match else app.start or ""


def _module(folder: Path, inside: str) -> _Module | None:
    place = folder / inside
    file = first_of(place, "pom.xml", "build.gradle.kts", "build.gradle")
    return _Module(place, file, inside, read_text(place / file) or "") if file else None


def _modules(folder: Path, top: _Module) -> Iterator[_Module]:
    names = MODULES.findall(top.text)
    for settings in ("settings.gradle.kts", "settings.gradle"):
        text = read_text(folder / settings) or ""
        for included in re.findall(r"include[\s(]+([^\n)]*)", text):
            names += [name.replace(":", "/") for name in INCLUDED.findall(included)]
    for name in dict.fromkeys(names):
        if ".." not in name and (module := _module(folder, name.strip("/"))):
            yield module


def _app(folder: Path, module: _Module) -> FoundApp | None:
    """Give how a module is built and started; None where it is no program that serves."""
    framework = next(
        (
            framework
            for framework in (QUARKUS, MICRONAUT, KTOR, SPRING)
            if re.search(framework, module.text)
        ),
        None,
    )
    is_maven = module.file == "pom.xml"
    is_lib = framework == SPRING and not _is_program(module)
    if framework is None or is_lib or "<packaging>pom</packaging>" in module.text:
        return None
    inside = f"{module.inside}/" if module.inside else ""
    out = f"{inside}{'target' if is_maven else 'build'}"
    jar = _maven_jar(module.text) if is_maven else _gradle_jar(module, inside)
    start = {
        QUARKUS: f"java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        f"{out}/quarkus-app/quarkus-run.jar",
        MICRONAUT: f"MICRONAUT_SERVER_PORT=$PORT java -jar {out}/{jar}",
        SPRING: f"java -jar {out}/{jar} --server.address=127.0.0.1 --server.port=$PORT",
    }.get(framework)
    if framework == KTOR:
        name = _gradle_name(module)
        program = f"{out}/install/{name}/bin/{name}" if name else ANY_PROGRAM.format(out=out)
        start = f"java -jar {out}/{jar}" if is_maven else program
    build = _maven(folder, module) if is_maven else _gradle(folder, module, framework)
    notes = (*_notes(folder, is_maven), JIT)
    return FoundApp(module.file, start, build, notes=notes, ready_within_s=STARTS_WITHIN_S)


def _is_program(module: _Module) -> bool:
    """Whether a module that names Spring Boot makes a program; its parts name it as well."""
    plugin = r"spring-boot-maven-plugin|org\.springframework\.boot[\"']|plugins\.spring\.boot"
    if re.search(r"springframework\.boot.*apply[( ]false", module.text):
        return False
    return not module.inside or bool(re.search(plugin, module.text))


def _notes(folder: Path, is_maven: bool) -> tuple[str, ...]:
    wrapper = "mvnw" if is_maven else "gradlew"
    return (f"{wrapper} builds it",) if (folder / wrapper).is_file() else ()


def _maven(folder: Path, module: _Module) -> str:
    called = "sh ./mvnw" if (folder / "mvnw").is_file() else "mvn"
    of = f" --projects {module.inside} --also-make" if module.inside else ""
    return f"{called} --quiet --batch-mode -DskipTests{of} package"


def _gradle(folder: Path, module: _Module, framework: str) -> str:
    called = "sh ./gradlew" if (folder / "gradlew").is_file() else "gradle"
    usual = "shadowJar" if framework == MICRONAUT else "bootJar"
    task = BUILDS.get(framework, usual)
    inside = f":{module.inside.replace('/', ':')}:" if module.inside else ""
    return f"{called} --quiet --no-daemon {inside}{task}"


def _maven_jar(text: str) -> str:
    own = OF_OTHERS.sub("", text)
    final = re.search(r"<finalName>([\w.-]+)</finalName>", text)
    named = re.search(r"<artifactId>([\w.-]+)</artifactId>", own)
    version = re.search(r"<version>([\w.-]+)</version>", own)
    ending = "war" if "<packaging>war</packaging>" in own else "jar"
    if final:
        return f"{final[1]}.{ending}"
    return f"{named[1]}-{version[1]}.{ending}" if named and version else f"*.{ending}"


def _gradle_jar(module: _Module, inside: str) -> str:
    version = re.search(r"""^version\s*=?\s*["']([\w.-]+)["']""", module.text, re.MULTILINE)
    name = _gradle_name(module)
    if not name or (not version and inside):
        return "libs/*.jar"
    return f"libs/{name}-{version[1]}.jar" if version else f"libs/{name}.jar"


def _gradle_name(module: _Module) -> str | None:
    """Name what Gradle makes; None where that is named by the folder, and revisions have others."""
    if module.inside:
        return module.folder.name
    settings = first_of(module.folder, "settings.gradle.kts", "settings.gradle")
    text = read_text(module.folder / settings) if settings else None
    named = re.search(r"""rootProject\.name\s*=\s*["']([\w.-]+)["']""", text or "")
    return named[1] if named else None
