"""Applications of the JVM, as Maven and Gradle build them."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, Hindrance, first_of, sources
from webdyno.systems.layouts.packages import of_catalog

OF_OTHER_PROJECTS = re.compile(
    r"<(parent|dependencies|dependencyManagement|build|profiles)>.*?</\1>", re.DOTALL
)
JIT = "a JVM gets faster for many seconds after its start: give minutes, as by --time 5m"
JVM_READY_WITHIN_S = 180
NO_JVM_SERVER = (
    "a war without Spring Boot needs a servlet container: build an image with one, and "
    "webdyno init --image ."
)
NO_JVM_FRAMEWORK = (
    "neither Spring Boot, Quarkus, Micronaut, Ktor nor Javalin is in it, so how it starts isn't "
    "known"
)
NO_LIBRARIES = (
    "neither Maven's shade nor its assembly plugin is in it, so its jar lacks its libraries, and "
    "how it starts isn't known"
)
WITH_LIBRARIES = re.compile(r"maven-(?:shade|assembly)-plugin|<addClasspath>true|io\.helidon")
SPRING, QUARKUS, MICRONAUT = "spring-boot|springframework.boot", "io.quarkus", "io.micronaut"
WITH_ALL = "jar-with-dependencies"
"""What Maven's assembly plugin makes."""
OTHERS = r"io\.(?:ktor|javalin|helidon|jooby)\b|org\.http4k|com\.sparkjava"
"""Frameworks whose programs start without words of their own."""
GRADLE_TASKS = {
    QUARKUS: "quarkusBuild",
    OTHERS: "installDist",
    MICRONAUT: "shadowJar",
    SPRING: "bootJar",
}
RESOURCES = "src/main/resources"
CONFIGURATIONS = ("application.properties", "application.yml", "application.yaml")
JDBC = re.compile(
    r"jdbc:(?:p6spy:|tc:)?(?P<url>postgresql|mysql|mariadb):"
    r"|\b(?:db-kind|database)\s*[=:]\s*(?P<kind>postgresql|mysql|mariadb)\s*$",
    re.MULTILINE,
)
BY_VARIABLE = re.compile(
    r"datasource[\w.-]*url\s*=\s*\$\{|^[ \t]*datasource:[ \t]*\n(?:[ \t]+[^\n]*\n){0,9}?"
    r"[ \t]+url:[ \t]*[\"']?\$\{",
    re.MULTILINE,
)
"""In a configuration: an address that a variable holds as a whole."""
DRIVERS = {
    "postgresql": re.compile(r"\borg\.postgresql\b|jdbc-postgresql"),
    "mysql": re.compile(r"mysql-connector|jdbc-mysql"),
    "mariadb": re.compile(r"mariadb-java-client|jdbc-mariadb"),
}
OTHER_JDBC = re.compile(
    r"^[ \t]*(?:[\w.-]+\.)?url[ \t]*[:=][ \t]*[\"']?(?:\$\{\w+:)?"
    r"jdbc:(?P<kind>(?!postgresql|mysql|mariadb|h2|hsqldb|derby|sqlite|tc|p6spy)\w+):",
    re.MULTILINE,
)
NOT_PROVIDED = (
    "it needs the database of its configuration (jdbc:{kind}), which webdyno doesn't start: have "
    "one run on this machine, which both variants then share: environment.{key} below [app] says "
    "where"
)
MANAGEMENT = re.compile(
    r"^management\.server\.port\s*=|^management:[ \t]*\n(?:[ \t]++[^\n]*\n){0,30}?"
    r"[ \t]++server:[ \t]*\n[ \t]++port:",
    re.MULTILINE,
)
"""A further listener of Spring's, which gets any free port: both variants are up at once."""
PROFILES = re.compile(
    r"\bprofiles(?:\.|:[ \t]*\n[ \t]+)active[ \t]*[=:][ \t]*[\"']?(?:\$\{\w+:)?([\w,-]+)"
)
"""In Spring's configuration: the profiles that are on by default."""
REDIS = re.compile(r"starter-data-redis")
OF_REDIS = {"HOST": "$CACHE_HOST", "PORT": "$CACHE_PORT", "PASSWORD": "$CACHE_PASSWORD"}
DATASOURCES = {
    SPRING: (
        *("SPRING_DATASOURCE_URL", "SPRING_DATASOURCE_USERNAME", "SPRING_DATASOURCE_PASSWORD"),
    ),
    QUARKUS: (
        *("QUARKUS_DATASOURCE_JDBC_URL", "QUARKUS_DATASOURCE_USERNAME"),
        "QUARKUS_DATASOURCE_PASSWORD",
    ),
}
"""By framework: the variables for a database's address, user and password."""
ANY_PROGRAM = "$(ls {out}/install/*/bin/* | grep -v bat$)"
JVM_MODULES = re.compile(r"<module>\s*([\w./-]+)\s*</module>")
OF_ALL_MODULES = re.compile(r"^subprojects\b", re.MULTILINE)
"""From here on Gradle's file holds for each module."""
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
    inner = list(_jvm_modules(folder, top))
    programs = inner if inner and not (folder / "src").is_dir() else [top, *inner]
    apps = [app for module in programs if (app := _jvm_app(folder, module))]
    starting = {app.start or "": app for app in apps}
    if len(starting) == 1:
        return apps[0]
    if starting:
        modules = {
            start: re.search(r"(?<!\S)(\S+?)/(?:target|build)/", start) for start in starting
        }
        choices = {
            match[1] if match else start: starting[start] for start, match in modules.items()
        }
        return FoundApp(top.file, several=f"{top.file} has several programs", choices=choices)
    is_war = "<packaging>war</packaging>" in top.text
    is_known = any(re.search(OTHERS, module.text) for module in programs)
    why = NO_JVM_SERVER if is_war else NO_LIBRARIES if is_known else NO_JVM_FRAMEWORK
    return FoundApp(top.file, doubts=(why,))


