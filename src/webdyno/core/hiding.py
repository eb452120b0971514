"""Hides secrets in every text that leaves memory: the one place that knows them.

A secret is known from where it is filled in (`keep_secret`). Whatever shows or writes what others
may have said asks here: exceptions (`core/errors.py`), what is printed or drawn
(`text.printable`), records and logs (`measure/redact.py`).

A secret is found as it is, escaped for URLs, JSON, HTML and logs, also mixed and nested, and in
base64, in both alphabets and anywhere in a longer text, as in `Authorization: Basic`.
"""

import html
import json
import re
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from typing import NamedTuple
from urllib.parse import quote, quote_plus

HIDDEN = "…hidden…"
SHORTEST = 4
"""Letters. Shorter secrets stand everywhere, so that hiding them would hide everything."""
SHORT = 8
"""Letters. Shorter ones are hidden where they stand alone: PINs stand in times and hashes, too."""
LAYERS = 3
"""How many times over escaped text is looked into: JSON in JSON in a URL."""
MOST_ESCAPED = 12
"""Bytes by which one of a secret may be written, as in `%255Cu0022`."""
CUT = "…".encode()
_HIDDEN = HIDDEN.encode()
_KINDS = {
    rb"%": rb"[0-9A-Fa-f]{2}",
    rb"\\": rb"[\"'/\\bfnrt]|x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}(?:\\u[0-9A-Fa-f]{4})*",
    rb"&": rb"(?:[A-Za-z][A-Za-z0-9]{1,7}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});",
}
"""Of escapes, how they begin and go on: of URLs, of JSON and logs, of HTML."""
_UNFINISHED = re.compile(
    rb"(?:%[0-9A-Fa-f]?|\\(?:x[0-9A-Fa-f]?|u[0-9A-Fa-f]{0,3})?|&#?[A-Za-z0-9]{0,8}"
    rb"|\xed[\xa0-\xbf][\x80-\xbf]|\xef\xbf\xbd){1,3}\Z"
)
"""What may be left of a letter where a text is cut within it: parts of escapes, one within the
other, the first of two surrogates, a replacement character."""
_ESCAPED = re.compile(
    # It begins with a class, for which re looks quickly.
    rb"[%%\\&](?:%b)" % b"|".join(rb"(?<=%b)(?:%b)" % its for its in _KINDS.items())
)
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_WORD = re.compile(rb"[A-Za-z0-9]")
_WITHIN_A_LETTER = range(0x80, 0xC0)
MOST_LEFT = 3
"""Bytes of a letter of UTF-8 besides its first."""
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]")
_ALIGNMENTS = ((0, 0), (1, 2), (2, 3))
"""Bytes before a secret in a group of three, and digits of base64 that these take part in."""


class Span(NamedTuple):
    """Where bytes stand in others: from, and to before."""

    start: int
    end: int


