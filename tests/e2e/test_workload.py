"""A log's twin on real servers: every path is answered with a file of the log's size."""

import json
from collections.abc import Iterable
from pathlib import Path
from urllib.request import urlopen

import pytest

import in_process
from e2e.commands import QUICK, run_rounds, webdyno, webdyno_here
from traffic.made import BEGIN_S, line
from variants import further
from webdyno.config import Catalogue
from webdyno.core.errors import Exit
from webdyno.core.records import SlotRecord
from webdyno.host.this_machine import Testbed
from webdyno.measure.folder import RunFolder
from webdyno.servers.starting import open_stack

SIZES = {
    "/": 10,
    "/css/a%20b.css": 2_000,
    "/css": 30,
    "/h%C3%A4.txt": 40,
    "/x.tar.gz": 50,
    "/a/": 6,
}


@pytest.mark.parametrize("stack", ["nginx", *map(further, ("apache-event", "caddy"))])
def test_every_path_of_the_log_is_answered(stack: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(line(it, size=SIZES[it]) for it in SIZES))
    given = ("traffic", tmp_path / "a.log", "-o", tmp_path / "t.toml", "--twin", tmp_path / "twin")
    assert in_process.webdyno(*given) == 0
    catalogue = Catalogue.load([tmp_path / "twin"])
    site = catalogue.site("twin")
    sizes = {path: page.body_bytes for path, page in site.paths.items()}
    assert sorted(map(int, filter(None, sizes.values()))) == sorted(SIZES.values())
    with open_stack(
        catalogue.stack(stack), {}, site, folder=tmp_path / "kept", testbed=Testbed()
    ) as running:
        for path, size in sizes.items():
            with urlopen(f"{running.url}{path}", timeout=5) as response:  # noqa: S310 (our server)
                assert response.status == 200, path
                assert len(response.read()) == size, path


PAGES_MS = {"/": 30, "/shop/": 40, "/cart.php": 50, "/index.php": 55, "/item/7": 60}


@pytest.mark.parametrize("stack", ["nginx-phpfpm", "apache-prefork-modphp", "caddy", "node"])
def test_pages_of_the_log_are_made_and_cost_cpu_time(stack: str, tmp_path: Path) -> None:
    """The same bodies of the same length on each stack, by programs; files stay files."""
    pages = 5 * "".join(
        f"{line(it, size=1_000 + PAGES_MS[it]).rstrip()} {PAGES_MS[it] * 1_000}\n"
        for it in PAGES_MS
    )
    (tmp_path / "a.log").write_text(pages + line("/style.css", size=70) + line("/a/", size=80))
    given = ("traffic", tmp_path / "a.log", "-o", tmp_path / "t.toml", "--twin", tmp_path / "twin")
    assert in_process.webdyno(*given) == 0
    catalogue = Catalogue.load([tmp_path / "twin"])
    site = catalogue.site("twin")
    with open_stack(
        catalogue.stack(stack), {}, site, folder=tmp_path / "kept", testbed=Testbed()
    ) as running:
        for path, page in site.paths.items():
            before_s = cpu_s(running.pids())
            with urlopen(f"{running.url}{path}", timeout=5) as response:  # noqa: S310 (our server)
                body = response.read()
            assert len(body) == page.body_bytes, path
            assert body.startswith(b"This page is made up") is (len(body) > 1_000), path
            if len(body) > 1_000:
                assert cpu_s(running.pids()) - before_s > 0.9e-3 * (len(body) - 1_000), path


def cpu_s(pids: Iterable[int]) -> float:
    """Give the CPU time that processes have had, to the nanosecond."""
    threads = (thread for pid in pids for thread in Path(f"/proc/{pid}/task").iterdir())
    return sum(int((it / "schedstat").read_text().split()[0]) for it in threads) / 1e9


def test_a_log_is_asked_again_as_it_was_of_all_variants_alike(tmp_path: Path) -> None:
    """Of ten paths one is asked for in each second, three hundred times."""
    reported = [line(f"/{second % 10}", time_s=BEGIN_S + second) * 300 for second in range(60)]
    (tmp_path / "a.log").write_text("".join(reported))
    given = ("a.log", "-o", "t.toml", "--twin", "twin", "--replay", "t.replay", "--speed", "10")
    done = webdyno("traffic", *given, folder=tmp_path)
    assert "--vary load.arrivals=poisson,replay" in done.stderr
    words = (
        "--catalog=twin",
        "--site=twin",
        "--traffic=t.toml",
        "--set=load.arrivals=replay",
        "--yes",
    )
    said = run_rounds(1, "compare", "nginx", "apache-event", *words, *QUICK, folder=tmp_path)
    assert "round 1" in said
    records = [it for it in RunFolder.open(tmp_path / "run").records() if it.kind == "slot"]
    slots = [it for it in records if isinstance(it, SlotRecord) and it.round == 1]
    offered = {
        variant: [it.load.offered_rps for it in slots if it.variant == variant]
        for variant in ("nginx", "apache-event")
    }
    assert offered["nginx"] == offered["apache-event"]
    # Each path is requested in a tenth of a second, which a slot takes; some may have no response.
    most = max(sum(it.completed > 0 for it in slot.load.endpoints) for slot in slots)
    assert most in {1, 2, 3}


def test_a_log_that_is_not_there_is_reported_before_what_would_be_written(tmp_path: Path) -> None:
    (tmp_path / "traffic.toml").write_text("")
    done = webdyno_here("traffic", "access.log", folder=tmp_path)
    assert done.returncode == Exit.USER_ERROR
    assert "access.log: there is no such file" in done.stderr


def test_what_a_recording_sent_is_kept_for_its_owner_alone_and_only_if_asked(
    tmp_path: Path,
) -> None:
    posted = {
        "startedDateTime": "2026-11-22T08:26:40.125Z",
        "request": {
            "method": "POST",
            "url": "https://shop.example/login",
            "postData": {"mimeType": "application/json", "text": '{"password": "hunter2"}'},
        },
        "response": {"status": 200, "bodySize": 12},
    }
    page = {**posted, "request": {"method": "GET", "url": "https://shop.example/"}}
    (tmp_path / "a.har").write_text(json.dumps({"log": {"entries": [page, posted]}}))
    words = ["traffic", "a.har", "--methods", "GET,POST", "-o"]
    done = webdyno(*words, "without.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 with a body, which --bodies keep writes down" in done.stdout
    assert "/login" not in (tmp_path / "without.toml").read_text()
    done = webdyno(*words, "with.toml", "--bodies", "keep", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "export RECORDED_PASSWORD=…" in done.stderr
    made = tmp_path / "with.toml"
    assert "hunter2" not in made.read_text()
    assert "${env:RECORDED_PASSWORD}" in made.read_text()
    assert made.stat().st_mode & 0o777 == 0o600
