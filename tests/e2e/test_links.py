"""Links that others put where webdyno writes lead nothing elsewhere."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from builders import run_head
from e2e.commands import webdyno_here
from report import comparisons, questions
from variants import further
from webdyno.cluster.backend import keep_files
from webdyno.core.errors import OperationError
from webdyno.core.files import append_text, open_here, replacing, write_whole
from webdyno.host.users import open_log, server_user
from webdyno.interfaces.python.result import GateRun, result_in
from webdyno.measure.folder import RunFolder
from webdyno.questions.gate.command import leave_behind
from webdyno.traffic.twin import Twin, write_twin

FILES = {
    "md": "report.md",
    "json": "report.json",
    "csv": "summary.csv",
    "html": "report.html",
    "parquet": "slots.parquet",
    "pdf": "report.pdf",
}
Link = Callable[[Path, Path], None]
GATE_FILES = ("gate.md", "gate.json", "junit.xml", "bencher.json", "load-performance.json")


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody's, in which nothing changes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    (folder / "file").write_text("kept")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["file"]
    assert (folder / "file").read_text() == "kept"


def linked(path: Path, victim: Path) -> None:
    """Make links to a file that is there, and next to it to one that isn't."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(os.path.relpath(victim / "file", path.parent))


def dangling(path: Path, victim: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    path.symlink_to(victim / "new")


both = pytest.mark.parametrize("link", [linked, dangling])
REPORTS = [
    (name, link) if link is linked or name == "md" else further(name, link)
    for name in FILES
    for link in (linked, dangling)
]
"""All are written by `write_whole` and `replacing`, which a link to nothing shows of one."""


@pytest.mark.parametrize(("name", "link"), REPORTS)
def test_reports(tmp_path: Path, victim: Path, name: str, link: Link) -> None:
    run = tmp_path / "run"
    comparisons.decided().stored(run)
    link(run / FILES[name], victim)
    done = webdyno_here("report", str(run), "--format", name, folder=tmp_path)
    if name in {"parquet", "pdf"} and "install" in done.stderr:
        pytest.skip("takes a program that isn't installed here")
    assert done.returncode in {0, 4}, done.stderr
    assert not (run / FILES[name]).is_symlink()


BROWSER = """#!/bin/sh
# While it starts, the owner of the run's folder puts a link to somebody's file there.
ln -sf "$SOMEBODYS" "$RUN/report.html"
for word; do
    case $word in
        --print-to-pdf=*) printed=${word#--print-to-pdf=} ;;
        file://*) page=${word#file://} ;;
    esac
done
cat "$page" >"$printed"
"""


def test_what_is_printed_is_no_page_of_the_folder_s(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root a browser would print what its owner may not read, and run scripts of his."""
    run = stored(tmp_path)
    (tmp_path / "chromium").write_text(BROWSER)
    (tmp_path / "chromium").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SOMEBODYS", str(victim / "file"))
    monkeypatch.setenv("RUN", str(run))
    done = webdyno_here("report", str(run), "--format", "pdf", folder=tmp_path)
    assert done.returncode in {0, 4}, done.stderr
    assert (run / "report.html").is_symlink(), "it was put there"
    assert "<title>" in (run / "report.pdf").read_text()
    (run / "report.html").unlink()


def test_charts_and_their_folder(tmp_path: Path, victim: Path) -> None:
    run = tmp_path / "run"
    comparisons.decided().stored(run)
    (run / "charts").symlink_to(victim)
    done = webdyno_here("report", str(run), "--format", "charts", folder=tmp_path)
    assert done.returncode == 3
    assert "charts in" in done.stderr
    assert "is a link, or no folder; remove it" in done.stderr
    (run / "charts").unlink()
    linked(run / "charts/ratios.svg", victim)
    assert webdyno_here("report", str(run), "--format", "charts", folder=tmp_path).returncode == 0
    assert "<svg" in (run / "charts/ratios.svg").read_text()


def test_a_page_that_is_copied_is_no_link(tmp_path: Path, victim: Path) -> None:
    chart = next(iter(result_in(RunFolder.open(stored(tmp_path))).charts().values()))
    linked(tmp_path / "chart.svg", victim)
    assert "<svg" in chart.save(tmp_path / "chart.svg").read_text()


def stored(place: Path) -> Path:
    comparisons.decided().stored(place / "run")
    return place / "run"


@both
def test_gates(tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch, link: Link) -> None:
    questions.gated().stored(tmp_path / "run")
    result = result_in(RunFolder.open(tmp_path / "run"))
    assert isinstance(result, GateRun)
    for name in (".gitignore", *GATE_FILES):
        link(tmp_path / "run" / name, victim)
    linked(tmp_path / "summary", victim)
    leave_behind(result.gate.judgement, tmp_path / "run")
    assert not any((tmp_path / "run" / name).is_symlink() for name in GATE_FILES)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    with pytest.raises(OperationError, match="summary: can't be written"):
        leave_behind(result.gate.judgement, None)


@both
def test_init(tmp_path: Path, victim: Path, link: Link) -> None:
    app = tmp_path / "app"
    link(app / "webdyno.toml", victim)
    words = ("init", "--start=./server --port $PORT", "--no-try", "--yes")
    refused = webdyno_here(*words, folder=app)
    assert refused.returncode == 2
    assert "webdyno.toml is there already" in refused.stderr
    done = webdyno_here(*words, "--force", folder=app)
    assert done.returncode == 0, done.stderr
    assert "[app]" in (app / "webdyno.toml").read_text()
    assert not (app / "webdyno.toml").is_symlink()


def test_twins_and_what_hosts_send(tmp_path: Path, victim: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sites").symlink_to(victim)
    with pytest.raises(OperationError, match="sites in"):
        write_twin(tmp_path / "out", Twin({}, {}, []))
    with pytest.raises(OperationError, match="sites in"):
        keep_files({"sites/log": b"said"}, tmp_path / "out")
    keep_files({"rounds/1/log": b"said"}, tmp_path / "out")
    assert (tmp_path / "out/rounds/1/log").read_bytes() == b"said"


def test_what_is_added_to(tmp_path: Path, victim: Path) -> None:
    for link in (linked, dangling):
        link(tmp_path / "history.jsonl", victim)
        with pytest.raises(OperationError, match="can't be written"):
            append_text(tmp_path / "history.jsonl", "{}\n")
        with pytest.raises(OSError, match="symbolic"):
            open_here(tmp_path / "history.jsonl", os.O_WRONLY | os.O_TRUNC)
    file = tmp_path / "cut-off"
    file.write_text("half")
    append_text(file, "whole\n")
    append_text(file, "more\n")
    assert file.read_text() == "half\nwhole\nmore\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, whom others would lead elsewhere")
def test_who_owns_a_folder_leads_root_nowhere(
    tmp_path: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """He can exchange what lies in it for a link between any two steps of ours."""
    monkeypatch.delenv("SUDO_UID", raising=False)
    theirs = tmp_path / "theirs"
    theirs.symlink_to(victim)
    os.chown(theirs, 12345, 12345, follow_symlinks=False)
    for place in (theirs, tmp_path / "theirs/../theirs"):
        with pytest.raises(OperationError, match=r"a link of user 12345's to .*victim is on the"):
            write_whole(place / "new", "x")
        with pytest.raises(OperationError, match="is on the way; name that place itself"):
            open_log(place / "web.log", server_user())
        with pytest.raises(OperationError, match="12345"):
            append_text(place / "file", "x")
        with pytest.raises(OperationError, match="12345"):
            write_whole(place / "folders/inner/file", "x", below=place / "folders/inner")
        with pytest.raises(OperationError, match="12345"):
            RunFolder.create(place / "runs/run", run_head())
    assert not (victim / "folders").exists()
    assert not (victim / "runs").exists()
    monkeypatch.setenv("SUDO_UID", "12345")
    write_whole(theirs / "file", "kept")  # who called sudo may do as root what he wants anyway


def test_links_of_one_s_own_lead_to_folders(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "one").symlink_to("there")
    (tmp_path / "two").symlink_to(tmp_path / "there/../one")
    write_whole(tmp_path / "two/file", "x")
    assert (tmp_path / "there/file").read_text() == "x"
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(OperationError, match="symbolic links"):
        write_whole(tmp_path / "circle/file", "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(OperationError, match="Not a directory"):
        write_whole(tmp_path / "file/x", "x")


def test_what_a_process_has_open_is_written_to_as_it_is(tmp_path: Path) -> None:
    """As `-o /dev/stdout` and the shell's `-o >(program)` ask for."""
    read, write = os.pipe()
    write_whole(Path(f"/dev/fd/{write}"), "through a pipe")
    write_whole(Path("/dev/null"), "nowhere")
    assert Path("/dev/null").is_char_device()
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read() == "through a pipe"
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OperationError, match="no regular file"):
        write_whole(tmp_path / "pipe", "x")


def test_a_file_is_there_as_a_whole_or_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_whole(file, "old", mode=0o600)
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(IsADirectoryError), replacing(file) as unfinished:
        shutil.copy(tmp_path, unfinished)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    with pytest.raises(OperationError, match="leads out of"):
        write_whole(tmp_path / "a/../../b", "x", below=tmp_path)
