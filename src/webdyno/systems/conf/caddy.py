"""Moves a Caddyfile: Caddy itself turns it into JSON, which says everything in one place."""

import glob
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from webdyno.core.errors import UserError
from webdyno.core.format import listed
from webdyno.core.service import Origin
from webdyno.core.tables import Table, as_table, tables_in
from webdyno.core.text import SECRET
from webdyno.systems.conf.config_files import Variables
from webdyno.systems.conf.passing import BackendAddress, Backends, find_places
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    HTTP,
    HTTPS,
    KEY,
    PORT,
    RelocatedConfig,
    RelocationRequest,
    port_of,
    program_path,
    readable,
    run_reader,
)

NAME = "caddy.json"
TAG = "webdyno"
"""By it Caddy finds the certificate of the measured port, whatever name a client asks for."""
ACCESS = "http.log.access"
STAY = {"stdout", "stderr", "discard"}
"""Log outputs that are the run's anyway."""
FILES, CONTENT, WORDS, REDIRECTS = range(4)
"""What a site gives, the likeliest to be measured first: files, others' responses, a fixed
response, nothing but a redirect or an end."""
SERVES_FILES = {"file_server", "templates"}
GIVES_CONTENT = {"reverse_proxy", "php", "acme_server", "metrics"}
VARIABLE = re.compile(r"\{\$(?P<name>[A-Za-z_]\w*)(?::(?P<default>[^}]*))?\}")
IMPORT = re.compile(r"(?m)^(?P<before>[ \t]*import[ \t]+)(?P<path>\"[^\"\n]*\"|[^\s\"]+)")
SNIPPET = re.compile(r"(?m)^[ \t]*\(([^)\n]+)\)[ \t]*\{")
FIX = (
    "other versions and plugins know other words: install what has them, take the lines out, or "
    "measure the image that has them (image:NAME)"
)
OF_OTHERS = ("unrecognized", "not registered", "Wrong argument count")
"""What Caddy says of those."""
PASSING = re.compile(
    r"^\s*(?:reverse_proxy|php_fastcgi|forward_auth|to|dynamic|name|"
    r"forward_proxy_url|network_proxy|import)\b"
)
"""What lines are likely to begin with that name hosts."""


def relocate(request: RelocationRequest) -> RelocatedConfig:
    """Read and move a configuration; raise UserError, in Caddy's words, where it isn't right."""
    changes: list[str] = []
    config = _as_json(request, changes)
    _log_into_the_folder(config, changes)
    _serve_alone(request, config, changes)
    dial_backends(request.backends, config)
    if config.pop("storage", None):
        changes.append("excluded: storage (it is in the run's folder)")
    config["admin"] = {"disabled": True, "config": {"persist": False}}
    changes.append("admin off")
    path, home = "{{ server.folder }}/" + NAME, "{{ server.folder }}/home"
    return RelocatedConfig(
        name=NAME,
        text=json.dumps(config, indent=1) + "\n",
        changes=changes,
        start=["{{ needs.binary }}", "run", "--config", path],
        check=["{{ needs.binary }}", "validate", "--config", path],
        folders=["home"],
        passed_on=find_places(passed_on(config), request.files.texts, request.environment, PASSING),
        environment=dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), home),
        knows_comments=False,
    )


def _log_into_the_folder(config: Table, changes: list[str]) -> None:
    """Keep log lines in the run's folder: none is written elsewhere, or sent to other machines."""
    logging = config.get("logging", {})
    for log in logging.get("logs", {}).values():
        writer = log.get("writer", {})
        output = writer.get("output", "stderr")
        if output in STAY:
            continue
        before = writer.get("filename") or " ".join([output, writer.get("address", "")]).strip()
        if any(logger.startswith(ACCESS) for logger in log.get("include", [])):
            log["writer"] = {"output": "file", "filename": f"{FOLDER}/access.log"}
            changes.append(f"log RUN/access.log, not {before}")
        else:
            del log["writer"]
            changes.append(f"log to stderr, not {before}")
    if sink := logging.pop("sink", None):
        changes.append(f"excluded: the sink {sink} of other programs' logs")


