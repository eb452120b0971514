"""What of a recording is somebody's: fields by their names and values, wherever they stand."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from webdyno.core.request import FORM_TYPE

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
"""Gives what stands in a personal field's place, by the field's name."""


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
    return bool(_CARD.fullmatch(text)) and _has_check_digit(re.sub(r"\D", "", text))


def is_key(before: str, part: str) -> bool:
    """Whether a part of a path is a key by what is before it: no word, as in `/reset/password`."""
    is_word = re.fullmatch(r"[A-Za-z][a-z]{0,14}|[a-z]{1,10}[_-][a-z]{1,10}", part)
    return len(part) >= SHORTEST_KEY and not is_word and bool(BEFORE_KEYS & {*field_words(before)})


def field_words(name: str) -> list[str]:
    """Give the words of a field's name, of `user[firstName]` those of the innermost one."""
    inner = [part for part in re.split(r"[\[\].]", name) if part and not part.isdigit()]
    return [word.lower() for word in _WORDS.findall(inner[-1] if inner else "")]


def _has_check_digit(digits: str) -> bool:
    """Check the last digit of a card's number (Luhn's algorithm)."""
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(digits))]
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def variable_name(field: str) -> str:
    """Name the variable of the environment that stands for a field."""
    name = re.sub(r"\W+", "_", field).strip("_").upper() or "PERSONAL"
    return f"_{name}" if name[0].isdigit() else name


def without_personal(body: bytes, kind: str, variable: Variable) -> bytes:
    """Give a body with variables in the place of what is personal, as far as it can be read.

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
        return _form_without(text, pairs, variable)
    lines = text.splitlines(keepends=True)
    within_lines = [_in_json_without(line, variable) for line in lines]
    if any(line is not None for line in within_lines):
        return "".join(
            line if within is None else within
            for line, within in zip(lines, within_lines, strict=True)
        )
    shown = _fields_without(text, is_personal, variable)
    return _MAIL.sub(lambda _: variable("email"), shown)


def form_pairs(text: str, kind: str) -> list[tuple[str, str]] | None:
    """Give the fields of a form; None for what is another kind of text, whatever it is called."""
    if not kind.lower().startswith(FORM_TYPE):
        return None
    pairs = parse_qsl(text, keep_blank_values=True)
    return None if any(_NO_NAME.search(name) for name, _ in pairs) else pairs


def _form_without(text: str, pairs: list[tuple[str, str]], variable: Variable) -> str:
    shown = [value_without(name, value, variable) for name, value in pairs]
    if shown == [value for _, value in pairs]:
        return text
    return "&".join(
        f"{quote_plus(name)}={quote_plus(value, safe='${}:' if value != was else '')}"
        for (name, was), value in zip(pairs, shown, strict=True)
    )


def _part_without(part: str, variable: Variable) -> str:
    """Give a part of a multipart body, or what is between two, without what is personal."""
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
    """Give JSON without what is personal, as it is if nothing was; None for what is none."""
    if not isinstance(node := parsed_json(text.lstrip("\ufeff")), dict | list):
        return None
    shown = _json_without(node, "", variable)
    ends = "\n" if text.endswith("\n") else ""
    return text if shown == node else json.dumps(shown, ensure_ascii=False) + ends


def _json_without(node: Any, name: str, variable: Variable) -> Any:  # noqa: ANN401 (JSON)
    if isinstance(node, dict):
        return {key: _json_without(inner, key, variable) for key, inner in node.items()}
    if isinstance(node, list):
        return [_json_without(inner, name, variable) for inner in node]
    if isinstance(node, str):
        return value_without(name, node, variable)
    is_number = isinstance(node, int | float) and node is not True
    return variable(name) if is_number and is_personal(name, str(node)) else node


def parsed_json(text: str) -> Any:  # noqa: ANN401 (JSON)
    """Read JSON; None for anything else, and for what is nested deeper than anybody's data."""
    try:
        node = json.loads(text)
    except (ValueError, RecursionError):
        return None
    level = [node]
    for _ in range(DEEPEST):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return node
    return None


def _inside(node: Any) -> Iterable[Any]:  # noqa: ANN401 (JSON)
    if isinstance(node, dict):
        return node.values()
    return node if isinstance(node, list) else ()


def leaves(node: Any, path: str = "") -> Iterator[tuple[str, str]]:  # noqa: ANN401 (JSON)
    """Give the places of all texts and numbers in JSON, and these."""
    if isinstance(node, dict):
        for key, inner in node.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(node, list):
        for number, inner in enumerate(node):
            yield from leaves(inner, f"{path}[{number}]")
    elif node is not None and not isinstance(node, bool):
        yield path, str(node)
