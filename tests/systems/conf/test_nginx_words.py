"""What webdyno writes for nginx has the words that it has read."""

import re
from pathlib import Path

import crossplane
import pytest

from webdyno.systems.conf.nginx import lines_of
from webdyno.systems.conf.nginx_read import Directive

WORDS = (
    *("", "a", "#", "a b", "it's", 'a"b', "a\n; b", r"~ \.x$", "${a}b", "$a{", r"\;", "x\x7f"),
    *(r"A\' ; user x; # " + '"', r"""it\\'s "a" """, r"""\\\' " """),
)


def meant(word: str) -> str:
    """Give a word as nginx means it: quotation marks and backslashes without theirs."""
    return re.sub(r"""\\(["'\\])""", r"\1", word)


@pytest.mark.parametrize("word", WORDS)
def test_no_word_becomes_another_one_or_a_directive(tmp_path: Path, word: str) -> None:
    server = Directive("server", [], [Directive(word or "a", ["b", word]), Directive("end", [])])
    file = tmp_path / "nginx.conf"
    file.write_text("\n".join(line.text for line in lines_of([server])))
    read = crossplane.parse(str(file), strict=False, check_ctx=False, check_args=False)
    first, last = read["config"][0]["parsed"][0]["block"]
    assert list(map(meant, [first["directive"], *first["args"]])) == [
        *(meant(word or "a"), "b"),
        meant(word),
    ]
    assert last["directive"] == "end"
