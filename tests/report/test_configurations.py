"""What differs in the files that two variants' servers were started with."""

from dataclasses import replace
from pathlib import Path

import pytest

from report import comparisons, runs
from webdyno.core.run import round_path, variant_folder
from webdyno.evidence.point_data import PointData
from webdyno.report.method_sections import configuration_differences, file_differences, files_of
from webdyno.report.result_page import html_page

NGINX = """\
pid /tmp/webdyno-0/live/{live}/nginx/nginx.pid;
worker_processes {workers};
events {{ }}
http {{ server {{ listen 127.0.0.1:{port}; root /srv/a; }} }}
"""


def written(folder: Path, variant: str, round_number: int, **given: object) -> None:
    place = round_path(folder, 0, round_number) / variant_folder(variant) / "nginx"
    place.mkdir(parents=True)
    (place / "nginx.conf").write_text(NGINX.format(**given))
    (place / "version.txt").write_text(f"{variant} {round_number}")
    (place.parent / "nginx.log").write_text("said\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run whose second variant has four workers in the second round."""
    written(tmp_path, "nginx", 1, live="0whim_ni", workers=1, port=20458)
    written(tmp_path, "apache-event", 1, live="z4yvne4m", workers=2, port=20459)
    written(tmp_path, "nginx", 2, live="0whim_nx", workers=1, port=20460)
    written(tmp_path, "apache-event", 2, live="z4yvne4x", workers=4, port=20461)
    return tmp_path


def test_what_differs_is_reported_and_nothing_else(folder: Path) -> None:
    view = runs.seen(comparisons.decided())
    (found,) = configuration_differences(folder, view)
    changed = [
        it for it in found.diff.splitlines() if it[0] in "+-" and it[:3] not in {"+++", "---"}
    ]
    assert sorted(changed) == ["+worker_processes 4;", "-worker_processes 1;"] or sorted(
        changed
    ) == [
        "+worker_processes 1;",
        "-worker_processes 4;",
    ]
    assert found.file == "nginx/nginx.conf"
    page = html_page(folder, view)
    assert "How the configurations differ" in page
    assert "-worker_processes" in page


def test_without_files_there_is_no_such_section(tmp_path: Path) -> None:
    view = runs.seen(comparisons.decided())
    assert configuration_differences(tmp_path, view) == []
    assert "How the configurations differ" not in html_page(tmp_path, view)


def test_logs_and_versions_are_no_configuration(folder: Path) -> None:
    view = runs.seen(comparisons.decided())
    assert [*files_of(folder, view.points[0], "nginx")] == ["nginx/nginx.conf"]


def test_variables_of_containers_are_shown_nowhere(folder: Path) -> None:
    """Compose takes passwords from files of mode 600; reports are for everybody."""
    for number, variant in enumerate(("nginx", "apache-event")):
        place = round_path(folder, 0, 2) / variant_folder(variant) / "nginx"
        (place / "web.env").write_text(f"DB_PASSWORD=correct-horse\nWORKERS={number}\n")
    view = runs.seen(comparisons.decided())
    assert "-worker_processes" in (page := html_page(folder, view))
    assert "correct-horse" not in page


def test_only_files_that_both_have_are_compared() -> None:
    assert [*file_differences("a", {"x/x.conf": "1"}, "b", {"y/y.conf": "2"})] == []
    assert [
        *file_differences("a", {"x/x.conf": "listen 20001;"}, "b", {"x/x.conf": "listen 20002;"})
    ] == []


def test_a_long_difference_is_cut() -> None:
    (found,) = file_differences("a", {"f": "a\n" * 3_000}, "b", {"f": "b\n" * 3_000})
    assert found.diff.endswith("…")
    assert found.diff.count("\n") <= 400


@pytest.mark.timeout(60)
def test_rounds_that_are_not_there_are_not_looked_for(folder: Path) -> None:
    point = runs.seen(comparisons.decided()).points[0]
    late = {"round": 10**12}
    records = [it.model_copy(update=late) if it.round else it for it in point.data.records]
    assert (
        files_of(folder, replace(point, data=PointData.of(point.data.head, records)), "nginx") == {}
    )


@pytest.mark.parametrize("where", ["rounds", "000-002", "apache-event", "nginx"])
def test_links_to_folders_of_who_reads_are_not_followed(folder: Path, where: str) -> None:
    """The report lies in the folder of who made them: of root's it would show him anything."""
    (conf,) = (folder / "rounds/000-002").glob("apache-event/nginx/nginx.conf")
    conf.write_text("a secret of who reads it\n")
    linked = next(part for part in conf.parents if part.name == where)
    linked.rename(folder.parent / f"elsewhere-{where}")
    linked.symlink_to(folder.parent / f"elsewhere-{where}")
    view = runs.seen(comparisons.decided())
    assert conf.exists()
    assert files_of(folder, view.points[0], "apache-event") == {}
    assert "a secret" not in html_page(folder, view)
