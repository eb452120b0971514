"""`[app]` of a `webdyno.toml`: how a user's own program is built, started and reached."""

from typing import Annotated

from pydantic import Field

from webdyno.model.base import Model
from webdyno.model.paths import WrittenPath
from webdyno.model.quantities import Seconds
from webdyno.model.service import Text, Variable

PROJECT_FILE = "webdyno.toml"
"""Lies at the top of a repository, or of the part of it that is the program."""


class App(Model):
    """A program that serves HTTP, in any revision of its repository."""

    start: Annotated[Text, Field(min_length=1)]
    """A line of shell that serves HTTP on `$PORT` of 127.0.0.1, and stays in the foreground."""
    build: Text | None = None
    """A line of shell that makes what is started: once for each revision, outside of any timing."""
    dir: str = "."
    """Where both run: a folder, relative to the file."""
    environment: dict[Variable, Text] = {}
    """Variables for both."""
    ready: WrittenPath | None = None
    """It is ready once this path is answered with a status of 2xx or 3xx."""
    ready_within: Seconds | None = None
    """It has so long to become ready; 20 s unless given."""
