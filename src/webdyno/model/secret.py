"""Secrets: `${env:NAME}` in what a user writes, filled in when a run starts, kept nowhere."""

import re
from collections.abc import Collection, Iterable, Mapping

from webdyno.model.mistake import Mistake

SECRET = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")
"""A place that a variable of the environment fills."""
HIDDEN = "…hidden…"
TELLING = 3
"""So many letters of a secret at a text's cut end are hidden as well."""


def secret_values(texts: Iterable[str], environment: Mapping[str, str]) -> set[str]:
    """Give what nothing on disk may show; raise Mistake for a variable that isn't there."""
    return {_value(name, environment) for text in texts for name in SECRET.findall(text)}


def with_secrets(text: str, environment: Mapping[str, str]) -> str:
    """Give a text with its secrets; raise Mistake for a variable that isn't there."""
    return SECRET.sub(lambda place: _value(place[1], environment), text)


def hide(text: str, secrets: Collection[str]) -> str:
    """Give a text without secrets, nor the beginning of one at its end, where it may be cut."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        for length in range(len(secret) - 1, TELLING - 1, -1):
            if text.endswith(secret[:length]):
                text = text[:-length] + HIDDEN
                break
    return text


def _value(name: str, environment: Mapping[str, str]) -> str:
    if not (value := environment.get(name)):
        raise Mistake(f"${{env:{name}}}: the environment has no {name}; export {name}=… first")
    if not value.isprintable():
        raise Mistake(f"${{env:{name}}}: the value of {name} should be text in one line")
    return value
