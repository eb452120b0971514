"""What a program gets by variables: its port, and secrets; and those that it has to be given."""

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from webdyno.core.tables import read_text
from webdyno.systems.env_files import example_file
from webdyno.systems.layouts.app import (
    FOR_MEASURING,
    SOURCES,
    FoundApp,
    Hindrance,
    line_of,
    sources,
)
from webdyno.systems.layouts.node_package import PACKAGE, is_of_another
from webdyno.systems.layouts.settings import (
    CONFIGURATIONS,
    PLAIN_VALUE,
    committed_values,
    example_of,
    settings_of,
)

CONFIGURES = {".properties", ".yml", ".yaml", ".conf", ".toml", ".exs", ".json"}
CONFIGURATION = re.compile(r"application|appsettings|Rocket|runtime|config\b")
"""Endings of files in which frameworks have their port, and the beginnings of their names."""
USES_PORT = re.compile(r"(?<![\w-])PORT\b")
OWN_PORT = re.compile(r"\b(?:const|let|var|final)\s+PORT\b")
PORT_OF_ENVIRONMENT = re.compile(r"""(?:\benv\.|["'`])PORT\b""")
"""What says that the variable is meant where a source calls something of its own so."""
VARIABLE = re.compile(
    r"""(?:process\.env\.|import\.meta\.env\.|(?:(?:env|environ|ENV|Getenv|getenv|LookupEnv|var)"""
    r"""(?:\.get|\.fetch|\.int|\.str|_var)?|\b\w{0,30}[eE]nv\w{0,30}(?:<\w{1,30}>)?)"""
    r"""(?:\s*[(\[]\s*|(?<=fetch)[ ])["'`])(?P<name>[A-Z][A-Z0-9_]*)\b"""
)
"""A variable of the environment that a source reads, in any of the languages, or by a function of
its own such as `getEnv`."""
OF_PORT = re.compile(r"(?:[A-Z0-9]+_{1,2})*(?:SERVER|APP|HTTP|WEB|API)?PORT")
OF_HTTP_PORT = re.compile(r"(?:HTTP|SERVER|APP|API|WEB|LISTEN|SERVICE)_{1,2}(?:SERVER_)?PORT")
"""Of several ports, the one that clients ask."""
OF_ADDRESS = re.compile(
    r"(?:[A-Z0-9]+_{1,2})*(?:LISTEN|BIND|ADDR|ADDRESS|LISTEN_ADDR|BIND_ADDRESS)"
)
OF_OTHERS = re.compile(
    r"(?:^|_)(?:DB|DATABASE|PG|PGADMIN|POSTGRES|POSTGRESQL|MYSQL|MARIADB|MONGO|MONGODB|REDIS|SMTP|MAIL|EMAIL"
    r"|RABBITMQ|AMQP|KAFKA|ELASTIC|ELASTICSEARCH|MEMCACHED?|STATSD|METRICS|ADMIN|DEBUG|GRPC|SSH"
    r"|FTP|LDAP|NATS|SQL|PROXY|VITE|PUBLIC|CLIENT|FRONTEND|DEV|TEST|REMOTE|MINIO|S3|JAEGER|OTEL)_"
    r"|^PGPORT$"
)
"""Of variables that say where something else listens."""
PORT_FLAG = re.compile(
    r"(?P<flag>(?:^|\s)(?:PORT=|(?:-p|--port|--http-port|--server\.port|-Dserver\.port)[ =]"
    r"|(?:-b|-l|-a|--bind|--listen|--addr|--address)[ =](?:tcp://)?[\w.\[\]]*:))\d{2,5}\b"
)
"""What stands before a port on the command lines of servers."""
ADDRESS = r"""["'](?P<address>[\w.\[\]]*:\d{2,5})["']"""
PORT = r"(?P<port>(?!(?:1433|3306|5432|5672|6379|9092|9200|11211|27017)\b)\d{2,5})\b"
"""No database's, broker's or cache's: those are asked, by their usual ports."""
BEFORE_PORT = (
    r"(?:\.(?:listen|addListener|port)|(?:\b(?:app|server)|\))\.start)\(\s*(?:\{\s*port:\s*|\"[\w.:]{0,60}\"\s*,\s*)?|^\s*port:\s*"
    r"|\b(?:const|let|var|val|auto|int|uint16_t|final)\b[^=;\n\"']{0,40}?"
    r"\b(?:k_?|http_?|server_?|app_?|listen_?|default_?)?port\s*=\s*|#define\s+\w{0,30}port\s+"
)
"""What stands before a port: a call, a key, or a name for it."""
BINDS = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:bind|listen|serve|run|start)\w{{0,60}}\(.*?(?:{ADDRESS}|$)",
        rf"""\b(?:bind|addr|listen)\w*\b[^\n"'=]{{0,40}}=\s*{ADDRESS}""",
        rf"(?:{BEFORE_PORT}){PORT}",
        rf"\b(?:serve\(|default\s)\s*\{{(?:[^}}\n]*\bport:\s*{PORT}|[^}}\n]*)",
    )
]
"""How a line binds. Where no address comes the rest is matched, which isn't searched again then."""
PORT_IN_FILE = re.compile(
    r"""^[ \t]*["']?(?:(?:http|server|app|web|listen)_?)?port["']?[ \t]*[=:][ \t]*"""
    rf"""["']?(?=\d{{4}}){PORT}""",
    re.IGNORECASE | re.MULTILINE,
)
BOTH_UP = "both variants are up at the same time, and need a port each"


