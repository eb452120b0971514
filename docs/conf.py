"""The site that is made of these pages: `sphinx-build -W -b dirhtml docs .dyno/site`."""

from pathlib import Path

from docutils.nodes import Node
from sphinx.application import Sphinx
from sphinx.directives.patches import CSVTable

from webdyno.config import Catalogue
from webdyno.league.pages import Pages
from webdyno.league.tables import Results

LEAGUE = Path(__file__).parents[1] / "bench/results/league/league.json"

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


def add_league(app: Sphinx, failure: Exception | None) -> None:
    """Write the pages of our own league next to those of the docs, where it was measured."""
    if failure is None and LEAGUE.exists():
        results = Results.model_validate_json(LEAGUE.read_text(encoding="utf-8"))
        Pages(results, Catalogue.load()).write(Path(app.outdir) / "league")


def setup(app: Sphinx) -> None:
    """Add the directive and the league to Sphinx."""
    app.add_directive("data-table", DataTable)
    app.connect("build-finished", add_league)
