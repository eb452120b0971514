"""Secrets are hidden in any text, however they are written there."""

import base64
import html
import json
import re
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webdyno.core.errors import OperationError
from webdyno.core.hiding import CUT, HIDDEN, SECRETS, SHORT, Hiding, Span, hidden, keep_secret
from webdyno.core.text import printable, with_secrets

Way = Callable[[str], str]
ENCODERS: dict[str, Way] = {
    "plain": str,
    "url": lambda text: quote(text, safe=""),
    "url in small letters": lambda text: re.sub("%..", lambda it: it[0].lower(), quote(text)),
    "form": quote_plus,
    "json": lambda text: json.dumps(text)[1:-1],
    "json of PHP": lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    "json as it is": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "html": html.escape,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
}
SECRET = st.text(
    st.characters(min_codepoint=32, exclude_categories=["Cs", "Cc"]), min_size=SHORT, max_size=20
)
AROUND = st.text("abcxyz,;: ", max_size=5)


def known(*secrets: str) -> None:
    SECRETS.forget()
    keep_secret(secrets)


def shows(said: str, secret: str) -> bool:
    """Whether half of a secret, or more, is left of it."""
    half = len(secret) // 2
    rest = said.replace(HIDDEN, "\0")
    return any(secret[at : at + half] in rest for at in range(len(secret) - half + 1))


@given(SECRET, st.sampled_from(sorted(ENCODERS)), st.sampled_from(sorted(ENCODERS)), AROUND, AROUND)
def test_no_form_of_a_secret_is_left(
    secret: str, first: str, second: str, before: str, after: str
) -> None:
    if secret in HIDDEN or any(len(set(part)) < 3 for part in (secret, secret[:SHORT])):
        return
    known(secret)
    if "base64" in second and first not in {"plain", "url", "form", "json", "json as it is"}:
        second = "url"
    text = ENCODERS[second](before + ENCODERS[first](secret) + after)
    assert HIDDEN in hidden(text), text
    whole = ENCODERS[first](f"user:{secret}")
    assert HIDDEN in hidden(whole), whole
    if first == second == "plain":
        assert hidden(text).replace(HIDDEN, "").strip("abcxyz,;: ") == ""


@pytest.mark.parametrize(
    "secret", ["s3cr3t-Zq8vW1", 'pw+s3cr3t&/\\"<é', "a b+c/d==e", "pa%41ss\\n"]
)
@pytest.mark.parametrize("way", sorted(ENCODERS))
@pytest.mark.parametrize("user", ["", "u", "us", "use"])
def test_every_alignment_and_nesting(secret: str, way: str, user: str) -> None:
    known(secret)
    encoded = ENCODERS[way](f"{user}:{secret}:end")
    assert HIDDEN in hidden(encoded), encoded
    for outer in ("url", "json", "form", "html"):
        text = ENCODERS[outer](f"said: {encoded}.")
        assert HIDDEN in hidden(text), text
        if "base64" not in way:
            assert len(hidden(text)) < len(ENCODERS[outer]("said: :end.")) + len(HIDDEN) + 16


def test_base64_leaves_no_digit_in_which_bits_of_the_secret_are() -> None:
    known("s3cr3t-Zq8vW1")
    for user in ("u", "us", "use"):
        encoded = ENCODERS["base64"](f"{user}:s3cr3t-Zq8vW1")
        left, _, rest = hidden(encoded).partition(HIDDEN)
        assert encoded.startswith(left)
        assert len(left) <= len(f"{user}:") * 8 // 6
        assert rest.strip("=") == ""


@given(st.text(), SECRET, st.integers(0, 40))
def test_no_text_shows_a_secret_however_it_is_cut(text: str, secret: str, cut: int) -> None:
    known(secret)
    said = hidden((text + secret + text)[: len(text) + cut])
    if secret not in HIDDEN:
        assert secret not in said.replace(HIDDEN, "")
        assert not said.endswith(secret[:-1])
    if secret not in HIDDEN and secret not in text and "…" not in secret:
        assert secret[:-1] not in hidden(f"{secret[:-1]}…").replace(HIDDEN, "")


@pytest.mark.parametrize(
    "written",
    [
        "Gr&uuml;&szlig;e-aus-K&ouml;ln!",
        "Gr%FC%DFe-aus-K%f6ln%21",
        r"Gr\xfc\xdfe-aus-K\xf6ln!",
        base64.b64encode("shop:Grüße-aus-Köln!".encode("latin-1")).decode(),
        "Gr&amp;uuml;&amp;szlig;e-aus-K&amp;ouml;ln!",
    ],
)
def test_letters_beyond_ascii_are_known_by_their_names_and_in_latin_1(written: str) -> None:
    known("Grüße-aus-Köln!")
    assert len(hidden(f"it says {written}.")) <= len(f"it says {HIDDEN}.") + 8
    assert HIDDEN in hidden(written)
    in_latin_1 = SECRETS.hidden("<p>Grüße-aus-Köln!</p>".encode("latin-1"))
    assert in_latin_1 == f"<p>{HIDDEN}</p>".encode()


