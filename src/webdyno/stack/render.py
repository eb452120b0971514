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

    def file(self, template: str) -> str:
        """Render a template file of the service, or of a neighbour: `OTHER/FILE`."""
        folder = self._service.folder
        folders = [folder, folder.parent]
        try:
            return _environment(folders).get_template(template).render(self._context)
        except TemplateError as error:
            path = next((f / template for f in folders if (f / template).exists()), folder)
            line = getattr(error, "lineno", None) or _line_in(path, error)
            raise Mistake(f"{path}{f':{line}' if line else ''}: {error.message}") from None

    def words(self, templates: Sequence[str]) -> list[str]:
        """Render a command line; words that come out empty are left out."""
        return [word for template in templates if (word := self.text(template))]

    def text(self, template: str) -> str:
        """Render a short template that stands in `service.toml`."""
        return render_text(template, self._context, self._service.folder / "service.toml")


def render_text(template: str, context: Context, where: Path) -> str:
    """Render a short template that stands in the file `where`."""
    try:
        return _environment([]).from_string(template).render(context)
    except TemplateError as error:
        raise Mistake(f"{where}: {error.message} in {template!r}") from None


def _environment(folders: Sequence[Path]) -> Environment:
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 (configuration files, no web pages)
    )


def _line_in(path: Path, error: TemplateError) -> int | None:
    """Line of a template at which rendering stopped, from the traceback Jinja2 rewrites."""
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
