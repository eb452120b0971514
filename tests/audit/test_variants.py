"""Two variants that are compared: documents, settings, copies, tables."""

from collections.abc import Sequence

import pytest

from audit.texts import ab, found, recorded, serious

NGINX, APACHE = "nginx/1.22.1", "Apache/2.4.57"


def test_documents_of_different_size() -> None:
    text = ab(server=APACHE, document=6573) + "prose\n" + ab(server=NGINX, document=25102, took_s=9)
    (warning,) = found(text, "different-documents")
    assert warning.severity == "serious"
    assert "3.82" in warning.what
    assert warning.line == 35


@pytest.mark.parametrize(
    "other",
    [
        {"document": 4000},
        {"document": 4020},  # a date in it
        {"document": 90_000, "path": "/big.html"},  # another test
    ],
)
def test_documents_that_may_differ(other: dict[str, object]) -> None:
    text = ab(server=APACHE) + ab(server=NGINX, took_s=9, **other)  # type: ignore[arg-type]
    assert serious(text) == set()


def test_paths_made_unreadable_may_be_the_same() -> None:
    variants = [ab(server=s, path="****", document=d) for s, d in ((APACHE, 6573), (NGINX, 25102))]
    assert found("".join(variants), "different-documents")


def test_settings_that_two_sides_have_not_in_common() -> None:
    more = ab(server=APACHE, concurrency=64) + ab(server=NGINX, concurrency=8, took_s=9)
    (warning,) = found(more, "different-settings")
    assert "64" in warning.what
    kept = ab(server=APACHE) + ab(server=NGINX, took_s=9, kept=400_000)
    (warning,) = found(kept, "different-settings")
    assert "keep-alive" in warning.what


def test_the_same_sweep_on_both_sides_is_fair() -> None:
    text = "".join(
        ab(server=server, concurrency=concurrency, took_s=took)
        for server, took in ((APACHE, 14), (NGINX, 9))
        for concurrency in (1, 8, 64)
    )
    assert serious(text) == set()


def test_an_output_shown_for_two_servers_was_copied() -> None:
    assert found(ab(server=APACHE) + ab(server=NGINX), "copied-output")
    assert not found(ab(server=NGINX) + "again:\n" + ab(server=NGINX), "copied-output")
    assert not found(ab(server=APACHE) + ab(server=NGINX, took_s=12.6), "copied-output")


def table(
    title: str, rows: Sequence[tuple[object, ...]], heads: str = "kc\tn\tphp\tnode.js"
) -> str:
    lines = ["\t".join(str(cell) for cell in row) for row in rows]
    return f"{title}\n\n{heads}\n" + "\n".join(lines) + "\n\n"


SPEEDS = [
    (50, 10000, 2152.26, 5040.83),
    (100, 10000, 2113, 4955.2),
    (200, 10000, 1173.57, 4506.43),
    (300, 10000, 189.99, 4262.83),
]
RATES = [
    (50, 10000, 5161.4, 5040.83),
    (100, 10000, 5067.25, 4955.2),
    (200, 10000, 2814.37, 4506.43),
    (300, 10000, 455.65, 4262.83),
]


def test_a_column_copied_from_one_table_to_the_next() -> None:
    text = table("Transfer rate [Kbytes/sec]:", SPEEDS) + table("Requests per second:", RATES)
    (warning,) = found(text, "copied-column")
    assert "“node.js”" in warning.what
    assert warning.line == 11
    assert serious(text) == {"copied-column"}  # its size is not guessed from a copy


def test_a_table_shown_twice_is_no_copy() -> None:
    text = table("Requests per second:", RATES) + table("Once more, requests per second:", RATES)
    assert serious(text) == set()


def test_a_column_copied_within_a_table() -> None:
    rows = [(n, 5040.83 + n, 77.1 * n, 5040.83 + n) for n in (50, 100, 200, 300)]
    text = table("Requests per second", rows, "c\tapache\tlatency\tnginx")
    (warning,) = found(text, "copied-column")
    assert "“apache” and “nginx”" in warning.what


@pytest.mark.parametrize(
    "rows",
    [
        [(1, 0, 100.0, 100.0), (2, 0, 200.0, 200.0), (3, 0, 300.0, 300.0)],  # asked and obtained
        [(1, 4.25, 4.25, 9), (2, 4.25, 4.25, 9), (3, 4.25, 4.25, 9)],  # one value
        [(1, 0, 1, 1), (2, 0, 2, 2), (3, 0, 3, 3), (4, 0, 4, 4)],  # counts
        [(1, 5040.83, 4955.2, 1), (2, 4506.43, 4262.83, 2), (3, 4199.99, 4166.3, 3)],
    ],
)
def test_columns_that_may_look_alike(rows: list[tuple[object, ...]]) -> None:
    assert found(table("Requests per second", rows) + ab(), "copied-column") == []


def sizes(apache: float, nginx: float) -> str:
    rates = [(n, 10000, 7419.4 - 7 * n, 20451.82 + n) for n in (10, 50, 100)]
    speeds = [(c, n, f"{a * apache / 1024:.2f}", f"{b * nginx / 1024:.2f}") for c, n, a, b in rates]
    heads = "kc\tn\tApache\tNginx"
    title = "Transfer rate [Kbytes/sec]:"
    return table(title, speeds, heads) + table("Requests per second [#/sec]:", rates, heads)


def test_document_sizes_from_kilobytes_and_requests() -> None:
    (warning,) = found(sizes(464, 3874), "different-documents")
    assert "464 bytes per response for “Apache”" in warning.what
    assert "3,874 for “Nginx”" in warning.what
    assert serious(sizes(3874, 3900)) == set()  # heads differ a little


def test_a_column_that_measured_the_error_page() -> None:
    errors = recorded("ab-404.txt")  # 303 bytes a response
    (warning,) = found(errors + sizes(303, 3874), "error-page-column")
    assert "“Apache”" in warning.what
    assert found(ab(document=50, head=253) + sizes(303, 3874), "error-page-column") == []


def test_loops_of_different_length() -> None:
    loops = "$loop=1000000;\nwhile($loop>0){\n$loop--;\n}\n\nlet loop=10000000;\n"
    (warning,) = found(loops + ab(), "different-loops")
    assert warning.line == 6
    assert "10 times" in warning.what
    assert found(loops.replace("10000000", "1000000") + ab(), "different-loops") == []
    assert found('$loop=1000000;\necho "loop=10000000"\n' + ab(), "different-loops") == []


def test_one_url_from_a_page_cache() -> None:
    (warning,) = found("With W3Total Cache on.\n" + ab(path="/"), "one-url-from-a-cache")
    assert warning.severity == "serious"
    several = "A page cache was on.\n" + ab(path="/a") + ab(path="/b")
    assert found(several, "one-url-from-a-cache") == []
    assert found("The query cache was on.\n" + ab(), "one-url-from-a-cache") == []
