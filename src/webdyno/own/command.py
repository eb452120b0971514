"""`cmd:COMMAND`: a command that serves HTTP on `$PORT`."""

from webdyno.own.kind import Asked, Made, users_environment, verbatim

SHELL = "/bin/sh"
LISTENING = {
    "HOST": "{{ server.host }}",
    "PORT": "{{ server.port }}",
    "SOCKET": "{{ server.folder }}/listen.sock",
}
"""Where a command is to listen."""


def make(asked: Asked) -> Made:
    """Have a shell run the command, as its user would."""
    return Made(served_by(asked, asked.text))


def served_by(asked: Asked, start: str) -> dict[str, object]:
    """Give a service that a line of shell starts; a shell whose line is one command becomes it."""
    keys = asked.keys
    environment = users_environment(asked.folder, keys.environment)
    return {
        "title": asked.written,
        "protocol": "http",
        "start": [SHELL, "-c", verbatim(start)],
        "environment": {key: verbatim(it) for key, it in environment.items()} | LISTENING,
        "own": {
            "written": asked.written,
            "folder": str(asked.folder),
            **({"by_socket": True} if "SOCKET" in start and "PORT" not in start else {}),
            **({"ready": keys.ready} if keys.ready else {}),
            **({"ready_within_s": keys.ready_within} if keys.ready_within else {}),
        },
    }
