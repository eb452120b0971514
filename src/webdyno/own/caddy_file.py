"""Moves a Caddyfile: Caddy itself turns it into JSON, which says everything in one place."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from webdyno.model.mistake import Mistake, Trouble
from webdyno.model.secret import SECRET
from webdyno.own.moved import CERTIFICATE, FOLDER, HOST, HTTP, HTTPS, KEY, PORT, Moved, Wanted

Json = dict[str, Any]

NAME = "caddy.json"
WITHIN_S = 30
TAG = "webdyno"
"""By it Caddy finds the certificate of the measured port, whatever name a client asks for."""
ACCESS = "http.log.access"


def moved(wanted: Wanted) -> Moved:
    """Read and move a configuration; raise Mistake, in Caddy's words, where it isn't right."""
    changes: list[str] = []
    config = _adapted(wanted)
    _log_into_the_folder(config, changes)
    _serve_alone(wanted, config, changes)
    if config.pop("storage", None):
        changes.append("left out: storage (it is in the run's folder)")
    config["admin"] = {"disabled": True, "config": {"persist": False}}
    changes.append("admin off")
    path = "{{ server.folder }}/" + NAME
    home = "{{ server.folder }}/home"
    return Moved(
        name=NAME,
        text=json.dumps(config, indent=1) + "\n",
        changes=changes,
        start=["{{ needs.binary }}", "run", "--config", path],
        check=["{{ needs.binary }}", "validate", "--config", path],
        folders=["home"],
        environment=dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), home),
        knows_comments=False,
    )


def _adapted(wanted: Wanted) -> Json:
    program = shutil.which("caddy")
    if program is None:
        raise Trouble(
            "a Caddyfile is read by Caddy itself, and there is no caddy here; on Debian and "
            "Ubuntu: apt-get install caddy"
        )
    variables = {  # what is kept of the configuration shows no secret; Caddy fills it in later
        name: f"{{env.{name}}}" if SECRET.search(text) else text
        for name, text in wanted.environment.items()
    }
    done = subprocess.run(
        [program, "adapt", "--adapter", "caddyfile", "--config", wanted.file],
        capture_output=True,
        env={"PATH": "/usr/bin:/bin", **variables},
        cwd=wanted.file.parent,
        timeout=WITHIN_S,
        check=False,
    )
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise Mistake(f"caddy says: {said[-1].removeprefix('Error: ') if said else 'nothing'}")
    adapted: Json = json.loads(done.stdout)
    return adapted


def _log_into_the_folder(config: Json, changes: list[str]) -> None:
    for log in config.get("logging", {}).get("logs", {}).values():
        before = log.get("writer", {}).get("filename")
        if before is None:
            continue
        if any(it.startswith(ACCESS) for it in log.get("include", [])):
            log["writer"]["filename"] = f"{FOLDER}/access.log"
            changes.append(f"log RUN/access.log, not {before}")
        else:
            del log["writer"]
            changes.append(f"log to stderr, not {before}")


def _serve_alone(wanted: Wanted, config: Json, changes: list[str]) -> None:
    """Leave the one server that is measured, on the run's address."""
    apps = config.get("apps", {})
    servers: dict[str, Json] = apps.get("http", {}).get("servers", {})
    if not servers:
        raise Mistake(f"{wanted.file} has no site, so it serves nothing")
    name = _measured(wanted, servers)
    for other, server in servers.items():
        if other != name:
            left = " ".join(server.get("listen", []))
            changes.append(f"left out: what listens on {left}, which isn't asked for")
    server = servers[name]
    before = " ".join(server.get("listen", []))
    changes.append(f"listen {HOST}:$PORT, not {before}")
    was_secure = _is_secure(server)
    if was_secure and not wanted.is_secure:
        changes.append("no TLS, since what is asked for is HTTP without it")
    server["listen"] = [f"{HOST}:{PORT}"]
    server["automatic_https"] = {"disable": True}
    server["protocols"] = [it for it in server.get("protocols", ["h1", "h2"]) if it != "h3"]
    policies = server.pop("tls_connection_policies", None) or [{}]
    tls = apps.pop("tls", {})
    apps.pop("pki", None)
    if wanted.is_secure:
        chosen = {"certificate_selection": {"any_tag": [TAG]}}
        kept = {key: it for key, it in policies[0].items() if key != "match"}
        server["tls_connection_policies"] = [kept | chosen]
        pair = _certificate(wanted, tls, changes) | {"tags": [TAG]}
        apps["tls"] = {"certificates": {"load_files": [pair]}}
    apps["http"] = {**apps["http"], "servers": {name: server}}
    _answer_any_host(server, changes)
    if wanted.root:
        _serve_from(str(wanted.root), server, changes)


