"""Text of users becomes templates that give it back."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from jinja2.sandbox import ImmutableSandboxedEnvironment

from webdyno.systems.target import verbatim

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