class Hiding:
    """Finds secrets, however many, in one pass over a text and one over each decoding of it."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all secrets."""
        self.known: set[str] = set()
        self.longest = 0
        """Bytes of the longest form of a secret."""
        self._forms: dict[bytes, bool] = {}
        """Whether it has to stand alone."""
        self._in_base64: set[bytes] = set()
        self._beginning: dict[bytes, list[bytes]] = {}
        """Forms by their first four bytes."""
        self._lengths: dict[bytes, list[int]] = {}
        """Theirs, the longest first."""
        self._begin: re.Pattern[bytes] | None = None

    def add(self, secrets: Iterable[str]) -> None:
        for secret in {each for each in secrets if len(each) >= SHORTEST} - self.known:
            self.known.add(secret)
            for form in _decodings(secret):
                self._add(form, alone=len(secret) < SHORT)
            for form in _in_base64(secret):
                self._in_base64.add(form)
                self._add(form, alone=False)
            self._begin = None

    def _add(self, form: bytes, *, alone: bool) -> None:
        self._forms[form] = alone and self._forms.get(form, True)
        first = form[:SHORTEST]
        self._beginning.setdefault(first, []).append(form)
        lengths = self._lengths.setdefault(first, [])
        if len(form) not in lengths:
            lengths.append(len(form))
            lengths.sort(reverse=True)
        self.longest = max(self.longest, len(form))

    def hidden(self, content: bytes) -> bytes:
        """Return a text without secrets, nor the beginning of one where the text is cut."""
        spans = self.spans(content)
        return b"".join(parts_without(content, spans)) if spans else content

    def spans(self, content: bytes) -> list[Span]:
        """Return where secrets are, in order."""
        if not self.known:
            return []
        spans: list[Span] = []
        layers: list[_Decoded] = []
        layer = content
        while True:
            spans += (
                reduce(lambda above, below: below.before(above), reversed(layers), span)
                for span in self._spans(layer)
            )
            decoded = _Decoded.of(layer)
            if decoded is None or len(layers) == LAYERS:
                return _join_spans(spans)
            layers.append(decoded)
            layer = decoded.content

    def _spans(self, content: bytes) -> Iterator[Span]:
        # Little is done at each place: a server that knows a secret can write its beginning often.
        forms, lengths_of, longest = self._forms, self._lengths, self.longest
        done = cut = behind_cut = 0
        for begin in self._beginnings().finditer(content):
            start = begin.start()
            lengths = lengths_of.get(content[start : start + SHORTEST])
            if lengths is None or start < done:
                continue
            if cut < start or not behind_cut:
                cut = content.find(CUT, start)
                behind_cut = cut + len(CUT)
                if cut < 0:
                    cut, behind_cut = len(content), len(content) + 1
            for length in lengths:
                if content[start : start + length] in forms:
                    break
            else:
                if behind_cut > start + longest:
                    continue
            span = self._span(content, start, lengths, cut if behind_cut <= start + longest else 0)
            if span:
                done = span.end
                yield span

    def _beginnings(self) -> re.Pattern[bytes]:
        """Find where secrets may begin: at bytes with which some do, second and further ones so."""
        if self._begin is None:
            places = [{first[place] for first in self._beginning} for place in range(SHORTEST)]
            first, *others = (
                b"[" + b"".join(re.escape(bytes([byte])) for byte in sorted(those)) + b"]"
                for those in places
            )
            self._begin = re.compile(first + b"(?=" + b"".join(others) + b")")
        return self._begin

    def _span(self, content: bytes, start: int, lengths: Sequence[int], cut: int) -> Span | None:
        for length in lengths:
            form = content[start : start + length]
            span = Span(start, start + length)
            # At the content's end it may be a shorter one.
            is_whole = len(form) == length and form in self._forms
            if is_whole and self._counts(content, span, form):
                return self._wide(content, span, form)
        if cut:
            rest, span = content[start:cut], Span(start, cut)
            rests = tuple(
                each for each in (rest, _UNFINISHED.sub(b"", rest)) if len(each) >= SHORTEST
            )
            for form in self._beginning[content[start : start + SHORTEST]]:
                if form.startswith(rests) and self._counts(content, span, form):
                    return _whole_letters(content, span)
        return None

    def _counts(self, content: bytes, span: Span, form: bytes) -> bool:
        """Whether what may be a form there is a secret, and no part of another word."""
        if content[max(span.start - len(CUT), 0) : span.end + len(CUT)] == _HIDDEN:
            return False
        around = content[max(span.start - 1, 0) : span.start], content[span.end : span.end + 1]
        return not self._forms[form] or not any(map(_WORD.match, around))

    def _wide(self, content: bytes, span: Span, form: bytes) -> Span:
        """Add the digits of base64 on both sides, in which further bits of the secret are."""
        if form not in self._in_base64:
            return _whole_letters(content, span)
        before = span.start and _BASE64.match(content, span.start - 1)
        after = _BASE64.match(content, span.end)
        return Span(span.start - bool(before), span.end + bool(after))


def _whole_letters(content: bytes, span: Span) -> Span:
    """Add the rest of letters on both sides: a secret in Latin-1 may begin within UTF-8's."""
    start, end = span
    while start and content[start] in _WITHIN_A_LETTER and span.start - start < MOST_LEFT:
        start -= 1
    while end < len(content) and content[end] in _WITHIN_A_LETTER and end - span.end < MOST_LEFT:
        end += 1
    return Span(start, end)


