"""The catalogue that own systems become, for as long as webdyno runs."""

import atexit
import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from webdyno.host.workspace import Workspace
from webdyno.model.service import Service
from webdyno.model.stack import ANYTHING
from webdyno.own import command
from webdyno.own.target import GeneratedService

SLUG_LETTERS = 30
PRIVATE = 0o600
"""Configurations and variables may hold secrets."""


class GeneratedCatalogue:
    """Services and stacks, each written once."""

    def __init__(self, services: Mapping[str, Service]) -> None:
        """Begin without any; `services` are those of the catalogue, which may stand behind them."""
        self._services = services
        self.path: Path | None = None
        """Its folder; None as long as there is nothing in it."""

    def service(self, word: str, text: str, made: GeneratedService) -> str:
        """Write a service, named after the kind and the text of its system; give that name."""
        content = json.dumps([made.service, made.files, made.behind, made.backends], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:8]
        slug = re.sub(r"[^A-Za-z0-9.]+", "-", text)[:SLUG_LETTERS].strip("-.")
        name = "-".join(filter(None, (word, slug, digest)))
        if (folder := self._folder("services", name)) is None:
            return name
        for file, template in made.files.items():
            (folder / file).write_text(template, encoding="utf-8")
            (folder / file).chmod(PRIVATE)
        _write(folder / "service.toml", made.service)
        return name

    def stack(
        self, service: str, title: str, behind: Mapping[str, str], backends: Mapping[str, str]
    ) -> str:
        """Write the stack of a service, and of what stands behind it; give its name."""
        if folder := self._folder("stacks", service):
            parts = command.stack_of(service, behind, self._services, backends)
            _write(folder / "stack.toml", {"title": title, "serves": [ANYTHING], **parts})
        return service

    def _folder(self, kind: str, name: str) -> Path | None:
        """Make a folder; None where it is there already."""
        if self.path is None:
            made = Workspace()
            atexit.register(made.remove)
            self.path = made.path
        folder = self.path / kind / name
        if folder.is_dir():
            return None
        folder.mkdir(parents=True)
        return folder


def _write(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(tomli_w.dumps(data), encoding="utf-8")
    path.chmod(PRIVATE)
