"""Patterns take a time in proportion to what they read, which others may have made.

From each pattern's parts texts are made that lead to a repetition, go on with it, and don't end as
they would have to. Where each of their characters begins another try, or where there are several
ways to divide them, four times the text takes sixteen times as long.
"""

import ast
import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pytest

import webdyno

SOURCES = Path(webdyno.__file__).parent
CHARACTERS = "a1 \n/._-:=\"'(<{[&#,;A$@\\"
MOST_OF_A_CLASS = 4
WITHOUT_END = 50
"""Repetitions that may be more than so many count as endless."""
OF_CATEGORY = {
    op.CATEGORY_DIGIT: re.compile(r"\d"),
    op.CATEGORY_SPACE: re.compile(r"\s"),
    op.CATEGORY_WORD: re.compile(r"\w"),
    op.CATEGORY_NOT_DIGIT: re.compile(r"\D"),
    op.CATEGORY_NOT_SPACE: re.compile(r"\S"),
    op.CATEGORY_NOT_WORD: re.compile(r"\W"),
}
OF_PATTERNS = ("search", "match", "fullmatch", "sub", "subn", "split", "findall", "finditer")
CALL = re.compile(rf"\b([A-Za-z_]\w*)(?:\[[^]]*\])?\.({'|'.join(OF_PATTERNS)})\b")
OF_MODULE = {f"re.{way}" for way in OF_PATTERNS}
ANCHORED = {"match", "fullmatch"}
LETTERS, LOOKED_AT_S, TIMES, GROWS = 400, 0.0004, 4, 9.0
"""Of the shorter text; CPU time from which on a longer one is tried; how much longer it is; and by
how much more time that may take: the square would be 16."""
FEWER, FEW_S = [int(20 * 1.2**step) for step in range(17)], 0.02
"""Letters that are tried before, and a CPU time after which those of the shorter text may take for
ever: where each letter takes many times as long as the one before it."""
ANCHORED_UNSEEN = {
    "systems/containers/engine.py: COMMENTS",
    *(f"systems/layouts/variables.py: {name}" for name in ("OF_ADDRESS", "SIGNS", "LIMITS")),
}
"""What is matched from its text's beginning on, by a variable: as if searched it would be slow."""


class Used(NamedTuple):
    """A pattern, where it stands, and how it is looked for."""

    where: str
    """Its file, and its name or itself."""
    pattern: re.Pattern[str]
    way: str


class Repetition(NamedTuple):
    """A text that leads to a pattern's endless part, and what that part takes."""

    lead: str
    unit: str

    def text(self, letters: int) -> str:
        return self.lead + self.unit * (letters // len(self.unit)) + "\0"


def test_no_pattern_takes_more_than_a_time_in_proportion() -> None:
    slow = {it.where: found for it in _used() if (found := _slow(it))}
    assert slow.keys() <= ANCHORED_UNSEEN, slow


@pytest.mark.parametrize(
    "pattern",
    [r"(?:^|\s+)#.*$", r"(?:/[^\s;]*)?/live/\w{8}", "(a+)+b", r"(?:x\s*)*y", r"(?:a{9}|a{10})*b"],
)
def test_one_that_does_is_found(pattern: str) -> None:
    assert _slow(Used("here", re.compile(pattern), "search"))


def _slow(used: Used) -> Repetition | None:
    return next((it for it in _repetitions(used.pattern) if _grows(used, it)), None)


def _grows(used: Used, repetition: Repetition) -> bool:
    for text in map(repetition.text, FEWER):
        if _cpu_s(used, text) > FEW_S and _cpu_s(used, text) > FEW_S:
            return True
    short_s = _cpu_s(used, repetition.text(LETTERS))
    if short_s < LOOKED_AT_S:
        return False
    short_s = min(short_s, *(_cpu_s(used, repetition.text(LETTERS)) for _ in range(3)))
    if short_s < LOOKED_AT_S:
        return False  # it had been interrupted
    longer = repetition.text(TIMES * LETTERS)
    return min(_cpu_s(used, longer) for _ in range(2)) > GROWS * short_s


def _cpu_s(used: Used, text: str) -> float:
    look = getattr(used.pattern, used.way)
    began_s = process_time()
    look(text)
    return process_time() - began_s


def _repetitions(pattern: re.Pattern[str]) -> set[Repetition]:
    found: set[Repetition] = set()
    _spell_out(parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG), "", found)
    starts = {Repetition("", f"{it.lead}{it.unit}"[:LETTERS]) for it in found if it.lead}
    return found | starts


