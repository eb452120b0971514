"""Knobs that a user declares for a program of his own: `knobs.workers = { type = "whole", … }`."""

from collections.abc import Mapping
from typing import Any

from webdyno.definitions.refusal import build
from webdyno.model.app import DeclaredKnobs
from webdyno.model.knob import Knob, SwitchKnob
from webdyno.model.mistake import Mistake
from webdyno.own.kind import Place

OWN = {"HOST", "PORT", "SOCKET", "PROTOCOL", "CERT", "KEY", "PATH", "HOME", "USER", "LOGNAME"}
"""Variables that a command has anyway."""


def split(knobs: object) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give what an arm declares, which are tables, and the values that it gives."""
    if not isinstance(knobs, dict):
        return {}, {}
    declared = {name: it for name, it in knobs.items() if isinstance(it, dict)}
    return declared, {name: it for name, it in knobs.items() if name not in declared}


def read(declared: Mapping[str, Any], place: Place) -> dict[str, Knob]:
    """Read declarations; raise Mistake, naming the line, where one isn't right.

    What is left out: the default is the first value of the range, and all of that is tuned.
    """
    for name in declared:
        if variable(name) in OWN:
            raise Mistake(f"{place((name,))}: ${variable(name)} has a meaning already; rename it")
    whole = {name: _completed(it) for name, it in declared.items()}
    return build(DeclaredKnobs, {"knobs": whole}, lambda where: place(where[1:])).knobs


def _completed(given: Mapping[str, Any]) -> dict[str, Any]:
    choices = given.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else given.get("min", False)
    tune = given.get("tune", {})
    tuned = {"vendor": "declared by the user", **tune} if isinstance(tune, dict) else tune
    return {"help": "", "default": first, **given, "tune": tuned}


def variable(name: str) -> str:
    """Give the variable by which a command finds a knob's value."""
    return name.upper().replace("-", "_")


def value_of(name: str, knob: Knob) -> str:
    """Give a knob's value as a template."""
    return f"{{{{ knobs['{name}'] {'| string | lower ' * isinstance(knob, SwitchKnob)}}}}}"


def environment_of(knobs: Mapping[str, Knob]) -> dict[str, str]:
    """Give the variables as templates."""
    return {variable(name): value_of(name, it) for name, it in knobs.items()}
