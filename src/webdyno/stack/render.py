"""Fills in the templates of services."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, TemplateError

from webdyno.model.mistake import Mistake
from webdyno.model.service import Service

Context = Mapping[str, Any]
"""What templates can name; an unknown name is a mistake in the template."""


class Renderer:
    """The templates of one service, with everything they may name."""

    def __init__(self, service: Service, context: Context) -> None:
        """Take a service and the names that its templates may use."""
        self._service = service
        self._context = context
        self._jinja = Environment(
            loader=FileSystemLoader(service.folder),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,  # noqa: S701 (configuration files, no web pages)
        )

    def file(self, template: str) -> str:
        """Render a template file of the service."""
        try:
            return self._jinja.get_template(template).render(self._context)
        except TemplateError as error:
            raise self._mistake(self._service.folder / template, error) from None

    def words(self, templates: Sequence[str]) -> list[str]:
        """Render a command line; words that come out empty are left out."""
        return [word for template in templates if (word := self.text(template))]

    def text(self, template: str) -> str:
        """Render a short template that stands in `service.toml`."""
        try:
            return self._jinja.from_string(template).render(self._context)
        except TemplateError as error:
            raise self._mistake(self._service.folder / "service.toml", error, template) from None

    def _mistake(self, path: Path, error: TemplateError, template: str = "") -> Mistake:
        line = getattr(error, "lineno", None) or _line_in(path, error)
        where = f"{path}:{line}" if line and not template else str(path)
        shown = f" in {template!r}" if template else ""
        return Mistake(f"{where}: {error.message}{shown}")


def _line_in(path: Path, error: TemplateError) -> int | None:
    """Line of a template at which rendering stopped, from the traceback Jinja2 rewrites."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