def given_port(line: str) -> str:
    """Return a command line with $PORT in the place of a fixed port, by the usual flags."""
    return PORT_FLAG.sub(r"\g<flag>$PORT", line)


NAMES_PORT = re.compile(r"\$(?:PORT\b|\{PORT[:}])")


def with_port(app: FoundApp, folder: Path) -> FoundApp:
    """Pass a program its port by the variable that its sources read, where that isn't PORT."""
    if not app.start or app.heeds_port or NAMES_PORT.search(app.start):
        return app
    configured = [path for path in sources(folder, CONFIGURES) if CONFIGURATION.match(path.name)]
    named = [folder / word for word in app.start.split() if not word.startswith("/")]
    files = (*sources(folder), *configured, *named)
    is_fixed = _listens_on_fixed_ports_alone(app, folder)
    if not is_fixed and any(_reads_port(read_text(path) or "") for path in files):
        return app
    if not is_fixed and "PORT" in settings_of(folder):
        return app
    if is_fixed or (name := _port_variable(folder)) is None:
        who = "no call that listens reads" if is_fixed else "nothing here mentions"
        doubt = f"{who} PORT, the variable with the port that it has to listen on"
        if fixed := fixed_address(folder):
            doubt += f"; it binds {fixed}: {BOTH_UP}"
        return app.hindered(Hindrance.HERE, doubt)
    value = "$PORT" if OF_PORT.fullmatch(name) else "127.0.0.1:$PORT"
    note = f"its sources read the port from {name}"
    return replace(app, start=f"{name}={value} {app.start}", notes=(*app.notes, note))


LISTENS = re.compile(
    r"\.(?:Listen|ListenAndServe|Run|Start)\([ \t]*(?:(?P<fixed>\"[\w.]*:\d{2,5}\")|[^\s\")])"
    r"|\.listen\([ \t]*(?:(?P<number>\d{2,5})\b|[^\s)])"
)
"""In Go, and in Node."""


def _listens_on_fixed_ports_alone(app: FoundApp, folder: Path) -> bool:
    """Whether all calls that may listen have a port written into them."""
    endings = {".js", ".mjs", ".ts"} if app.by == PACKAGE else {".go"}
    texts = (read_text(path) or "" for path in sources(folder, endings))
    calls = [match for text in texts for match in LISTENS.finditer(text)]
    return bool(calls) and all(match["fixed"] or match["number"] for match in calls)


def _reads_port(text: str) -> bool:
    pattern = PORT_OF_ENVIRONMENT if OWN_PORT.search(text) else USES_PORT
    return bool(pattern.search(text))


def variables_read(folder: Path) -> set[str]:
    """Return the variables of the environment that sources and typed settings read."""
    texts = (read_text(path) or "" for path in sources(folder))
    named = {match["name"] for text in texts for match in VARIABLE.finditer(text)}
    return named | settings_of(folder)


def place_of(name: str, folder: Path) -> str:
    """Return where sources name a variable, or its field of settings: `src/settings.py:12`."""
    files = sources(folder, SOURCES | CONFIGURATIONS)
    for pattern in (rf"\b{name}\b", rf"(?m)^[ \t]*{name.lower()}[ \t]*:"):
        for path in files:
            if match := re.search(pattern, text := read_text(path) or ""):
                return line_of(folder, path, text, match.start())
    return ""


def _port_variable(folder: Path) -> str | None:
    own = sorted(name for name in variables_read(folder) if not OF_OTHERS.search(name))
    for kind in (OF_PORT, OF_HTTP_PORT, OF_ADDRESS):
        if len(fitting := [name for name in own if kind.fullmatch(name)]) == 1:
            return fitting[0]
    return None


def fixed_address(folder: Path) -> str | None:
    """Return the first address that sources bind to, and where: `0.0.0.0:3000 in src/x.rs:8`."""
    for path in sources(folder):
        for number, line in enumerate((read_text(path) or "").splitlines(), 1):
            if bound := _bound(line):
                return f"{bound} in {path.relative_to(folder)}:{number}"
    for path in sources(folder, CONFIGURES | {".ini"}):
        text = read_text(path) or "" if "compose" not in path.name else ""
        if match := PORT_IN_FILE.search(text):
            return f"port {match['port']} in {line_of(folder, path, text, match.start('port'))}"
    return None