def _jvm_module(folder: Path, inside: str) -> _JvmModule | None:
    place = folder / inside
    of_modules = () if inside else ("settings.gradle.kts", "settings.gradle")
    file = first_of(place, "pom.xml", "build.gradle.kts", "build.gradle", *of_modules)
    if file is None:
        return None
    text = read_text(place / file) or ""
    return _JvmModule(place, file, inside, "\n".join([text, *of_catalog(folder, text)]))


def _jvm_modules(folder: Path, top: _JvmModule) -> Iterator[_JvmModule]:
    names = JVM_MODULES.findall(top.text)
    of_all = OF_ALL_MODULES.split(top.text, maxsplit=1)[1:]
    for settings in ("settings.gradle.kts", "settings.gradle"):
        text = read_text(folder / settings) or ""
        for included in re.findall(r"include[\s(]+([^\n)]*)", text):
            names += [name.replace(":", "/") for name in GRADLE_MODULES.findall(included)]
    for name in dict.fromkeys(names):
        if ".." not in name and (module := _jvm_module(folder, name.strip("/"))):
            is_program = of_all and _has_main(module)
            yield module._replace(text=module.text + of_all[0]) if is_program else module


def _has_main(module: _JvmModule) -> bool:
    """Whether a source of it starts Spring Boot."""
    places = sources(module.folder, {".java", ".kt"})
    return any("@SpringBootApplication" in (read_text(path) or "") for path in places)


