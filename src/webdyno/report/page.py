"""`report.html`, one file that holds everything and asks the network for nothing; its writing."""

import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from webdyno.judge.questions.interventions import (
    what_limits,
    what_settings_are_worth,
    what_settings_do,
)
from webdyno.judge.saturation import AT_THE_LIMIT, what_was_full
from webdyno.judge.time_spent import explanation_sentence as because
from webdyno.judge.time_spent import what_waits, where_time_goes
from webdyno.model import format as text
from webdyno.model.command import command
from webdyno.model.files import write_whole
from webdyno.model.run import PAGE_FILE, SWEEPS
from webdyno.model.text import finished
from webdyno.report import gate, words
from webdyno.report.conditions import machine_facts, when
from webdyno.report.configurations import configuration_differences
from webdyno.report.drawing import DARK, FONT, LIGHT, Figure, marks
from webdyno.report.factor_charts import factor_figures
from webdyno.report.flame_charts import flame_figure
from webdyno.report.point_charts import point_figures
from webdyno.report.ratio_charts import ratio_figure
from webdyno.report.summary import summary_csv
from webdyno.report.tuning import gains, settings_toml, side_facts
from webdyno.report.view import PointView, RunView, confidence, reasons, why_nothing

SUMMARY_FILE = "summary.csv"
CODE = re.compile(r"`(?P<command>[^`]*)`|(?<![\w-])(?P<flag>--[a-z][\w-]*(?: [\w.]+=[\w.]*\w)?)")
NARROW_SPACE = "\u202f"


def write_report(folder: Path, view: RunView) -> Path:
    """Write `report.html` and `summary.csv` into the run's folder; give the page's path.

    Earlier ones are replaced as a whole or not at all. Raises Trouble when they can't be written.
    """
    then = make_again(command("report", folder))
    write_whole(folder / SUMMARY_FILE, summary_csv(view), then)
    write_whole(folder / PAGE_FILE, html_page(folder, view), then)
    return folder / PAGE_FILE


def make_again(with_command: str) -> str:
    """Say after what went wrong with a file that nothing is lost, and what makes it again."""
    return f". What was measured is safe; once that is mended, `{with_command}` makes it again."


def html_page(folder: Path, view: RunView) -> str:
    """Give the page of a run as text."""
    head = view.head
    return (
        templates()
        .get_template("report.html")
        .render(
            folder=folder,
            head=head,
            version=head.webdyno_version,
            view=view,
            figures=_result_figures(view),
            machine=machine_facts(head.machine),
            configurations=configuration_differences(folder, view),
            beside=_beside(folder),
            flames=flame_figure(folder, view.points[0]),
            repeat=head.repeat_command(folder),
            marks=marks(head.experiment.arms),
            gate=gate,
        )
    )


def _beside(folder: Path) -> dict[str, str]:
    """Give the pages of the sweeps beside a search, by what they show; those that are there."""
    pages = {said: f"{name}/{PAGE_FILE}" for name, said in SWEEPS.items()}
    return {said: page for said, page in pages.items() if (folder / page).exists()}


def all_figures(view: RunView) -> list[Figure]:
    """Give every chart of the page, in its order."""
    of_points = [figure for point in view.points for figure in _figures_of(point, view)]
    return [*_result_figures(view), *of_points]


def _result_figures(view: RunView) -> list[Figure]:
    """Give the charts of what came out: of several points along what was varied."""
    if view.several:
        return factor_figures(view)
    found = ratio_figure(view.deciding[0]) if view.deciding else None
    return [found] if found else []


def _figures_of(point: PointView, view: RunView) -> list[Figure]:
    """Give the charts of one point; of several each set has names of its own."""
    prefix = f"point-{point.number}-" if view.several else ""
    return [figure.prefixed(prefix) for figure in point_figures(point)]


@cache
def templates() -> Environment:
    """Give what fills in the pages, with the words that they share."""
    environment = Environment(
        loader=PackageLoader("webdyno.report"),
        autoescape=True,
        finalize=finished,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "light": LIGHT,
        "dark": DARK,
        "font": FONT,
        "figures_of": _figures_of,
        "at_the_limit": AT_THE_LIMIT,
        "gains": gains,
        "side_facts": side_facts,
        "settings_toml": settings_toml,
        "text": text,
        "words": words,
        "confidence": confidence,
        "reasons": reasons,
        "why_nothing": why_nothing,
        "when": when,
    }
    environment.filters |= {
        "prose": prose,
        "because": because,
        "limits": what_limits,
        "full": what_was_full,
        "waits": where_time_goes,
        "idle": what_waits,
        "worth": what_settings_are_worth,
        "effects": what_settings_do,
    }
    return environment


def prose(said: str) -> Markup:
    """Typeset a sentence: commands and flags as code, no line's end between a number and unit."""

    def code(found: re.Match[str]) -> str:
        flag = found["flag"]
        return f'<code class="flag">{flag}</code>' if flag else f"<code>{found['command']}</code>"

    spaced = str(escape(text.bound(said, NARROW_SPACE)))
    return Markup(CODE.sub(code, spaced))  # noqa: S704 (escaped before)
