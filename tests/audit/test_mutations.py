"""Real outputs with something broken in them: a response, no exception, and an end."""

import random
from collections.abc import Callable

from audit.texts import RECORDED, audited
from fuzz.driver import each_case, no_hang, sweep

TEXTS = [path.read_text(encoding="utf-8") for path in sorted(RECORDED.iterdir())]
ODD = (
    *("0", "-1", "1e999", "9" * 400, "NaN", "Infinity", "1,5", "1.000.000", "1 000", "²", "٣", "-"),
    *("{", "}", '"', "|", "│", "\t", "\x00", "\x1b[31m", "\r", "&nbsp;", "&#0;", "<td>", "🥇"),
)


def _words(draw: random.Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(draw.randint(1, 8)):
        words[draw.randrange(len(words))] = draw.choice(ODD)
    return " ".join(words)


def _characters(draw: random.Random, text: str) -> str:
    letters = list(text)
    for _ in range(draw.randint(1, 30)):
        letters[draw.randrange(len(letters))] = draw.choice((*ODD, chr(draw.randrange(0xD800))))
    return "".join(letters)


def _cut(draw: random.Random, text: str) -> str:
    first, last = sorted(draw.randrange(len(text) + 1) for _ in range(2))
    return text[:first] + text[last:]


def _lines_mixed(draw: random.Random, text: str) -> str:
    lines = [*text.splitlines(), *draw.choice(TEXTS).splitlines()]
    draw.shuffle(lines)
    return "\n".join(lines)


def _doubled(draw: random.Random, text: str) -> str:
    return "".join(line * draw.randint(0, 3) + "\n" for line in text.splitlines())


CHANGES: tuple[Callable[[random.Random, str], str], ...] = (
    *(_words, _characters, _cut, _lines_mixed, _doubled),
)


@sweep(quick=60, whole=500)
def test_broken_outputs_are_judged_or_passed_over(seed: int, cases: range) -> None:
    def one(case: int) -> None:
        draw = random.Random(f"{seed}/{case}")
        text = draw.choice(TEXTS)
        for change in draw.choices(CHANGES, k=draw.randint(1, 3)):
            text = change(draw, text) or " "
        with no_hang():
            audit = audited(text.encode("utf-8", "surrogatepass"))
        lines = text.count("\n") + 1
        for each in audit.warnings:
            assert 1 <= each.line <= lines
        for part in (*audit.read, *audit.not_read):
            assert 1 <= part.first_line <= part.last_line <= lines

    each_case(seed, cases, one)
