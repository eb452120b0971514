"""`url:http://127.0.0.1:9000`: something that runs already, on this machine."""

from urllib.parse import urlsplit

from webdyno.model.mistake import Mistake
from webdyno.own.kind import Asked, Made

HERE = ("127.0.0.1", "localhost")
READY_WITHIN_S = 5.0


def make(asked: Asked) -> Made:
    """Have it watched; raise Mistake for what isn't on the loopback interface."""
    return Made(
        {
            "title": asked.written,
            "protocol": "http",
            "settings": {"started": "before the run, by somebody else"},
            "own": {
                "written": asked.written,
                "port": _port(asked),
                "ready_within_s": asked.keys.ready_within or READY_WITHIN_S,
                **({"ready": asked.keys.ready} if asked.keys.ready else {}),
            },
        }
    )


def _port(asked: Asked) -> int:
    try:
        url = urlsplit(asked.text)
        port = url.port or 80
    except ValueError:
        raise Mistake(f"{asked.place}: {asked.text} is no URL, such as {_example()}") from None
    if url.scheme != "http" or url.username is not None:
        raise Mistake(f"{asked.place}: an arm's URL begins with http://, such as {_example()}")
    if url.hostname not in HERE:
        raise Mistake(
            f"{asked.place}: {url.hostname or asked.text} is not this machine; webdyno puts load "
            f"on {' and '.join(HERE)} alone"
        )
    if url.path not in {"", "/"} or url.query or url.fragment:
        raise Mistake(
            f"{asked.place}: an arm's URL ends with its port; what is asked for is said by --path, "
            "or by load.paths in a file"
        )
    return port


def _example() -> str:
    return "url:http://127.0.0.1:9000"
