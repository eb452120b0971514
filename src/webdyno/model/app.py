"""`[app]` of a `webdyno.toml`: how a user's own program is built, started and reached."""

from typing import Annotated

from pydantic import Field, JsonValue

from webdyno.model.base import Model
from webdyno.model.knob import Knob
from webdyno.model.paths import WrittenPath
from webdyno.model.quantities import Seconds
from webdyno.model.service import Text, Variable

PROJECT_FILE = "webdyno.toml"
"""Lies at the top of a repository, or of the part of it that is the program."""


KnobName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class DeclaredKnobs(Model):
    """Settings of a user's program that may be turned, and tuned."""

    knobs: dict[KnobName, Knob]


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
    knobs: dict[str, JsonValue] = {}
    """Settings that arms may turn and `webdyno tune` tunes, as `workers = { type = "whole", min =
    1, max = 16 }`; `start` finds the value in `$WORKERS`."""
