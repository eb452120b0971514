"""A site: what is served, the same on every stack, with the right answer to each of its paths."""

import hashlib
from pathlib import Path
from typing import Annotated

from pydantic import Field, NonNegativeInt, model_validator

from webdyno.model.base import Model


class Page(Model):
    """The right answer to a path."""

    status: int = 200
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
    size_bytes: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "MadeFile":
        if (self.text is None) == (self.size_bytes is None):
            raise ValueError("a file has either text or size_bytes")
        return self


class Site(Model):
    """`site.toml` of a folder in `catalog/sites`."""

    name: str
    """Name of its folder."""
    folder: Path
    title: str
    needs: Annotated[list[str], Field(min_length=1)]
    """What a stack must be able to serve: static, php, node, rack…"""
    paths: Annotated[dict[str, Page], Field(min_length=1)]
    """The first one shows that a stack is ready."""
    files: dict[str, MadeFile] = {}
    """By path under the document root."""

    def page(self, path: str) -> Page:
        """Give the right answer to a path; one that isn't listed has to answer 200, no more."""
        return self.paths.get(path, Page())

    @property
    def ready_path(self) -> str:
        """The path that is asked for until a stack answers."""
        return next(iter(self.paths))
