"""Asks servers single requests by the load engine, which sends what a load would send."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from webdyno.core.format import size
from webdyno.core.load import Load
from webdyno.core.text import begin_of
from webdyno.load.interface import LoadOrder, Request, ServerResponse
from webdyno.load.loadgen import Loadgen

LONGEST_S = 600.0
MOST_RESPONSE_MIB = 256
"""A longer response counts as an endless stream to the engine."""
MOST_WORDS = 200
"""Most letters that are kept of a reason."""


class NoResponse(Exception):  # noqa: N818 (it becomes a line of the pre-flight check)
    """There was no response, or none that is whole; the message says why."""

    def __init__(self, response: ServerResponse) -> None:
        super().__init__(response.failure)
        self.trouble = response.trouble
        self.came_bytes, self.took_s = response.came_bytes, response.took_s

    @property
    def was_refused(self) -> bool:
        """Whether it accepted the connection, and ended it without a whole response."""
        return self.trouble not in {"connect", "late", "long"}

    @property
    def what_came(self) -> str:
        """How much came in which time of a response that has no end; empty for others."""
        has_no_end = self.trouble in {"late", "long"} and self.came_bytes
        return f"{size(self.came_bytes)} after {self.took_s:.3g} s" if has_no_end else ""


@dataclass
class Conversation:
    """A server that can be asked, by an engine that runs so long; a context manager."""

    url: str
    """Its base URL, such as `http://127.0.0.1:8080`."""
    load: Load
    """Protocol, TLS, timeout and connections are those of this load."""
    entry: Sequence[str] = ()
    """Words before a command that let it run where clients are."""
    _engine: Loadgen = field(init=False)

    def __post_init__(self) -> None:
        self._engine = Loadgen((), self.entry)

    def __enter__(self) -> Self:
        self._engine.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.__exit__()

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        is_call: bool = False,
        within_s: float | None = None,
        accepts_within_s: float = 0.0,
    ) -> ServerResponse:
        """Send a request over a connection of its own, tried for so long; raise NoResponse.

        `is_call`: by gRPC.
        """
        load = self.load if within_s is None else self.load.replace(timeout_s=within_s)
        request = Request(path, method=method, headers=headers, body=body, is_call=is_call)
        (response,) = self._responses([request], load, accepts_within_s)
        if response.trouble is not None:
            raise NoResponse(response)
        return response

    def ask_all(self, requests: Sequence[Request]) -> Iterator[ServerResponse]:
        """Send requests in turn, over one connection while it stays open; raise GeneratorError."""
        return self._responses(requests, self.load)

    def _responses(
        self, requests: Sequence[Request], load: Load, accepts_within_s: float = 0.0
    ) -> Iterator[ServerResponse]:
        order = LoadOrder(
            id="a question",
            url=self.url,
            requests=tuple(requests),
            load=load.of_one_user,
            duration_s=LONGEST_S,
            count=len(requests),
            allow_remote=True,  # who may be asked was decided before
        )
        for response in self._engine.trace(order, accepts_within_s=accepts_within_s):
            body = requests[response.number].body
            yield replace(response, failure=_words(response, body, load.timeout_s))


def _words(response: ServerResponse, body: bytes | None, within_s: float) -> str | None:
    """Return why a response isn't whole; what the server sent itself may be of any length."""
    match response.trouble:
        case "late" if response.came_bytes:
            return f"its response wasn't complete within {within_s:g} s"
        case "late":
            return f"no byte of a response came within {within_s:g} s"
        case "long":
            return f"its response has more than {MOST_RESPONSE_MIB} MiB"
        case "untaken" if body:
            return f"it ended the connection before it had the whole body ({size(len(body))})"
        case "closed" | "untaken":
            return "it closed the connection without a response"
        case "cut":
            return "it ended the connection in the middle of its response"
        case "untrusted":
            return f"its certificate isn't valid: {response.failure}"
    return response.failure and begin_of(response.failure, MOST_WORDS)
