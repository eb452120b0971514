"""A log's twin on real servers: every path is answered with a file of the log's size."""

from pathlib import Path
from urllib.request import urlopen

import pytest

from webdyno.bench import Bench
from webdyno.cli import app_for
from webdyno.definitions import Catalogue
from webdyno.stack import start_stack
from workload.made import line

SIZES = {
    "/": 10,
    "/css/a%20b.css": 2_000,
    "/css": 30,
    "/h%C3%A4.txt": 40,
    "/x.tar.gz": 50,
    "/a/": 6,
}


@pytest.mark.parametrize("stack", ["nginx", "apache-event", "caddy"])
def test_every_path_of_the_log_is_answered(stack: str, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("".join(line(it, size=SIZES[it]) for it in SIZES))
    given = ("workload", tmp_path / "a.log", "-o", tmp_path / "t.toml", "--twin", tmp_path / "twin")
    words = [str(it) for it in given]
    assert app_for(words)(words, result_action="return_value") == 0
    catalogue = Catalogue.load([tmp_path / "twin"])
    site = catalogue.site("twin")
    sizes = {path: page.body_bytes for path, page in site.paths.items()}
    assert sorted(map(int, filter(None, sizes.values()))) == sorted(SIZES.values())
    with start_stack(
        catalogue.stack(stack), {}, site, folder=tmp_path / "kept", bench=Bench()
    ) as running:
        for path, size in sizes.items():
            with urlopen(f"{running.url}{path}", timeout=5) as answer:  # noqa: S310 (our server)
                assert answer.status == 200, path
                assert len(answer.read()) == size, path
