"""What makes charts alive: Vega, Vega-Lite and Vega-Embed as one script."""

import os
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

import vl_convert

VEGA_LITE = "6.4"


@cache
def vega_script() -> str:
    """Give the script, ready to stand in a page.

    Bundling it takes longer than all else in a report, so it is kept in the user's cache; where
    that can't be written it is bundled again each time.
    """
    kept = _cache_folder() / f"vega-lite-{VEGA_LITE}-{version('vl-convert-python')}.js"
    with suppress(OSError, UnicodeDecodeError):
        return kept.read_text(encoding="utf-8")
    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE)
    script = script.replace("</script", r"<\/script")
    with suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        unfinished = kept.with_suffix(f".{os.getpid()}")
        unfinished.write_text(script, encoding="utf-8", newline="")
        unfinished.replace(kept)
    return script


def _cache_folder() -> Path:
    """Give the folder for what can be made again: XDG Base Directory Specification."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    base = Path(home) if home.startswith("/") else Path.home() / ".cache"
    return base / "webdyno"
