"""The site that is made of these pages: `sphinx-build -W -b dirhtml docs .dyno/site`."""

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.directives.patches import CSVTable

project = "webdyno"
author = "webdyno's developers"
extensions = ["myst_parser"]
html_theme = "furo"
html_title = "webdyno"
myst_heading_anchors = 3


class DataTable(CSVTable):
    """The table of a file in the page's folder `data`, by its name."""

    required_arguments = 1
    optional_arguments = 0

    def run(self) -> list[Node]:
        name = self.arguments.pop()
        self.options |= {"file": f"data/{name}.csv", "header-rows": 1, "widths": "auto"}
        return super().run()


def setup(app: Sphinx) -> None:
    """Add the directive to Sphinx."""
    app.add_directive("data-table", DataTable)
