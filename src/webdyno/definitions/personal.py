"""What of a recording is somebody's: fields by their names and values, wherever they stand."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from webdyno.model.request import FORM_TYPE

_SECRETS = (
    "password passwd passwort passphrase pass pwd secret pin otp totp cvv cvc ssn apikey "
    "accesstoken refreshtoken"
)
_PERSONAL = (
    "email mail phone mobile telephone tel fax login user username account firstname lastname "
    "surname fullname nickname street address addr zip zipcode postcode birthday birthdate dob "
    "iban pan cardnumber creditcard"
)
_WHOSE_NAME = (
    "name first last full given family middle nick display user card holder account contact "
    "customer billing shipping"
)
SECRETS, PERSONAL = frozenset(_SECRETS.split()), frozenset(_PERSONAL.split())
WHOSE_NAME = frozenset(_WHOSE_NAME.split())
"""Words that a person's name is called by, and nothing else with them."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_MAIL = re.compile(r"[^@\s/?#]+@[^@\s/?#]+\.[^@\s/?#]+")
_PHONE = re.compile(r"(?:\+|00)\d[\d ()./-]{6,18}")
_CARD = re.compile(r"\d(?:[ -]?\d){12,18}")
_PART = re.compile(
    r'(name="([^"]+)"(?:; filename="[^"]*")?[^\n]*\n(?:[^\n]+\n)*?\r?\n)(.*?)(?=\r?\n--)', re.DOTALL
)
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
    """Give a body of a type with variables in the place of what is personal."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return body
    if kind.startswith(FORM_TYPE):
        return _form_without(text, variable).encode()
    if kind.startswith("multipart/"):
        return _PART.sub(lambda part: _part_without(part, variable), text).encode()
    if (node := parsed_json(text)) is None:
        return _MAIL.sub(lambda _: variable("email"), text).encode()
    hidden = _json_without(node, "", variable)
    return body if hidden == node else json.dumps(hidden, ensure_ascii=False).encode()


def _form_without(text: str, variable: Variable) -> str:
    pairs = parse_qsl(text, keep_blank_values=True)
    if not any(is_personal(name, value) for name, value in pairs):
        return text
    return "&".join(
        f"{quote_plus(name)}=" + (variable(name) if is_personal(name, value) else quote_plus(value))
        for name, value in pairs
    )


def _part_without(part: re.Match[str], variable: Variable) -> str:
    return part[1] + variable(part[2]) if is_personal(part[2], part[3]) else part[0]


def _json_without(node: Any, name: str, variable: Variable) -> Any:  # noqa: ANN401 (JSON)
    if isinstance(node, dict):
        return {key: _json_without(inner, key, variable) for key, inner in node.items()}
    if isinstance(node, list):
        return [_json_without(inner, name, variable) for inner in node]
    is_value = isinstance(node, str) or (isinstance(node, int | float) and node is not True)
    return variable(name) if is_value and is_personal(name, str(node)) else node


def parsed_json(text: str) -> Any:  # noqa: ANN401 (JSON)
    """Read JSON; None for anything else."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


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