def _serve_alone(request: RelocationRequest, config: Table, changes: list[str]) -> None:
    """Leave the one server that is measured, on the run's address."""
    apps = config.get("apps", {})
    servers: dict[str, Table] = apps.get("http", {}).get("servers", {})
    if not servers:
        raise UserError(f"{request.file} has no site, so it serves nothing")
    name = _choose_server(request, servers)
    for other, server in servers.items():
        if other != name:
            left = " ".join(server.get("listen", []))
            changes.append(f"excluded: what listens on {left}, which isn't requested")
    server = servers[name]
    before = " ".join(server.get("listen", []))
    changes.append(f"listen {HOST}:$PORT, not {before}")
    was_secure = _is_secure(server)
    if was_secure and not request.is_secure:
        changes.append("no TLS, since what is requested is HTTP without it")
    server["listen"] = [f"{HOST}:{PORT}"]
    server["automatic_https"] = {"disable": True}
    protocols = server.get("protocols", ["h1", "h2"])
    server["protocols"] = [protocol for protocol in protocols if protocol != "h3"]
    policies = server.pop("tls_connection_policies", None) or [{}]
    tls = apps.pop("tls", {})
    apps.pop("pki", None)
    if request.is_secure:
        chosen = {"certificate_selection": {"any_tag": [TAG]}}
        kept = {key: policy for key, policy in policies[0].items() if key != "match"}
        server["tls_connection_policies"] = [kept | chosen]
        pair = _certificate(request, tls, changes) | {"tags": [TAG]}
        apps["tls"] = {"certificates": {"load_files": [pair]}}
    apps["http"] = {**apps["http"], "servers": {name: server}}
    _answer_any_host(request, server, changes)
    if request.root:
        _serve_from(request, server, changes)


def _choose_server(request: RelocationRequest, servers: Mapping[str, Table]) -> str:
    """Choose what is measured; a main site that has TLS by Caddy's choice can do without."""
    ports = {name: _ports(server) for name, server in servers.items() if _ports(server)}
    if request.is_secure:
        ports = {name: ports[name] for name in ports if _is_secure(servers[name])}
    called = [name for name in ports if request.host in _names(servers[name])]
    fitting = sorted(called or ports, key=lambda name: HTTPS not in ports[name])
    only_redirects = {
        port: "its sites only redirect"
        for name in fitting
        for port in ports[name]
        if _kind_of_content(servers[name]) == REDIRECTS
    }
    port = request.choose_port([port for name in fitting for port in ports[name]], only_redirects)
    return next(name for name in fitting if port in ports[name])


def _names(server: Table) -> list[str]:
    return [host for route in _routes(server) for host in _hosts(route)]


def _ports(server: Table) -> list[int]:
    return [port for address in server.get("listen", []) if (port := port_of(address)) is not None]


def _is_secure(server: Table) -> bool:
    """Whether it speaks TLS: as it says, or by itself since its sites have names."""
    ports = _ports(server)
    if "tls_connection_policies" in server or HTTPS in ports:
        return True
    by_itself = not server.get("automatic_https", {}).get("disable") and HTTP not in ports
    return by_itself and bool(_names(server))


def _certificate(request: RelocationRequest, tls: Table, changes: list[str]) -> Table:
    """Return the configuration's own certificate; where it can't be read or got here, the run's."""
    own = tls.get("certificates", {}).get("load_files", [])
    ours = {"certificate": CERTIFICATE, "key": KEY}
    if not own:
        changes.append("tls RUN/certificate.pem (the run's own), since none is got from outside")
        return ours
    pair = {key: own[0][key] for key in ours}
    if all(map(request.may_read, pair.values())):
        return pair
    changes.append(request.unreadable(f"tls {CERTIFICATE}", f"tls {pair['certificate']}"))
    return ours


def _answer_any_host(request: RelocationRequest, server: Table, changes: list[str]) -> None:
    """Have the site that gives most, or the requested one, answer whatever host is requested."""
    sites = _routes(server)
    if not sites or not all(map(_hosts, sites)):
        return
    if request.host:
        if not any(_matches(request.host, host) for site in sites for host in _hosts(site)):
            hosts = listed(host for site in sites for host in _hosts(site))
            raise UserError(f"{request.file} has no site {request.host}; those there are {hosts}")
        request.note_site(request.host, [])
        return
    chosen = min(sites, key=_kind_of_content)
    sites.remove(chosen)
    names = _hosts(chosen)
    others = [host for site in sites for host in _hosts(site)]
    changes.append(f"{', '.join(names)} answers, whatever host is requested")
    request.note_site(names[0], [*names, *others])
    matches = [{k: value for k, value in match.items() if k != "host"} for match in chosen["match"]]
    logs = server.get("logs", {})
    named = [name for name in map(logs.get("logger_names", {}).get, names) if name]
    if named:
        logs["default_logger_name"] = named[0]
    chosen["match"] = [matcher for matcher in matches if matcher]
    sites.append(chosen)