@given(st.text(st.characters(max_codepoint=255), min_size=4, max_size=9), st.text())
def test_a_secret_in_latin_1_leaves_whole_letters(secret: str, around: str) -> None:
    known(secret, "£abcdefgh", "abcdefghÃ")
    assert hidden("ãabcdefghä") in {HIDDEN, f"{HIDDEN}ä", f"ã{HIDDEN}"}
    hidden(around + secret + around)
    hidden((around + secret).encode("utf-8", "surrogatepass").decode("latin-1"))


@pytest.mark.parametrize("way", ["url", "json", "json as it is", "html", "json of PHP"])
@pytest.mark.parametrize("mark", ["", "…"])
def test_what_is_cut_within_an_escape_shows_nothing(way: str, mark: str) -> None:
    known(secret := "pässw/rd+1&m😀re")
    for outer in ("plain", "url", "json", "html"):
        written = ENCODERS[outer](ENCODERS[way](secret))
        for cut in range(len(ENCODERS[outer](ENCODERS[way](secret[:5]))), len(written)):
            said = hidden(f"it says {written[:cut]}{mark}")
            assert said == f"it says {HIDDEN}{mark}", written[:cut]
            part = written.encode()[:cut].decode("utf-8", "replace")
            assert hidden(f"it says {part}{mark}") == f"it says {HIDDEN}{mark}", part


def test_secrets_that_begin_as_what_stands_for_a_cut_are_found() -> None:
    known("…abcdefgh")
    assert hidden("it says …abcxyz, …abcdefgh") == f"it says …abcxyz, {HIDDEN}"


def test_short_secrets_are_hidden_alone_and_the_shortest_not_at_all() -> None:
    known("1234", "abc")
    assert hidden("pin=1234&abc at 12345 in 2f1234aa") == f"pin={HIDDEN}&abc at 12345 in 2f1234aa"
    assert hidden("pin%201234") == f"pin%20{HIDDEN}"
    assert hidden("MTIzNA==") == f"{HIDDEN}=="


def test_hundred_thousand_secrets_that_begin_alike_are_found() -> None:
    known(*(f"password-{number:06d}" for number in range(10_000)))
    text = "user=7 password-000007\n" * 1000 + "cGFzc3dvcmQtMDA5OTk5"
    assert "password" not in hidden(text)
    assert hidden(text).endswith(HIDDEN)
    assert hidden("password-010000") == "password-010000"


def test_what_is_filled_in_is_hidden_in_messages_and_whatever_is_printed() -> None:
    error = OperationError("the server said: s3cr3t-Zq8vW1")
    assert str(error).endswith("s3cr3t-Zq8vW1")
    with_secrets("Bearer ${env:TOKEN}", {"TOKEN": "s3cr3t-Zq8vW1"})
    assert str(error) == f"the server said: {HIDDEN}"
    assert printable("\x1b s3cr3t-Zq8vW1") == f"␛ {HIDDEN}"
    assert hidden(HIDDEN) == HIDDEN
    keep_secret(["hidden"])
    assert hidden(HIDDEN) == HIDDEN


def spans_one_by_one(hiding: Hiding, content: bytes) -> Iterator[Span]:
    """Return what is found where each place is looked at by itself."""
    start = 0
    while start < len(content):
        cut = content.find(CUT, start, start + hiding.longest)
        if cut < 0:
            cut = len(content) if len(content) - start < hiding.longest else 0
        lengths = sorted({len(form) for form in hiding._forms}, reverse=True)
        span = None
        if content[start : start + 4] in hiding._beginning:
            span = hiding._span(content, start, lengths, cut)
        if span:
            yield span
        start = span.end if span else start + 1


@example(["aaaa", "aaaab"], ["aaaa"])
@given(
    st.lists(st.text("ab…é", min_size=4, max_size=9), min_size=1, max_size=3),
    st.lists(st.sampled_from(["a", "b", "…", "é", "aaaa", "abab", "ab…"]), max_size=30),
)
def test_each_place_of_a_text_is_looked_at(secrets: list[str], parts: list[str]) -> None:
    hiding = Hiding()
    hiding.add(secrets)
    content = "".join(parts).encode()
    assert [*hiding._spans(content)] == [*spans_one_by_one(hiding, content)]
