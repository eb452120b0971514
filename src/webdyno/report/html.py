"""`report.html`: one file that holds everything and asks the network for nothing."""

import re
from functools import cache
from pathlib import Path

import tomli_w
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from webdyno.model.judgement import Judgement
from webdyno.model.records import Record
from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.certificate import certificate
from webdyno.report.charts import Figure, cpu_figure, latency_figure, ratio_figure, slots_figure
from webdyno.report.evidence import (
    SIGNS,
    confidence,
    evidence,
    headline_sentences,
    still_needed,
    verdict_word,
    weight,
)
from webdyno.report.facts import how_measured, machine_facts, when
from webdyno.report.palette import DARK, FONT, LIGHT, series

VEGA_LITE = "6.4"
DRAWN_PX = 720
"""Width of the charts as drawn beforehand, for readers without scripts."""
UNSEEN = re.compile(r'<path [^>]*opacity="0"/>')


def html_report(folder: Path, head: RunHead, records: list[Record], judgement: Judgement) -> str:
    """Give the page as text."""
    metrics = evidence(head, judgement)
    figures = [
        ratio_figure(metrics),
        latency_figure(head, records),
        slots_figure(head, records, judgement),
        cpu_figure(head, judgement),
    ]
    return _template().render(
        head=head,
        judgement=judgement,
        headline=headline_sentences(judgement),
        folder=folder,
        metrics=metrics,
        confidence=confidence(metrics),
        figures={figure.name: figure for figure in figures if figure},
        specs={figure.name: figure.spec for figure in figures if figure},
        certificate=certificate(records),
        how=how_measured(head, records, judgement),
        machine=machine_facts(head.machine),
        experiment_toml=experiment_toml(head),
        legend=list(zip(head.experiment.arms, *series(list(head.experiment.arms)), strict=True)),
    )


def experiment_toml(head: RunHead) -> str:
    """Give the resolved experiment as a file that `webdyno run` takes."""
    return tomli_w.dumps(head.experiment.model_dump(mode="json", exclude_none=True))


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("webdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        "light": LIGHT,
        "dark": DARK,
        "font": FONT,
        "signs": SIGNS,
        "vega": _vega,
        "drawn": _drawn,
        "still_needed": still_needed,
        "verdict_word": verdict_word,
        "text": text,
        "weight": weight,
        "when": when,
    }
    return environment.get_template("report.html")


@cache
def _vega() -> str:
    """Give Vega, Vega-Lite and Vega-Embed as one script."""
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    return script.replace("</script", r"<\/script")


def _drawn(figure: Figure) -> str:
    """Draw a chart as it stands where scripts don't run."""
    svg = vl_convert.vegalite_to_svg(figure.spec | {"width": DRAWN_PX}, vl_version=VEGA_LITE)
    return UNSEEN.sub("", svg)
