"""`cmd:COMMAND`: a command that serves HTTP on `$PORT`."""

from webdyno.model.mistake import Mistake
from webdyno.own import behind, knobs
from webdyno.own.kind import Asked, Made, protocol_knob, users_environment, verbatim

SHELL = "/bin/sh"
LISTENING = {
    "HOST": "{{ server.host }}",
    "PORT": "{{ server.port }}",
    "SOCKET": "{{ server.folder }}/listen.sock",
    "PROTOCOL": "{{ knobs.protocol }}",
    "CERT": "{{ server.certificate if knobs.protocol in ['https', 'h2'] }}",
    "KEY": "{{ server.key if knobs.protocol in ['https', 'h2'] }}",
}
"""Where a command is to listen, what it is to speak there, and the certificate to do so."""


def make(asked: Asked) -> Made:
    """Have a shell run the command, as its user would."""
    return Made(served_by(asked, asked.text), behind=asked.keys.services)


def served_by(asked: Asked, start: str) -> dict[str, object]:
    """Give a service that a line of shell starts; a shell whose line is one command becomes it."""
    keys = asked.keys
    environment = users_environment(asked.folder, keys.environment)
    return {
        "title": asked.written,
        "protocol": "http",
        "start": [SHELL, "-c", verbatim(start)],
        "knobs": protocol_knob("http", "https", "h2", "h2c")
        | {name: it.model_dump(exclude_none=True) for name, it in asked.knobs.items()},
        **({"initialise": [[SHELL, "-c", verbatim(keys.prepare)]]} if keys.prepare else {}),
        "environment": {key: verbatim(it) for key, it in environment.items()}
        | LISTENING
        | knobs.environment_of(asked.knobs)
        | _told_of_services(asked),
        "own": {
            "written": asked.written,
            "folder": str(asked.folder),
            **({"by_socket": True} if "SOCKET" in start and "PORT" not in start else {}),
            **asked.readiness,
        },
    }


def _told_of_services(asked: Asked) -> dict[str, str]:
    """Give the variables that tell of the services behind it; nothing else has their names."""
    told = behind.variables(asked.keys.services, asked.services)
    others = {*asked.keys.environment, *map(knobs.variable, asked.knobs)}
    for name in sorted(told.keys() & others):
        raise Mistake(
            f"{asked.place}: ${name} tells of a service behind it; rename that variable or knob"
        )
    return told
