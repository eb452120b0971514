"""The twin of a site: files with the log's paths and sizes."""

from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from in_process import webdyno
from traffic.made import line, read
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.core.errors import UserError
from webdyno.core.stack import MadeFile, Site
from webdyno.interfaces.cli.experiment_flags import ExperimentFlags, SetupFlags, TrafficFlags
from webdyno.traffic import Manner, traffic_of
from webdyno.traffic.log import Log
from webdyno.traffic.privacy import Privacy
from webdyno.traffic.twin import twin_of

PLAIN = line("/", size=10) + line("/css/a%20b.css", size=20) * 3
ODD = (
    line("/css", size=30)  # a folder of others as well
    + line("/gone", status=404, size=40)
    + line("/old", status=301, size=50)
    + line("/.env", size=60)
    + line("/a//b", size=70)
    + line("/a/../b", size=80)
    + line("/index.html", size=11)  # the same file as /
)


def log_of(tmp_path: Path, text: str) -> Log:
    return read(tmp_path / "a.log", text)


def test_paths_become_files_of_their_sizes(tmp_path: Path) -> None:
    twin = traffic_of(log_of(tmp_path, PLAIN), Manner(), twin="pages").twin
    assert twin is not None
    site = twin.site
    assert site["files"] == {"css/a b.css": {"size_bytes": 20}, "index.html": {"size_bytes": 10}}
    assert site["paths"] == {"/css/a%20b.css": {"body_bytes": 20}, "/": {"body_bytes": 10}}


def test_what_is_no_plain_file_becomes_one_of_another_name(tmp_path: Path) -> None:
    found = traffic_of(log_of(tmp_path, PLAIN + ODD), Manner(), twin="pages")
    assert found.twin is not None
    others = [it for it in found.requests if it["path"].startswith("/twin-")]
    assert len(others) == 7
    assert not any("status" in it for it in found.requests)
    sizes = {it["size_bytes"] for it in found.twin.site["files"].values()}
    assert sizes == {10, 11, 20, 30, 40, 50, 60, 70, 80}
    assert set(found.twin.site["paths"]) == {it["path"] for it in found.requests}


def test_the_twin_is_a_site_that_stacks_serve(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(PLAIN + ODD)
    log, load, twin = tmp_path / "a.log", tmp_path / "t.toml", tmp_path / "twin"
    assert webdyno("traffic", log, "-o", load, "--twin", twin) == 0
    catalogue = Catalogue.load([tmp_path / "twin"])
    data = {
        "title": "t",
        "question": "q?",
        "site": "twin",
        "variants": {"a": {"stack": "nginx"}, "b": {"stack": "apache-event"}},
    }
    flags = ExperimentFlags(
        setup=SetupFlags(traffic=TrafficFlags(traffic=[str(tmp_path / "t.toml")]))
    )
    experiment = read_experiment(CommandLine(data, {}), flags.overrides(), catalogue)
    for request in experiment.requests:
        assert catalogue.site("twin").page(request.path).body_bytes is not None


def test_a_twin_that_would_fill_the_disk_is_refused(tmp_path: Path) -> None:
    text = "".join(line(f"/{it}", size=2**40) for it in range(5))
    with pytest.raises(UserError, match=r"--twin: its files would have 5\.0 GiB"):
        traffic_of(log_of(tmp_path, text), Manner(), twin="pages")


@given(st.lists(st.text(min_size=1, max_size=30), min_size=1, max_size=8))
def test_any_paths_make_a_site(tmp_path_factory: pytest.TempPathFactory, ends: list[str]) -> None:
    privacy = Privacy("keep", "keep")
    paths = []
    for end in ends:
        try:
            paths.append(privacy.path(f"/{end}".encode(errors="replace")))
        except (ValueError, UserError):
            continue
    log = log_of(tmp_path_factory.getbasetemp(), line())
    costs = {path: 0.01 for number, path in enumerate(paths) if number % 2}
    site, pages, requests = twin_of(log, [{"path": path} for path in paths], costs)
    Site.model_validate(
        {
            **site,
            "name": "twin",
            "folder": Path("/"),
            "files": {key: MadeFile(**it) for key, it in site["files"].items()},
        }
    )
    files = set(site["files"])
    assert not {up for file in files for up in _above(file)} & files
    assert set(site["paths"]) == {it["path"] for it in requests}
    assert len(pages) == len(costs)
    assert set(pages) <= {unquote(it["path"]) for it in requests}


def _above(file: str) -> set[str]:
    parts = file.split("/")
    return {"/".join(parts[:depth]) for depth in range(1, len(parts))}
