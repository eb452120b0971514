"""Services of the catalogue behind a user's own program: `services.db = "mariadb"`."""

from collections.abc import Mapping
from typing import Any

from webdyno.definitions.near import nearest
from webdyno.model.mistake import Mistake
from webdyno.model.service import Service
from webdyno.own.kind import Place

PROGRAM = "web"
"""The role of the user's own program."""
SERVING = {"http", "fastcgi"}
"""What services speak that serve sites themselves."""
LISTEN, TCP = "listen", "tcp"
"""The knob of services that listen on a Unix socket or on a port, and how they do here: not every
service lets other users than its own into its socket."""


def check(named: Mapping[str, str], services: Mapping[str, Service], place: Place) -> None:
    """Raise Mistake, naming the line, for what isn't there or can't stand behind a program."""
    able = [name for name, it in services.items() if it.protocol not in SERVING]
    for role, name in named.items():
        where = place((role,))
        if role == PROGRAM:
            raise Mistake(f"{where}: {role} is your own program; give the service another name")
        if name not in services:
            raise Mistake(f"{where}: there is no service {name!r}; {nearest(name, able)}")
        if name not in able:
            raise Mistake(
                f"{where}: {name} serves sites itself and can't stand behind a program; those that "
                f"can are {', '.join(sorted(able))}"
            )


def variables(named: Mapping[str, str], services: Mapping[str, Service]) -> dict[str, str]:
    """Give what a program finds in its environment, as templates: `$DB_HOST` of the role `db`."""
    found: dict[str, str] = {}
    for role, name in named.items():
        service = f"services['{role}']"
        told = {
            "HOST": f"{{{{ {service}.host if not {service}.socket }}}}",
            "PORT": f"{{{{ {service}.port if not {service}.socket }}}}",
            "SOCKET": f"{{{{ {service}.socket or '' }}}}",
            **services[name].credentials,
        }
        prefix = role.upper().replace("-", "_")
        found |= {f"{prefix}_{key}": value for key, value in told.items()}
    return found


def stack_of(
    program: str, named: Mapping[str, str], services: Mapping[str, Service]
) -> dict[str, Any]:
    """Give the services of a stack, and its knobs, as `stack.toml` has them."""
    roles = {PROGRAM: program, **named}
    return {
        "front": PROGRAM,
        "services": {role: {"service": name} for role, name in roles.items()},
        "knobs": {
            f"{role}_{LISTEN}": {"sets": [f"{role}.{LISTEN}"], "default": TCP}
            for role, name in named.items()
            if LISTEN in services[name].knobs
        },
    }
