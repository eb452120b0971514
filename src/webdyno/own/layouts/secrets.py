"""Secrets with which an application signs what its users get: any value will do for measuring."""

import re
from dataclasses import replace
from pathlib import Path

from webdyno.own.layouts.app import FOR_MEASURING, FoundApp
from webdyno.own.layouts.files import read_text, sources
from webdyno.own.layouts.ports import VARIABLE

SIGNS = re.compile(
    r"(?:(?:APP|FLASK|DJANGO)_)?SECRET(?:_KEY)?(?:_BASE)?|(?:ACCESS|REFRESH)_TOKEN_SECRET"
    r"|(?:SESSION|COOKIE|JWT|TOKEN|AUTH|CSRF|SIGNING)_(?:SECRET|KEY|SECRET_KEY)"
)
"""Names of such variables; those of keys for what is elsewhere have others."""


def with_values_for_secrets(app: FoundApp, folder: Path) -> FoundApp:
    """Give a program the secrets that its sources read."""
    if not app.start:
        return app
    texts = (read_text(source) or "" for source in sources(folder))
    read = {match["name"] for text in texts for match in VARIABLE.finditer(text)}
    given = sorted(name for name in read - app.environment.keys() if SIGNS.fullmatch(name))
    if not given:
        return app
    note = f"its sources read {', '.join(given)}: a value for measuring is given"
    return replace(
        app,
        environment={**app.environment, **dict.fromkeys(given, FOR_MEASURING)},
        notes=(*app.notes, note),
    )
