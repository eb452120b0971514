"""What an application lacks on this machine, and what to change where it doesn't start."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from webdyno.core.registry import command
from webdyno.core.service import READY_WITHIN_S
from webdyno.core.tables import read_text
from webdyno.systems.layouts.app import FoundApp, sources
from webdyno.systems.layouts.variables import fixed_address

VARIABLE = "[A-Z][A-Z0-9]*_[A-Z0-9_]+"
WANTED = "it wants a variable: --env {what}=VALUE"
LACKED = "required|missing|not set|not found|undefined|must be set"
BY_WORDS = {
    rf"\b[Ss]et [`'\"]?(?P<what>{VARIABLE}=\w+)\b": "it wants a variable: --env {what}",
    r"No module named ['\"](?!distutils)(?P<what>[\w.]+)": (
        "{what} is in no file of requirements: add it there"
    ),
    r"cannot import name '\w+' from 'collections'|No module named 'distutils'": (
        "a package of it is for an older Python than python3 is here: have the build make .venv by "
        "that one, as in --build 'python3.9 -m venv .venv && …'"
    ),
    r"No interpreter found for Python (?P<what>3\.\d+)|python-build-standalone": (
        "its Python isn't here, and uv can't get it: install that one, which build then has to name"
    ),
    r"Cannot find (?:module|package) ['\"](?P<what>[^'\"]+)": (
        "{what} isn't there: build has to install it, or to make it"
    ),
    r"KeyError: ['\"](?P<what>[A-Z][A-Z0-9_]+)['\"]": WANTED,
    r"--[\w-]+ <(?P<what>[A-Z][A-Z0-9_]*)>": WANTED,
    rf"(?:Set the|{LACKED})\W[^\n]{{0,40}}?\b(?P<what>{VARIABLE})\b": WANTED,
    rf"\b(?P<what>{VARIABLE})\b[^\n]{{0,30}}?(?:{LACKED})": WANTED,
    rf"[\"']?\b(?P<what>{VARIABLE})\b[\"']?: \[\s*[\"'](?:Required|Must be|Invalid)": WANTED,
    r"(?i)does not support SSL|SSL is not enabled": (
        "its database speaks no TLS here: turn that off by the variable that the application reads "
        "for it, with --env"
    ),
    r"requires mysql native password": (
        "its driver refuses how MariaDB lets users in: AllowNativePasswords is to be true"
    ),
    r"\bECONNREFUSED (?P<what>[\w.]+:(?!5432|3306|6379)\d+)": (
        "nobody listens on {what}, which it asks: have that run, or say by its variable where it is"
    ),
    r"(?i)connection refused|could not connect to server|ECONNREFUSED|can't connect to .*mysql": (
        "what it needs isn't up, a database perhaps: services.db = 'postgresql' below [app] starts "
        "one with it, and setup = COMMAND there fills it; it stands in $DATABASE_URL"
    ),
    r"(?:sh|env): (?:\d+: )?(?P<what>[\w.-]+): not found": "{what} isn't installed here",
    r"(?:sh|env): (?:\d+: )?(?P<what>[\w.-]*/[\w./-]+): not found": (
        "{what} isn't there: --build says how it is made"
    ),
}
LISTEN_LINES = {
    ".go": 'http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), handler)',
    ".rs": 'TcpListener::bind(format!("127.0.0.1:{}", std::env::var("PORT")?))',
    ".js": 'app.listen(process.env.PORT, "127.0.0.1")',
    ".ts": 'app.listen(Number(process.env.PORT), "127.0.0.1")',
    ".mjs": 'app.listen(process.env.PORT, "127.0.0.1")',
    ".py": 'app.run(host="127.0.0.1", port=int(os.environ["PORT"]))',
    ".rb": 'set :port, ENV["PORT"]',
    ".java": 'Integer.parseInt(System.getenv("PORT"))',
    ".cpp": 'server.listen("127.0.0.1", std::stoi(std::getenv("PORT")));',
}
"""By language: a line that listens where it has to."""
IDIOMS = {
    "@hono/node-server": "serve({ fetch: app.fetch, port: Number(process.env.PORT) })",
    r"[\"']hono[\"']": "export default { port: Number(process.env.PORT), fetch: app.fetch }",
    r"\bBun\.serve\(": "Bun.serve({ port: Number(process.env.PORT), … })",
    r"[\"']fastify[\"']": 'app.listen({ port: Number(process.env.PORT), host: "127.0.0.1" })',
    r"[\"']elysia[\"']": "app.listen(Number(process.env.PORT))",
    r"\bgin\.(?:Default|New)\(": 'router.Run("127.0.0.1:" + os.Getenv("PORT"))',
    r"\becho\.New\(": 'e.Start("127.0.0.1:" + os.Getenv("PORT"))',
    r"\bfiber\.New\(": 'app.Listen("127.0.0.1:" + os.Getenv("PORT"))',
    r"\bJavalin\.create": 'app.start("127.0.0.1", Integer.parseInt(System.getenv("PORT")))',
    r"\bcrow::": 'app.bindaddr("127.0.0.1").port(std::stoi(std::getenv("PORT"))).run();',
    r"\bdrogon::": 'app().addListener("127.0.0.1", std::stoi(std::getenv("PORT")));',
    "HttpServer::new": '.bind(format!("127.0.0.1:{}", std::env::var("PORT").unwrap()))?',
}
"""By what sources of a framework name: such a line of its own."""
ELSEWHERE = "listens on "
LATE = "give --ready-within"
AS_PROGRAM = "--program"
LONGER = 3
"""How many times as long to start is worth a try."""
MOST_REMEDIES = 6
BETWEEN = re.compile(r"&&|\|\||[;|]")
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
ASSIGNMENT = re.compile(r"(?<!\S)\w+=(?:\$\(\([^)]{0,200}\)\)|\$\([^)]{0,200}\)|\S*)\s+")
LEADING = {"exec", "env"}
"""Words before the program."""
OF_SHELL = {"cd", "export", "test", "true", ":", "["}


def remedies(output: str, app: FoundApp, folder: Path) -> Iterator[str]:
    """Return what to change in an application that doesn't start, by what it prints."""
    by_words = (
        fix.format(what=match.groupdict().get("what"))
        for pattern, fix in BY_WORDS.items()
        for match in re.finditer(pattern, output)
    )
    yield from list(dict.fromkeys(by_words))[:MOST_REMEDIES]
    inside = folder / app.dir
    if LATE in output and ELSEWHERE not in output:
        longer = f"{LONGER * (app.ready_within_s or READY_WITHIN_S):g}"
        writes = f"{command('init', '--no-try')} writes the file"
        yield f"ready_within = {longer} below [app] gives it longer; {writes}"
    if app.image and any(AS_PROGRAM in note for note in app.notes):
        yield f"as a program: {command('init', AS_PROGRAM)}"
    if ELSEWHERE in output and app.start:
        address = fixed_address(inside)
        if line := _listening_line(inside):
            where = f" in the place of {address}" if address else ""
            yield f"have it listen on $PORT{where}: {line}"
        if any((inside / name).is_file() for name in ("Dockerfile", "Containerfile")):
            yield "a container has its ports to itself: --image ."


def _listening_line(folder: Path) -> str | None:
    texts = {path: read_text(path) or "" for path in sources(folder)}
    for pattern, line in IDIOMS.items():
        if any(re.search(pattern, text) for text in texts.values()):
            return line
    suffixes = [path.suffix for path in texts]
    return LISTEN_LINES.get(max(set(suffixes), key=suffixes.count, default=""))


def missing_tools(app: FoundApp) -> list[str]:
    """Return the programs that are not here, but for those that its own build makes."""
    lines = filter(None, (app.build, app.setup, app.prepare, app.start))
    named = dict.fromkeys(program for line in lines for program in _programs(line))
    if app.image and not shutil.which("docker"):
        named["podman"] = None
    return [program for program in named if "/" not in program and not shutil.which(program)]


def _programs(line: str) -> Iterator[str]:
    for part in BETWEEN.split(QUOTED.sub("''", line)):
        words = ASSIGNMENT.sub("", part.strip().lstrip("(")).split()
        while words and words[0] in LEADING:
            words = ASSIGNMENT.sub("", " ".join(words[1:])).split()
        if words and words[0] not in OF_SHELL:
            yield words[0]
