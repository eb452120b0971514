"""What every page of ours is made with: templates, styles, scripts. Nothing comes from a network.

A page is one file that holds everything.
"""

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import tomli_w
import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined

from webdyno.model.run import RunHead
from webdyno.report import text
from webdyno.report.evidence import SIGNS, confidence, still_needed, verdict_word, weight
from webdyno.report.facts import machine_facts, when
from webdyno.report.figure import Figure, Panel, Spec
from webdyno.report.palette import DARK, FONT, LIGHT, series
from webdyno.report.vega import VEGA_LITE, vega_script

DRAWN_PX = 720
"""Width of the charts as drawn beforehand, for readers without scripts."""
UNSEEN = re.compile(r'<path [^>]*opacity="0"/>')


def page(
    template: str,
    folder: Path,
    head: RunHead,
    charts: Iterable[Figure],
    **content: Any,  # noqa: ANN401 (whatever the template asks for)
) -> str:
    """Give a page's text; `charts` are all that are on it."""
    arms = list(head.experiment.arms)
    specs: dict[str, Spec] = {
        panel.name: panel.spec for figure in charts for panel in figure.panels
    }
    return (
        _environment()
        .get_template(template)
        .render(
            folder=folder,
            head=head,
            specs=specs,
            machine=machine_facts(head.machine),
            experiment_toml=experiment_toml(head),
            legend=list(zip(arms, *series(arms), strict=True)),
            **content,
        )
    )


def experiment_toml(head: RunHead) -> str:
    """Give the resolved experiment as a file that `webdyno run` takes."""
    return tomli_w.dumps(head.experiment.model_dump(mode="json", exclude_none=True))


@cache
def _environment() -> Environment:
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
        "vega": vega_script,
        "drawn": _drawn,
        "confidence": confidence,
        "still_needed": still_needed,
        "verdict_word": verdict_word,
        "text": text,
        "weight": weight,
        "when": when,
    }
    return environment


def _drawn(panel: Panel) -> str:
    """Draw a chart as it stands where scripts don't run."""
    svg = vl_convert.vegalite_to_svg(panel.spec | {"width": DRAWN_PX}, vl_version=VEGA_LITE)
    return UNSEEN.sub("", svg)