def _serve_from(request: RelocationRequest, server: Table, changes: list[str]) -> None:
    root = str(request.root)
    if _kind_of_content(server) != FILES:
        raise UserError(f"{request.file} serves no files there; leave --root out")
    named = [handler for handler in _handlers(server) if "root" in handler]
    for handler in named:
        changes.append(f"root {root}, not {handler['root']}")
        handler["root"] = root
    if not named:
        changes.append(f"root {root} (there was none)")
        _routes(server).insert(0, {"handle": [{"handler": "vars", "root": root}]})


def _kind_of_content(node: Table) -> int:
    handlers = list(_handlers(node))
    names = {handler.get("handler") for handler in handlers}
    fastcgi = any(handler.get("transport", {}).get("protocol") == "fastcgi" for handler in handlers)
    if names & SERVES_FILES or fastcgi:
        return FILES
    if names & GIVES_CONTENT:
        return CONTENT
    for handler in handlers:
        status = str(handler.get("status_code", 200))
        redirects = "Location" in handler.get("headers", {}) or handler.get("abort")
        is_good = not status.isdecimal() or int(status) < 300
        if handler.get("handler") == "static_response" and is_good and not redirects:
            return WORDS
    return REDIRECTS


def _routes(server: Table) -> list[Table]:
    """Return the routes of a server: one a site, or what holds for all."""
    return cast("list[Table]", server.setdefault("routes", []))


def _hosts(route: Table) -> list[str]:
    return [host for match in route.get("match", []) for host in match.get("host", [])]


def _handlers(node: Table) -> Iterator[Table]:
    return (table for table in tables_in(node) if "handler" in table)


def _matches(host: str, name: str) -> bool:
    """Whether a site's name, perhaps with wildcards for whole labels, is that of a host."""
    ours, theirs = host.lower().split("."), name.lower().split(".")
    return len(ours) == len(theirs) and all(
        one in {other, "*"} for one, other in zip(theirs, ours, strict=True)
    )


def _as_json(request: RelocationRequest, changes: list[str]) -> Table:
    """Have Caddy write the configuration as JSON; raise UserError, in its words, where it can't."""
    caddy = program_path("caddy")
    variables = Variables(
        {
            name: f"{{env.{name}}}" if SECRET.search(value) else value
            for name, value in request.environment.items()
        }
    )
    _look_through(request, request.file, None, 0, variables, set())
    unset = [f"{name} ({origin})" for name, origin in variables.unset.items()]
    with readable(request, _with_whole_imports(request)) as file:
        words: list[str | Path] = [caddy, "adapt", "--adapter", "caddyfile", "--config", file]
        reader = run_reader(request, words, variables.values)
        if reader.code:
            lines = reader.complained.replace(str(file), str(request.file)).strip().splitlines()
            complaint = lines[-1].removeprefix("Error: ") if lines else "nothing"
            raise UserError(f"caddy says: {complaint}{_why(request, caddy, complaint, unset)}")
    if unset:
        changes.append(f"empty, since they have no value: {listed(unset)}")
    try:
        adapted = json.loads(reader.printed.replace(f"{file.parent}/", f"{request.file.parent}/"))
    except (ValueError, RecursionError):
        why = "what it becomes is more than Caddy can print here"
        raise UserError(f"{request.file}: {why}") from None
    return as_table(adapted)


def _why(request: RelocationRequest, caddy: str, complaint: str, unset: list[str]) -> str:
    """Return what may be the reasons, and what can be done."""
    reasons = ""
    if any(words in complaint for words in OF_OTHERS):
        version = run_reader(request, [caddy, "version"], {}).printed.split()
        reasons += f"; this is caddy {version[0] if version else 'of unknown version'}: {FIX}"
    if unset:
        flags = " ".join(f"--env {variable.partition(' ')[0]}=VALUE" for variable in unset)
        reasons += f"; variables have no value: {listed(unset)}; give each one: {flags}"
    return reasons


