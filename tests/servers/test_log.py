"""What is shown of a log: the line that says why isn't buried under what follows from it."""

from pathlib import Path

from webdyno.core.hiding import hidden, keep_secret
from webdyno.servers.output import (
    READ_BYTES,
    SHOWN_LINES,
    refusal_in,
    shown_lines,
    without_repetitions,
)

WHY = "10:00:00 [error] 7#7: *1 connect() to unix:/run/php.sock failed (2: No such file)"
AFTER = "10:00:{n:02} [error] 7#7: *{n} no live upstreams while connecting to upstream"


def test_equal_lines_but_for_time_and_numbers_are_one(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text("\n".join([WHY, *(AFTER.format(n=n) for n in range(1, 60))]))
    assert shown_lines(log) == [WHY, AFTER.format(n=1) + " (and 58 more like it)"]


def test_of_many_different_lines_the_first_and_the_last_are_shown() -> None:
    lines = [f"step {'x' * n}" for n in range(40)]
    shown = without_repetitions(lines)
    assert shown[:3] == lines[:3]
    assert shown[-1] == lines[-1]
    assert len(shown) == SHOWN_LINES + 1


def test_the_first_line_of_a_long_log_is_shown_and_none_of_endless_length(tmp_path: Path) -> None:
    log = tmp_path / "web.log"
    log.write_text(WHY + "\n" + "a" * 5000 + "\n" + "b b\n" * 100_000)
    first, long, *_ = shown_lines(log)
    assert first == WHY
    assert len(long) < 500


def test_no_log_has_no_lines(tmp_path: Path) -> None:
    assert shown_lines(tmp_path / "none") == []


def test_a_limit_that_refuses_requests_is_found_in_the_log(tmp_path: Path) -> None:
    said = '10:00:00 [error] 7#7: *1 limiting requests, excess: 20.5 by zone "one", client: x'
    (tmp_path / "web.log").write_text(f"{WHY}\n{said}\n{WHY}\n")
    assert refusal_in(tmp_path) == said
    (tmp_path / "web.log").write_text(WHY)
    assert refusal_in(tmp_path) == ""


def test_errors_of_caddy_differ_in_their_names_alone() -> None:
    error = '{{"ts":17.{}1,"msg":"no such host","status":502,"err_id":"{}"}}'
    shown = without_repetitions([error.format(1, "gtwi1g2ir"), error.format(22, "qzyuqdhqr")])
    assert shown == [f"{error.format(1, 'gtwi1g2ir')} (and 1 more like it)"]


def test_no_part_of_a_secret_is_left_where_a_log_is_cut(tmp_path: Path) -> None:
    phrase = "correct-horse-battery-staple"
    keep_secret([phrase])
    log = tmp_path / "log"
    for place in range(READ_BYTES - len(phrase) + 1, READ_BYTES):
        begin, last = f"{'a' * (place - 1)}\n", "\nlimiting requests"
        end = f"\n{'c' * (place - 1 - len(last))}{last}"
        log.write_text(f"{begin}{phrase}\n{'b' * READ_BYTES}\n{phrase}{end}")
        said = hidden("\n".join([*shown_lines(log), refusal_in(tmp_path)]))
        assert not any(part in said for part in ("correct", "orse-b", "battery", "staple")), place
        assert "limiting requests" in said


def test_of_a_log_that_ends_in_one_long_line_its_end_is_not_shown(tmp_path: Path) -> None:
    """It may begin within a secret."""
    keep_secret([phrase := "correct-horse-battery-staple"])
    (log := tmp_path / "web.log").write_text(
        f"started\n{'a' * READ_BYTES}{phrase}{'b' * (READ_BYTES - len(phrase) + 3)}"
    )
    assert "started" in (shown := shown_lines(log))
    assert "staple" not in hidden("\n".join(shown))


def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    """What is shown is put on record, where root goes on with a run of somebody else."""
    (tmp_path / "secret").write_text("limiting connections: a secret\n")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/nginx.log").symlink_to(tmp_path / "secret")
    assert shown_lines(tmp_path / "run/nginx.log") == []
    assert refusal_in(tmp_path / "run") == ""


def test_what_podman_says_of_other_networks_is_left_out(tmp_path: Path) -> None:
    warning = 'time="2026-11-29T00:00:00Z" level=warning msg="Error validating CNI config file x"'
    (tmp_path / "web.log").write_text(f"{warning}\n{warning}\npanic: no database\n")
    assert shown_lines(tmp_path / "web.log") == ["panic: no database"]
