"""What a program gets by variables: its port, by $PORT or another one, and secrets of its own."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.systems.layouts.app import FOR_MEASURING, FoundApp
from webdyno.systems.layouts.files import read_text, sources

CONFIGURES = {".properties", ".yml", ".yaml", ".conf", ".toml", ".exs", ".json"}
CONFIGURATION = re.compile(r"application|appsettings|Rocket|runtime|config\b")
"""Endings of files in which frameworks have their port, and the beginnings of their names."""
USES_PORT = re.compile(r"(?<![\w-])PORT\b")
VARIABLE = re.compile(
    r"""(?:process\.env\.|import\.meta\.env\.|(?:env|environ|ENV|Getenv|getenv|LookupEnv|var)"""
    r"""(?:\.get|\.fetch|\.int|\.str|_var)?\s*[(\[]\s*["'`])(?P<name>[A-Z][A-Z0-9_]*)\b"""
)
"""A variable of the environment that a source reads, in any of the languages."""
OF_PORT = re.compile(r"(?:[A-Z0-9]+_)*PORT")
OF_ADDRESS = re.compile(r"(?:[A-Z0-9]+_)*(?:LISTEN|BIND|ADDR|ADDRESS|LISTEN_ADDR|BIND_ADDRESS)")
OF_OTHERS = re.compile(
    r"^(?:DB|DATABASE|PG|POSTGRES|POSTGRESQL|MYSQL|MARIADB|MONGO|MONGODB|REDIS|SMTP|MAIL|EMAIL"
    r"|RABBITMQ|AMQP|KAFKA|ELASTIC|ELASTICSEARCH|MEMCACHED?|STATSD|METRICS|ADMIN|DEBUG|GRPC|SSH"
    r"|FTP|LDAP|NATS|SQL|PROXY|VITE|CLIENT|FRONTEND|DEV|TEST|REMOTE|MINIO|S3|JAEGER|OTEL)_"
    r"|^PGPORT$"
)
"""Of variables that say where something else listens."""
PORT_FLAG = re.compile(
    r"(?P<flag>(?:^|\s)(?:PORT=|(?:-p|--port|--http-port|--server\.port|-Dserver\.port)[ =]"
    r"|(?:-b|-l|-a|--bind|--listen|--addr|--address)[ =](?:tcp://)?[\w.\[\]]*:))\d{2,5}\b"
)
"""What stands before a port on the command lines of servers."""
BINDS = re.compile(
    r"""(?:bind|listen|serve|run|start)\w*\(.*?["'](?P<address>[\w.\[\]]*:\d{2,5})["']"""
    r"""|\.(?:listen|Listen)\(\s*(?P<port>\d{2,5})\b""",
    re.IGNORECASE,
)
BOTH_UP = "both variants are up at the same time, and need a port each"


def given_port(line: str) -> str:
    """Give a command line with $PORT in the place of a fixed port, by the usual flags."""
    return PORT_FLAG.sub(r"\g<flag>$PORT", line)


def with_port(app: FoundApp, folder: Path) -> FoundApp:
    """Give a program its port by the variable that its sources read, where that isn't PORT."""
    if not app.start or app.heeds_port or "$PORT" in app.start or _mentions_port(folder):
        return app
    if (name := _variable(folder)) is None:
        return replace(app, doubts=(*app.doubts, _unheard(folder)))
    value = "$PORT" if OF_PORT.fullmatch(name) else "127.0.0.1:$PORT"
    return replace(app, start=f"{name}={value} {app.start}", notes=(*app.notes, _by(name)))


def _by(name: str) -> str:
    return f"its sources read the port from {name}"


def _mentions_port(folder: Path) -> bool:
    configurations = (
        source for source in sources(folder, CONFIGURES) if CONFIGURATION.match(source.name)
    )
    texts = (read_text(source) or "" for source in (*sources(folder), *configurations))
    return any(map(USES_PORT.search, texts))


def _variable(folder: Path) -> str | None:
    """Name the variable that says where it listens, if there is one that can be that alone."""
    names = {
        match["name"]
        for path in sources(folder)
        for match in VARIABLE.finditer(read_text(path) or "")
    }
    own = sorted(name for name in names if not OF_OTHERS.search(name))
    for kind in (OF_PORT, OF_ADDRESS):
        if len(fitting := [name for name in own if kind.fullmatch(name)]) == 1:
            return fitting[0]
    return None


def _unheard(folder: Path) -> str:
    unheard = "nothing here mentions PORT, the variable with the port that it has to listen on"
    fixed = fixed_address(folder)
    return f"{unheard}; it binds {fixed}: {BOTH_UP}" if fixed else unheard


def fixed_address(folder: Path) -> str | None:
    """Name the first address that sources bind to, with its place: `0.0.0.0:3000 in src/x.rs:8`."""
    for path in sources(folder):
        for number, line in enumerate((read_text(path) or "").splitlines(), 1):
            if match := BINDS.search(line):
                bound = match["address"] or f"port {match['port']}"
                return f"{bound} in {path.relative_to(folder)}:{number}"
    return None


SIGNS = re.compile(
    r"(?:(?:APP|FLASK|DJANGO)_)?SECRET(?:_KEY)?(?:_BASE)?|(?:ACCESS|REFRESH)_TOKEN_SECRET"
    r"|(?:SESSION|COOKIE|JWT|TOKEN|AUTH|CSRF|SIGNING)_(?:SECRET|KEY|SECRET_KEY)"
)
"""Names of such variables; those of keys for what is elsewhere have others."""


def with_values_for_secrets(app: FoundApp, folder: Path) -> FoundApp:
    """Give a program the secrets that its sources read."""
    if not app.start:
        return app
    texts = (read_text(source) or "" for source in sources(folder))
    read = {match["name"] for text in texts for match in VARIABLE.finditer(text)}
    given = sorted(name for name in read - app.environment.keys() if SIGNS.fullmatch(name))
    if not given:
        return app
    note = f"its sources read {', '.join(given)}: a value for measuring is given"
    return replace(
        app,
        environment={**app.environment, **dict.fromkeys(given, FOR_MEASURING)},
        notes=(*app.notes, note),
    )
