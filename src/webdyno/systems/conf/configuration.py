"""`conf:FILE`: a user's own configuration of a web server, moved to where a run can start it.

It runs as an ordinary user on a port of the run's, with files of its own in a folder of its own.
What had to be changed for that is reported, and stands above the configuration that the run keeps.
"""

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from webdyno.core.errors import OperationError, UserError
from webdyno.core.files import cause_of
from webdyno.core.request import host_name_of
from webdyno.core.service import ORIGINS, Origins
from webdyno.core.tables import limited_cpu
from webdyno.core.text import in_one_line
from webdyno.host.users import server_user
from webdyno.systems.conf import passing
from webdyno.systems.conf.config_files import ConfigFiles
from webdyno.systems.conf.passing import Backends
from webdyno.systems.conf.relocation import (
    CERTIFICATE,
    FOLDER,
    HOST,
    KEY,
    KEY_AND_CERTIFICATE,
    MODULES,
    PORT,
    RelocatedConfig,
    RelocationRequest,
)
from webdyno.systems.target import (
    GeneratedService,
    TargetSpec,
    setting_template,
    users_environment,
    verbatim,
)

Move = Callable[[RelocationRequest], RelocatedConfig]
READ_WITHIN_CPU_S = 60.0
CHANGES = "changes.txt"
"""Next to a configuration in which they can't stand."""

SERVERS = ("nginx", "apache", "lighttpd", "caddy", "haproxy")
"""Names of the catalogue's services, and of the modules here that move their configurations."""

READ_BY_THEMSELVES = {"lighttpd", "caddy"}
"""Servers whose own program reads a configuration before it is moved."""

SETTING_PLACE = re.compile(r"\$\{settings\.([^}\s]+)\}")

AT_HOST = {
    f"{HOST}:{PORT}": "{{ server.host }}:{{ server.port }}",
    f'server.bind = "{HOST}"': 'server.bind = "{{ server.host }}"',
}
"""Where a configuration listens, which isn't 127.0.0.1 in a network of its own."""

NEEDED = ("binary", "modules")
"""Of what the catalogue's services need."""

CONTENT_PATTERNS = {
    "nginx": r"^[ \t]*(http|events|server|upstream)\s*\{",
    "apache": r"(?i)^[ \t]*(LoadModule|ServerRoot|DocumentRoot|<VirtualHost|<Directory"
    r"|IncludeOptional)\b",
    "lighttpd": r"^[ \t]*server\.(document-root|modules|port)\s*\+?=",
    "caddy": r"^[ \t]*(file_server|reverse_proxy|php_fastcgi|respond|encode|handle(_path)?|redir)"
    r"\b[^;]*$|^[ \t]*import[ \t]+\S*[/*]",
    "haproxy": r"^[ \t]*(global|defaults|frontend|backend)\b[^;{]*$",
}
"""By the same: what only its configurations have."""
NAME_PATTERNS = {
    "nginx": r"nginx",
    "apache": r"httpd|apache",
    "lighttpd": r"lighttpd",
    "caddy": r"caddyfile|\.caddy$",
    "haproxy": r"haproxy|\.cfg$",
}
"""By the same: what a file is called."""

STRANGERS = {
    "gunicorn": (
        r"gunicorn[\w.-]*\.py$",
        "'cmd:gunicorn --config {file} --bind 127.0.0.1:$PORT MODULE:APP'",
    ),
    "Puma": (r"puma[\w.-]*\.rb$", "'cmd:puma -C {file} -b tcp://127.0.0.1:$PORT config.ru'"),
    "uWSGI": (
        r"uwsgi[\w.-]*\.(?:ini|ya?ml|xml)$",
        (
            "'cmd:uwsgi {file} --http-socket 127.0.0.1:$PORT', without http, socket and "
            "daemonize in the file"
        ),
    ),
    "Traefik": (
        r"traefik[\w.-]*\.(?:ya?ml|toml)$",
        (
            "'cmd:traefik --entryPoints.web.address=127.0.0.1:$PORT --providers.file."
            "filename=FILE', FILE with its routers: it takes flags or {file}, not both"
        ),
    ),
    "Envoy": (
        r"envoy[\w.-]*\.(?:ya?ml|json)$",
        (
            "'cmd:envoy --config-yaml \"$(sed s/10000/$PORT/ {file})\"', with the port of "
            "its listener for 10000"
        ),
    ),
    "PHP-FPM": (
        r"php-fpm[\w.-]*\.conf$|(?:^|/)(?:fpm|pool)\.d/[\w.-]+\.conf$|(?:^|/)(?:www|zz-docker)\.conf$",
        (
            "the configuration of the server in front of it, such as conf:nginx.conf: PHP-FPM "
            "speaks FastCGI, not HTTP"
        ),
    ),
}
"""By server whose configurations aren't moved: the file's name, and what measures it instead."""


