"""A site: what is served, the same on every stack, with the right answer to each of its paths."""

import hashlib
from collections.abc import Collection
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, model_validator

from webdyno.model.base import Model
from webdyno.model.files import InsidePath, PlainName, RoleName
from webdyno.model.knob import Knob, KnobValue
from webdyno.model.request import MOST_PATHS, WrittenPath, encoded, spell_out
from webdyno.model.service import Arguments, Need, Text, Variable
from webdyno.model.stack import RoleDefinition


class Page(Model):
    """The right answer to a path."""

    status: Annotated[int, Field(ge=200, le=599)] = 200
    body_bytes: NonNegativeInt | None = None
    """None where the length may differ from answer to answer."""
    body_sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """None where the body may differ from answer to answer."""
    body_contains: str | None = None
    """A part of the body that shows it to be the right page."""

    def matches(self, status: int, body: bytes) -> bool:
        """Whether an answer is the right one."""
        return (
            status == self.status
            and self.body_bytes in {None, len(body)}
            and self.body_sha256 in {None, hashlib.sha256(body).hexdigest()}
            and (self.body_contains or "").encode() in body
        )


class MadeFile(Model):
    """A file that is made when the site is set up: its text, or that many bytes of made-up text."""

    text: str | None = None
    size_bytes: Annotated[int, Field(ge=0, le=2**30)] | None = None
    count: Annotated[int, Field(ge=1, le=MOST_PATHS)] = 1
    """With `{n}` in its path: that many files, numbered from 1."""

    @model_validator(mode="after")
    def _one_kind(self) -> "MadeFile":
        if (self.text is None) == (self.size_bytes is None):
            raise ValueError("a file has either text or size_bytes")
        return self


class Web(Model):
    """How a web server finds the page for a path."""

    index: list[str] = ["index.html"]
    """Files that answer for a folder, the first that exists."""
    fallback: str | None = None
    """The path that answers for every path without a file, such as `/index.php`."""


ANYTHING = "anything"
"""What programs serve of which nobody knows what they can serve: the certificate will tell."""


class Site(Model):
    """`site.toml` of a folder in `catalog/sites`.

    Beside it may lie `root/`, whose files become part of the document root, and `app/`, the code
    of applications that aren't served as files.
    """

    name: PlainName
    """Name of its folder."""
    folder: Path
    title: str
    needs: Annotated[list[str], Field(min_length=1)]
    """What a stack must be able to serve: static, php, node, rack; `php|node` is either."""
    paths: dict[WrittenPath, Page] = {}
    """The first one shows that a stack is ready; `/many/{1..2000}.txt` stands for all of them."""
    files: dict[InsidePath, MadeFile] = {}
    """By path under the document root."""
    web: Web = Web()
    php_extensions: list[str] = []
    """What PHP loads for it, in this order; `requires` names their packages."""
    requires: dict[str, Need] = {}
    """Programs and files it needs itself, by the name under which templates find them."""
    base: str | None = None
    """The name of a requirement, a folder that the document root starts as a copy of."""
    without: list[str] = []
    """Entries of that folder that are left out of the copy."""
    services: dict[RoleName, RoleDefinition] = {}
    """Data services it needs, by role; a stack's own service of the same role takes its place."""
    setup: list[Arguments] = []
    """Commands that run once, as the servers' user, while its data services run: what they leave
    in document root, state folder and data services is what every block starts from."""
    environment: dict[Variable, Text] = {}
    """Variables for all services and commands, as templates; how its code learns where things are.
    """
    knobs: dict[str, Knob] = {}
    suggests: dict[Literal["load", "measure"], dict[str, KnobValue]] = {}
    """Settings of an experiment that suit it; `webdyno duel` starts from them. A page that takes
    the servers a tenth of a second needs longer slots than a small file."""

    def page(self, path: str) -> Page:
        """Give the right answer to a path; one that isn't listed has to answer 200, no more."""
        return self._pages.get(encoded(path), Page())

    @cached_property
    def _pages(self) -> dict[str, Page]:
        return {path: page for written, page in self.paths.items() for path in spell_out(written)}

    def served_by(self, serves: Collection[str]) -> bool:
        """Whether a stack that can serve these can serve this site."""
        return not self.lacks(serves)

    def lacks(self, serves: Collection[str]) -> list[str]:
        """Name what a stack that can serve these is short of."""
        if ANYTHING in serves:
            return []
        return [need for need in self.needs if not set(need.split("|")).intersection(serves)]

    @property
    def ready_path(self) -> str:
        """The path that is asked for until a stack answers."""
        return next(iter(self._pages), "/")
