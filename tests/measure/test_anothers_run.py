"""Runs of somebody else are refused; where he may write what was agreed to runs, and stays.

He can exchange whatever lies in his folders, at any moment.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from builders import SimulatedVariant, simulated_run
from launch.answering import caller
from webdyno.config import Catalogue, CommandLine, read_experiment
from webdyno.config.catalogue import content_of, files_of
from webdyno.core.errors import OperationError, UserError
from webdyno.core.experiment import Experiment
from webdyno.host.users import others_may_change
from webdyno.launch.dispatch import begun_in
from webdyno.measure.folder import RunFolder
from webdyno.measure.repeat import keep_for_repeating, kept_catalogue

HE = 12345
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give files to others")


@pytest.fixture(autouse=True)
def _not_by_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SUDO_UID", raising=False)


@pytest.fixture
def victim(tmp_path: Path) -> Iterator[Path]:
    """A folder of root's, in which nothing changes."""
    folder = tmp_path / "victim"
    folder.mkdir()
    yield folder
    assert not [*folder.iterdir()]


def duel(catalogue: Catalogue) -> Experiment:
    stacks = {name: {"stack": name} for name in ("nginx", "apache-event")}
    written = {"title": "t", "question": "q", "site": "static", "variants": stacks}
    return read_experiment(CommandLine(written, {}), [], catalogue)


@pytest.fixture
def his(tmp_path: Path) -> Path:
    """What a run of his has kept."""
    run = tmp_path / "his"
    run.mkdir()
    keep_for_repeating(run, duel(Catalogue.load()), Catalogue.load())
    give(run)
    return run


def give(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, HE, HE, follow_symlinks=False)


def service_file(run: Path) -> Path:
    return run / "catalog/services/nginx/service.toml"


def test_it_is_not_gone_on_with(his: Path) -> None:
    """Whatever it says is his: commands, files, variables, whom its programs run as."""
    with pytest.raises(UserError, match=r"somebody else's run, .* copy it"):
        kept_catalogue(his)
    os.chown(his, 0, 0)
    with pytest.raises(UserError, match="somebody else's run"):
        kept_catalogue(his)
    give(his)
    with pytest.raises(UserError, match="somebody else's run"):
        begun_in(his, caller())
    shutil.rmtree(his / "catalog")
    with pytest.raises(UserError, match="somebody else's run"):
        kept_catalogue(his)


@pytest.fixture
def open_to_him(tmp_path: Path) -> Path:
    """What a run of ours has kept, and where he may write."""
    run = tmp_path / "ours"
    run.mkdir()
    keep_for_repeating(run, duel(Catalogue.load()), Catalogue.load())
    for path in (run, *run.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    return run


def test_what_was_agreed_to_is_what_runs(open_to_him: Path) -> None:
    """He adds a command once that was looked at."""
    agreed_to = kept_catalogue(open_to_him)
    template = agreed_to.services["nginx"].folder / "nginx.conf.j2"
    before = template.read_text()
    text = service_file(open_to_him).read_text()
    service_file(open_to_him).write_text(f'before_start = [["/bin/sh", "-c", "id"]]\n{text}')
    (open_to_him / "catalog/services/nginx/nginx.conf.j2").write_text("load_module his.so;\n")
    assert kept_catalogue(open_to_him) == agreed_to
    assert template.read_text() == before
    assert content_of(files_of(agreed_to.folders[0])) is None


def test_he_gets_at_nothing_that_was_agreed_to(open_to_him: Path) -> None:
    folder = kept_catalogue(open_to_him).services["nginx"].folder
    private = next(path for path in folder.parents if path.lstat().st_mode & 0o777 == 0o700)
    assert private.lstat().st_uid == 0


def test_links_of_his_lead_to_nothing_of_root_s(open_to_him: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("a secret")
    template = open_to_him / "catalog/services/nginx/nginx.conf.j2"
    template.unlink()
    template.symlink_to(tmp_path / "secret")
    with pytest.raises(UserError, match="leads out of"):
        kept_catalogue(open_to_him)
    shutil.move(open_to_him / "catalog", tmp_path / "elsewhere")
    (open_to_him / "catalog").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError):
        kept_catalogue(open_to_him)


def test_a_folder_that_becomes_a_link_has_nothing_written_elsewhere(
    open_to_him: Path, victim: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root explains a run where he may write, and he swaps folders between two files."""
    experiment = duel(catalogue := kept_catalogue(open_to_him))
    (explain := open_to_him / "explain").mkdir()

    copy = shutil.copyfileobj

    def swapping(source: IO[bytes], target: IO[bytes]) -> None:
        if not explain.is_symlink():
            explain.rename(open_to_him / "was")
            explain.symlink_to(victim)
            os.chown(explain, HE, HE, follow_symlinks=False)
        copy(source, target)

    monkeypatch.setattr(shutil, "copyfileobj", swapping)
    with pytest.raises(OperationError, match="can't be written: a link of user 12345's"):
        keep_for_repeating(explain, experiment, catalogue)
    assert (open_to_him / "was/catalog/services/nginx/service.toml").is_file()


def test_records_go_nowhere_else(tmp_path: Path, victim: Path) -> None:
    head = simulated_run({"a": SimulatedVariant(), "b": SimulatedVariant()}, rounds=1).head
    RunFolder.create(tmp_path / "run", head).close()
    run = RunFolder.open(tmp_path / "run")
    run.path.rename(tmp_path / "was")
    run.path.symlink_to(victim)
    os.chown(run.path, HE, HE, follow_symlinks=False)
    with pytest.raises(OperationError, match="a link of user 12345's"):
        run.hold()


def test_what_only_we_may_change_is_not_copied(tmp_path: Path) -> None:
    keep_for_repeating(tmp_path / "run", duel(Catalogue.load()), Catalogue.load())
    kept = kept_catalogue(tmp_path / "run").services["nginx"].folder
    assert kept.is_relative_to(tmp_path)
    assert not others_may_change(tmp_path / "run")
    for changed, mode in ((kept, 0o777), (kept / "service.toml", 0o664)):
        before = changed.stat().st_mode
        changed.chmod(mode)
        assert others_may_change(tmp_path / "run")
        changed.chmod(before)
