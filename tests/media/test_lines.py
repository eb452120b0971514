"""Where lines of a terminal are broken."""

import pytest
from rich.text import Text

from webdyno.media.terminal import broken, wrap_text


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        ("url:http://127.0.0.1:37375 (baseline)", 15, "url:http://\n127.0.0.1:37375\n(baseline)"),
        ("nginx, open_file_cache = true", 12, "nginx, open_\nfile_cache =\ntrue"),
        ("  nginx-front-apache with a cache", 14, "  nginx-front-\n  apache with\n  a cache"),
        ("shop.example.org", 12, "shop.\nexample.org"),
        ("abcdefghijkl", 5, "abcde\nfghij\nkl"),
    ],
)
def test_names_are_broken_where_their_parts_meet(name: str, width: int, lines: str) -> None:
    assert broken(Text(name), width).plain == lines


def test_a_path_that_is_longer_than_a_line_is_broken_between_its_folders() -> None:
    said = wrap_text("see runs/2026-11-28-101608-nginx/report.html", 34).plain
    assert said == "see runs/2026-11-28-101608-nginx/\nreport.html"


def test_spaces_between_words_stay() -> None:
    assert wrap_text("webdyno explain last     what limits it", 60).plain.count("     ") == 1