def _bound(line: str) -> str | None:
    """Return the first address or port that a line binds."""
    bindings = (match for pattern in BINDS for match in pattern.finditer(line) if match.lastgroup)
    first = min(bindings, key=re.Match.start, default=None)
    if first is None:
        return None
    return first[1] if first.lastgroup == "address" else f"port {first[1]}"


SIGNS = re.compile(
    r"(?:(?:APP|FLASK|DJANGO)_)?SECRET(?:_KEY)?(?:_BASE)?|(?:[A-Z0-9]+_{1,2}){0,3}?"
    r"(?:SESSION|COOKIE|JWT|TOKEN|AUTH|CSRF|SIGNING|HMAC|SECURITY)"
    r"_(?:(?:SIGNING|ACCESS|REFRESH)_)?(?:SECRET|KEY|SECRET_KEY)"
)
"""Names of such variables; those of keys for what is elsewhere have others."""


LIMITS = re.compile(
    r"(?:[A-Z0-9]+_)*(?:RATE_?LIMIT|THROTTLE)_(?:MAX|LIMIT|REQUESTS|MAX_REQUESTS|PER_MINUTE|RPS)"
)
"""Names of variables that say how many requests a client may send."""
NO_LIMIT = "1000000000"


OF_KEY_PAIRS = re.compile(
    r"(?:[A-Z0-9]+_)*(?:JWT|JWS|TOKEN|AUTH|SIGNING|RSA)_(?:[A-Z0-9]+_)?(?:PRIVATE|PUBLIC)_KEY"
)
KEY_PAIR = (
    "its sources read {names}, which can't be made up: {first}=$(cat FILE) before start passes the "
    "key that a file of yours holds"
)


def with_no_rate_limit(app: FoundApp, folder: Path) -> FoundApp:
    """Give a program a limit of requests that no load reaches: else most are refused."""
    lacking = _lacking(app, folder)
    return _with_values(app, lacking, LIMITS, NO_LIMIT, "a limit that no load reaches")


def with_values_for_secrets(app: FoundApp, folder: Path) -> FoundApp:
    """Pass a program the secrets that its sources read, and name keys that it has to be given."""
    lacking = _lacking(app, folder)
    with_values = _with_values(app, lacking, SIGNS, FOR_MEASURING, "a value for measuring")
    if not (keys := sorted(filter(OF_KEY_PAIRS.fullmatch, lacking))):
        return with_values
    doubt = KEY_PAIR.format(names=", ".join(keys), first=keys[0])
    return with_values.hindered(Hindrance.BEHIND, doubt)


def _lacking(app: FoundApp, folder: Path) -> set[str]:
    """Return the variables that a program's sources read and that it isn't given."""
    if not app.start:
        return set()
    return variables_read(folder) - app.environment.keys() - committed_values(folder)


def _with_values(
    app: FoundApp, lacking: Collection[str], names: re.Pattern[str], value: str, what: str
) -> FoundApp:
    """Give a program a value for the variables of such names that it lacks."""
    if not (given := sorted(filter(names.fullmatch, lacking))):
        return app
    return replace(
        app,
        environment={**app.environment, **dict.fromkeys(given, value)},
        notes=(*app.notes, f"its sources read {', '.join(given)}: {what} is given"),
    )


OF_API = re.compile(r"\w*(?:API|BACKEND)_(?:BASE_|SERVER_)?(?:URL|URI|HOST|ENDPOINT)")
IS_HERE = re.compile(r"[\"']?https?://(?:localhost|127\.0\.0\.1|backend|api|server)\b")
OWN_PORT_SHOWN = re.compile(r"^(?:(?:APP|SERVER|HTTP|API)_)?PORT=[\"']?(\d{2,5})\b", re.MULTILINE)
ASKS = (
    "its sources ask {name}, {value} in {example}: have that run on this machine, which both "
    "variants then share, and name it as environment.{name} below [app]"
)


def with_what_it_asks(app: FoundApp, folder: Path) -> FoundApp:
    """Name the other application that one asks, as a front asks what is behind it."""
    text = "\n".join(
        read_text(path) or ""
        for path in sources(folder, SOURCES | {".svelte", ".vue"})
        if not is_of_another(path, folder)
    )
    own = OWN_PORT_SHOWN.search(example_of(folder))
    asked = (
        match
        for match in PLAIN_VALUE.finditer(example_of(folder))
        if OF_API.fullmatch(match["name"])
        and IS_HERE.match(match["value"])
        and not (own and re.search(rf":{own[1]}\b", match["value"]))
        and re.search(rf"\benv\.{match['name']}\b", text)
    )
    first = next(asked, None) if app.start else None
    if first is None:
        return app
    doubt = ASKS.format(**first.groupdict(), example=example_file(folder))
    return app.hindered(Hindrance.BEHIND, doubt, first["name"])