def make(spec: TargetSpec) -> GeneratedService:
    """Move a configuration; raise UserError for one that can't be read, or of no known server."""
    server, named, name = spec.text.partition(":")
    if not named or server not in SERVERS:
        server, name = "", spec.text
    name, port = _without_port(name, spec.place)
    file = (spec.folder / name).resolve()
    called_by = spec.user
    user = called_by or server_user()
    try:
        text = ConfigFiles(caller=called_by).text(file)
    except UserError as user_error:
        raise UserError(f"{spec.place}: {user_error}") from None
    server = server or server_of(text, file, spec.place)
    root = (spec.folder / spec.keys.root).resolve() if spec.keys.root else None
    if root and not root.is_dir():
        raise UserError(f"{spec.place}: --root {root}: there is no such folder")
    if root and user and (closed := user.kept_out_by(root)):
        raise UserError(
            f"{spec.place}: {user.name}, as whom it runs, may not enter {closed}; allow it, or "
            "choose another --root"
        )
    request = RelocationRequest(
        file,
        root,
        spec.protocol,
        user,
        environment=users_environment(spec.folder, spec.keys.environment),
        given=spec.keys.environment,
        files=ConfigFiles(user, called_by),
        port=port,
        host=host_name_of(spec.host),
        folder=spec.folder,
        backends=Backends.of(spec.keys.backends, spec.place),
    )
    if server in READ_BY_THEMSELVES:
        spec.provide([spec.services[server].needs["binary"]])
    try:
        relocated = relocate(server, request)
        passing.demand_known(relocated.passed_on, file)
    except UserError as user_error:
        raise UserError(f"{spec.place}: {user_error}") from None
    except OSError as error:
        raise OperationError(
            f"{error.filename or file}: can't be read: {cause_of(error)}"
        ) from None
    machines = passing.elsewhere(relocated.passed_on)
    to_backends = [*request.backends.changes(), *request.backends.silent()]
    said = [*request.notes, *to_backends, *relocated.changes, *machines]
    changes = list(dict.fromkeys(map(in_one_line, said)))  # comments: no directive begins in them
    spec.notify(f"{spec.written}, as {server} runs it here:")
    for change in changes:
        spec.notify(f"  {change}")
    first = f"# {in_one_line(str(file))}, moved by webdyno:"
    head = [first, *(f"#   {change}" for change in changes), ""]
    above, template = verbatim("\n".join(head)), _template(relocated, spec, request.backends)
    written = (
        {relocated.name: above + template}
        if relocated.knows_comments
        else {relocated.name: template, CHANGES: above}
    )
    service = _service(spec, server, relocated, list(written), request)
    if relocated.origins:
        ours = [None] * (len(head) - 1 if relocated.knows_comments else 0)
        origins = Origins.of(relocated.name, [*ours, *relocated.origins])
        written[ORIGINS] = origins.model_dump_json()
    used = request.backends.used
    behind = {role: backend.system for role, backend in used.items() if backend.system}
    hosts = [*(backend.name for backend in used.values()), *request.backends.seen]
    return GeneratedService(service, written, backends=behind, passes_on_to=hosts)


def relocate(server: str, request: RelocationRequest) -> RelocatedConfig:
    """Read and move the configuration of a server, whose module alone is imported for that."""
    move: Move = import_module(f"{__package__}.{server}").relocate
    slow = f"{request.file} takes more than {READ_WITHIN_CPU_S:g} s to read; include less"
    with limited_cpu(READ_WITHIN_CPU_S, slow):
        return move(request)