def _look_through(
    request: RelocationRequest,
    file: Path,
    named: Origin | None,
    depth: int,
    variables: Variables,
    snippets: set[str],
) -> None:
    """Note variables without a value; raise UserError for files that are too many, or too large."""
    lines = list(request.files.lines(file, named, depth))
    for line in lines:
        if match := SNIPPET.match(line.text):
            snippets.add(match[1].strip())
    for line in lines:
        if line.origin is None or line.text.lstrip().startswith("#"):
            continue
        text = variables.fill(line.text, line.origin, VARIABLE)
        if not (match := IMPORT.match(text)):
            continue
        path = match["path"].strip('"')
        exists = os.path.exists(file.parent / path)  # noqa: PTH110 (Path's raises)
        if path in snippets or not (exists or glob.has_magic(path)):
            continue  # Caddy says so, or knows it as a snippet
        for each in request.files.files_of_include(path, [file.parent], line.origin):
            if not each.is_dir():
                _look_through(request, each, line.origin, depth + 1, variables, snippets)


def _with_whole_imports(request: RelocationRequest) -> str:
    """Return the text with imports that can be read from anywhere."""
    text = request.files.text(request.file)
    snippets = {snippet.strip() for snippet in SNIPPET.findall(text)}

    def whole(match: re.Match[str]) -> str:
        path = match["path"].strip('"')
        if path in snippets or path.startswith(("/", "{")):
            return match[0]
        return f'{match["before"]}"{request.file.parent / path}"'

    return IMPORT.sub(whole, text)


_HOST = re.compile(r"(?:(?:tcp|udp)[46]?/)?(\[[^\]]*\]|[^:]*)(?::[^:]*)?")
_URL = re.compile(r"[a-z0-9+]+://(?:[^@/]*@)?(\[[^\]]*\]|[^:/]+)", re.IGNORECASE)
_UNIX = re.compile(r"unix\+?\w*/(/[^|]*)(?:\|\d+)?")
_TCP = re.compile(r"(?:tcp[46]?/)?(\[[^\]]*\]|[^:/{}]+)(?::([0-9]{1,5}))?")


def passed_on(config: Table) -> Iterator[str]:
    """Return the hosts, as they are written where only a request says; sockets are none."""
    for node in tables_in(config):
        dials = node.get("dial") or node.get("addresses", [])  # of name servers
        for address in [dials] if isinstance(dials, str) else dials:
            if not address.startswith(("unix/", "unix+", "fd/", "fdgram/")):
                match = _HOST.fullmatch(address)
                if host := match[1] if match else address:
                    yield host
        if source := node.get("dynamic_upstreams"):
            yield from _dynamic(source)
        for key in ("forward_proxy_url", "url"):
            if isinstance(url := node.get(key), str) and (match := _URL.match(url)):
                yield match[1]


def _dynamic(source: Table) -> Iterator[str]:
    """Return the names that Caddy looks up time and again."""
    if source.get("source") == "a":
        yield str(source.get("name", ""))
    elif source.get("source") == "srv":
        yield f"SRV {source.get('name', '')}"
    for inner in source.get("sources", []):
        yield from _dynamic(inner)


def dial_backends(backends: Backends, config: Table) -> None:
    """Have handlers that pass requests on name backends in the place of hosts."""
    for handler in _handlers(config):
        if handler["handler"] != "reverse_proxy":
            continue
        for upstream in handler.get("upstreams", []):
            if address := _instead(backends, str(upstream.get("dial", ""))):
                upstream["dial"] = f"unix/{address.socket}" if address.socket else address.text
        source = handler.get("dynamic_upstreams", {})
        if source.get("source") == "a":
            service = f"{source.get('name', '')}:{source.get('port') or 80}"
            if address := _instead(backends, service):
                del handler["dynamic_upstreams"]
                handler["upstreams"] = [{"dial": address.text}]


def _instead(backends: Backends, address: str) -> BackendAddress | None:
    if socket := _UNIX.fullmatch(address):
        return backends.of_socket(socket[1])
    match = _TCP.fullmatch(address)
    return backends.of_host(match[1], int(match[2]) if match[2] else None) if match else None