def _measured(wanted: Wanted, servers: dict[str, Json]) -> str:
    """Choose a server: where Caddy gave TLS to its main site by itself, that can do without."""
    ports = {name: _ports(server) for name, server in servers.items() if _ports(server)}
    fitting = (
        [name for name in ports if _is_secure(servers[name])]
        if wanted.is_secure
        else sorted(ports, key=lambda name: HTTPS not in ports[name])
    )
    port = wanted.measured([port for name in fitting for port in ports[name]])
    return next(name for name in fitting if port in ports[name])


def _ports(server: Json) -> list[int]:
    last = [address.rpartition(":")[2] for address in server.get("listen", [])]
    return [int(it) for it in last if it.isdecimal()]


def _is_secure(server: Json) -> bool:
    """Whether it speaks TLS: told to, or by itself since its sites have names."""
    ports = _ports(server)
    by_itself = not server.get("automatic_https", {}).get("disable") and HTTP not in ports
    named = any("host" in match for route in _routes(server) for match in route.get("match", []))
    return "tls_connection_policies" in server or HTTPS in ports or (by_itself and named)


def _certificate(wanted: Wanted, tls: Json, changes: list[str]) -> Json:
    """Give the configuration's own certificate; where it can't be read or got here, the run's."""
    own = tls.get("certificates", {}).get("load_files", [])
    ours = {"certificate": CERTIFICATE, "key": KEY}
    if not own:
        changes.append("tls RUN/certificate.pem (the run's own), since none is got from outside")
        return ours
    pair = {key: own[0][key] for key in ours}
    if all(map(wanted.may_read, pair.values())):
        return pair
    changes.append(wanted.unreadable(f"tls {CERTIFICATE}", f"tls {pair['certificate']}"))
    return ours


def _routes(server: Json) -> list[Json]:
    routes: list[Json] = server.get("routes", [])
    return routes


def _answer_any_host(server: Json, changes: list[str]) -> None:
    """Have the first site answer requests that name none, its log included."""
    routes = _routes(server)
    if not routes or not all(_hosts(route) for route in routes):
        return
    first = routes.pop(0)
    hosts = _hosts(first)
    changes.append(f"{', '.join(hosts)} answers, whatever host is asked for")
    matches = [{k: it for k, it in match.items() if k != "host"} for match in first["match"]]
    logs = server.get("logs", {})
    named = [it for it in map(logs.get("logger_names", {}).get, hosts) if it]
    if named:
        logs["default_logger_name"] = named[0]
    first["match"] = [it for it in matches if it]
    routes.append(first)


def _hosts(route: Json) -> list[str]:
    return [host for match in route.get("match", []) for host in match.get("host", [])]


def _serve_from(root: str, server: Json, changes: list[str]) -> None:
    named = [it for it in _handlers(server) if "root" in it]
    for handler in named:
        changes.append(f"root {root}, not {handler['root']}")
        handler["root"] = root
    if not named:
        changes.append(f"root {root} (there was none)")
        _routes(server).insert(0, {"handle": [{"handler": "vars", "root": root}]})


def _handlers(node: object) -> Iterator[Json]:
    """Give everything that handles requests, however deep."""
    if isinstance(node, dict):
        if "handler" in node:
            yield node
        node = list(node.values())
    if isinstance(node, list):
        for inner in node:
            yield from _handlers(inner)