def _service(
    spec: TargetSpec,
    server: str,
    relocated: RelocatedConfig,
    files: list[str],
    request: RelocationRequest,
) -> dict[str, object]:
    known = spec.services[server].model_dump(
        mode="json", include={"needs", "version"}, exclude_defaults=True
    )
    known["needs"] = {key: need for key, need in known["needs"].items() if key in NEEDED}
    hosts = [
        {"host": target.host, "at": str(target.origin or request.file)}
        for target in passing.not_loopback(relocated.passed_on)
    ]
    return spec.service(
        ("https", "h2") if request.is_secure else ("http", "h2c"),
        {"folder": str(spec.folder), "may_be_root": False}
        | ({"passes_on": hosts} if hosts else {}),
        **known,
        files={name: name for name in files},
        folders=relocated.folders,
        check=relocated.check,
        start=relocated.start,
        environment=relocated.environment
        | {name: verbatim(value) for name, value in spec.keys.environment.items()},
    )


def _template(relocated: RelocatedConfig, spec: TargetSpec, backends: Backends) -> str:
    """Turn the text into a template in which only our own marks and settings are filled in."""
    marks = {mark: text for used in backends.used.values() for mark, text in used.templates.items()}
    marks |= _marks_of_settings(relocated.text, spec) | {
        **AT_HOST,
        FOLDER: "{{ server.folder }}",
        PORT: "{{ server.port }}",
        MODULES: "{{ needs.modules }}",
        CERTIFICATE: "{{ server.certificate }}",
        KEY: "{{ server.key }}",
        KEY_AND_CERTIFICATE: "{{ server.key_and_certificate }}",
    }
    parts = re.split(f"({'|'.join(map(re.escape, marks))})", relocated.text)
    return "".join(marks.get(part) or verbatim(part) for part in parts)


def _marks_of_settings(text: str, spec: TargetSpec) -> dict[str, str]:
    """Return the marks of declared settings; raise UserError for one without the other."""
    places = set(SETTING_PLACE.findall(text))
    for name in sorted(places - spec.settings.keys()):
        raise UserError(
            f"{spec.place}: {spec.text} has a place ${{settings.{name}}}, and no such setting is "
            f"declared; say what it may be, as settings.{name} = "
            '{ type = "whole", min = 1, max = 16 }'
        )
    for name in sorted(spec.settings.keys() - places):
        raise UserError(
            f"{spec.place}: the setting {name} is declared and has no place in {spec.text}; write "
            f"${{settings.{name}}} where its value belongs"
        )
    return {
        f"${{settings.{name}}}": setting_template(name, setting)
        for name, setting in spec.settings.items()
    }


def _without_port(name: str, place: str) -> tuple[str, int | None]:
    """Split `FILE#PORT`, the port of the configuration's own that is to be measured."""
    file, mark, port = name.rpartition("#")
    if not mark or not re.fullmatch("[0-9]+", port):
        return name, None
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise UserError(f"{place}: {name}: {port:.20} is no port, which is a number up to 65535")
    return file, int(port)


def server_of(text: str, file: Path, place: str) -> str:
    """Return whose configuration a text is: by its content, else by the file's name."""
    likely = [
        name for name, like in CONTENT_PATTERNS.items() if re.search(like, text, re.MULTILINE)
    ]
    named = [name for name, like in NAME_PATTERNS.items() if re.search(like, file.name.lower())]
    for servers in (likely, named):
        if len(servers) == 1:
            return servers[0]
    for server, (name, instead) in STRANGERS.items():
        if not likely and re.search(name, str(file).lower()):
            raise UserError(
                f"{place}: {file} is {server}'s, which webdyno doesn't configure; name instead "
                f"{instead.format(file=file)}"
            )
    what = "looks like more than one server's" if likely else "looks like no known server's"
    example = f"conf:{([*likely, *SERVERS])[0]}:{file.name}"
    raise UserError(
        f"{place}: {file} {what} configuration; say whose it is, such as {example} "
        f"(known: {', '.join(SERVERS)})"
    )
