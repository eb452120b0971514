"""What of a recording is somebody's: fields by their names and values, wherever they stand."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from webdyno.core.request import FORM_TYPE
from webdyno.core.tables import is_table

_SECRETS = (
    "password passwd passwort passphrase pass pwd secret pin otp totp cvv cvc ssn apikey "
    "accesstoken refreshtoken passcode pw privatekey credential credentials"
)
_PERSONAL = (
    "email mail phone mobile telephone tel fax login user username account firstname lastname "
    "surname fullname nickname street address addr zip zipcode postcode birthday birthdate dob "
    "iban pan cardnumber creditcard token jwt csrf xsrf auth authorization sid sessid sessionid "
    "jsessionid phpsessid session cookie"
)
_BEFORE_KEYS = (
    "reset recover recovery invite invites invitation invitations verify verification confirm "
    "confirmation activate activation unsubscribe magic token tokens session sessions ticket share "
    "secret key otp"
)
_WHOSE_NAME = (
    "name first last full given family middle nick display user card holder account contact "
    "customer billing shipping"
)
SECRETS, PERSONAL = frozenset(_SECRETS.split()), frozenset(_PERSONAL.split())
BEFORE_KEYS = frozenset(_BEFORE_KEYS.split())
"""Words of a path behind which a key stands, whatever it looks like: `/reset/KEY`."""
WHOSE_NAME = frozenset(_WHOSE_NAME.split())
"""Words that a person's name is called by, and nothing else with them."""
SHORTEST_KEY = 6
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAIL = re.compile(r"(?<![^@\s/?#])[^@\s/?#]+@[^@\s/?#]+\.[^@\s/?#]+")
_PHONE = re.compile(r"(?:\+|00)\d[\d ()./-]{6,18}")
_CARD = re.compile(r"\d(?:[ -]?\d){12,18}")
_BETWEEN_PARTS = re.compile(r"(\r?\n--)")
_PART_NAME = re.compile(r'(?<![a-z*])name="?([^";\r\n]+)', re.IGNORECASE)
_BLANK_LINE = re.compile(r"\n\r?\n")
_FIELD = re.compile(
    r"""(?<![\w.-])(?P<name>[A-Za-z_][\w.-]{0,60})(?P<is>\\*["']?\s*[:=]\s*)"""
    r"""(?:(?P<quote>\\*["'])(?P<quoted>[^\n]{0,1000}?)(?P=quote)|(?P<bare>[^\s"'<>&;,(){}\[\]\\$]+))"""
)
"""`name=value`, `"name": "value"` and their like, within a text of any kind."""
_ELEMENT = re.compile(r"(<(?:\w+:)?([A-Za-z_][\w.-]{0,60})(?:\s[^<>]*)?>)([^<>$]+)(?=</)")
_NO_NAME = re.compile(r"[{}<>\"'\n]|.{100}")
"""In what stands where a form has a field's name, and is something else."""
DEEPEST = 200
"""Levels of JSON that are looked into."""
Variable = Callable[[str], str]
"""What stands in a personal field's place, by the field's name."""


def is_secret(name: str) -> bool:
    """Whether a field is a password or the like, by its name."""
    words = field_words(name)
    return bool(SECRETS & {*words, "".join(words[-2:])})


def is_personal(name: str, value: str) -> bool:
    """Whether a field holds something of a person: by its name, or by what it is."""
    words = field_words(name)
    by_name = PERSONAL & {*words[-1:], "".join(words[-2:])} or is_secret(name)
    is_name = bool(words) and words[-1] == "name" and set(words) <= WHOSE_NAME
    is_card = bool(words[-2:-1] == ["card"] and words[-1] in {"number", "no"})
    return bool(by_name or is_name or is_card) or is_personal_value(value)


def is_personal_value(value: str) -> bool:
    """Whether a text is a mail address, a phone number, or the number of a card."""
    text = value.strip()
    if _MAIL.fullmatch(text) or _PHONE.fullmatch(text):
        return True
    if not _CARD.fullmatch(text):
        return False
    digits = reversed(re.sub(r"\D", "", text))  # the last one checks the others: Luhn's algorithm
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(digits)]
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def is_key(before: str, part: str) -> bool:
    """Whether a part of a path is a key by what is before it: no word, as in `/reset/password`."""
    is_word = re.fullmatch(r"[A-Za-z][a-z]{0,14}|[a-z]{1,10}[_-][a-z]{1,10}", part)
    return len(part) >= SHORTEST_KEY and not is_word and bool(BEFORE_KEYS & {*field_words(before)})


def field_words(name: str) -> list[str]:
    """Return the words of a field's name, of `user[firstName]` those of the innermost one."""
    inner = [part for part in re.split(r"[\[\].]", name) if part and not part.isdigit()]
    return [word.lower() for word in _WORDS.findall(inner[-1] if inner else "")]


RECORDED = "RECORDED_"
"""How variables begin whose names come from a recording: it chooses none that you have."""


def variable_name(field: str) -> str:
    """Return the variable of the environment that stands for a field."""
    return RECORDED + (re.sub(r"\W+", "_", field).strip("_").upper() or "PERSONAL")


