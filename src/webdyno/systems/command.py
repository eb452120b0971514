"""`cmd:COMMAND`: a command that serves HTTP on `$PORT`, and services behind it.

Those are the catalogue's, or containers: `db = "image:mongo:7"`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from webdyno.config.reading import PlaceOf, nearest
from webdyno.core.errors import UserError
from webdyno.core.service import PERF_NAMES, Need, Service
from webdyno.systems.kinds import KINDS
from webdyno.systems.target import (
    PROGRAM,
    GeneratedService,
    OwnKeys,
    TargetSpec,
    setting_environment,
    setting_variable,
    users_environment,
    verbatim,
)

SHELL = "/bin/sh"
LISTENING = {
    "HOST": "{{ server.host }}",
    "PORT": "{{ server.port }}",
    "SOCKET": "{{ server.folder }}/listen.sock",
    "PROTOCOL": "{{ settings.protocol }}",
    "CERT": "{{ server.certificate if settings.protocol in ['https', 'h2'] }}",
    "KEY": "{{ server.key if settings.protocol in ['https', 'h2'] }}",
}
"""Where a command is to listen, what it is to speak there, and the certificate to do so."""
SERVING = {"http", "fastcgi"}
"""What services speak that serve sites themselves."""
IMAGE = "image:"
"""How a service is written that is a container."""
NOTHING: Mapping[str, GeneratedService] = {}
CONTAINER_READY_WITHIN_S = 120.0
"""A database makes its data as it starts."""
NAMES_SETTING = {
    "type": "switch",
    "default": False,
    "when_sampled": True,
    "help": "Have Node and Python name their functions for `perf`, in /tmp/perf-PID.map.",
}
NAMING = {
    "NODE_OPTIONS": "--perf-basic-prof --interpreted-frames-native-stack",
    "PYTHONPERFSUPPORT": "1",
}
"""What they take for that: https://nodejs.org/api/cli.html, and of Python 3.12 and newer
https://docs.python.org/3/howto/perf_profiling.html."""


def make(spec: TargetSpec) -> GeneratedService:
    """Have a shell run the command, as its user would; a line that is one command replaces it."""
    start, keys = spec.text, spec.keys
    environment = users_environment(spec.folder, keys.environment)
    by_socket = "SOCKET" in start and "PORT" not in start
    _check_setup(spec)
    containers = _containers_behind(spec)
    own: dict[str, object] = {"folder": str(spec.folder), "when_sampled": NAMING}
    if by_socket:
        own["by_socket"] = True
    if keys.setup:
        own["setup"] = [SHELL, "-c", verbatim(keys.setup)]
    service = spec.service(
        ("http", "https", "h2", "h2c", "h3"),
        own,
        start=[SHELL, "-c", verbatim(start)],
        **({"initialise": [[SHELL, "-c", verbatim(keys.prepare)]]} if keys.prepare else {}),
        environment={key: verbatim(value) for key, value in environment.items()}
        | LISTENING
        | setting_environment(spec.settings)
        | variables_of_services(spec, containers),
    )
    service["settings"].setdefault(PERF_NAMES, NAMES_SETTING)
    of_catalogue = {role: name for role, name in keys.services.items() if not is_image(name)}
    return GeneratedService(service, behind=of_catalogue, containers=containers)


def _check_setup(spec: TargetSpec) -> None:
    """Raise UserError where `setup` can fill nothing that is kept; note what isn't."""
    if not spec.keys.setup:
        return
    behind = {name: spec.services.get(name) for name in spec.keys.services.values()}
    without = [name for name, service in behind.items() if not (service and service.data)]
    if len(without) == len(behind):
        raise UserError(
            f"{spec.place}: setup fills services behind the program, each start gets a copy of "
            "their data, and there are none that keep data; prepare runs before each start"
        )
    for name in without:
        title = service.title if (service := behind[name]) else name
        spec.notify(f"{title} keeps nothing of setup; prepare can fill it at each start")


def _containers_behind(spec: TargetSpec) -> dict[str, GeneratedService]:
    """Have the containers there that a program asks, each in a network of its own."""
    keys = OwnKeys(containers=spec.keys.containers, ready_within=CONTAINER_READY_WITHIN_S)
    of_all = replace(spec, keys=keys, settings={}, host="", is_behind=True)
    return {
        role: KINDS["image"].make(replace(of_all, written=name, text=name.removeprefix(IMAGE)))
        for role, name in spec.keys.services.items()
        if is_image(name)
    }


def is_image(service: str) -> bool:
    """Whether a service is a container, and none of the catalogue."""
    return service.startswith(IMAGE) and service != IMAGE


def variables_of_services(
    spec: TargetSpec, containers: Mapping[str, GeneratedService] = NOTHING
) -> dict[str, str]:
    """Return the variables by which a program finds services behind it, as templates.

    Nothing else may have the names that begin with a role, such as `$DB_HOST`; of those that are
    usual for a service the user's own win, then those of the first of two services.
    """
    variables: dict[str, str] = {}
    usual: dict[str, str] = {}
    for role, name in spec.keys.services.items():
        service = f"services['{role}']"
        if role in containers:
            container = containers[role].service
            credentials, known_by = container["credentials"], container["variables"]
        else:
            credentials, known_by = spec.services[name].credentials, spec.services[name].variables
        own = {
            "HOST": f"{{{{ {service}.host if not {service}.socket }}}}",
            "PORT": f"{{{{ {service}.port if not {service}.socket }}}}",
            "SOCKET": f"{{{{ {service}.socket or '' }}}}",
            **_of_role(role, credentials),
        }
        prefix = role.upper().replace("-", "_")
        variables |= {f"{prefix}_{key}": value for key, value in own.items()}
        usual = _of_role(role, known_by) | usual
    others = {*spec.keys.environment, *map(setting_variable, spec.settings)}
    for name in sorted(variables.keys() & others):
        raise UserError(
            f"{spec.place}: ${name} names a service behind it; rename that variable or setting"
        )
    return {name: value for name, value in usual.items() if name not in others} | variables


def _of_role(role: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Return templates of a service's own, to be filled in by another one."""
    of_role = f"{{% set server = services['{role}'] %}}"
    return {key: of_role + text for key, text in texts.items()}


def needs_of_services(named: Iterable[str], services: Mapping[str, Service]) -> list[Need]:
    """Return the programs without which services don't start, whatever their settings are."""
    needs = (need for name in named if name in services for need in services[name].needs.values())
    return [need for need in needs if not need.optional and not need.when]


def check_services(
    named: Mapping[str, str], services: Mapping[str, Service], place: PlaceOf
) -> None:
    """Raise UserError, naming the line, for what isn't there or can't stand behind a program."""
    able = [name for name, service in services.items() if service.protocol not in SERVING]
    for role, name in named.items():
        where = place((role,))
        if role == PROGRAM:
            raise UserError(f"{where}: {role} is your own program; give the service another name")
        if is_image(name):
            continue
        if name not in services:
            raise UserError(f"{where}: there is no service {name!r}; {nearest(name, able)}")
        if name not in able:
            raise UserError(
                f"{where}: {name} serves sites itself and can't stand behind a program; those that "
                f"can are {', '.join(sorted(able))}, and images: image:mongo:7"
            )
