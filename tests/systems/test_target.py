"""Text of users becomes templates that give it back."""

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from webdyno.systems.target import GeneratedCatalogue, GeneratedService, verbatim

TEXTS = st.text(st.characters(exclude_characters="\r\0", exclude_categories=["Cs"]))


@given(
    TEXTS | st.lists(st.sampled_from(["{{", "{%", "{#", "}}", "'", "\\", "\n", "x"])).map("".join)
)
@example("{{ '\\x7b' }}")
def test_a_text_is_itself_when_it_is_filled_in(text: str) -> None:
    template = verbatim(text)
    if any(mark in template for mark in ("{{", "{%", "{#")):
        jinja = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
        )
        template = jinja.from_string(template).render()
    assert template == text


@pytest.mark.parametrize("text", ["./server --port $PORT", "a 'b' \"c\"", "{x}"])
def test_what_has_no_marks_stays_as_it_is(text: str) -> None:
    assert verbatim(text) == text


def test_variables_are_closed_to_others_from_the_first_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for the file has it open by the time that its mode is changed."""
    modes = []
    opens = os.open

    def opened(path: Path, flags: int, *mode: int, **how: int) -> int:
        descriptor = opens(path, flags, *mode, **how)
        if flags & os.O_CREAT:
            modes.append(os.fstat(descriptor).st_mode & 0o777)
        return descriptor

    monkeypatch.setattr(os, "open", opened)
    made = GeneratedService({"title": "web"}, {"web.env": "DB_PASSWORD=x\n"})
    catalogue = GeneratedCatalogue({})
    catalogue.service("image", "compose.yaml#web", made)
    assert modes[-2:] == [0o600, 0o600]
    assert catalogue.path is not None
    assert catalogue.path.stat().st_mode & 0o777 == 0o700