def _jvm_app(folder: Path, module: _JvmModule) -> FoundApp | None:
    """Return how a module is built and started; None where it is no program that serves."""
    frameworks = (
        name for name in (QUARKUS, MICRONAUT, OTHERS, SPRING) if re.search(name, module.text)
    )
    framework = next(frameworks, None)
    is_maven = module.file == "pom.xml"
    is_lib = framework == SPRING and not _is_spring_program(module)
    if framework is None or is_lib or "<packaging>pom</packaging>" in module.text:
        return None
    if framework == OTHERS and is_maven and not WITH_LIBRARIES.search(module.text):
        return None
    inside = f"{module.inside}/" if module.inside else ""
    out = f"{inside}{'target' if is_maven else 'build'}"
    name = _gradle_name(module)
    jar = _maven_jar(module.text) if is_maven else _gradle_jar(module, name)
    if framework == OTHERS and is_maven and WITH_ALL in module.text:
        jar = jar.removesuffix(".jar") + f"-{WITH_ALL}.jar"
    start = {
        QUARKUS: f"java -Dquarkus.http.host=127.0.0.1 -Dquarkus.http.port=$PORT -jar "
        f"{out}/quarkus-app/quarkus-run.jar",
        MICRONAUT: f"MICRONAUT_SERVER_PORT=$PORT java -jar {out}/{jar}",
        SPRING: f"java -jar {out}/{jar} --server.address=127.0.0.1 --server.port=$PORT",
    }.get(framework)
    if framework == OTHERS:
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
    texts = _configurations(module.folder / RESOURCES) if framework == SPRING else ()
    if any(map(MANAGEMENT.search, texts)):
        start = f"{start} --management.server.port=0"
    notes = (f"{wrapper} builds it", JIT) if has_wrapper else (JIT,)
    app = FoundApp(module.file, start, build, notes=notes, ready_within_s=JVM_READY_WITHIN_S)
    return _with_redis(_with_datasource(app, module, framework), module, framework)


def _with_datasource(app: FoundApp, module: _JvmModule, framework: str) -> FoundApp:
    """Put the database behind a program that its configuration, not that of others, names."""
    keys = DATASOURCES.get(framework)
    kind = _kind_of_database(module)
    if keys is None or kind is None:
        texts = _configurations(module.folder / RESOURCES)
        other = next(filter(None, map(OTHER_JDBC.search, texts)), None) if keys else None
        if keys is None or other is None:
            return app
        doubt = NOT_PROVIDED.format(kind=other["kind"], key=keys[0])
        return app.hindered(Hindrance.BEHIND, doubt, keys[0])
    service = "postgresql" if kind == "postgresql" else "mariadb"
    values = (f"jdbc:{kind}://$DB_HOST:$DB_PORT/$DB_NAME", "$DB_USER", "$DB_PASSWORD")
    pairs = " ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
    note = f"its configuration names {service}: {keys[0]} leads to one of its own"
    return replace(
        app, start=f"{pairs} {app.start}", services={"db": service}, notes=(*app.notes, note)
    )


def _kind_of_database(module: _JvmModule) -> str | None:
    """Return what the configuration names, else the driver for an address of a variable."""
    texts = list(_configurations(module.folder / RESOURCES))
    if named := next(filter(None, map(JDBC.search, texts)), None):
        return named["url"] or named["kind"]
    is_by_variable = any(map(BY_VARIABLE.search, texts))
    drivers = (kind for kind, driver in DRIVERS.items() if driver.search(module.text))
    return next(drivers, None) if is_by_variable else None


def _configurations(folder: Path) -> Iterator[str]:
    """Return the texts that hold, those of profiles that they turn on last."""
    texts = [read_text(folder / name) or "" for name in CONFIGURATIONS]
    yield from texts
    profiles = [
        name for text in texts for names in PROFILES.findall(text) for name in names.split(",")
    ]
    for profile in filter(None, profiles):
        for name in CONFIGURATIONS:
            yield read_text(folder / name.replace(".", f"-{profile}.")) or ""


def _with_redis(app: FoundApp, module: _JvmModule, framework: str) -> FoundApp:
    if framework != SPRING or not REDIS.search(module.text):
        return app
    pairs = " ".join(
        f"SPRING_{since}REDIS_{name}={value}"
        for since in ("", "DATA_")  # before Spring Boot 3, and since
        for name, value in OF_REDIS.items()
    )
    return replace(app, start=f"{pairs} {app.start}", services={**app.services, "cache": "redis"})


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
    version = re.search(r"""^version\s*+=?\s*+["']([\w.-]+)["']""", module.text, re.MULTILINE)
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