def without_personal(body: bytes, kind: str, variable: Variable) -> bytes:
    """Return a body with variables in the place of what is personal, as far as it can be read.

    What kind it is of is asked where it doesn't show: what pages call a form may be JSON.
    """
    text = body.decode(errors="surrogateescape")
    return _text_without(text, kind, variable).encode(errors="surrogateescape")


def _text_without(text: str, kind: str, variable: Variable) -> str:
    if kind.lower().startswith("multipart/"):
        *parts, end = _BETWEEN_PARTS.split(text)
        return "".join([*(_part_without(part, variable) for part in parts), end])
    if (within := _in_json_without(text, variable)) is not None:
        return within
    if (pairs := form_pairs(text, kind)) is not None:
        shown = [value_without(name, value, variable) for name, value in pairs]
        if shown == [value for _, value in pairs]:
            return text
        return "&".join(
            f"{quote_plus(name)}={quote_plus(value, safe='${}:' if value != was else '')}"
            for (name, was), value in zip(pairs, shown, strict=True)
        )
    lines = text.splitlines(keepends=True)
    within_lines = [_in_json_without(line, variable) for line in lines]
    if any(line is not None for line in within_lines):
        return "".join(
            line if within is None else within
            for line, within in zip(lines, within_lines, strict=True)
        )
    fields_shown = _fields_without(text, is_personal, variable)
    return _MAIL.sub(lambda _: variable("email"), fields_shown)


def form_pairs(text: str, kind: str) -> list[tuple[str, str]] | None:
    """Return a form's fields; None for what is another kind of text, whatever it is called."""
    if not kind.lower().startswith(FORM_TYPE):
        return None
    pairs = parse_qsl(text, keep_blank_values=True)
    return None if any(_NO_NAME.search(name) for name, _ in pairs) else pairs


def _part_without(part: str, variable: Variable) -> str:
    """Return a part of a multipart body, or what is between two, without what is personal."""
    name = _PART_NAME.search(part)
    if name is None or (blank := _BLANK_LINE.search(part, name.end())) is None:
        return part
    return part[: blank.end()] + value_without(name[1], part[blank.end() :], variable)


def value_without(name: str, value: str, variable: Variable) -> str:
    """Hide a field, or what is secret within it: JSON in a form, a query in JSON."""
    if is_personal(name, value):
        return variable(name)
    within = _in_json_without(value, variable) if value[:1] in {"{", "["} else None
    return within or _fields_without(value, lambda its, _: is_secret(its), variable)


def _fields_without(text: str, is_hidden: Callable[[str, str], bool], variable: Variable) -> str:
    def field(match: re.Match[str]) -> str:
        name, quote = match["name"], match["quote"] or ""
        if not is_hidden(name, match["quoted"] or match["bare"] or ""):
            return match[0]
        return f"{name}{match['is']}{quote}{variable(name)}{quote}"

    def element(match: re.Match[str]) -> str:
        return match[1] + variable(match[2]) if is_hidden(match[2], match[3]) else match[0]

    return _ELEMENT.sub(element, _FIELD.sub(field, text))


def _in_json_without(text: str, variable: Variable) -> str | None:
    """Return JSON without what is personal, as it is if nothing was; None for what is none."""

    def shown_leaf(name: str, leaf: Any) -> Any:  # noqa: ANN401 (JSON)
        if isinstance(leaf, str):
            return value_without(name, leaf, variable)
        is_number = isinstance(leaf, int | float) and leaf is not True
        return variable(name) if is_number and is_personal(name, str(leaf)) else leaf

    if not is_nested(node := parsed_json(text.lstrip("\ufeff"))):
        return None
    shown = map_leaves(node, shown_leaf)
    ends = "\n" if text.endswith("\n") else ""
    return text if shown == node else json.dumps(shown, ensure_ascii=False) + ends


def is_nested(node: object) -> bool:
    """Whether JSON is an object or array."""
    return is_table(node) or isinstance(node, list)


def map_leaves(node: Any, change: Callable[[str, Any], Any], name: str = "") -> Any:  # noqa: ANN401
    """Return JSON with all of its values changed, each by the name of the field it is in."""
    if is_table(node):
        return {key: map_leaves(inner, change, key) for key, inner in node.items()}
    if isinstance(node, list):
        return [map_leaves(inner, change, name) for inner in node]
    return change(name, node)


def parsed_json(text: str) -> Any:  # noqa: ANN401 (JSON)
    """Read JSON; None for anything else, and for what is nested deeper than anybody's data."""
    try:
        node = json.loads(text)
    except (ValueError, RecursionError):
        return None
    level = [node]
    for _ in range(DEEPEST):
        level = [inner for each in level for _, inner in _children(each)]
        if not level:
            return node
    return None


def _children(node: Any) -> Iterable[tuple[str, Any]]:  # noqa: ANN401 (JSON)
    """Return what lies in JSON directly, each with its step in a path."""
    if is_table(node):
        return ((f".{key}", inner) for key, inner in node.items())
    return (
        (f"[{number}]", inner)
        for number, inner in enumerate(node if isinstance(node, list) else ())
    )


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 (JSON)
    """Return the places of all texts and numbers in JSON, and these."""
    for step, inner in _children(node):
        yield from leaves(inner, path + step)
    if not (is_nested(node) or node is None or isinstance(node, bool)):
        yield path, str(node)
