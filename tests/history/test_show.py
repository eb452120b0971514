"""A history as people read it."""

from evidence.histories import REFERENCE, history_of
from webdyno.history import PastGate, curves_of
from webdyno.history.show import gate_rows, history_document, history_page, level_rows
from webdyno.media.terminal import document_text

RISEN = [1.0, 1.01, 0.99, 1.0, 1.2, 1.21, 1.19, 1.2]
SLOWER = history_of(
    {
        ("/search", "server_cpu_us"): RISEN,
        ("/search", "throughput_rps"): [1 / ratio for ratio in RISEN],
        ("/", "server_cpu_us"): [1.0, 1.01, 0.99, 1.0, 1.01, 1.0, 0.99, 1.0],
    }
)


def said_of(history: list[PastGate]) -> str:
    return " ".join(document_text(history_document(history, curves_of(history))).split())


def test_a_change_is_said_with_its_day_commit_and_what_finds_it() -> None:
    said = said_of(SLOWER)
    assert f"8 gates from 2026-03-01 to 2026-03-08, each ÷ {REFERENCE} (baseline)" in said
    assert "▼ 2 CHANGES: the last: /search" in said
    assert "2026-03-05 (0000000004) 4 1.200×" in said
    assert "▼ worse, 1.200×" in said
    assert "gate --bisect 0000000003..0000000004 --path /search`" in said


def test_less_cpu_time_is_better_and_needs_no_search() -> None:
    said = said_of(history_of({("/", "server_cpu_us"): [1 / it for it in RISEN]}))
    assert "▲ 1 CHANGE: / CPU per request 0.83" in said
    assert "▲ better, 0.83" in said
    assert "--bisect" not in said


def test_what_has_not_changed_and_what_is_too_short_is_said() -> None:
    assert "= NO CHANGE: in 8 gates" in said_of(history_of({("/", "server_cpu_us"): [1.0] * 8}))
    short = said_of(history_of({("/", "server_cpu_us"): [1.0]}))
    assert "– 1 GATE: a change shows from 6 gates on" in short


def test_another_machine_is_named_in_place_of_a_commit() -> None:
    moved = [
        gate.replace(machine=gate.machine.replace(kernel="6.8")) if place >= 4 else gate
        for place, gate in enumerate(history_of({("/", "server_cpu_us"): RISEN}))
    ]
    said = said_of(moved)
    assert "the machine changed with it (kernel)" in said
    assert "--bisect" not in said


def test_the_page_draws_a_curve_of_each_metric() -> None:
    found = curves_of(SLOWER)
    page = history_page(SLOWER, found, "webdyno report performance.jsonl --format html")
    assert page.count('data-chart="history-') == 3
    assert "gate 5, 2026-03-05, 0000000004: 1.200× (1.176–1.224×)" in page
    assert "webdyno report performance.jsonl --format html" in page
    assert [row["gate"] for row in gate_rows(SLOWER, found[0])] == [*range(1, 9)]
    assert [(it["start"], it["end"], it["tone"]) for it in level_rows(found[0])] == [
        (0.5, 4.5, "equivalent"),
        (4.5, 8.5, "slower"),
    ]
    assert level_rows(found[1])[1]["tone"] == "slower"


def test_names_of_strangers_are_text() -> None:
    hostile = history_of({("/<script>alert(1)</script>\x1b[2J", "server_cpu_us"): RISEN})
    page = history_page(hostile, curves_of(hostile), "webdyno report x")
    assert "<script>alert" not in page
    assert "\x1b" not in said_of(hostile)
