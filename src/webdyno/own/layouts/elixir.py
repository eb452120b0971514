"""Elixir: releases of Phoenix."""

import re
from pathlib import Path

from webdyno.own.layouts.app import FOR_MEASURING, FoundApp
from webdyno.own.layouts.files import read_text

APP = re.compile(r"\bapp:\s*:(\w+)")
WANTS_DATABASE = re.compile(r"DATABASE_URL|DATABASE_PATH")


def find_in(folder: Path) -> FoundApp | None:
    """Build a release, and start its server."""
    text = read_text(folder / "mix.exs")
    if text is None or ":phoenix," not in text or (app := APP.search(text)) is None:
        return None
    steps = ["mix deps.get --only prod", "mix compile"]
    steps += ["mix assets.deploy"] if "assets.deploy" in text else []
    build = " && ".join(["export MIX_ENV=prod", *steps, "mix release --quiet --overwrite"])
    program = f"_build/prod/rel/{app[1]}/bin/{app[1]}"
    config = read_text(folder / "config/runtime.exs") or ""
    wants = sorted(set(WANTS_DATABASE.findall(config)))
    return FoundApp(
        "mix.exs",
        f"{program} start",
        build,
        environment={
            "PHX_SERVER": "true",
            "PHX_HOST": "localhost",
            "SECRET_KEY_BASE": FOR_MEASURING,
        },
        notes=("a release serves it: `mix phx.server` is for development",),
        doubts=tuple(
            f"config/runtime.exs wants {want}: environment.{want} gives it" for want in wants
        ),
        heeds_port=True,
    )