def _spell_out(parts: Any, lead: str, found: set[Repetition]) -> str:  # noqa: ANN401
    """Return a text that the parts match behind another one, and add their repetitions."""
    text = lead
    for kind, value in parts:
        if kind in {op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT}:
            least, most, inner = value
            units = {_spell_out(inner, "", set()), *_characters(inner)} - {""}
            if most > WITHOUT_END:
                found.update(Repetition(text, unit) for unit in units)
            once = _spell_out(inner, text, found)
            text = once if least else text
        elif kind is op.BRANCH:
            text = max(_spell_out(branch, text, found) for branch in value[1])
        elif kind in {op.SUBPATTERN, op.ATOMIC_GROUP}:
            text = _spell_out(value[-1] if kind is op.SUBPATTERN else value, text, found)
        else:
            text += next(iter(_characters([(kind, value)])), "")
    return text


def _characters(parts: Any) -> list[str]:  # noqa: ANN401
    """Return some of the characters that a single part takes."""
    if len(parts) != 1:
        return []
    kind, value = parts[0]
    if kind is op.LITERAL:
        return [chr(value)]
    if kind is op.NOT_LITERAL:
        return [each for each in CHARACTERS if each != chr(value)][:MOST_OF_A_CLASS]
    if kind is op.ANY:
        return ["a", " "]
    if kind is not op.IN:
        return []
    named = [chr(code) for member, code in value if member is op.LITERAL]
    firsts = [chr(code[0]) for member, code in value if member is op.RANGE]
    of_class = [each for each in (*named, *firsts, *CHARACTERS) if _is_in(each, value)]
    return list(dict.fromkeys(of_class))[:MOST_OF_A_CLASS]


def _is_in(character: str, members: Any) -> bool:  # noqa: ANN401
    is_negated = members[0][0] is op.NEGATE
    return is_negated != any(_is_one(character, *member) for member in members[is_negated:])


def _is_one(character: str, member: Any, code: Any) -> bool:  # noqa: ANN401
    if member is op.LITERAL:
        return bool(ord(character) == code)
    if member is op.RANGE:
        return bool(code[0] <= ord(character) <= code[1])
    return bool(OF_CATEGORY[code].match(character))


def _used() -> list[Used]:
    texts = {path: path.read_text(encoding="utf-8") for path in _sources()}
    calls = {path: _ways_by_name(text) for path, text in texts.items()}
    anywhere = _ways_by_name("\n".join(texts.values()))
    found = {}
    for path, text in texts.items():
        where = path.relative_to(SOURCES).as_posix()
        for name, pattern in _named(path):
            ways = calls[path].get(name) or calls[path]["a variable"] or anywhere.get(name, set())
            way = "search" if ways - ANCHORED or not ways else min(ways, key=len)
            found[pattern, way] = Used(f"{where}: {name}", pattern, way)
        for way, pattern in _inline(ast.parse(text)):
            found[pattern, way] = Used(f"{where}: {pattern.pattern}", pattern, way)
    return list(found.values())


def _ways_by_name(text: str) -> dict[str, set[str]]:
    """Return by a pattern's name how it is looked for; those of tables by variables' names."""
    ways = defaultdict[str, set[str]](set)
    for name, way in CALL.findall(text):
        ways[name if name.upper() == name else "a variable"].add(way)
    return ways


def _sources() -> Iterator[Path]:
    catalog = SOURCES / "systems/catalog"
    paths = (path for path in sorted(SOURCES.rglob("*.py")) if path.name != "__main__.py")
    return (path for path in paths if not path.is_relative_to(catalog))


def _named(path: Path) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Return the patterns of a module, with the names by which they are used."""
    name = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
    module = import_module(name.removesuffix(".__init__"))
    for name, value in vars(module).items():
        yield from ((name, pattern) for pattern in _inside(value))


def _inside(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (it for part in value.items() for each in part for it in _inside(each))
    elif isinstance(value, tuple | list | set | frozenset):
        yield from (it for each in value for it in _inside(each))


def _inline(tree: ast.AST) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Return the patterns that functions say where they look for them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in OF_MODULE:
            pattern, *rest = node.args
            if isinstance(pattern, ast.Constant) and isinstance(pattern.value, str):
                words = " ".join(map(ast.unparse, [*rest, *(word.value for word in node.keywords)]))
                flags = sum({getattr(re, word) for word in re.findall(r"re\.([A-Z]+)", words)})
                way = ast.unparse(node.func).removeprefix("re.")
                yield way if way in ANCHORED else "search", re.compile(pattern.value, flags)
