"""Calls a forge's REST API: JSON both ways, messages for people where it refuses."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any, NamedTuple, Protocol
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from webdyno.model.errors import OperationError

ANSWERS_WITHIN_S = 30.0
PER_PAGE, MOST_PAGES = 100, 30
MOST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Api:
    """A forge's API, as one job may use it."""

    root: str
    headers: Mapping[str, str]
    token_name: str
    """Where the token came from, for messages."""

    def call(self, method: str, path: str, sent: Mapping[str, object] | None = None) -> Any:  # noqa: ANN401 (JSON)
        """Call it and give the answer; raise OperationError where it refuses or isn't there."""
        what = f"{method} {self.root}{path}"
        request = Request(  # noqa: S310 (the job's own API)
            f"{self.root}{path}",
            method=method,
            data=None if sent is None else json.dumps(sent).encode(),
            headers={"Content-Type": "application/json", "User-Agent": "webdyno", **self.headers},
        )
        try:
            with urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:  # noqa: S310
                return json.loads(answer.read(MOST_BYTES))
        except HTTPError as error:
            raise OperationError(f"{what}: {self._refusal(error)}") from None
        except (OSError, HTTPException, ValueError) as error:
            raise OperationError(f"{what}: {getattr(error, 'reason', error)}") from None

    def pages(self, path: str) -> Iterator[Mapping[str, Any]]:
        """Give all entries of a list, page by page."""
        joined = "&" if "?" in path else "?"
        for page in range(1, MOST_PAGES + 1):
            entries = self.call("GET", f"{path}{joined}per_page={PER_PAGE}&page={page}")
            yield from entries
            if len(entries) < PER_PAGE:
                return

    def _refusal(self, error: HTTPError) -> str:
        with error:
            try:
                said = json.loads(error.read(MOST_BYTES))["message"]
            except (OSError, ValueError, KeyError, TypeError):
                said = error.reason
        if error.code in {401, 403, 404}:
            return f"{error.code} {said}; may {self.token_name} write comments there?"
        return f"{error.code} {said}"


class PostedComment(NamedTuple):
    """A comment that is there already."""

    number: int
    page: str


class Discussion(Protocol):
    """A pull request's comments."""

    @property
    def job_page(self) -> str:
        """Where the job of this measurement is shown."""

    def own_comment(self, marker: str) -> PostedComment | None:
        """Find the comment of an earlier gate; nobody else's that begins alike."""

    def add(self, body: str) -> str:
        """Post a comment; give its address."""

    def rewrite(self, earlier: PostedComment, body: str) -> str:
        """Replace a comment; give its address."""