class _Decoded(NamedTuple):
    """A text with escapes undone."""

    content: bytes
    ends: list[int]
    """Where each of the characters ends that were escaped."""
    shifts: list[int]
    """How much further on the same place is in what was escaped."""
    widths: list[tuple[int, int]]
    """How long each is, and was."""

    @classmethod
    def of(cls, content: bytes) -> "_Decoded | None":
        """Undo escapes once; None where there are none."""
        parts: list[bytes] = []
        decoded = cls(b"", [], [], [])
        done = length = 0
        for escape in _ESCAPED.finditer(content):
            character = _unescape(escape[0])
            length += escape.start() - done + len(character)
            parts += [content[done : escape.start()], character]
            done = escape.end()
            decoded.ends.append(length)
            decoded.shifts.append(done - length)
            decoded.widths.append((len(character), len(escape[0])))
        if not parts:
            return None
        return decoded._replace(content=b"".join([*parts, content[done:]]))

    def before(self, span: Span) -> Span:
        """Return where what stands there stood before."""
        start = self._place(span.start)
        return Span(start[0], self._place(span.end - 1)[1])

    def _place(self, byte: int) -> tuple[int, int]:
        number = bisect_right(self.ends, byte)
        if number < len(self.ends):
            width, was = self.widths[number]
            if byte >= self.ends[number] - width:
                end = self.ends[number] + self.shifts[number]
                return end - was, end
        shift = self.shifts[number - 1] if number else 0
        return byte + shift, byte + shift + 1


def _unescape(escape: bytes) -> bytes:
    kind, rest = escape[:1], escape[1:]
    if kind == b"&":
        return html.unescape(escape.decode()).encode(errors="surrogatepass")
    if kind == b"%":
        return bytes.fromhex(rest.decode())
    if rest[:1] == b"u":
        units = bytes.fromhex(escape.decode().replace("\\u", ""))
        return units.decode("utf-16-be", "surrogatepass").encode(errors="surrogatepass")
    if rest[:1] == b"x":
        return bytes.fromhex(rest[1:].decode())
    return _CONTROLS.get(rest, rest)


def _decodings(secret: str) -> set[bytes]:
    """Return what may be left of a secret in a decoded text: it may look like an escape itself."""
    forms = {form for text in (secret, secret.replace(" ", "+")) for form in _encoded(text)}
    for begin, rest in _KINDS.items():
        escape = re.compile(rb"%b(?:%b)" % (begin, rest))
        forms |= {escape.sub(lambda match: _unescape(match[0]), form) for form in forms}
    return {form for form in forms if len(form) >= SHORTEST}


def _encoded(text: str) -> Iterator[bytes]:
    """Return a text as servers of UTF-8 write it, and as others do."""
    yield text.encode(errors="surrogatepass")
    for encoding in ("latin-1", "cp1252"):
        with suppress(UnicodeEncodeError):
            yield text.encode(encoding)


def _in_base64(secret: str) -> Iterator[bytes]:
    """Return the digits that a secret alone decides, wherever it stands in what is encoded."""
    texts = {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),  # as OAuth has it: RFC 6749, 2.3.1
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    }
    for content in {content for text in texts for content in _encoded(text)}:
        for before, first in _ALIGNMENTS:
            digits = b64encode(b"\0" * before + content)
            form = digits[first : (before + len(content)) * 8 // 6]
            yield form
            yield form.translate(bytes.maketrans(b"+/", b"-_"))


def _join_spans(spans: Iterable[Span]) -> list[Span]:
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and span.start < merged[-1].end:
            merged[-1] = Span(merged[-1].start, max(span.end, merged[-1].end))
        else:
            merged.append(span)
    return merged


def parts_without(content: bytes, spans: Iterable[Span]) -> Iterator[bytes]:
    """Return the parts of a text, with what stands for a secret in the place of these."""
    done = 0
    for span in spans:
        yield content[done : span.start]
        yield _HIDDEN
        done = span.end
    yield content[done:]


SECRETS = Hiding()
"""Those of this process: what was filled in once stays known."""


def keep_secret(secrets: Iterable[str]) -> None:
    """Hide these from now on in all that leaves memory."""
    SECRETS.add(secrets)


def hidden(text: str) -> str:
    """Return a text without the secrets of this process."""
    if not SECRETS.known:
        return text
    content = text.encode(errors="surrogatepass")
    shown = SECRETS.hidden(content)
    return text if shown is content else shown.decode(errors="surrogatepass")
